"""Loads that become expressions."""

from __future__ import annotations

from xyntra_ep.fusion.scheduling.compose import Composer, axes, is_identity
from xyntra_ep.fusion.scheduling.dag import Dag, through_free_views, unit_reshape
from xyntra_ep.fusion.tensor import Leaf, Map, Tensor
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

N = symbol("n")
X = Tensor((N, 4), DType.F32, Leaf(kind="input", name="x"))


def unary(op: str, t: Tensor) -> Tensor:
    return Tensor(t.shape, t.dtype, Map(inputs=(t,), body=E.call(op, E.load(0, *axes(t.rank), dtype=t.dtype))))


def composer(dag: Dag) -> Composer:
    def source(t: Tensor, index: list[Expr]) -> Expr | None:
        return made.inline(t.node, index) if isinstance(t.node, Map) else None

    made = Composer(dag, source)
    return made


def test_a_chain_is_one_expression() -> None:
    y = unary("tanh", unary("exp", X))
    made = composer(Dag([y]))
    assert made.load(y, axes(2)) is E.call("tanh", E.call("exp", E.load(0, *axes(2), dtype=DType.F32)))
    assert [t.node for t in made.operands] == [X.node] and len(made.members) == 2


def test_indices_go_through() -> None:
    """A transposing Map over a Map: both read at the moved index, an operand counts once."""
    inner = unary("exp", X)
    body = E.call("add", E.load(0, E.axis(1), E.axis(0), dtype=DType.F32), E.load(1, E.axis(1), E.axis(0), dtype=DType.F32))
    y = Tensor((4, N), DType.F32, Map(inputs=(inner, X), body=body))
    made = composer(Dag([y]))
    turned = E.load(0, E.axis(1), E.axis(0), dtype=DType.F32)
    assert made.load(y, axes(2)) is E.call("add", E.call("exp", turned), turned)
    assert len(made.operands) == 1


def test_an_index_that_is_data_is_composed_too() -> None:
    at = Tensor((N,), DType.I64, Leaf(kind="input", name="i"))
    twice = Tensor((N,), DType.I64, Map(inputs=(at,), body=E.call("mul", E.load(0, E.axis(0), dtype=DType.I64), E.const(2))))
    body = E.load(0, E.load(1, E.axis(0), dtype=DType.I64), E.axis(1), dtype=DType.F32)
    y = Tensor((N, 4), DType.F32, Map(inputs=(X, twice), body=body))
    made = composer(Dag([y]))
    found = made.load(y, axes(2))
    assert found.kind == "load" and found.args[0].attr == "mul" and len(made.operands) == 2


def test_replacements_are_seen() -> None:
    y, z = unary("tanh", X), unary("exp", X)
    w = unary("neg", y)
    dag = Dag([w])
    dag.replace(y.node, z)
    dag.refresh()
    assert composer(dag).load(w, axes(2)) is E.call("neg", E.call("exp", E.load(0, *axes(2), dtype=DType.F32)))
    assert y.node not in dag.order and dag.uses[id(z.node)] == [w.node]


def test_identity() -> None:
    assert is_identity(axes(2), (N, 4))
    assert is_identity([E.axis(0), E.const(0)], (N, 1))
    assert not is_identity([E.axis(0), E.const(0)], (N, 4))
    assert not is_identity([E.axis(1), E.axis(0)], (N, N))


def test_unit_axes() -> None:
    i, j = E.axis(0), E.axis(1)
    assert unit_reshape((N, 4), (N, 1, 4), [i, E.const(0), j]) == [i, j]
    assert unit_reshape((N, 1, 4), (N, 4), [i, j]) == [i, E.const(0), j]
    assert unit_reshape((N, 4), (N, 2, 2), axes(3)) is None
    view = X.reshape((N, 1, 4)).permute((1, 2, 0))
    base, index = through_free_views(Dag([view]), view, [E.const(0), i, j])
    assert base.node is X.node and index == [j, i]
    sliced = view.slice([0, 1, 0], [1, 1, 1], [1, 3, N])
    assert through_free_views(Dag([sliced]), sliced, axes(3))[0] is sliced


def test_order_has_operands_first() -> None:
    y = unary("tanh", unary("exp", X))
    z = unary("neg", y)
    dag = Dag([z, y])
    assert [dag.position(n) for n in dag.order] == list(range(4))
    assert dag.is_output(y.node) and not dag.is_output(X.node)
