"""The right side of a product as the matrix that it is: what is known when a session is created, and what is not."""

from __future__ import annotations

from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.tensor import ConcatNode, Expand, GemmNode, Leaf, Map, Permute, Reshape, Tensor, View
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.zeros import Filled, beside, filled_of


def matrix(dag: Dag, b: Tensor) -> Tensor | None:
    """The [K, N] that ``b`` has for each of its batch; None where these differ."""
    t = dag.get(b)
    while isinstance(t.node, View) and isinstance(t.node.step, (Expand, Reshape)) and t.rank > 2:
        t = dag.get(t.node.base)
    return t if t.rank == 2 and t.shape == b.shape[-2:] else None


def constant_matrix(dag: Dag, b: Tensor) -> Tensor | None:
    """The same of floats that the model alone decides, weights or what passes made of these; None where it is something else."""
    t = matrix(dag, b)
    return t if t is not None and _is_constant(dag, t) else None


def filled(dag: Dag, b: Tensor) -> Filled:
    """What is known of the zeros in the constant right side of a product, see `core_ir.zeros`."""
    t = constant_matrix(dag, b)
    return () if t is None or t.dtype is not DType.F32 else _filled(dag, t)


def _filled(dag: Dag, t: Tensor) -> Filled:
    t = dag.get(t)
    match t.node:
        case Leaf(sparse=read) if read is not None:
            return filled_of(read())
        case View(base=base, step=Permute()):
            leaf = dag.get(base).node
            return filled_of(leaf.sparse().T) if isinstance(leaf, Leaf) and leaf.sparse is not None else ()
        case ConcatNode(axis=1, parts=parts) if all(isinstance(part.shape[1], int) for part in parts):
            return beside([(_filled(dag, part), int(part.shape[1])) for part in parts])  # type: ignore[arg-type]  # known
        case _:
            return ()


def _is_constant(dag: Dag, t: Tensor) -> bool:
    """Each node is looked at once: models may have any number of ways to one."""
    stack, seen = [t], set[int]()
    while stack:
        t = dag.get(stack.pop())
        if id(t.node) in seen:
            continue
        seen.add(id(t.node))
        match t.node:
            case Leaf(kind="const") if t.dtype.is_float:
                pass
            case View(base=base, step=Permute()):
                stack.append(base)
            case GemmNode() | Map() | ConcatNode():
                stack += dag.operands(t.node)
            case _:
                return False
    return True
