"""pointwise.vector: any elementwise op, gathers, pads and windows included, with lanes along the innermost loop.

Loops are ordered by the output's strides (a channels-last output seen as channels-first is walked in memory order), neighbours
that all operands walk through alike become one, and the last one is the lane axis.
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.cpu._loops_cost import call_cost_ns, cycles_per_element, estimate_ns
from xyntra_ep.tracea.kernels.cpu._row_units import BLOCK, Span, rows_of_units, spans, units_of
from xyntra_ep.tracea.kernels.shared.loops import Scope, maskable
from xyntra_ep.tracea.kernels.shared.loops_plan import Loop
from xyntra_ep.tracea.kernels.shared.loops_pointwise import PointwisePlan, plan_pointwise
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Isa
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, index, vmin

_BLOCK_AXIS = -2  # the loop over blocks of a long row; no expression refers to it


def _admits(op: Pointwise, context: BuildContext) -> str | None:
    return None


def _cost_ns(op: Pointwise, config: Config, context: BuildContext) -> float:
    return estimate_ns(op.domain, _cycles(plan_pointwise(op, KernelBuilder("estimate")), context))


def _cycles(plan: PointwisePlan, context: BuildContext) -> float:
    return cycles_per_element(plan.nest, context.caps, plan.loops[-1].extent if plan.loops else 1)


def _build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    caps = context.caps
    b = KernelBuilder(f"xy_pointwise_{op.outputs[0].dtype}_x{caps.lanes}")
    plan = plan_pointwise(op, b)
    nest, loops = plan.nest, plan.loops
    lane_extent: Size = loops[-1].extent if loops else 1
    outer = loops[:-1]
    blocked = not isinstance(lane_extent, int) or lane_extent > 2 * BLOCK
    if blocked:
        outer = (*outer, Loop(_BLOCK_AXIS, ceildiv(lane_extent, BLOCK)))
    units = units_of(outer, lane_extent if isinstance(lane_extent, int) or len(outer) > 1 else BLOCK)
    masked = caps.isa is Isa.AVX512 and maskable(nest)
    outside = nest.outside()
    with rows_of_units(b, units) as coordinates:
        axes = {loop.axis: c for loop, c in zip(units.loops, coordinates, strict=True)}
        begin, end = _range(b, axes.pop(_BLOCK_AXIS, None), lane_extent)
        row = outside.bind(axes)

        def emit(group: list[Span]) -> None:
            for span in group:
                _store(row, span, plan)

        spans(b, begin, end, caps.lanes if loops else 1, 1, masked, emit)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(nest.table.buffers),
            params=params,
            units=units.count,
            cost_ns=call_cost_ns(op.domain, _cycles(plan, context)),
        )
    ]


def _range(b: KernelBuilder, block: Rvalue | None, extent: Size) -> tuple[Rvalue, Rvalue]:
    if block is None:
        return index(0), b.param(extent)
    begin = b.let("begin", block * BLOCK)
    return begin, b.let("end", vmin(begin + BLOCK, b.param(extent)))


def _store(row: Scope, span: Span, plan: PointwisePlan) -> None:
    here = row.lanes(span.at, span.lanes, span.count)
    values = [here.value(body) for body in plan.bodies]
    for k, value in zip(plan.outputs, values, strict=True):
        here.store(k, value)


VARIANTS = [
    Variant(
        name="pointwise.vector",
        op=Pointwise,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
