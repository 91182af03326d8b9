"""pointwise.vector: any elementwise op, gathers, pads and windows included, with lanes along the innermost loop.

Loops are ordered by the output's strides (a channels-last output seen as channels-first is walked in memory order), neighbours
that all operands walk through alike become one, and the last one is the lane axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, smin
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.cpu._loops_cost import call_cost_ns, cycles_per_element, estimate_ns
from xyntra_ep.tracea.kernels.cpu._row_units import BLOCK, Span, Units, in_runs, scopes_of_units, spans, units_of
from xyntra_ep.tracea.kernels.shared.lane_interior import Interior, interior_of
from xyntra_ep.tracea.kernels.shared.lane_tables import LaneTables, kept_values
from xyntra_ep.tracea.kernels.shared.loops import Lanes, Scope, maskable
from xyntra_ep.tracea.kernels.shared.loops_plan import Loop
from xyntra_ep.tracea.kernels.shared.loops_pointwise import PointwisePlan, plan_pointwise
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, index, lt, vmin

_KEPT_BLOCK = 4 * BLOCK  # elements of a unit whose rows have values in common: these cost up to 25 cycles each, a row's 3
_BLOCK_AXIS = -2  # the loop over blocks of a long row; no expression refers to it


def _admits(op: Pointwise, context: BuildContext) -> str | None:
    return None


def _cost_ns(op: Pointwise, config: Config, context: BuildContext) -> float:
    walk = _walk(op, KernelBuilder("estimate"), context.caps.lanes)
    return estimate_ns(op.domain, _cycles(walk, context.caps))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """How a kernel goes through its domain: units of rows, or of parts of rows where ``blocked``, which have up to ``most``
    elements. ``kept``: values of the lane that rows have in common."""

    plan: PointwisePlan
    units: Units
    lanes: int
    lane_extent: Size
    blocked: bool
    most: int
    interior: Interior | None
    kept: Sequence[Expr]


def _walk(op: Pointwise, b: KernelBuilder, lanes: int) -> _Walk:
    plan = plan_pointwise(op, b)
    loops = plan.loops
    extent: Size = loops[-1].extent if loops else 1
    outer, lanes = loops[:-1], lanes if loops else 1
    blocked = not isinstance(extent, int) or extent > 2 * BLOCK
    if blocked:
        outer = (Loop(_BLOCK_AXIS, ceildiv(extent, BLOCK)), *outer)  # mostly one, so that rows stay the loop that runs
    per_row = extent if isinstance(extent, int) or len(outer) > 1 else BLOCK
    units = units_of(outer, per_row)
    most = BLOCK if blocked or not isinstance(extent, int) else extent
    interior = interior_of(plan.nest, plan.bodies, extent) if lanes > 1 else None
    kept = kept_values(plan.nest, most, lanes) if interior is None and in_runs(units) else []
    if kept:
        units = units_of(outer, per_row, _KEPT_BLOCK)
    return _Walk(
        plan=plan, units=units, lanes=lanes, lane_extent=extent, blocked=blocked, most=most, interior=interior, kept=kept
    )


def _cycles(walk: _Walk, caps: Capabilities) -> float:
    """Per element, most of which are in the interior."""
    nest = walk.interior.nest if walk.interior else walk.plan.nest
    return cycles_per_element(nest, caps, smin(walk.lane_extent, BLOCK), kept=walk.kept)


def _build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    caps = context.caps
    b = KernelBuilder(f"xy_pointwise_{op.outputs[0].dtype}_x{caps.lanes}")
    walk = _walk(op, b, caps.lanes)
    plan, nest, lanes, interior = walk.plan, walk.plan.nest, walk.lanes, walk.interior
    masks = caps.isa is Isa.AVX512
    tables = LaneTables(nest, walk.kept, walk.most, lanes) if walk.kept else None

    def cover(scope: Scope, bodies: Sequence[Expr], begin: Rvalue, end: Rvalue) -> None:
        def emit(group: list[Span]) -> None:
            for span in group:
                given = tables.values(span.at - begin, span.lanes) if tables else ()
                _store(scope.lanes(span.at, span.lanes, span.count, given=given), bodies, plan.outputs)

        spans(b, begin, end, lanes, 1, masks and maskable(scope.nest), emit)

    outside = (interior.nest if interior else nest).outside()

    def before_run(axes: dict[int, Rvalue]) -> None:
        if tables is None:
            return
        begin, end = _range(b, axes.get(_BLOCK_AXIS), walk.lane_extent)

        def fill(group: Sequence[Span]) -> None:
            for span in group:
                tables.fill(outside.lanes(span.at, span.lanes), span.at - begin)

        if tables.reads:
            spans(b, begin, end, lanes, 1, False, fill)
            return
        with b.loop("t", begin, end, lanes) as at:
            fill([Span(at, lanes)])

    with scopes_of_units(b, walk.units, outside, before_run) as (axes, row):
        begin, end = _range(b, axes.pop(_BLOCK_AXIS, None), walk.lane_extent)
        if interior is None:
            cover(row, plan.bodies, begin, end)
        else:
            first, stop = interior.within(row, begin, end)
            cover(row, interior.bodies, first, stop)
            with b.loop("edge", 0, 2) as edge:  # before and after the interior
                start = b.let("start", begin + edge * (stop - begin))
                bound = b.let("bound", first + edge * (end - first))
                with b.when(lt(start, bound)):
                    cover(nest.outside().bind(axes), plan.bodies, start, bound)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(nest.table.buffers),
            params=params,
            units=walk.units.count,
            cost_ns=call_cost_ns(op.domain, _cycles(walk, caps)),
        )
    ]


def _range(b: KernelBuilder, block: Rvalue | None, extent: Size) -> tuple[Rvalue, Rvalue]:
    if block is None:
        return index(0), b.param(extent)
    begin = b.let("begin", block * BLOCK)
    return begin, b.let("end", vmin(begin + BLOCK, b.param(extent)))


def _store(here: Lanes | Scope, bodies: Sequence[Expr], outputs: Sequence[int]) -> None:
    values = [here.value(body) for body in bodies]
    for k, value in zip(outputs, values, strict=True):
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
