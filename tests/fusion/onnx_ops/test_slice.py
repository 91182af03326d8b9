"""Slice, Split and Pad at their corners, with sizes that are known and sizes that are not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support.models.onnx_text import assert_same, model_of

FAR = 2**63 - 1
BOUNDS = [0, 1, 3, 6, 7, 8, 100, FAR, -1, -3, -6, -7, -8, -100, -FAR]


@pytest.mark.parametrize("shape", ["7, 2", "N, M"], ids=["static", "dynamic"])
@pytest.mark.parametrize("step", [1, 2, 3, 100, -1, -2, -3, -100])
def test_slice_like_ort(shape: str, step: int) -> None:
    """Every pair of bounds, in one model with one output each."""
    pairs = list(itertools.product(BOUNDS, BOUNDS))
    x = np.arange(14, dtype=np.float32).reshape(7, 2)
    constants = {f"b{b}".replace("-", "m"): np.asarray([b]) for b in BOUNDS}
    constants |= {"axes": np.asarray([0]), "steps": np.asarray([step])}
    names = [(f"b{a}".replace("-", "m"), f"b{b}".replace("-", "m")) for a, b in pairs]
    lines = " ".join(f"y{i} = Slice(x, {a}, {b}, axes, steps)" for i, (a, b) in enumerate(names))
    outputs = ", ".join(f"float[P{i}, Q{i}] y{i}" for i in range(len(pairs)))
    assert_same(model_of(f"g (float[{shape}] x) => ({outputs}) {{ {lines} }}", constants), {"x": x})


@pytest.mark.parametrize("k", [FAR, -FAR, 2, -2])
def test_trilu_with_a_diagonal_beyond_every_corner(k: int) -> None:
    model = model_of(
        "g (float[N, M] x) => (float[N, M] u, float[N, M] l) { u = Trilu(x, k) l = Trilu<upper = 0>(x, k) }", {"k": np.asarray(k)}
    )
    assert_same(model, {"x": np.arange(1, 13, dtype=np.float32).reshape(3, 4)})


@pytest.mark.parametrize("extent", [0, 1, 5])
def test_slice_of_what_may_be_empty(extent: int) -> None:
    model = model_of(
        "g (float[N] x) => (float[A] y, float[B] z) { y = Slice(x, one, far) z = Slice(x, last, before, axis, back) }",
        {
            "one": np.asarray([1]), "far": np.asarray([FAR]), "last": np.asarray([-1]), "before": np.asarray([-FAR]),
            "axis": np.asarray([0]), "back": np.asarray([-1]),
        },
    )  # fmt: skip
    assert_same(model, {"x": np.arange(extent, dtype=np.float32)})


def test_slice_by_a_size() -> None:
    """As decoders cut a causal mask: table[past : past + new]."""
    model = model_of(
        """g (float[P] past, float[S] new, float[64] table) => (float[Q] y) {
            p = Shape(past) s = Shape(new) e = Add(p, s) y = Slice(table, p, e)
        }"""
    )
    feeds = {"past": np.zeros(3, np.float32), "new": np.zeros(4, np.float32), "table": np.arange(64, dtype=np.float32)}
    assert_same(model, feeds)


@pytest.mark.parametrize("outputs", [2, 3])
def test_split_into_uneven_parts(outputs: int) -> None:
    names = [f"y{i}" for i in range(outputs)]
    declared = ", ".join(f"float[A{n}, B{n}] {n}" for n in names)
    model = model_of(
        f"g (float[2, 7] x) => ({declared}) {{ {', '.join(names)} = Split <axis = 1, num_outputs = {outputs}> (x) }}"
    )
    assert_same(model, {"x": np.arange(14, dtype=np.float32).reshape(2, 7)})


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("shape", ["4, 5", "N, M"], ids=["static", "dynamic"])
def test_pad_modes(mode: str, shape: str) -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    for pads in ([1, 2, 3, 0], [0, 0, 0, 0], [-1, 2, 1, -2]):
        if min(pads) < 0 and mode == "wrap":
            continue  # ONNX Runtime reads beyond the axis there
        body = f'g (float[{shape}] x) => (float[A, B] y) {{ y = Pad <mode = "{mode}"> (x, pads) }}'
        assert_same(model_of(body, {"pads": np.asarray(pads)}, opset=19), {"x": x})


def test_pad_with_a_computed_value_and_axes() -> None:
    model = model_of(
        "g (float[N, M] x, float v) => (float[A, B] y) { y = Pad(x, pads, v, axes) }",
        {"pads": np.asarray([2, 1]), "axes": np.asarray([-1])},
    )
    assert_same(model, {"x": np.ones((2, 3), np.float32), "v": np.asarray(7, np.float32)})
