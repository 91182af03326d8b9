"""Sessions without a compiler: what is prebuilt is ours, the rest is ONNX Runtime's, and both are said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.provider.compiled.prebuilt import TARGETS, library_of
from tests.support.models.model_text import close, cpu, normal, parse
from tests.support.sessions import planned, watched_planner
from xyntra_ep import knobs
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.tracea.doctor.profile import this_machine
from xyntra_ep.tracea.prebuilt.library import NOT_THERE, prebuilt_for
from xyntra_ep.tracea.runtime.compilers import NO_COMPILER

pytestmark = [
    pytest.mark.native,
    pytest.mark.compiler("cc"),
    pytest.mark.skipif(not TARGETS, reason="kernels are prebuilt for machines with AVX2"),
]


def layer(width: int, sides: int = 9) -> onnx.ModelProto:
    return parse(
        f"""(float[N,{width}] x, float[1,16,{sides},{sides}] image) => (float[N,{width}] y, float[1,32,{sides},{sides}] pixels) {{
        product = MatMul(x, w) biased = Add(product, b) y = Softmax<axis = 1>(biased)
        turned = Conv<pads = [1,1,1,1]>(image, k) pixels = Sigmoid(turned) }}""",
        20,
        w=normal(width, width),
        b=normal(width),
        k=normal(32, 16, 3, 3),
    )


def feeds(width: int, sides: int = 9) -> dict[str, np.ndarray]:
    return {"x": normal(5, width), "image": normal(1, 16, sides, sides)}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library_of(layer(128), tmp_path_factory.mktemp("prebuilt"))


@pytest.fixture
def without_compiler(library: Path) -> Iterator[Path]:
    with knobs.scope(cc=NO_COMPILER, prebuilt_dir=library):
        yield library


def test_a_model_of_other_sizes_runs_by_the_same_kernels(without_compiler: Path, tmp_path: Path) -> None:
    """128 columns were recorded; 256 are whole vectors and panels of the same widths, too."""
    for width, sides in ((128, 9), (256, 9)):
        with watched_planner() as calls:
            model = layer(width, sides)
            session = planned(model, {"cache_dir": str(tmp_path / str(width))})
        close(session.run(None, feeds(width, sides)), cpu(model, feeds(width, sides)))
        assert calls.reasons(0) == {}, calls.reasons(0)


def test_what_is_not_prebuilt_is_declined_and_said(without_compiler: Path, tmp_path: Path) -> None:
    model = parse("(float[N,128] x) => (float[N,128] y) { a = Erf(x) b = Tanh(a) y = Cosh(b) }", 20)
    with watched_planner() as calls:
        session = planned(model, {"cache_dir": str(tmp_path)})
    close(session.run(None, {"x": normal(3, 128)}), cpu(model, {"x": normal(3, 128)}))
    assert NOT_THERE in calls.reasons(0)["Cosh"]


def test_the_library_is_put_into_the_cache_once(without_compiler: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        planned(layer(128), {"cache_dir": str(tmp_path), "dump_dir": str(tmp_path / name)})
    made = [*(tmp_path / "kernels").glob("*.so")]
    assert 1 <= len(made) <= 2 and all(path.stat().st_mode & 0o077 == 0 for path in made)


@pytest.mark.parametrize("damage", ["cut short", "another library", "no index", "no library"])
def test_a_damaged_library_costs_the_nodes_alone(library: Path, damage: str, tmp_path: Path) -> None:
    place = tmp_path / "prebuilt"
    place.mkdir()
    for path in library.glob("*.so.xz"):
        data, index = path.read_bytes(), json.loads(path.with_name(path.name.replace(".so.xz", ".json")).read_text())
        if damage == "another library":
            index["library"] = "0" * 32
        (place / path.name).write_bytes(data[: len(data) // 2] if damage == "cut short" else data)
        (place / path.name.replace(".so.xz", ".json")).write_text("[]" if damage == "no index" else json.dumps(index))
        if damage == "no library":
            (place / path.name).unlink()
    with knobs.scope(cc=NO_COMPILER, prebuilt_dir=place), watched_planner() as calls:
        model = layer(128)
        session = planned(model, {"cache_dir": str(tmp_path / "cache")})
    close(session.run(None, feeds(128)), cpu(model, feeds(128)))
    said = "no C compiler" if damage == "no library" else "prebuilt kernels cannot be read"
    assert all(said in reason for reason in calls.reasons(0).values()) and calls.reasons(0)


def test_with_a_compiler_nothing_is_prebuilt(library: Path, tmp_path: Path) -> None:
    with knobs.scope(prebuilt_dir=library), watched_planner() as calls:
        planned(layer(128), {"cache_dir": str(tmp_path)})
    assert calls.reasons(0) == {} and len([*(tmp_path / "kernels").glob("*.so")]) > 2


def test_explain_names_the_library(without_compiler: Path, tmp_path: Path) -> None:
    onnx.save(layer(128), tmp_path / "layer.onnx")
    told = str(explain(tmp_path / "layer.onnx", options={"claim": "all", "cache_dir": str(tmp_path / "cache")}))
    found = prebuilt_for(this_machine(), without_compiler)
    assert found is not None
    assert f"kernels: prebuilt for {found.target}, since there is no compiler" in told


def test_the_best_library_is_taken(library: Path) -> None:
    found = prebuilt_for(this_machine(), library)
    assert found is not None and found.file.exists()
    assert prebuilt_for(this_machine(), library / "nothing") is None
