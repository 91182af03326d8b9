"""interleave.few: an elementwise op whose result has a short last axis, along which its operands are not contiguous: planes of
colours that become pixels.

Each plane is computed as vectors along the axis before the last, and vectors of the planes are shuffled into one another:

    for 16 pixels:  r = body(red plane), g = ..., b = ...;  store r0 g0 b0 r1 g1 b1 ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import ceildiv
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import call_cost_ns, cycles_per_element, estimate_ns
from xyntra_ep.tracea.kernels.cpu.shared.row_units import BLOCK, Span, rows_of_units, spans, units_of
from xyntra_ep.tracea.kernels.shared.index import Lane
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest, Scope
from xyntra_ep.tracea.kernels.shared.loops.plan import Loop
from xyntra_ep.tracea.kernels.shared.loops.pointwise import PointwisePlan, plan_pointwise
from xyntra_ep.tracea.kernels.shared.words import as_words, in_words
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Shuffle, index, vmin

_MOST = 4  # planes: each result is shuffled together in one step less
_BLOCK_AXIS = -2
_LANES = (8, 16)


@dataclass(frozen=True, slots=True)
class _Planes:
    """``nest`` has its lanes along ``across``; ``along`` is the short axis, of ``count`` elements."""

    plan: PointwisePlan
    nest: Nest
    along: Loop
    across: Loop
    count: int


def _planes(op: Pointwise, b: KernelBuilder) -> _Planes | str:
    """How to interleave, or why not."""
    if len(op.outputs) != 1 or not in_words(op.outputs[0].dtype):
        return "not one result of floats, or of integers of at most 32 bits"
    plan = plan_pointwise(op, b)
    if len(plan.loops) < 2:
        return "the result has one axis"
    across, along = plan.loops[-2:]
    count, table = along.extent, plan.nest.table
    if not isinstance(count, int) or not 1 < count <= _MOST:
        return f"the last axis has {count} elements, not 2 to {_MOST}"
    [output] = plan.outputs
    strides = table.strides(table.accesses[output], [across.axis, along.axis])
    if strides is None or strides[along.axis] != 1 or strides[across.axis] != count:
        return "the last two axes of the result are not adjacent in memory"
    nest = Nest(b, table, across.axis, plan.bodies)
    if any(nest.address(k).mode not in (Lane.ONE, Lane.VECTOR) for k in range(len(table.accesses)) if k != output):
        return "an operand is not contiguous along the axis before the last"
    return _Planes(plan, nest, along, across, count)


def _admits(op: Pointwise, context: BuildContext) -> str | None:
    if context.caps.lanes not in _LANES:
        return f"no shuffles of vectors of {context.caps.lanes}"
    found = _planes(op, KernelBuilder("legality"))
    return found if isinstance(found, str) else None


def _cycles(p: _Planes, context: BuildContext) -> float:
    """As for a contiguous result, and the shuffles."""
    cycles = cycles_per_element(p.nest, context.caps, p.across.extent, shuffled=p.plan.outputs[0])
    return max(0.1, cycles) + (p.count - 1) / context.caps.lanes


def _cost_ns(op: Pointwise, config: Config, context: BuildContext) -> float:
    found = _planes(op, KernelBuilder("estimate"))
    assert isinstance(found, _Planes)
    return estimate_ns(op.domain, _cycles(found, context))


def _build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    caps = context.caps
    b = KernelBuilder(f"xy_interleave_{op.outputs[0].dtype}_x{caps.lanes}")
    p = _planes(op, b)
    assert isinstance(p, _Planes)
    block = BLOCK // p.count // caps.lanes * caps.lanes
    outer = [*p.plan.loops[:-2], Loop(_BLOCK_AXIS, ceildiv(p.across.extent, block))]
    units = units_of(outer, block * p.count)
    outside = p.nest.outside()
    with rows_of_units(b, units) as coordinates:
        axes = {loop.axis: c for loop, c in zip(outer, coordinates, strict=True)}
        begin = b.let("begin", axes.pop(_BLOCK_AXIS) * block)
        end = b.let("end", vmin(begin + block, b.param(p.across.extent)))
        around = outside.bind(axes)
        spans(b, begin, end, caps.lanes, 1, False, lambda group: _store(p, around, group[0]))
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(p.nest.table.buffers),
            params=params,
            units=units.count,
            cost_ns=call_cost_ns(op.domain, _cycles(p, context)),
        )
    ]


def _store(p: _Planes, around: Scope, span: Span) -> None:
    """All planes of the span."""
    b, [output], [body] = around.b, p.plan.outputs, p.plan.bodies
    planes: list[Rvalue] = []
    for i in range(p.count):
        here = around.bind({p.along.axis: index(i)}).lanes(span.at, span.lanes)
        value = b.let("plane", here.stored(body))
        if span.lanes == 1:
            here.store(output, value)
        planes.append(as_words(value))
    if span.lanes == 1:
        return
    first = around.bind({p.along.axis: index(0)})
    at = b.let("to", first.index(p.nest.address(output).base) + span.at * p.count)
    pointer = p.nest.table.accesses[output].pointer
    for j, pixels in enumerate(interleaved(b, planes)):
        b.store(pointer, at + j * span.lanes, pixels)


def interleaved(b: BlockBuilder, planes: Sequence[Rvalue]) -> list[Rvalue]:
    """Element 0 of every plane, element 1 of every plane ..., as many vectors as there are planes."""
    count, lanes = len(planes), planes[0].type.lanes
    results: list[Rvalue] = []
    for j in range(count):
        elements = [divmod(j * lanes + lane, count) for lane in range(lanes)]  # (element, plane) of each lane
        result = planes[0]
        for i in range(1, count):
            picked = [
                lanes + element if plane == i else (element if i == 1 else lane) for lane, (element, plane) in enumerate(elements)
            ]
            result = b.let("mixed", Shuffle(result, planes[i], tuple(picked)))
        results.append(result)
    return results


VARIANTS = [
    Variant(
        name="interleave.few",
        op=Pointwise,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
    )
]
