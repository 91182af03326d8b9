"""One stage of a recurrence's step for a panel of units and a block of a batch's rows: products, bodies, stores.

The products of a block are sums in registers. They go through memory to a function that all blocks share, because the bodies of
a cell are long (an LSTM has five elementary functions) and would be printed for each row of each size of block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import Recurrence
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFamily, TileFunction, block_sizes
from xyntra_ep.tracea.kernels.cpu.recurrence._memory import Memory, Result, Vector, time_of
from xyntra_ep.tracea.kernels.cpu.recurrence._panels import Panels
from xyntra_ep.tracea.kernels.cpu.recurrence._words import QuantisedRows
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.words import as_words
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Fma,
    PointerType,
    Rvalue,
    Type,
    Var,
    binary,
    f32,
    i32,
    index,
    le,
    lt,
    splat,
)

_TIME = frozenset({1})  # the axis, and the group that counts it
_SUMS = 8  # in flight at least, to hide the latency of a multiply-add


def groups_of(op: Recurrence) -> list[Group]:
    """Each axis is counted for itself."""
    return [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(op.domain)]


class StepCode:
    """What all stages share: vectors by number, where results go, and the lengths of rows."""

    def __init__(self, kernel: KernelBuilder, memory: Memory, context: BuildContext) -> None:
        op = self._op = memory.op
        self._kernel, self._memory, self._context = kernel, memory, context
        self.vectors = [memory.vector(i) for i in range(len(op.initial) + sum(len(s.bodies) for s in op.stages[:-1]))]
        self._output = memory.result(op.output)
        self._finals = [memory.result(final) for final in op.finals]
        self._length = memory.lengths()
        self.quantised: QuantisedRows | None = None

    def stage(self, panels: Panels) -> TileFamily:
        """f(vector, panel, direction, step, row, column) for each number of rows that a block may have."""
        op, states = self._op, len(self._op.initial)
        first, *more = op.stages[panels.stage].bodies
        cell = Epilogue(self._kernel, first, op.inputs, op.domain, groups_of(op), 3, more=more)
        self._memory.buffers.extend(cell.buffers)
        is_last = panels.stage == len(op.stages) - 1
        before = 0 if is_last else states + sum(len(s.bodies) for s in op.stages[: panels.stage])
        finish = _Finish(
            op=op,
            panels=panels,
            cell=cell,
            vectors=self.vectors,
            targets=self.vectors[before : before + 1 + len(more)],
            length=self._length,
            output=self._output if is_last else None,
            finals=self._finals if is_last else (),
        )
        return self._family(panels, finish.function(self._kernel), cell)

    def _family(self, panels: Panels, finish: TileFunction, cell: Epilogue) -> TileFamily:
        words = panels.words
        vectors = [("h", PointerType(DType.F32))] if words is None else QuantisedRows.arguments(words)

        def body(block: FunctionBuilder, rows: int, args: list[Var]) -> None:
            (vector, *scaling), (panel, *at) = args[: len(vectors)], args[len(vectors) :]
            if not self._op.has_lengths:
                self._fetch(block, panels, rows, at, cell)
            sums = block.array("sums", sums_of(panels), rows * panels.vectors * panels.lanes)
            width = self.vectors[0].width if self.quantised is None else self.quantised.row
            for number in range(panels.passes):
                code = _Products(block, panels, rows, vector, width, panel, number)
                code.store(code.sums(scaling[1] if scaling else None), sums)
            block.call(finish.function, sums, *scaling, index(rows), *at, *finish.captured)

        arguments: list[tuple[str, Type | PointerType]] = [*vectors, ("w", PointerType(panels.dtype))]
        arguments += [(name, INDEX) for name in ("direction", "step", "row", "column")]
        sizes = block_sizes(self._op.domain[2], panels.rows)
        return TileFamily(self._kernel, f"stage{panels.stage}", sizes, arguments, body)

    def _fetch(self, block: FunctionBuilder, p: Panels, rows: int, at: Sequence[Var], cell: Epilogue) -> None:
        """What the bodies read of this time comes from far, a line here and a line there: it is asked for before the products."""
        direction, step, first, column = at
        time = block.let("time", time_of(self._op, direction, step, self._kernel.param(self._op.domain[1])))
        here = cell.at(block)
        for i in range(rows):
            row = block.let("row", first + i)
            for u in range(p.units):
                here.fetch([direction, time, row, column + u * p.lanes], _TIME)


def sums_of(panels: Panels) -> DType:
    return DType.F32 if panels.words is None else panels.words.sums


@dataclass(frozen=True, slots=True)
class _Products:
    """One pass over all of a vector, for a block of rows, each ``width`` elements behind the last; few sums are taken in several
    parts of each."""

    block: FunctionBuilder
    panels: Panels
    rows: int
    vector: Var
    width: int
    panel: Var
    number: int

    def sums(self, offsets: Var | None) -> list[list[Rvalue]]:
        """By row and vector. ``offsets``: the zero points of bytes, times the sums of columns, are taken off."""
        p, block = self.panels, self.block
        parts = max(1, min(4, _SUMS // (self.rows * p.together), p.steps))
        zero = Const(f32(p.lanes) if p.words is None else i32(p.lanes), 0)
        sums = [[[block.variable("c", zero) for _ in range(p.together)] for _ in range(self.rows)] for _ in range(parts)]
        whole = p.steps - p.steps % parts
        with block.loop("k", 0, whole, parts) as k:
            for part in range(parts):
                self._step(k, part, sums[part])
        for k_left in range(whole, p.steps):
            self._step(index(k_left), 0, sums[k_left - whole])
        totals: list[list[Rvalue]] = []
        for i in range(self.rows):
            totals.append([])
            for v in range(p.together):
                total: Rvalue = sums[0][i][v]
                for part in range(1, parts):
                    total = total + sums[part][i][v]
                totals[-1].append(total)
        if offsets is None:
            return totals
        ends = [self._at(index(p.steps), 0, v) for v in range(p.together)]
        columns = [block.let("columns", block.load_words(self.panel, end, p.lanes)) for end in ends]
        for i, row in enumerate(totals):
            by = block.let("by", splat(as_words(block.load(offsets, 2 * i)), p.lanes))
            row[:] = [total - by * column for total, column in zip(row, columns, strict=True)]
        return totals

    def _at(self, k: Rvalue, place: int, v: int) -> Rvalue:
        """Where a vector of the panel is."""
        p = self.panels
        start = (k + (self.number * p.pass_rows + place)) * (p.together * p.lanes * p.depth)
        return start + v * p.lanes * p.depth if v else start

    def _step(self, k: Rvalue, place: int, sums: list[list[Var]]) -> None:
        p, block, words = self.panels, self.block, self.panels.words
        load = block.load if words is None else block.load_words
        at = block.let("from", self._at(k, place, 0))
        ws = [block.let("w", load(self.panel, at + v * p.lanes * p.depth, p.lanes)) for v in range(p.together)]
        for i in range(self.rows):  # one element of h alive at a time: 12 sums and 2 vectors leave no room for more
            element = k * p.depth if p.depth > 1 else k
            x = block.let("x", splat(load(self.vector, element + (i * self.width + place * p.depth)), p.lanes))
            for v, vector in enumerate(ws):
                product = Fma(x, vector, sums[i][v]) if words is None else words.dot(x, vector, sums[i][v])
                block.assign(sums[i][v], product)

    def store(self, sums: list[list[Rvalue]], target: Var) -> None:
        p = self.panels
        for i, row in enumerate(sums):
            for v, total in enumerate(row):
                self.block.store(target, (i * p.vectors + self.number * p.together + v) * p.lanes, total)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finish:
    """f(sums, rows, direction, step, row, column): the bodies of a stage, row by row, and what is stored of them. ``targets``:
    the vectors that the bodies become; ``finals`` are given with the last stage, None where nobody wants them."""

    op: Recurrence
    panels: Panels
    cell: Epilogue
    vectors: Sequence[Vector]
    targets: Sequence[Vector]
    length: Callable[[BlockBuilder, Rvalue], Rvalue]
    output: Result | None
    finals: Sequence[Result | None]

    def function(self, kernel: KernelBuilder) -> TileFunction:
        b = FunctionBuilder(f"finish{self.panels.stage}")
        sums = b.argument("sums", PointerType(sums_of(self.panels)))
        scaling = [] if self.panels.words is None else QuantisedRows.arguments(self.panels.words)[1:]
        given = [b.argument(name, kind) for name, kind in scaling]
        rows = b.argument("rows", INDEX)
        direction, step, first, column = (b.argument(name, INDEX) for name in ("direction", "step", "row", "column"))
        with b.loop("i", 0, rows) as i:
            row = b.let("at", first + i)
            length = self.length(b, row)
            scale: list[Rvalue] = []
            if given:
                scale = [b.let("scale", b.load(given[0], i)), b.let("above", as_words(b.load(given[1], i * 2 + 1)))]
            for u in range(self.panels.units):
                lane = column + u * self.panels.lanes if u else column
                place = _Place(b, direction, step, row, b.let("unit", lane), length, scale)
                base = b.let("base", (i * self.panels.vectors + u * self.panels.gates) * self.panels.lanes)
                self._vector(place, sums, base)
        captured = b.capture()
        return TileFunction(kernel.function(b.finish()), captured)

    def _vector(self, at: _Place, sums: Var, base: Rvalue) -> None:
        """One vector of units, of which none, some or all exist."""
        b, lanes, width = at.block, self.panels.lanes, self.panels.width
        left = b.let("left", width - at.unit)
        if width % self.panels.columns == 0:
            self._lengthwise(at, sums, base, None)
        elif width % lanes == 0:
            with b.when(lt(0, left)):
                self._lengthwise(at, sums, base, None)
        else:
            with b.when(le(lanes, left)):
                self._lengthwise(at, sums, base, None)
            with b.otherwise(), b.when(lt(0, left)):
                self._lengthwise(at, sums, base, left)

    def _lengthwise(self, at: _Place, sums: Var, base: Rvalue, count: Rvalue | None) -> None:
        """A row that has ended keeps its states: state 0 goes to where the next step looks for it."""
        if not self.op.has_lengths:
            self._bodies(at, sums, base, count)
            return
        b = at.block
        with b.when(lt(at.step, at.length)):
            self._bodies(at, sums, base, count)
        if self.panels.stage == len(self.op.stages) - 1:
            with b.otherwise():
                state, lanes = self.vectors[0], self.panels.lanes
                kept = b.load(state.data, state.at(at.direction, at.row, at.step) + at.unit, lanes)
                b.store(state.data, state.at(at.direction, at.row, at.step + 1) + at.unit, kept)
                if self.output is not None:
                    data, operand = self.output
                    nothing = Const(f32(lanes), 0.0)
                    self.cell.at(b).store(operand, data, [at.direction, at.step, at.row, at.unit], nothing, count)

    def _bodies(self, at: _Place, sums: Var, base: Rvalue, count: Rvalue | None) -> None:
        b, lanes, gates = at.block, self.panels.lanes, self.panels.gates
        acc = {g: b.let("sum", as_words(b.load(sums, base + g * lanes, lanes))) for g in range(gates)}
        used = {e.attr for e in walk(self.cell.root, *self.cell.more) if e.kind == "acc"}
        known = len(self.op.initial) + sum(len(s.bodies) for s in self.op.stages[: self.panels.stage])
        for i, value in enumerate(at.scale, gates + known):
            acc |= {i: splat(value, lanes)} if i in used else {}
        for v, vector in enumerate(self.vectors[:known]):
            if gates + v in used:
                place = vector.at(at.direction, at.row, at.step) + at.unit
                acc[gates + v] = b.let("old", b.load(vector.data, place, lanes))
        time = b.let("time", time_of(self.op, at.direction, at.step, at.length))
        here, point = self.cell.at(b), [at.direction, time, at.row, at.unit]
        values = [b.let("new", value) for value in here.values(point, acc, lanes, count)]
        for vector, value in zip(self.targets, values, strict=True):
            b.store(vector.data, vector.at(at.direction, at.row, at.step + 1) + at.unit, value)
        if self.output is not None:
            data, operand = self.output
            here.store(operand, data, point, values[0], count)
        wanted = [(final, value) for final, value in zip(self.finals, values, strict=False) if final is not None]
        if wanted:
            with b.when(binary("eq", at.step + 1, at.length)):
                for (data, operand), value in wanted:
                    self.cell.at(b).store(operand, data, point, value, count)


@dataclass(frozen=True, slots=True)
class _Place:
    """A vector of units of a row, in a step."""

    block: BlockBuilder
    direction: Rvalue
    step: Rvalue
    row: Rvalue
    unit: Rvalue
    length: Rvalue
    scale: Sequence[Rvalue]  # and the sum, of a row of bytes
