"""Shapes computed by the graph, as the exporters write them, are folded and never executed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.graph_from_model import trace_model
from tests.support.models.onnx_text import assert_same, model_of
from xyntra_ep.fusion.tensor import Leaf, View
from xyntra_ep.tracea.core_ir.dims import symbol

BATCH, SEQ = symbol("d0_0"), symbol("d0_1")


def test_heads_are_split_without_data() -> None:
    """Shape, Gather, Unsqueeze, Concat, Reshape, Transpose: a view of the input."""
    model = model_of(
        """g (float[B, S, 64] x) => (float[a, b, c, d] y) {
            s = Shape(x) n = Gather <axis = 0> (s, zero) l = Gather <axis = 0> (s, one)
            nu = Unsqueeze(n, axis) lu = Unsqueeze(l, axis)
            shape = Concat <axis = 0> (nu, lu, heads, width)
            r = Reshape(x, shape) y = Transpose <perm = [0, 2, 1, 3]> (r)
        }""",
        {
            "zero": np.asarray(0), "one": np.asarray(1), "axis": np.asarray([0]), "heads": np.asarray([4]),
            "width": np.asarray([-1]),
        },
    )  # fmt: skip
    _, context = trace_model(model)
    y = context.tensors["y"]
    assert y.shape == (BATCH, 4, SEQ, 16)
    node = y.node
    while isinstance(node, View):
        node = node.base.node
    assert isinstance(node, Leaf)


def test_expand_of_a_mask_folds_its_where() -> None:
    """What PyTorch's legacy exporter writes for expand: Where(Equal(shape, -1), ones, shape)."""
    model = model_of(
        """g (float[B, S] x) => (float[a, b] y) {
            s = Shape(x) ones = ConstantOfShape <value = int64[1] {1}> (two) scaled = Mul(ones, minus)
            is_minus = Equal(s, scaled) shape = Where(is_minus, ones, s) y = Expand(x, shape)
        }""",
        {"two": np.asarray([2]), "minus": np.asarray(-1)},
    )
    _, context = trace_model(model)
    assert context.tensors["y"].shape == (BATCH, SEQ)
    assert_same(model, {"x": np.ones((2, 3), np.float32)})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("r = Div(s, k)", lambda b, s: [b // 2, s // 2]),
        ("r = Mod(s, k)", lambda b, s: [b % 2, s % 2]),
        ("r = Mul(s, k)", lambda b, s: [b * 2, s * 2]),
        ("r = Max(s, k)", lambda b, s: [max(b, 2), max(s, 2)]),
        ("r = Min(s, k)", lambda b, s: [min(b, 2), min(s, 2)]),
        ("n = Neg(s) r = Abs(n)", lambda b, s: [b, s]),
        ("f = Cast <to = 9> (s) r = Cast <to = 7> (f)", lambda b, s: [1, 1]),
        ("l = Less(s, k) n = Not(l) o = Or(l, n) r = Cast <to = 7> (o)", lambda b, s: [1, 1]),
        ("p = ReduceProd <keepdims = 1> (s) r = Concat <axis = 0> (p, k)", lambda b, s: [b * s, 2]),
        ("p = ReduceSum <keepdims = 1> (s) r = Concat <axis = 0> (p, k)", lambda b, s: [b + s, 2]),
        ("p = ReduceMax <keepdims = 1> (s) r = Concat <axis = 0> (p, k)", lambda b, s: [max(b, s), 2]),
        ("u = Unsqueeze(s, z) t = Transpose(u) q = Squeeze(t, one) r = Identity(q)", lambda b, s: [b, s]),
        ("t = Tile(k, k) r = Mul(t, s)", lambda b, s: [2 * b, 2 * s]),
        ("r = Slice(s, z, two, z, one)", lambda b, s: [b, s]),
        ("a, c = Split <axis = 0, num_outputs = 2> (s) r = Concat <axis = 0> (c, a)", lambda b, s: [s, b]),
    ],
)  # fmt: skip
def test_integer_operators_fold(body: str, expected: object) -> None:
    """Each is used as a shape, which declines unless its elements are known."""
    constants = {"k": np.asarray([2]), "z": np.asarray([0]), "one": np.asarray([1]), "two": np.asarray([2])}
    model = model_of(
        f"g (float[B, S] x) => (int64[n] r, float[c, d] y) {{ s = Shape(x) {body} y = ConstantOfShape(r) }}", constants
    )
    _, context = trace_model(model)
    assert context.tensors["r"].content is not None
    for batch, seq in ((3, 5), (1, 2)):
        assert_same(model, {"x": np.zeros((batch, seq), np.float32)})
        assert callable(expected)
        assert expected(batch, seq) is not None


def test_positions_of_a_dynamic_sequence() -> None:
    """Range over a size, with an offset: positions of a decoder."""
    model = model_of(
        """g (float[P] past, float[S] new) => (int64[Q] y) {
            p = Shape(past) n = Shape(new) ps = Squeeze(p) ns = Squeeze(n) end = Add(ps, ns) y = Range(ps, end, one)
        }""",
        {"one": np.asarray(1)},
    )
    assert_same(model, {"past": np.zeros(3, np.float32), "new": np.zeros(200, np.float32)})


def test_a_reshape_that_does_not_fit_is_refused_at_run_time() -> None:
    model = model_of("g (float[N] x) => (float[2, 3] y) { y = Reshape(x, shape) }", {"shape": np.asarray([2, 3])})
    _, context = trace_model(model)
    (_, message), *_ = context.checks.conditions
    assert message == "Reshape#0: the number of elements differs"
