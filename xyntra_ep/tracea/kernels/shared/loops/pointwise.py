"""A Pointwise op made ready for code: its loops in memory order, its expressions without loads."""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.shared.index import AccessTable
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest
from xyntra_ep.tracea.kernels.shared.loops.plan import Domain, Loop
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class PointwisePlan:
    """``outputs`` are the accesses that ``bodies`` are written to; the last loop is the lane axis (none for rank 0)."""

    nest: Nest
    bodies: tuple[Expr, ...]
    outputs: tuple[int, ...]
    loops: tuple[Loop, ...]


def plan_pointwise(op: Pointwise, b: KernelBuilder) -> PointwisePlan:
    """Loops by falling stride of the output, merged where all operands walk through two of them alike."""
    table = AccessTable(b, op.domain)
    bodies = [table.reading(body, op.inputs) for body in op.bodies]
    outputs = [table.writing(o) for o in op.outputs]
    domain = Domain(table, [Loop(i, extent) for i, extent in enumerate(op.domain)], bodies)
    domain.order([*outputs, *range(outputs[0])])
    domain.simplify()
    lane = domain.loops[-1].axis if domain.loops else None
    return PointwisePlan(
        nest=Nest(b, table, lane, domain.roots),
        bodies=tuple(domain.roots),
        outputs=tuple(outputs),
        loops=tuple(domain.loops),
    )
