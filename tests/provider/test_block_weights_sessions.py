"""MatMulNBits in sessions, against ONNX Runtime's kernel at its most exact: a gated layer as language models have it."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support.models.onnx_text import run_cpu
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
MAX_ERR = 3e-6
WIDTH, HIDDEN = 200, 328


def gated(
    bits: int = 4, zeros: bool = False, dtype: Any = np.float32, level: int = 0, by_groups: bool = False
) -> onnx.ModelProto:
    """down(silu(gate(x)) * up(x)) + x. ``by_groups``: blocks are not of neighbours."""
    rng = np.random.default_rng(0)
    constants: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def product(name: str, x: str, k: int, n: int) -> None:
        blocks = -(-k // 32)
        q = rng.integers(0, 256, (n, blocks, 4 * bits)).astype(np.uint8)
        arrays = {"q": q, "s": rng.uniform(-0.02, 0.02, (n, blocks)).astype(dtype)}
        if zeros:
            arrays["z"] = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
        if by_groups:
            arrays["g"] = (rng.permutation(k) // 32).astype(np.int32)
        constants.extend(numpy_helper.from_array(a, f"{name}_{key}") for key, a in arrays.items())
        settings: dict[str, Any] = {"K": k, "N": n, "bits": bits, "block_size": 32, "accuracy_level": level}
        names = [x, *(f"{name}_{key}" if key in arrays else "" for key in "qszg")]
        nodes.append(helper.make_node("MatMulNBits", names, [name], domain="com.microsoft", **settings))

    product("gate", "x", WIDTH, HIDDEN)
    product("up", "x", WIDTH, HIDDEN)
    nodes.append(helper.make_node("Sigmoid", ["gate"], ["open"]))
    nodes.append(helper.make_node("Mul", ["gate", "open"], ["silu"]))
    nodes.append(helper.make_node("Mul", ["silu", "up"], ["hidden"]))
    product("down", "hidden", HIDDEN, WIDTH)
    nodes.append(helper.make_node("Add", ["down", "x"], ["y"]))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [helper.make_tensor_value_info(name, kind, ["B", "S", WIDTH]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "gated", ends[:1], ends[1:], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def feeds_of(rows: int, batch: int = 1, dtype: Any = np.float32) -> dict[str, Any]:
    return {"x": np.random.default_rng(rows).standard_normal((batch, rows, WIDTH)).astype(dtype)}


def error(found: Any, wanted: Any) -> float:
    return float(np.abs(found.astype(np.float64) - wanted).max() / np.abs(wanted).max())


@pytest.mark.parametrize("isa", ["avx512", "avx2", "scalar"] if platform.machine() == "x86_64" else ["neon", "scalar"])
@pytest.mark.parametrize(("bits", "zeros"), [(4, False), (4, True), (8, False), (8, True)])
def test_a_gated_layer(isa: str, bits: int, zeros: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XYNTRA_ISA", isa)
    model = gated(bits, zeros)
    session = planned(model, {"cache_dir": str(tmp_path)})
    assert explain(session).claimed == len(model.graph.node)
    for feeds in (feeds_of(1), feeds_of(3), feeds_of(40), feeds_of(1, batch=5)):
        assert error(session.run(None, feeds)[0], run_cpu(model, feeds)[0]) < MAX_ERR


def test_blocks_by_g_idx() -> None:
    model = gated(by_groups=True)
    session = planned(model)
    assert explain(session).claimed == len(model.graph.node)
    for feeds in (feeds_of(1), feeds_of(40), feeds_of(1, batch=5)):
        assert error(session.run(None, feeds)[0], run_cpu(model, feeds)[0]) < MAX_ERR


@pytest.mark.parametrize("level", [1, 2, 4])
def test_what_accuracy_level_allows(level: int) -> None:
    """Rounded to bytes or bfloat16 at most, and not at all where that is not allowed, or the session is strict."""
    model, exact = gated(level=level), gated()
    feeds = feeds_of(40)
    wanted = run_cpu(exact, feeds)[0]
    assert error(planned(model).run(None, feeds)[0], wanted) < (MAX_ERR if level < 2 else 2e-2)
    assert error(planned(model, {"fp32_strict": "1"}).run(None, feeds)[0], wanted) < MAX_ERR
    assert error(planned(model).run(None, feeds_of(1))[0], run_cpu(exact, feeds_of(1))[0]) < MAX_ERR


def test_half_precision() -> None:
    model = gated(dtype=np.float16)
    session = planned(model)
    for rows in (1, 9, 40):
        feeds = feeds_of(rows, dtype=np.float16)
        assert error(session.run(None, feeds)[0], run_cpu(model, feeds)[0].astype(np.float64)) < 3e-3


def test_any_number_of_threads_gives_the_same_bits() -> None:
    model = gated(zeros=True)
    sessions = [planned(model, threads=n) for n in (1, 2, 3)]
    for rows in (1, 5, 70):
        results = [session.run(None, feeds_of(rows))[0].tobytes() for session in sessions for _ in range(3)]
        assert len(set(results)) == 1


def test_activations_are_part_of_the_products() -> None:
    """Two kernels for the gate and what it opens, one for the way back with the residual."""
    [graph] = explain(planned(gated())).graphs
    [island] = graph.islands
    assert [kernel.variant for kernel in island.kernels] == ["gemm.block_weights"] * 3


def test_a_level_that_allows_less_is_no_order() -> None:
    """Rows stay as they are."""
    exact, rough = gated(), gated(level=4)
    feeds = feeds_of(7)
    assert np.array_equal(planned(exact).run(None, feeds)[0], planned(rough).run(None, feeds)[0])
