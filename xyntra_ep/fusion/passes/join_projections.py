"""Projections of one input, side by side in one product.

    q = x @ Wq + bq;  k = x @ Wk + bk;  v = x @ Wv + bv
 -> y = x @ [Wq | Wk | Wv] + [bq | bk | bv];  q, k, v = column slices of y

The weights are joined when the session is created; the slices are views, so attention reads q, k and v in place. Only products
that are finished by a constant bias (or nothing) are joined: what follows must be able to read a slice.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.fusion.passes._pass import Fact, Pass
from xyntra_ep.fusion.scheduling.compose import axes, is_identity
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.scheduling.weights import constant_matrix
from xyntra_ep.fusion.tensor import ConcatNode, GemmNode, Leaf, Map, Tensor, TNode, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType


@dataclass(frozen=True, slots=True, kw_only=True)
class _Projection:
    """``root`` is what others read: the product itself, or the Map that adds ``bias``."""

    gemm: GemmNode
    root: TNode
    result: Tensor
    weight: Tensor  # [K, N], constant
    bias: Tensor | None  # [N], constant


def join_projections(dag: Dag) -> bool:
    """Join every set of two or more projections of the same tensor; true when there was one."""
    by_input: dict[tuple[int, int], list[_Projection]] = {}
    for node in dag.order:
        if isinstance(node, GemmNode):
            found = _projection(dag, node)
            if found is not None:
                a = dag.get(node.a)
                by_input.setdefault((id(a.node), a.output), []).append(found)
    joined = False
    for projections in by_input.values():
        first = projections[0]
        same = [p for p in projections if (p.bias is None, p.weight.dtype) == (first.bias is None, first.weight.dtype)]
        if len(same) > 1:
            _join(dag, same)
            joined = True
    if joined:
        dag.refresh()
    return joined


def _projection(dag: Dag, gemm: GemmNode) -> _Projection | None:
    weight = constant_matrix(dag, gemm.b)
    if weight is None or dag.is_output(gemm) or not isinstance(weight.shape[1], int):
        return None
    readers = dag.uses[id(gemm)]
    if len(readers) != 1:
        return None
    reader = readers[0]
    if not isinstance(reader, Map):
        return _plain(dag, gemm, weight)
    result = next((t for r in dag.uses[id(reader)] for t in dag.operands(r) if t.node is reader), None)
    if result is None or dag.is_output(reader) or reader.keep or len(reader.inputs) != 2:
        return None
    product = next((j for j, t in enumerate(reader.inputs) if dag.get(t).node is gemm), None)
    if product is None:
        return None
    bias = dag.get(reader.inputs[1 - product])
    if not (isinstance(bias.node, Leaf) and bias.node.kind == "const" and bias.shape == weight.shape[1:]):
        return None
    body = reader.body
    loads = {e.attr: e for e in body.args} if body.kind == "call" and body.attr == "add" else {}
    at_place = set(loads) == {0, 1} and all(e.kind == "load" for e in body.args)
    if not at_place or not is_identity(loads[product].args, result.shape):
        return None
    if loads[1 - product].args != (E.axis(result.rank - 1),):
        return None
    return _Projection(gemm=gemm, root=reader, result=result, weight=weight, bias=bias)


def _plain(dag: Dag, gemm: GemmNode, weight: Tensor) -> _Projection | None:
    """A product that nothing finishes: its readers must be views, which can read a slice."""
    if not all(isinstance(r, View) for r in dag.uses[id(gemm)]):
        return None
    result = next(t for r in dag.uses[id(gemm)] for t in dag.operands(r) if t.node is gemm)
    return _Projection(gemm=gemm, root=gemm, result=result, weight=weight, bias=None)


def _join(dag: Dag, parts: list[_Projection]) -> None:
    first = parts[0]
    sources = frozenset[int]().union(*(p.gemm.sources | p.root.sources for p in parts))
    width: Size = sum((p.weight.shape[1] for p in parts), start=0)
    batch = first.result.shape[:-1]
    a = dag.get(first.gemm.a)
    weight = Tensor(
        (first.weight.shape[0], width),
        first.weight.dtype,
        ConcatNode(parts=tuple(p.weight for p in parts), axis=1, sources=sources),
    )
    spread = weight.expand((*a.shape[:-2], *weight.shape))
    joined = Tensor((*batch, width), DType.F32, GemmNode(a=a, b=spread, sources=sources))
    if first.bias is not None:
        biases = tuple(p.bias for p in parts if p.bias is not None)
        bias = Tensor((width,), first.bias.dtype, ConcatNode(parts=biases, axis=0, sources=sources))
        product = E.load(0, *axes(joined.rank), dtype=joined.dtype)
        body = E.call("add", product, E.load(1, E.axis(joined.rank - 1), dtype=bias.dtype))
        joined = Tensor(joined.shape, first.result.dtype, Map(inputs=(joined, bias), body=body, sources=sources))
    start: Size = 0
    for p in parts:
        starts: list[Size] = [*(0 for _ in batch), start]
        dag.replace(p.root, joined.slice(starts, [1] * joined.rank, p.result.shape))
        start = start + p.weight.shape[1]


PASS = Pass(
    name="join_projections",
    doc="projections of one input are one product, side by side",
    requires=(Fact.TENSORS, Fact.LOW_RANK),
    establishes=(Fact.PROJECTIONS,),
    run=lambda draft: join_projections(draft.dag),
)
