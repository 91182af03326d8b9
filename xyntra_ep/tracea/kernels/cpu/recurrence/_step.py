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
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
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
        def body(block: FunctionBuilder, rows: int, args: list[Var]) -> None:
            vector, panel, *at = args
            if not self._op.has_lengths:
                self._fetch(block, panels, rows, at, cell)
            sums = block.array("sums", DType.F32, rows * panels.vectors * panels.lanes)
            for number in range(panels.passes):
                self._multiply(block, panels, rows, (vector, self.vectors[0].width), (panel, number), sums)
            block.call(finish.function, sums, index(rows), *at, *finish.captured)

        arguments: list[tuple[str, Type | PointerType]] = [("h", PointerType(DType.F32)), ("w", PointerType(DType.F32))]
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

    def _multiply(
        self, block: FunctionBuilder, p: Panels, rows: int, h: tuple[Var, int], w: tuple[Var, int], target: Var
    ) -> None:
        """One pass over all of the vector; few sums are taken in several parts of each."""
        lanes, together, number = p.lanes, p.together, w[1]
        parts = max(1, min(4, _SUMS // (rows * together), p.width))
        sums = [
            [[block.variable("c", Const(f32(lanes), 0.0)) for _ in range(together)] for _ in range(rows)] for _ in range(parts)
        ]

        def step(k: Rvalue, part: int, place: int) -> None:
            at = block.let("from", (k + (number * p.width + place)) * (together * lanes))
            ws = [block.let("w", block.load(w[0], at + v * lanes, lanes)) for v in range(together)]
            for i in range(rows):  # one element of h alive at a time: 12 sums and 2 vectors leave no room for more
                x = block.let("x", splat(block.load(h[0], k + (i * h[1] + place)), lanes))
                for v, vector in enumerate(ws):
                    block.assign(sums[part][i][v], Fma(x, vector, sums[part][i][v]))

        whole = p.width - p.width % parts
        with block.loop("k", 0, whole, parts) as k:
            for part in range(parts):
                step(k, part, part)
        for k_left in range(whole, p.width):
            step(index(k_left), k_left - whole, 0)
        for i in range(rows):
            for v in range(together):
                total: Rvalue = sums[0][i][v]
                for part in range(1, parts):
                    total = total + sums[part][i][v]
                block.store(target, (i * p.vectors + number * together + v) * lanes, total)


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
        sums, rows = b.argument("sums", PointerType(DType.F32)), b.argument("rows", INDEX)
        direction, step, first, column = (b.argument(name, INDEX) for name in ("direction", "step", "row", "column"))
        with b.loop("i", 0, rows) as i:
            row = b.let("at", first + i)
            length = self.length(b, row)
            for u in range(self.panels.units):
                lane = column + u * self.panels.lanes if u else column
                place = _Place(b, direction, step, row, b.let("unit", lane), length)
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
        acc = {g: b.let("sum", b.load(sums, base + g * lanes, lanes)) for g in range(gates)}
        used = {e.attr for e in walk(self.cell.root, *self.cell.more) if e.kind == "acc"}
        for v, vector in enumerate(self.vectors):
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
