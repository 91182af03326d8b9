"""column_reduce.columns: a RowReduce with lanes along an outer axis, so that every lane is a row of its own.

Pooling and GlobalAveragePool of channels-last images, Softmax over channels, means over leading axes: wherever neighbours in
memory belong to different rows. Several vectors of rows advance together; small windows of known size are written out, and
taps outside of the image are skipped instead of being computed and discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product as tuples

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis
from xyntra_ep.tracea.core_ir.ops import ReduceKind, RowReduce
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import call_cost_ns, cycles_per_element, estimate_ns
from xyntra_ep.tracea.kernels.cpu.shared.row_units import Span, rows_of_units, spans, units_of
from xyntra_ep.tracea.kernels.shared.index import Lane
from xyntra_ep.tracea.kernels.shared.loops.nest import Lanes, Nest, Scope, maskable
from xyntra_ep.tracea.kernels.shared.loops.plan import Loop
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator, identity, is_arg
from xyntra_ep.tracea.kernels.shared.loops.rows import Rows, RowStage, keep_values, loops_around, plan_rows
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Isa
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, Rvalue, i64, index, vmin

_TOGETHER = 4  # vectors of rows: hides the latency of additions
_BLOCK = 256  # rows of one work unit along the lane axis
_LONG = 1024  # elements of a row, more of which make it worth being a unit with few others
_PARTS = 4
_LINE = 16  # floats of a cache line
_UNROLLED_TAPS = 25  # windows up to 5x5 are written out
_CHUNK = 128  # terms that a float sum adds up before it adds to the total: rounding errors do not pile up
_BLOCK_AXIS = -2
_WORTH = {Lane.VECTOR: 2, Lane.GUARDED: 1, Lane.STRIDED: 1}
_At = Callable[[Scope, int], Scope | Lanes]  # the lanes of the k-th span


def _plan(op: RowReduce, b: KernelBuilder) -> tuple[Rows, Nest] | None:
    """The outer axis along which reads are closest to contiguous becomes the lane axis; None when they all gather."""
    rows = keep_values(plan_rows(op, b), b, on_stack=False)
    best: Nest | None = None
    most = 0
    reads = [k for k, a in enumerate(rows.table.accesses) if not a.writable]
    for loop in reversed(rows.outer):
        nest = Nest(b, rows.table, loop.axis, rows.roots)
        worth = sum(_WORTH.get(nest.address(k).mode, 0) * (2 if nest.address(k).step == 1 else 1) for k in reads)
        if worth > most:
            best, most = nest, worth
    return None if best is None else (rows, best)


def _admits(op: RowReduce, context: BuildContext) -> str | None:
    if context.caps.lanes == 1:
        return "the machine has no vectors"
    if _plan(op, KernelBuilder("legality")) is None:
        return "along every outer axis each read is a gather"
    return None


def _cost_ns(op: RowReduce, config: Config, context: BuildContext) -> float:
    plan = _plan(op, KernelBuilder("estimate"))
    assert plan is not None
    return estimate_ns(op.outer + op.inner, _cycles(*plan, context))


def _cycles(rows: Rows, nest: Nest, context: BuildContext) -> float:
    extent = next(loop.extent for loop in rows.outer if loop.axis == nest.lane_axis)
    lanes = context.caps.lanes
    if isinstance(extent, int) and extent < lanes:
        lanes = max(1, extent // 2)
    walked = context.caps.lanes * _TOGETHER
    return cycles_per_element(nest, context.caps, walked, lanes=lanes) + 0.02 * len(rows.stages)


def _build(op: RowReduce, config: Config, context: BuildContext) -> list[KernelCall]:
    caps = context.caps
    b = KernelBuilder(f"xy_columns_{op.outputs[0].operand.dtype}_x{caps.lanes}")
    plan = _plan(op, b)
    assert plan is not None
    rows, nest = plan
    code = _ColumnCode(rows, nest)
    extent = next(loop.extent for loop in rows.outer if loop.axis == nest.lane_axis)
    outer = [loop for loop in rows.outer if loop.axis != nest.lane_axis]
    width: Size = extent
    block = _block(extent, rows.elements_per_row)
    if not isinstance(extent, int) or extent > block:
        outer, width = [*outer, Loop(_BLOCK_AXIS, ceildiv(extent, block))], block
    units = units_of(outer, rows.elements_per_row * width)
    masked = caps.isa is Isa.AVX512 and maskable(nest)
    outside = nest.outside()
    with rows_of_units(b, units) as coordinates:
        axes = {loop.axis: c for loop, c in zip(outer, coordinates, strict=True)}
        begin: Rvalue = index(0)
        end = b.param(extent)
        if _BLOCK_AXIS in axes:
            begin = b.let("begin", axes.pop(_BLOCK_AXIS) * block)
            end = b.let("end", vmin(begin + block, end))
        around = outside.bind(axes)
        spans(b, begin, end, caps.lanes, _TOGETHER, masked, lambda group: code.rows(around, group))
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(nest.table.buffers),
            params=params,
            units=units.count,
            cost_ns=call_cost_ns(op.outer + op.inner, _cycles(rows, nest, context)),
        )
    ]


def _block(extent: Size, elements_per_row: Size) -> int:
    """Rows of one unit along the lane axis: of long rows (the pixels of a channel) few, so that all threads have some."""
    if isinstance(elements_per_row, int) and elements_per_row <= _LONG:
        return _BLOCK
    part = extent // _PARTS if isinstance(extent, int) else _BLOCK // _PARTS
    return max(1, min(_BLOCK // _LINE, -(-part // _LINE))) * _LINE


class _ColumnCode:
    """All passes over a few vectors of rows."""

    def __init__(self, rows: Rows, nest: Nest) -> None:
        self._rows = rows
        self._b = nest.b
        self._deps = nest.table.deps
        assert nest.lane_axis is not None
        self._lane = axis(nest.lane_axis)

    def rows(self, around: Scope, group: Sequence[Span]) -> None:
        results: list[dict[int, Rvalue]] = [{} for _ in group]
        for j, stage in enumerate(self._rows.stages):
            for known, value in zip(results, self._reduce(around, group, stage, results), strict=True):
                known[j] = value
        per_row = [r for r in self._rows.results if r.per_row]
        full = [r for r in self._rows.results if not r.per_row]
        for span, known in zip(group, results, strict=True):
            here = around.lanes(span.at, span.lanes, span.count, known)
            for r in per_row:
                here.store(r.access, here.stored(r.body))
        if full:
            with loops_around(around, self._rows.inner) as (scope, _):
                for span, known in zip(group, results, strict=True):
                    here = scope.lanes(span.at, span.lanes, span.count, known)
                    for value, r in [(here.stored(r.body), r) for r in full]:
                        here.store(r.access, value)

    def _reduce(
        self, around: Scope, group: Sequence[Span], stage: RowStage, known: Sequence[Mapping[int, Rvalue]]
    ) -> list[Rvalue]:
        """The stage's result for each span."""
        b = self._b
        lanes = group[0].lanes
        deps = self._deps(stage.body)
        if self._lane not in deps and all(d.kind == "axis" for d in deps):  # as the size of a window at the border
            alone = Accumulator(b, stage.kind, stage.body.dtype, 1)
            self._each(around, [alone], stage, lambda scope, k: scope)
            return [alone.result(stage.dtype)] * len(group)
        totals = [Accumulator(b, stage.kind, stage.body.dtype, lanes) for _ in group]

        def at(scope: Scope, k: int) -> Scope | Lanes:
            return scope.lanes(group[k].at, lanes, group[k].count, known[k])

        self._each(around, totals, stage, at)
        return [t.result(stage.dtype) for t in totals]

    def _each(self, around: Scope, totals: Sequence[Accumulator], stage: RowStage, at: _At) -> None:
        """Take every element of the rows into ``totals``."""
        b, inner = self._b, self._rows.inner
        count = self._rows.elements_per_row
        if isinstance(count, int) and 0 < count <= _UNROLLED_TAPS:
            extents = [loop.extent for loop in inner]
            for position, place in enumerate(tuples(*(range(e) for e in extents if isinstance(e, int)))):
                tap = around.bind({loop.axis: index(i) for loop, i in zip(inner, place, strict=True)})
                self._take(tap, totals, stage, at, index(position))
            return
        last = inner[-1]
        short = isinstance(last.extent, int) and last.extent <= 2 * _CHUNK
        if short or stage.kind is not ReduceKind.SUM or stage.body.dtype is not DType.F32:
            with loops_around(around, inner) as (scope, where):
                self._take(scope, totals, stage, at, where)
            return
        with loops_around(around, inner[:-1]) as (scope, _):
            extent = scope.size(last.extent)
            with b.loop("chunk", 0, extent, _CHUNK) as first:
                partial = [Accumulator(b, stage.kind, stage.body.dtype, t.lanes) for t in totals]
                with b.loop("k", first, vmin(first + _CHUNK, extent)) as k:
                    self._take(scope.bind({last.axis: k}), partial, stage, at, k)
                for total, part in zip(totals, partial, strict=True):
                    total.merge(part)

    def _take(self, scope: Scope, totals: Sequence[Accumulator], stage: RowStage, at: _At, where: Rvalue) -> None:
        """One element of each row."""
        guarded = self._guard(stage)
        if guarded is not None:
            condition, body = guarded
            with self._b.when(Convert(INDEX, scope.value(condition))):
                inside = scope.bind()
                for k, total in enumerate(totals):
                    total.update(at(inside, k).value(body))
            return
        position = Convert(i64(1), where) if is_arg(stage.kind) else None
        for k, total in enumerate(totals):
            here = at(scope, k)
            total.update(here.value(stage.body), position)
            if stage.keep is not None:
                here.store(stage.kept_in, here.value(stage.keep))

    def _guard(self, stage: RowStage) -> tuple[Expr, Expr] | None:
        """(condition, value) of a body that changes nothing unless a condition holds, the same one in all lanes."""
        body = stage.body
        if body.kind != "call" or body.attr != "where" or is_arg(stage.kind) or stage.keep is not None:
            return None
        condition, value, other = body.args
        neutral = other.kind == "const" and other.attr == identity(stage.kind, body.dtype) and body.dtype is not DType.BOOL
        uniform = all(d.kind == "axis" and d is not self._lane for d in self._deps(condition))
        return (condition, value) if neutral and uniform else None


VARIANTS = [
    Variant(
        name="column_reduce.columns",
        op=RowReduce,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
    )
]
