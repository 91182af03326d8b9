"""What tensors demand of their sizes while a graph is traced: only what is not proven is left, and messages name the node."""

from __future__ import annotations

import itertools

import pytest

from tests.support.models.graph_from_model import trace_model
from tests.support.models.onnx_text import model_of
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.checks import Checks
from xyntra_ep.fusion.structure import conditions, inside
from xyntra_ep.fusion.tensor import ConcatNode, Leaf, Map, RowNode, Tensor
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

N, K = symbol("n"), symbol("k")


def leaf(*shape: Size) -> Tensor:
    return Tensor(shape, DType.F32, Leaf(kind="input", name="x"))


def demanded(t: Tensor) -> list[str]:
    return [message for _, message in conditions(t, Checks())]


def reading(t: Tensor, body: Expr, *shape: Size) -> Tensor:
    return Tensor(shape, DType.F32, Map(inputs=(t,), body=body))


@pytest.mark.parametrize("stride", [1, 3, -2])
def test_inside_says_what_it_means(stride: int) -> None:
    condition = inside(N, stride, K, 7)
    for n, k in itertools.product(range(9), range(5)):
        places = [n + i * stride for i in range(k)]
        assert evaluate(condition, {"n": n, "k": k}) == all(0 <= p < 7 for p in places), (n, k)


def test_each_kind_of_view() -> None:
    x = leaf(N, 8)
    assert demanded(x.slice([0, 2], [1, 1], [N, 6])) == [] and demanded(x.permute((1, 0))) == []
    assert demanded(x.slice([1, 0], [1, 1], [N, 8])) == ["what is taken of axis 0 lies outside of it"]
    assert demanded(x.reshape((N * 2, 4))) == [] and demanded(x.reshape((K, 8))) == ["the number of elements differs"]
    assert demanded(leaf(1, 8).expand((N, 8))) == []
    assert demanded(x.expand((K, 8))) == ["axis 0 can be repeated only where it is 1"]


def test_a_size_that_may_become_negative() -> None:
    assert demanded(leaf(N).slice([0], [1], [N - 3])) == ["the size of axis 0 would be negative"]


def test_reads_that_are_always_carried_out() -> None:
    x, here = leaf(K), E.load(0, E.axis(0), dtype=DType.F32)
    assert demanded(reading(x, here, N)) == ["axis 0 of an operand is too short"]
    assert demanded(reading(leaf(N), here, N)) == []
    beside = E.load(0, E.call("add", E.axis(0), E.const(1)), dtype=DType.F32)
    assert demanded(reading(leaf(N), beside, N)) and not demanded(reading(leaf(N + 1), beside, N))
    legal = E.call("lt", E.axis(0), E.size(K))
    assert demanded(reading(x, E.call("where", legal, here, E.const(0.0)), N)) == []  # a kernel clamps it
    row = RowNode(outer=(N,), inner=(8,), inputs=(x,), stages=(), outputs=((here, True),))
    assert demanded(Tensor((N,), DType.F32, row)) == ["axis 0 of an operand is too short"]


def test_parts_of_a_concatenation() -> None:
    joined = Tensor((N, 8), DType.F32, ConcatNode(parts=(leaf(N, 3), leaf(K, 5)), axis=1))
    assert demanded(joined) == ["axis 0 of the concatenated tensors differs"]


def test_a_node_whose_demands_cannot_be_met_is_declined() -> None:
    model = model_of("g (float[8] x) => (float[] y) { y = Gather (x, i) }", {"i": _indices(8)})
    with pytest.raises(UnsupportedError, match="out of data bounds"):
        trace_model(model)


def test_data_are_demanded_once_for_the_same_indices() -> None:
    body = "g (float[N,4] x, int64[M] i) => (float[] y) { a = Gather (x, i) b = Gather (x, i) y = Add (a, b) }"
    _, context = trace_model(model_of(body))
    assert [message for _, message in context.faults] == ["Gather#0: indices element out of data bounds"]


def test_data_that_are_known_cost_no_step() -> None:
    _, context = trace_model(model_of("g (float[N] x) => (float[] y) { y = Gather (x, i) }", {"i": _indices(2, -3)}))
    assert not context.faults and {m for _, m in context.checks.conditions} == {"Gather#0: indices element out of data bounds"}
    for n in range(5):
        assert all(evaluate(c, {"d0_0": n}) for c, _ in context.checks.conditions) == (n >= 3)


def _indices(*values: int):  # type: ignore[no-untyped-def]  # an int64 array
    import numpy as np

    return np.array(values, np.int64)
