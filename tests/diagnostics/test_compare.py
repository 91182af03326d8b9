from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.contenders import DEFAULT_MAX_ERR, Contender
from xyntra_ep.diagnostics.compare import MAX_DRIFT, Comparison, compare, drift, random_feeds
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.errors import ConfigError
from xyntra_ep.options import Precision

NAN, INF = float("nan"), float("inf")


def f(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_drift_is_relative_to_the_largest_element() -> None:
    found = drift("y", f(1, 2, 4.5), f(1, 2, 4))
    assert (found.relative, found.absolute, found.largest, found.alive) == (0.125, 0.5, 4.0, True)
    assert not drift("y", f(0, 0), f(0, 1e-6)).alive


@pytest.mark.parametrize(
    ("got", "wanted", "relative"),
    [
        (f(NAN, 1), f(NAN, 1), 0.0),
        (f(INF, 1), f(INF, 1), 0.0),
        (f(INF, 1), f(-INF, 1), float("inf")),
        (f(1, 1), f(NAN, 1), float("inf")),
        (f(NAN, 1), f(1, 1), float("inf")),
        (f(1), f(1, 1), float("inf")),
        (f(), f(), 0.0),
        (f(0), f(0), 0.0),
        (f(1e-9), f(0), float("inf")),
    ],
)
def test_special_values_must_be_where_they_are(got: np.ndarray, wanted: np.ndarray, relative: float) -> None:
    assert drift("y", got, wanted).relative == relative


def test_integers_are_equal_or_not() -> None:
    a = np.array([1000000, 5])
    assert drift("i", a, a).relative == 0 and drift("i", a + 1, a).relative == float("inf")


def test_the_first_tensor_that_drifts_is_named() -> None:
    tensors = tuple(drift(n, f(1 + e), f(1), op) for n, e, op in (("a", 0, "Relu"), ("b", 0.5, "Gelu"), ("c", 1, "Add")))
    found = Comparison(outputs=(drift("y", f(2), f(1)),), tensors=tensors, max_drift=1e-3)
    assert not found.ok and found.first is not None and found.first.name == "b"
    assert "first drift above 0.001: b (Gelu), 0.5" in str(found) and "DRIFT" in str(found)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_model_against_the_cpu_provider(mlp: Path) -> None:
    found = compare(mlp, nodes=True, sizes={"n": 7})
    assert [d.name for d in found.outputs] == ["y", "det"]
    assert found.outputs[0].relative <= found.max_drift and found.outputs[0].alive
    assert [d.name for d in found.tensors] == ["h0", "h1", "h2", "h3", "y", "yt", "yy", "det"]


@pytest.mark.parametrize("precision", Precision)
def test_a_precision_has_the_bound_that_bench_gives_it(precision: Precision) -> None:
    assert Contender.parse(f"XyntraEP:{precision}").max_err(DEFAULT_MAX_ERR) == MAX_DRIFT[precision]


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_what_is_asked_of_a_reduced_precision(mlp: Path) -> None:
    assert compare(mlp, options={"precision": "int8w"}).max_drift == MAX_DRIFT[Precision.INT8W]


def test_what_cannot_be_compared(mlp: Path, tmp_path: Path) -> None:
    (junk := tmp_path / "junk.onnx").write_text("junk")
    with pytest.raises(ConfigError, match=r"the session was refused: .*Protobuf parsing failed"):
        compare(junk)
    with pytest.raises(ConfigError, match=r"^compare: the model's inputs have no dimension 'm'. there are n$"):
        compare(mlp, sizes={"m": 3})
    with pytest.raises(ConfigError, match=r"^compare: n=-1 is no size. it wants an integer of at least 0$"):
        compare(mlp, sizes={"n": -1})
    with pytest.raises(ConfigError, match=r"^compare: seed=-1 is none. it wants an integer of at least 0$"):
        compare(mlp, seed=-1)


@pytest.mark.native
def test_feeds_that_onnxruntime_refuses(mlp: Path) -> None:
    with pytest.raises(ConfigError, match=r"^ONNX Runtime's CPU provider does not run it: .*rank.*--dim NAME=SIZE for n$"):
        compare(mlp, feeds={"x": f(1)})


def test_random_feeds_are_seeded_and_take_sizes(mlp: Path) -> None:
    session = open_session(mlp, None)
    a, b = (random_feeds(session, 3, {"n": 5})["x"] for _ in range(2))
    assert a.shape == (5, 64) and a.tobytes() == b.tobytes()
    assert random_feeds(session, 3, {})["x"].shape == (2, 64)
