"""row_reduce.windows: windows that move along a contiguous axis: pooling of planes, with the channels outside.

A window is the product of its lines and its taps along the line, and so is its reduction:

    for each row of windows:  line[column] = reduction over the window's lines of value(column)     lanes: columns
                              result[i]    = reduction over k of line[i * stride + k * dilation]    lanes: windows

The line is a small array that begins and ends with the padding's neutral value, so that no tap asks where the image ends; with
a stride the lanes of a tap are picked out of neighbouring vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product as tuples

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, rewrite, size, walk
from xyntra_ep.tracea.core_ir.index_range import affine
from xyntra_ep.tracea.core_ir.ops import Operand, ReduceKind, RowReduce
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import call_cost_ns, estimate_ns
from xyntra_ep.tracea.kernels.cpu.shared.row_units import BLOCK, Span, Units, fill_tables, in_runs, scopes_of_units, spans
from xyntra_ep.tracea.kernels.shared.index import Access, AccessTable, Lane
from xyntra_ep.tracea.kernels.shared.loops.lane_picks import MOST_APART, picked
from xyntra_ep.tracea.kernels.shared.loops.lane_tables import LaneTables, kept_values
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest, Scope, maskable
from xyntra_ep.tracea.kernels.shared.loops.plan import Domain, Loop
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator, identity
from xyntra_ep.tracea.kernels.shared.loops.rows import loops_around
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Isa
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Const, Convert, Pointer, Rvalue, Var, f32, index, vmax, vmin

_KINDS = frozenset({ReduceKind.SUM, ReduceKind.PROD, ReduceKind.ANY_NAN_MAX})
_MOST_TAPS = 32
_UNROLLED_LINES = 25
_COLUMNS = 256  # of a line, of which a group's stay in the first-level cache
GROUP = 8  # rows
_GROUPS = 2  # of rows in a unit, at least: what depends on the lane alone is computed once for them
_TOGETHER = 2  # vectors of columns: each line's guard is asked once for them
_BLOCK_AXIS, _GROUP_AXIS, _ONE_AXIS = -2, -3, -4  # no expression refers to them


@dataclass(frozen=True, slots=True, kw_only=True)
class _Windows:
    """``value`` at axis(``column``) of the lines where ``guard`` holds; window i of a row begins at i * stride + ``start``."""

    table: AccessTable
    kind: ReduceKind
    outer: tuple[Loop, ...]  # the last one: rows
    along: Loop
    lines: tuple[Loop, ...]
    column: int
    columns: Size
    taps: int
    stride: int
    dilation: int
    start: Expr
    guard: Expr | None
    value: Expr
    is_padded: bool
    result: Expr
    output: int

    @property
    def rows(self) -> Loop:
        return self.outer[-1]

    @property
    def neutral(self) -> float:
        return identity(self.kind, DType.F32)

    def over_lines(self, b: KernelBuilder) -> Nest:
        roots = [self.value, self.start] if self.guard is None else [self.value, self.start, self.guard]
        return Nest(b, self.table, self.column, roots)

    def over_taps(self, b: KernelBuilder) -> Nest:
        return Nest(b, self.table, self.along.axis, [self.result])

    def reach(self, windows: Size) -> Size:
        """Columns that so many neighbouring windows cover."""
        return (windows - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def block(self, lanes: int) -> int:
        """Windows that share a line."""
        most = max(lanes, _COLUMNS // self.stride // lanes * lanes)
        extent = self.along.extent
        return min(most, max(1, -(-extent // lanes)) * lanes) if isinstance(extent, int) else most


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tap lies along its line: at ``index`` of ``extent`` columns."""

    index: Expr
    extent: Size
    stride: int
    dilation: int
    start: Expr


def _place(body: Expr, inputs: Sequence[Operand], along: int, tap: int) -> _Place | None:
    """The one index that moves with the tap."""
    found: set[tuple[Expr, Size]] = set()
    for e in walk(body):
        if e.kind == "load":
            shape = inputs[e.attr].shape
            found |= {(i, extent) for i, extent in zip(e.args, shape, strict=True) if axis(tap) in walk(i)}
    if len(found) != 1:
        return None
    [(place, extent)] = found
    parts = affine(place)
    stride, dilation = (parts.coefficients.get(a, 0) for a in (along, tap))
    if set(parts.coefficients) - {along, tap} or not isinstance(stride, int) or not isinstance(dilation, int):
        return None
    if stride < 1 or dilation < 1 or any(e.kind in ("axis", "load", "acc") for e in walk(parts.rest)):
        return None
    return _Place(place, extent, stride, dilation, parts.rest)


def _conditions(e: Expr) -> Iterator[Expr]:
    if e.kind == "call" and e.attr == "and":
        for part in e.args:
            yield from _conditions(part)
    else:
        yield e


def _windows(op: RowReduce, b: KernelBuilder) -> _Windows | str:
    """What the op's windows are, or why they are none of this kind."""
    if len(op.stages) != 1 or len(op.outputs) != 1 or not op.outputs[0].per_row or not op.outer or not op.inner:
        return "not one result for each window"
    [stage], along, tap = op.stages, len(op.outer) - 1, len(op.outer) + len(op.inner) - 1
    taps = op.inner[-1]
    if stage.kind not in _KINDS or stage.dtype is not DType.F32 or stage.body.dtype is not DType.F32:
        return f"{stage.kind} of {stage.dtype}"
    if not isinstance(taps, int) or not 1 <= taps <= _MOST_TAPS:
        return f"{taps} taps in a line of a window"
    place = _place(stage.body, op.inputs, along, tap)
    if place is None:
        return "no index moves by constant steps with the window and with the tap"
    if place.stride > MOST_APART:
        return f"windows are {place.stride} columns apart"
    value, guards, is_padded = stage.body, [], False
    if value.kind == "call" and value.attr == "where":
        condition, value, other = value.args
        if other.kind != "const" or other.attr != identity(stage.kind, DType.F32):
            return "what is outside of the image changes the result"
        borders = {call("le", const(0), place.index), call("lt", place.index, size(place.extent))}
        conditions = list(_conditions(condition))
        guards = [c for c in conditions if c not in borders]
        is_padded = len(guards) < len(conditions)
    column = tap + 1
    value = rewrite(value, lambda e: axis(column) if e is place.index else None)
    if any(axis(a) in walk(e) for e in (value, *guards) for a in (along, tap)):
        return "the value depends on where it is in its window"

    table = AccessTable(b, (*op.outer, *op.inner, place.extent))
    value, *guards = (table.reading(e, op.inputs) for e in (value, *guards))
    table.accesses = [_inside(a, guards) for a in table.accesses]
    result, output = table.reading(op.outputs[0].body, op.inputs), table.writing(op.outputs[0].operand)
    loops = [Loop(i, extent) for i, extent in enumerate(op.outer[:-1])]
    domain = Domain(table, loops, [value, result, *guards])
    domain.simplify()
    value, result, *guards = domain.roots
    guard: Expr | None = None
    for c in guards:
        guard = c if guard is None else call("and", guard, c)
    w = _Windows(
        table=table,
        kind=stage.kind,
        outer=tuple(domain.loops) or (Loop(_ONE_AXIS, 1),),
        along=Loop(along, op.outer[-1]),
        lines=tuple(Loop(len(op.outer) + i, extent) for i, extent in enumerate(op.inner[:-1])),
        column=column,
        columns=place.extent,
        taps=taps,
        stride=place.stride,
        dilation=place.dilation,
        start=place.start,
        guard=guard,
        value=value,
        is_padded=is_padded,
        result=result,
        output=output,
    )
    lines, over = w.over_lines(b), w.over_taps(b)
    if any(lines.address(e.attr).mode not in (Lane.ONE, Lane.VECTOR) for e in walk(value) if e.kind == "load"):
        return "the columns of a line are no neighbours in memory"
    return w if over.address(output).mode is Lane.VECTOR else "the results of a row are no neighbours in memory"


def _inside(access: Access, guards: Sequence[Expr]) -> Access:
    """``access``, which is read where ``guards`` hold only."""

    def is_inside(position: Expr, extent: Size) -> bool:
        return call("le", const(0), position) in guards and call("lt", position, size(extent)) in guards

    terms = tuple(replace(t, inside=t.inside or is_inside(t.index, t.extent)) for t in access.terms)
    return replace(access, terms=terms, count=None if all(t.inside for t in terms) else access.count)


def _admits(op: RowReduce, context: BuildContext) -> str | None:
    found = _windows(op, KernelBuilder("legality"))
    return found if isinstance(found, str) else None


def _cycles(w: _Windows, context: BuildContext) -> float:
    """For one result: whole vectors of columns and of windows, and what each row costs besides: more where only a run knows how
    many vectors there are."""
    lanes, windows = context.caps.lanes, max(1, typical(w.along.extent))
    lines = max(1, typical(product(loop.extent for loop in w.lines)))
    columns = math.ceil(typical(w.reach(windows)) / lanes) * (lines + 1)
    row = 6 if isinstance(w.along.extent, int) else 32
    picked = 1.0 if w.stride == 1 else 0.9 * w.stride
    return (columns + math.ceil(windows / lanes) * (w.taps * picked + 3) + row) / windows


def _cost_ns(op: RowReduce, config: Config, context: BuildContext) -> float:
    found = _windows(op, KernelBuilder("estimate"))
    assert isinstance(found, _Windows)
    return estimate_ns(op.outer, _cycles(found, context))


def _build(op: RowReduce, config: Config, context: BuildContext) -> list[KernelCall]:
    caps = context.caps
    b = KernelBuilder(f"xy_windows_{op.outputs[0].operand.dtype}_x{caps.lanes}")
    w = _windows(op, b)
    assert isinstance(w, _Windows)
    code = _WindowCode(w, b, caps.lanes, caps.isa in (Isa.AVX512, Isa.AVX2))
    block = w.block(caps.lanes)
    outer: list[Loop] = []
    if blocked := not isinstance(w.along.extent, int) or w.along.extent > block:
        outer = [Loop(_BLOCK_AXIS, ceildiv(w.along.extent, block))]
    outer += [*w.outer[:-1], Loop(_GROUP_AXIS, ceildiv(w.rows.extent, GROUP))]
    lines = typical(product(loop.extent for loop in w.lines))
    read = GROUP * max(1, min(block, typical(w.along.extent))) * w.stride * max(1, lines)
    units = Units(tuple(outer), max(_GROUPS, BLOCK // read))
    kept = kept_values(code.over, block, caps.lanes) if in_runs(units) else []
    tables = LaneTables(code.over, kept, block, caps.lanes) if kept else None

    def part(axes: dict[int, Rvalue]) -> tuple[Rvalue, Rvalue]:
        """The windows of a row that share a line."""
        if not blocked:
            return index(0), b.param(w.along.extent)
        begin = b.let("begin", axes[_BLOCK_AXIS] * block)
        return begin, b.let("end", vmin(begin + block, b.param(w.along.extent)))

    outside = code.over.outside()

    def before_run(axes: dict[int, Rvalue]) -> None:
        if tables is not None:
            fill_tables(b, tables, outside, *part(axes), caps.lanes)

    with scopes_of_units(b, units, outside, before_run) as (axes, around):
        begin, end = part(axes)
        first = b.let("from", axes[_GROUP_AXIS] * GROUP)
        count = b.let("rows", vmin(index(GROUP), b.param(w.rows.extent) - first))
        bound = {loop.axis: axes[loop.axis] for loop in w.outer[:-1]}
        code.fill(code.lines.outside().bind(bound), begin, end, first, count)
        code.reduce(around, begin, end, first, count, tables)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(w.table.buffers),
            params=params,
            units=units.count,
            cost_ns=call_cost_ns(op.outer, _cycles(w, context)),
        )
    ]


class _WindowCode:
    """The two passes over rows of windows, one after the other for some rows: what was just written is not read at once."""

    def __init__(self, w: _Windows, b: KernelBuilder, lanes: int, masks: bool) -> None:
        self._w = w
        self._b = b
        self._lanes = lanes
        self.lines = w.over_lines(b)
        self.over = w.over_taps(b)
        self._masks = masks
        room = w.reach(w.block(lanes)) + (w.stride + 1) * lanes  # vectors may begin at the last column
        assert isinstance(room, int)
        self._room = -(-room // lanes) * lanes
        self._line: Var = self._b.array("line", DType.F32, GROUP * self._room)
        self._pad(self._line, index(0), index(GROUP * self._room))  # vectors reach beyond a line: into numbers that cost no more

    def fill(self, around: Scope, begin: Rvalue, end: Rvalue, first: Rvalue, count: Rvalue) -> None:
        """The lines of ``count`` rows from ``first`` on, for the windows from ``begin`` up to ``end``."""
        w, b = self._w, self._b
        start = b.let("start", begin * w.stride + around.index(w.start))
        reach = b.let("reach", (end - begin - 1) * w.stride + ((w.taps - 1) * w.dilation + 1))
        left: Rvalue = index(0)
        right = reach
        if w.is_padded:
            left = b.let("left", vmin(vmax(index(0) - start, 0), reach))
            right = b.let("right", vmax(vmin(b.param(w.columns) - start, reach), left))
        masked = self._masks and maskable(self.lines)
        with b.loop("r", 0, count) as r:
            line = b.pointer("line_at", self._line, r * self._room)
            row = around.bind({w.rows.axis: first + r})
            if w.is_padded:
                self._pad(line, index(0), left)
            spans(b, left, right, self._lanes, _TOGETHER, masked, lambda group: self._columns(row, line, start, group))
            if w.is_padded:
                self._pad(line, right, reach)

    def _pad(self, line: Pointer, begin: Rvalue, end: Rvalue) -> None:
        """Whole vectors: what is behind ``end`` is written later, or never read."""
        with self._b.loop("p", begin, end, self._lanes) as at:
            self._b.store(line, at, Const(f32(self._lanes), self._w.neutral))

    def _columns(self, around: Scope, to: Pointer, start: Rvalue, group: Sequence[Span]) -> None:
        w, b = self._w, self._b
        totals = [Accumulator(b, w.kind, DType.F32, span.lanes) for span in group]

        def take(line: Scope) -> None:
            for span, total in zip(group, totals, strict=True):
                total.update(line.lanes(start + span.at, span.lanes, span.count).value(w.value))

        def guarded(line: Scope) -> None:
            if w.guard is None:
                take(line)
                return
            with b.when(Convert(INDEX, line.value(w.guard))):
                take(line.bind())

        extents = [loop.extent for loop in w.lines]
        known = [e for e in extents if isinstance(e, int)]
        if len(known) == len(extents) and math.prod(known) <= _UNROLLED_LINES:
            for place in tuples(*map(range, known)):
                guarded(around.bind({loop.axis: index(i) for loop, i in zip(w.lines, place, strict=True)}))
        else:
            with loops_around(around, w.lines) as (line, _):
                guarded(line)
        for span, total in zip(group, totals, strict=True):
            b.store(to, span.at, total.result(DType.F32))  # whole vectors: see ``_pad``

    def reduce(self, around: Scope, begin: Rvalue, end: Rvalue, first: Rvalue, count: Rvalue, tables: LaneTables | None) -> None:
        """The results of ``count`` rows from ``first`` on, for the windows from ``begin`` up to ``end``."""
        w, b = self._w, self._b
        windows = b.let("windows", end - begin)
        with b.loop("r", 0, count) as r:
            line = b.pointer("line_at", self._line, r * self._room)
            row = around.bind({w.rows.axis: first + r})

            def emit(group: list[Span]) -> None:
                for span in group:
                    total = self._window(line, span)
                    at = begin + span.at
                    given = tables.values(at - begin, span.lanes) if tables else ()
                    here = row.lanes(at, span.lanes, span.count, {0: total}, given)
                    here.store(w.output, here.value(w.result))

            spans(b, index(0), windows, self._lanes, 1, self._masks and maskable(self.over), emit)

    def _window(self, line: Pointer, span: Span) -> Rvalue:
        """The reduction over the taps of each window of ``span``."""
        w, b = self._w, self._b
        total = Accumulator(b, w.kind, DType.F32, span.lanes)
        near: dict[int, list[Rvalue]] = {}  # the vectors from a column on
        for k in range(w.taps):
            at = span.at * w.stride
            if span.lanes == 1:
                total.update(b.load(line, at + k * w.dilation))
                continue
            first, lane = divmod(k * w.dilation, w.stride)
            first *= w.stride
            if first not in near:
                parts = (at + (first + i * span.lanes) for i in range(w.stride))
                near[first] = [b.let("near", b.load(line, part, span.lanes)) for part in parts]
            total.update(picked(b, near[first], [divmod(lane + i * w.stride, span.lanes) for i in range(span.lanes)]))
        return total.result(DType.F32)


VARIANTS = [
    Variant(
        name="row_reduce.windows",
        op=RowReduce,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
    )
]
