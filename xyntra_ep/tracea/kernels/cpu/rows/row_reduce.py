"""row_reduce.rows: any RowReduce, with lanes along the innermost reduced axis. LayerNorm, Softmax, ReduceX, ArgMax.

A row is walked once per stage, with several partial results so that additions do not wait for each other, and once more for
the outputs. Expensive values of one pass are kept for the next (the exponentials of a softmax).
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import RowReduce
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import call_cost_ns, cycles_per_element, estimate_ns
from xyntra_ep.tracea.kernels.cpu.shared.row_units import Span, rows_of_units, spans, units_of
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest, Scope, maskable
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator, is_arg
from xyntra_ep.tracea.kernels.shared.loops.rows import Rows, RowStage, keep_values, loops_around, plan_rows
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Isa
from xyntra_ep.tracea.semantic_ir.nodes import Convert, Iota, Rvalue, binary, i64

_PARTIAL = 4  # independent partial results: latency of an addition times two per cycle


def _admits(op: RowReduce, context: BuildContext) -> str | None:
    return None


def _plan(op: RowReduce, b: KernelBuilder) -> tuple[Rows, Nest]:
    rows = keep_values(plan_rows(op, b), b, on_stack=True)
    lane = rows.inner[-1].axis if rows.inner else None
    return rows, Nest(b, rows.table, lane, rows.roots)


def _cost_ns(op: RowReduce, config: Config, context: BuildContext) -> float:
    rows, nest = _plan(op, KernelBuilder("estimate"))
    return estimate_ns(op.outer + op.inner, _cycles(rows, nest, context))


def _cycles(rows: Rows, nest: Nest, context: BuildContext) -> float:
    extent = rows.inner[-1].extent if rows.inner else 1
    lanes = context.caps.lanes
    if isinstance(extent, int) and extent < lanes:
        lanes = 1
    walked = rows.elements_per_row
    return cycles_per_element(nest, context.caps, walked, lanes=lanes) + 0.05 * len(rows.stages)


def _build(op: RowReduce, config: Config, context: BuildContext) -> list[KernelCall]:
    caps = context.caps
    b = KernelBuilder(f"xy_rows_{op.outputs[0].operand.dtype}_x{caps.lanes}")
    rows, nest = _plan(op, b)
    code = _RowCode(rows, nest, caps.lanes, caps.isa is Isa.AVX512 and maskable(nest))
    units = units_of(rows.outer, rows.elements_per_row)
    outside = nest.outside()
    with rows_of_units(b, units) as coordinates:
        axes = {loop.axis: c for loop, c in zip(rows.outer, coordinates, strict=True)}
        row = outside.bind(axes)
        for j, stage in enumerate(rows.stages):
            row = row.bind(accs={j: code.reduce(row, stage)})
        code.write(row)
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


class _RowCode:
    """The passes over one row."""

    def __init__(self, rows: Rows, nest: Nest, lanes: int, masked: bool) -> None:
        self._rows = rows
        self._b = nest.b
        self._masked = masked
        extent = rows.inner[-1].extent if rows.inner else 1
        short = isinstance(extent, int) and extent < lanes and not masked
        self._lanes = 1 if short or not rows.inner else lanes
        whole = extent // self._lanes if isinstance(extent, int) else _PARTIAL
        self._unroll = max(1, min(_PARTIAL, whole))
        self._extent = extent

    def reduce(self, row: Scope, stage: RowStage) -> Rvalue:
        """The stage's result for this row."""
        b, arg = self._b, is_arg(stage.kind)
        masked = self._masked and not arg
        partial = 0 if self._lanes == 1 else 1 if arg else self._unroll
        total = Accumulator(b, stage.kind, stage.body.dtype, 1)
        wide = [Accumulator(b, stage.kind, stage.body.dtype, self._lanes) for _ in range(partial)]
        with loops_around(row, self._rows.inner[:-1]) as (scope, above):

            def emit(group: list[Span]) -> None:
                for k, span in enumerate(group):
                    here = scope.lanes(span.at, span.lanes, span.count)
                    value = here.value(stage.body)
                    if stage.keep is not None:
                        here.store(stage.kept_in, here.value(stage.keep))
                    target = total if span.lanes == 1 else wide[k]
                    position = _positions(above * b.param(self._extent) + span.at, span.lanes) if arg else None
                    target.update(value, position, span.count)

            spans(b, 0, b.param(self._extent), self._lanes, max(1, partial), masked, emit)
        if wide:
            while len(wide) > 1:  # as a tree: neighbours first
                for a, other in zip(wide[::2], wide[1::2], strict=False):
                    a.merge(other)
                wide = wide[::2]
            total.fold(wide[0])
        return total.result(stage.dtype)

    def write(self, row: Scope) -> None:
        """All results of this row."""
        for r in self._rows.results:
            if r.per_row:
                row.store(r.access, row.stored(r.body))
        full = self._rows.full
        if not full:
            return
        with loops_around(row, self._rows.inner[:-1]) as (scope, _):

            def emit(group: list[Span]) -> None:
                for span in group:
                    here = scope.lanes(span.at, span.lanes, span.count)
                    values = [here.stored(body) for body, _ in full]
                    for (_, access), value in zip(full, values, strict=True):
                        here.store(access, value)

            spans(self._b, 0, self._b.param(self._extent), self._lanes, 1, self._masked, emit)


def _positions(first: Rvalue, lanes: int) -> Rvalue:
    """Positions of consecutive elements, per lane."""
    at = Convert(i64(1), first)
    return binary("add", Iota(i64(lanes)), at) if lanes > 1 else at


VARIANTS = [
    Variant(
        name="row_reduce.rows",
        op=RowReduce,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
