"""transpose.tiled: an elementwise op one of whose operands is contiguous along another axis than the result.

Squares of lanes x lanes elements are read along the operand's axis, transposed in registers and finished (and written) along
the result's axis, so that both sides see whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import ceildiv, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import load
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import call_cost_ns, cycles_per_element, estimate_ns
from xyntra_ep.tracea.kernels.cpu.shared.row_units import Span, rows_of_units, spans, units_of
from xyntra_ep.tracea.kernels.shared.index import Lane
from xyntra_ep.tracea.kernels.shared.loops.nest import Lanes, Scope
from xyntra_ep.tracea.kernels.shared.loops.plan import Loop
from xyntra_ep.tracea.kernels.shared.loops.pointwise import PointwisePlan, plan_pointwise
from xyntra_ep.tracea.kernels.shared.words import as_words, in_words
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Isa
from xyntra_ep.tracea.semantic_ir.nodes import Load, Rvalue, Shuffle, index, lt, vmin

_BLOCK = 64  # elements along the operand's axis that stay together: a page of it is used before it is left
_BLOCK_AXIS = -2
_LANES = (8, 16)
_Pick = Callable[[Rvalue, Rvalue, Sequence[int]], Rvalue]


@dataclass(frozen=True, slots=True)
class _Tiling:
    """``across``: the loop along which the access ``turned`` is contiguous; ``along`` is the one of the result."""

    plan: PointwisePlan
    turned: int
    along: Loop
    across: Loop


def _tiling(op: Pointwise, b: KernelBuilder) -> _Tiling | str:
    """The tiling, or why there is none."""
    if len(op.outputs) != 1 or not in_words(op.outputs[0].dtype):
        return "not one result of floats, or of integers of at most 32 bits"
    plan = plan_pointwise(op, b)
    nest, table = plan.nest, plan.nest.table
    if len(plan.loops) < 2 or nest.address(plan.outputs[0]).mode is not Lane.VECTOR:
        return "the result is contiguous along no axis of two"
    turned: list[tuple[int, Loop]] = []
    axes = [loop.axis for loop in plan.loops]
    for k, access in enumerate(table.accesses):
        if nest.address(k).mode in (Lane.ONE, Lane.VECTOR):
            continue
        strides = table.strides(access, axes)
        across = next((loop for loop in plan.loops[:-1] if strides and strides[loop.axis] == 1), None)
        if access.writable or access.count is not None or not in_words(access.dtype) or across is None:
            return "an operand is neither contiguous with the result nor transposed to it"
        turned.append((k, across))
    if len(turned) != 1:
        return f"{len(turned)} operands are transposed"
    return _Tiling(plan, turned[0][0], plan.loops[-1], turned[0][1])


def _admits(op: Pointwise, context: BuildContext) -> str | None:
    if context.caps.lanes not in _LANES:
        return f"no transposition of vectors of {context.caps.lanes}"
    found = _tiling(op, KernelBuilder("legality"))
    return found if isinstance(found, str) else None


def _cycles(t: _Tiling, context: BuildContext) -> float:
    """As for a contiguous operand and the shuffles, over whole squares."""
    lanes = context.caps.lanes
    waste = 1.0
    for loop in (t.along, t.across):
        extent = max(1, typical(loop.extent))
        waste *= -(-extent // lanes) * lanes / extent
    return (cycles_per_element(t.plan.nest, context.caps, _BLOCK, shuffled=t.turned) + 0.35) * waste


def _cost_ns(op: Pointwise, config: Config, context: BuildContext) -> float:
    found = _tiling(op, KernelBuilder("estimate"))
    assert isinstance(found, _Tiling)
    return estimate_ns(op.domain, _cycles(found, context))


def _build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    caps = context.caps
    b = KernelBuilder(f"xy_transpose_{op.outputs[0].dtype}_x{caps.lanes}")
    t = _tiling(op, b)
    assert isinstance(t, _Tiling)
    nest = t.plan.nest
    others = [loop for loop in t.plan.loops[:-1] if loop is not t.across]
    outer = [*others, Loop(_BLOCK_AXIS, ceildiv(t.across.extent, _BLOCK))]
    units = units_of(outer, t.along.extent * _BLOCK)
    accesses = nest.table.accesses
    reads = [k for k in range(len(accesses)) if nest.address(k).mode is not Lane.ONE]
    masked = caps.isa is Isa.AVX512 and all(accesses[k].dtype is DType.F32 for k in reads)
    outside = nest.outside()
    with rows_of_units(b, units) as coordinates:
        axes = {loop.axis: c for loop, c in zip(outer, coordinates, strict=True)}
        begin = b.let("begin", axes.pop(_BLOCK_AXIS) * _BLOCK)
        end = b.let("end", vmin(begin + _BLOCK, b.param(t.across.extent)))
        code = _SquareCode(t, outside.bind(axes), caps.lanes, masked)
        spans(b, 0, b.param(t.along.extent), caps.lanes, 1, masked, lambda group: code.strip(group[0], begin, end))
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(nest.table.buffers),
            params=params,
            units=units.count,
            cost_ns=call_cost_ns(op.domain, _cycles(t, context)),
        )
    ]


class _SquareCode:
    """Squares of the block [begin, end) of the operand's axis."""

    def __init__(self, tiling: _Tiling, around: Scope, lanes: int, masked: bool) -> None:
        self._t = tiling
        self._around = around
        self._b = around.b
        self._lanes = lanes
        self._masked = masked

    def strip(self, along: Span, begin: Rvalue, end: Rvalue) -> None:
        """All squares (or single elements, at the borders) beside ``along``."""
        b = self._b
        if along.lanes == 1:
            with b.loop("j", begin, end) as j:
                self._element(along.at, j)
            return

        def emit(group: list[Span]) -> None:
            across = group[0]
            if across.lanes == 1:
                with b.loop("i", along.at, along.at + self._lanes) as i:
                    self._element(i, across.at)
            else:
                self._square(along, across)

        spans(b, begin, end, self._lanes, 1, self._masked, emit)

    def _element(self, along: Rvalue, across: Rvalue) -> None:
        here = self._around.bind({self._t.across.axis: across}).lanes(along, 1)
        here.store(self._t.plan.outputs[0], here.stored(self._t.plan.bodies[0]))

    def _square(self, along: Span, across: Span) -> None:
        b = self._b
        columns = transposed(b, [b.let("row", self._row(i, along, across)) for i in range(self._lanes)])
        for j, column in enumerate(columns):
            if across.count is None:
                self._finish(along, across.at + j, column)
                continue
            with b.when(lt(j, across.count)):
                self._finish(along, across.at + j, column)

    def _row(self, i: int, along: Span, across: Span) -> Rvalue:
        """Elements along the operand's axis; none where the square leaves the result."""
        nest = self._t.plan.nest
        address = nest.address(self._t.turned)
        scope = self._around.bind({self._t.across.axis: across.at})
        at = scope.index(address.base) + (along.at + i) * scope.size(address.step)
        count = across.count
        if along.count is not None:
            count = lt(i, along.count) * (index(self._lanes) if count is None else count)
        return as_words(Load(nest.table.accesses[self._t.turned].pointer, at, self._lanes, count))

    def _finish(self, along: Span, across: Rvalue, value: Rvalue) -> None:
        here = self._around.bind({self._t.across.axis: across}).lanes(along.at, self._lanes, along.count)
        assert isinstance(here, Lanes)
        here.define(load(self._t.turned, dtype=self._t.plan.nest.table.accesses[self._t.turned].dtype), value)
        here.store(self._t.plan.outputs[0], here.stored(self._t.plan.bodies[0]))


def transposed(b: BlockBuilder, rows: Sequence[Rvalue]) -> list[Rvalue]:
    """The columns of a square of 4, 8 or 16 vectors: 4x4 inside the quarters of 128 bits, then the quarters themselves."""
    n = len(rows)
    quads = range(0, n, 4)

    def pick(a: Rvalue, c: Rvalue, lanes: Sequence[int]) -> Rvalue:
        return b.let("t", Shuffle(a, c, tuple(lanes)))

    low = [q + k for q in quads for k in (0, n, 1, n + 1)]
    high = [q + k for q in quads for k in (2, n + 2, 3, n + 3)]
    low_pairs = [q + k for q in quads for k in (0, 1, n, n + 1)]
    high_pairs = [q + k for q in quads for k in (2, 3, n + 2, n + 3)]
    inner: list[Rvalue] = []
    for g in quads:
        r0, r1, r2, r3 = rows[g : g + 4]
        a, c, d, e = pick(r0, r1, low), pick(r2, r3, low), pick(r0, r1, high), pick(r2, r3, high)
        inner += [pick(a, c, low_pairs), pick(a, c, high_pairs), pick(d, e, low_pairs), pick(d, e, high_pairs)]
    if n == 4:
        return inner
    columns: list[Rvalue] = list(rows)
    for j in range(4):
        column = [inner[g + j] for g in quads]
        for q, quarter in enumerate(_transposed_quarters(pick, column, n)):
            columns[4 * q + j] = quarter
    return columns


def _transposed_quarters(pick: _Pick, column: Sequence[Rvalue], n: int) -> list[Rvalue]:
    """Vector q of the result holds quarter q of each vector of ``column`` (2 or 4 quarters)."""
    even = [4 * k + i for k in (range(0, n // 4, 2)) for i in range(4)]
    odd = [lane + 4 for lane in even]
    both_even, both_odd = even + [n + lane for lane in even], odd + [n + lane for lane in odd]
    if n == 8:
        a, c = column
        return [pick(a, c, both_even), pick(a, c, both_odd)]
    a, c, d, e = column
    left, right = (pick(a, c, both_even), pick(a, c, both_odd)), (pick(d, e, both_even), pick(d, e, both_odd))
    return [
        pick(left[0], right[0], both_even),
        pick(left[1], right[1], both_even),
        pick(left[0], right[0], both_odd),
        pick(left[1], right[1], both_odd),
    ]


VARIANTS = [
    Variant(
        name="transpose.tiled",
        op=Pointwise,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
    )
]
