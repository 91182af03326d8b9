"""Maps of tiles: as many rectangles as the graph has tiles, from what a plan's report says; windows of sessions, beside ORT's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.support.models.onnx_text import model_of, run_cpu
from tests.support.sessions import planned
from tests.tolerances import difference
from xyntra_ep.cli import main
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.tile_map import graph_of, picture
from xyntra_ep.tracea.core_ir.tile_graph import Role

H, M, D = 4, 2, 16  # heads of q, of k, and their size
WINDOW = 128


def grouped(new: int, past: int) -> onnx.ModelProto:
    """GroupQueryAttention with a window."""
    return model_of(
        f"""g (float[1, {new}, {H * D}] q, float[1, {new}, {M * D}] k, float[1, {new}, {M * D}] v,
            float[1, {M}, {past}, {D}] pk, float[1, {M}, {past}, {D}] pv)
            => (float[a, b, c] y, float[a, d, e, f] nk, float[a, d, e, f] nv) {{
            y, nk, nv = com.microsoft.GroupQueryAttention <num_heads = {H}, kv_num_heads = {M}, local_window_size = {WINDOW}>
                (q, k, v, pk, pv, ends, total)
        }}""",
        {"ends": np.full(1, past + new - 1, np.int32), "total": np.array(past + new, np.int32)},
        contrib=True,
    )


def banded(size: int, window: int) -> onnx.ModelProto:
    """A constant mask, as exporters write it: added, and nothing but a table."""
    seen = np.tri(size, dtype=bool) & np.triu(np.ones((size, size), bool), 1 - window)
    return model_of(
        f"""g (float[1, {H}, {size}, {D}] q, float[1, {H}, {size}, {D}] k) => (float[a, b, c, d] y) {{
            kt = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul (q, kt) w = Add (s, mask)
            p = Softmax <axis = -1> (w) y = MatMul (p, k)
        }}""",
        {"mask": np.where(seen, 0, -np.inf).astype(np.float32)[None, None]},
    )


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def test_lines_become_the_graph() -> None:
    """10 rows of two heads that share their keys, of which row s sees the columns s mod 5 + 3 to s mod 5 + 7."""
    graph = graph_of({"rows": 10, "columns": 20, "tile": [5, 4], "begins": [[5, 3]], "ends": [[5, 8]]})
    assert not list(graph.problems()) and {t.role for t in graph.tiles} == {Role.MASKED}
    assert graph.compressed().spans() == [[(0, 12)], [(0, 12)]]
    dense = graph_of({"rows": 4096, "columns": 4096, "tile": [12, 32], "begins": [], "ends": []})
    assert dense.share == 1.0 and dense.tile == (96, 1, 64) and dense.m == 4096


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_a_rectangle_for_each_tile(rows: int) -> None:
    graph = graph_of({"rows": rows, "columns": 300, "tile": [12, 32], "begins": [[1, -20]], "ends": [[300, 1]]})
    drawn = picture(graph)
    assert drawn.count("<rect") == len(graph.tiles)
    for role in Role:
        assert drawn.count(f'class="tile {role}"') == sum(t.role is role for t in graph.tiles)


@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("model", [grouped(1024, 0), banded(1024, WINDOW)], ids=["local_window_size", "constant band"])
def test_windows_of_sessions(model: onnx.ModelProto, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feeds = feeds_of(model)
    session = planned(model)
    for found, wanted in zip(session.run(None, feeds), run_cpu(model, feeds), strict=True):
        assert not (text := difference(found, wanted)), text
    [kernel] = [k for g in explain(session).graphs for i in g.islands for k in i.usual if k.tiles is not None]
    assert kernel.tiles is not None and kernel.tiles["begins"] and kernel.tiles["ends"]
    graph = graph_of(kernel.tiles)
    assert graph.share < 0.3
    path, page = tmp_path / "model.onnx", tmp_path / "tiles.html"
    onnx.save(model, path)
    assert main(["explain", str(path), "-O", "claim=all", "--tiles", str(page)]) == 0
    capsys.readouterr()
    assert len(re.findall("<rect ", page.read_text(encoding="utf-8"))) == len(graph.tiles)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_keys_before_every_window_are_not_read() -> None:
    """NaN among them changes nothing, which it does where all is computed: 0 * NaN."""
    model = grouped(64, 960)
    feeds = feeds_of(model)
    wanted = run_cpu(model, feeds)[0]
    for name in ("pk", "pv"):
        feeds[name][:, :, : 960 - WINDOW - 64] = np.nan
    assert not (text := difference(planned(model).run(None, feeds)[0], wanted)), text
    assert np.isnan(planned(model, {"fp32_strict": "1"}).run(None, feeds)[0]).all()
