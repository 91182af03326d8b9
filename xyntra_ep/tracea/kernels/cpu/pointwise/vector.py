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
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import call_cost_ns, cycles_per_element, estimate_ns
from xyntra_ep.tracea.kernels.cpu.shared.row_units import (
    BLOCK,
    Span,
    Units,
    fill_tables,
    in_runs,
    scopes_of_units,
    spans,
    units_of,
)
from xyntra_ep.tracea.kernels.shared.loops.lane_interior import Interior, interior_of
from xyntra_ep.tracea.kernels.shared.loops.lane_picks import are_picked
from xyntra_ep.tracea.kernels.shared.loops.lane_tables import LaneTables, kept_values
from xyntra_ep.tracea.kernels.shared.loops.nest import Lanes, Scope, maskable
from xyntra_ep.tracea.kernels.shared.loops.plan import Loop
from xyntra_ep.tracea.kernels.shared.loops.pointwise import PointwisePlan, plan_pointwise
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, index, lt, vmin

_KEPT_BLOCK = 4 * BLOCK  # elements of a unit whose rows have values in common: these cost up to 25 cycles each, a row's 3
_BLOCK_AXIS = -2  # the loop over blocks of a long row; no expression refers to it


def _admits(op: Pointwise, context: BuildContext) -> str | None:
    return None


def _cost_ns(op: Pointwise, config: Config, context: BuildContext) -> float:
    walk = _walk(op, KernelBuilder("estimate"), context.caps)
    return estimate_ns(op.domain, _cycles(walk, context.caps))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """How a kernel goes through its domain: units of rows, or of blocks of rows, which have up to ``most`` elements. ``kept``:
    values of the lane that rows have in common."""

    plan: PointwisePlan
    units: Units
    lanes: int
    lane_extent: Size
    block: int
    most: int
    interior: Interior | None
    kept: Sequence[Expr]


def _walk(op: Pointwise, b: KernelBuilder, caps: Capabilities) -> _Walk:
    plan = plan_pointwise(op, b)
    loops = plan.loops
    extent: Size = loops[-1].extent if loops else 1
    outer, lanes = loops[:-1], caps.lanes if loops else 1
    block = _block(plan, caps)
    blocked = not isinstance(extent, int) or extent > 2 * block
    if blocked:
        outer = (Loop(_BLOCK_AXIS, ceildiv(extent, block)), *outer)  # mostly one, so that rows stay the loop that runs
    per_row = extent if isinstance(extent, int) or len(outer) > 1 else block
    units = units_of(outer, per_row)
    most = block if blocked or not isinstance(extent, int) else extent
    interior = interior_of(plan.nest, plan.bodies, extent) if lanes > 1 else None
    kept = kept_values(plan.nest, most, lanes) if interior is None and in_runs(units) else []
    if kept:
        units = units_of(outer, per_row, _KEPT_BLOCK)
    return _Walk(plan=plan, units=units, lanes=lanes, lane_extent=extent, block=block, most=most, interior=interior, kept=kept)


def _block(plan: PointwisePlan, caps: Capabilities) -> int:
    """Elements of a row that follow each other before the same ones of the next row: where they are read from between others,
    which that row may read, few enough that their lines stay in L1."""
    apart = [
        a.dtype.bytes * step
        for k, a in enumerate(plan.nest.table.accesses)
        if are_picked(step := plan.nest.address(k).step, caps.lanes) and isinstance(step, int)
    ]
    return min(BLOCK, max(1, caps.l1d_bytes // 2 // max(apart) // caps.lanes) * caps.lanes) if apart else BLOCK


def _cycles(walk: _Walk, caps: Capabilities) -> float:
    """Per element, most of which are in the interior."""
    nest = walk.interior.nest if walk.interior else walk.plan.nest
    return cycles_per_element(nest, caps, smin(walk.lane_extent, walk.block), kept=walk.kept)


def _build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    caps = context.caps
    b = KernelBuilder(f"xy_pointwise_{op.outputs[0].dtype}_x{caps.lanes}")
    walk = _walk(op, b, caps)
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
        if tables is not None:
            fill_tables(b, tables, outside, *_range(b, axes.get(_BLOCK_AXIS), walk), lanes)

    with scopes_of_units(b, walk.units, outside, before_run) as (axes, row):
        begin, end = _range(b, axes.pop(_BLOCK_AXIS, None), walk)
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


def _range(b: KernelBuilder, number: Rvalue | None, walk: _Walk) -> tuple[Rvalue, Rvalue]:
    if number is None:
        return index(0), b.param(walk.lane_extent)
    begin = b.let("begin", number * walk.block)
    return begin, b.let("end", vmin(begin + walk.block, b.param(walk.lane_extent)))


def _store(here: Lanes | Scope, bodies: Sequence[Expr], outputs: Sequence[int]) -> None:
    values = [here.stored(body) for body in bodies]
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
