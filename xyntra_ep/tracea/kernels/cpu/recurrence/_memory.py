"""What a recurrence keeps between its steps: the vectors of states and stages, and the counts by which threads share out work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand, Recurrence
from xyntra_ep.tracea.kernels.variant import TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, Rvalue, Select, Var, index, le, vmax, vmin

MOST_CHUNKS = 16
_LINE = 8  # counts of a cache line
COUNTS = _LINE + MOST_CHUNKS  # of a direction: the parts that are done have a line of their own


Result = tuple[Var, Operand]  # an output's buffer, and its view over the whole domain


@dataclass(frozen=True, slots=True)
class Vector:
    """[slot][direction][row][padded width] of f32; state 0 has two slots, read and written alternately, others one."""

    data: Var
    rows: Rvalue
    directions: int
    width: int
    slots: int

    def at(self, direction: Rvalue, row: Rvalue, step: Rvalue) -> Rvalue:
        """Where a row is as ``step`` begins; state 0 is written as step + 1 finds it."""
        line = direction * self.rows + row
        if self.slots > 1:
            line = line + (step & 1) * (self.rows * self.directions)
        return line * self.width


@dataclass(slots=True)
class Memory:
    """Temporaries of one op, as buffers of one kernel; ``buffers`` are in the order in which they were declared."""

    kernel: KernelBuilder
    op: Recurrence
    lanes: int
    buffers: list[ValueBuffer | TempBuffer]

    @property
    def directions(self) -> int:
        number = self.op.domain[0]
        assert isinstance(number, int)
        return number

    @property
    def padded(self) -> int:
        width = self.op.domain[3]
        assert isinstance(width, int)
        return -(-width // self.lanes) * self.lanes

    def vector(self, number: int) -> Vector:
        """Vector ``number``: states, then what the stages but the last make."""
        slots, rows = 1 + (number == 0), self.op.domain[2]
        data = self.kernel.buffer("v", DType.F32, writable=True)
        size: Size = slots * self.directions * self.padded * DType.F32.bytes * rows
        self.buffers.append(TempBuffer(name=f"vector{number}", size_bytes=size))
        return Vector(data, self.kernel.param(rows), self.directions, self.padded, slots)

    def counts(self) -> Var:
        data = self.kernel.buffer("counts", DType.I64, writable=True)
        self.buffers.append(TempBuffer(name="counts", size_bytes=self.directions * COUNTS * DType.I64.bytes))
        return data

    def lengths(self) -> Callable[[BlockBuilder, Rvalue], Rvalue]:
        """How many steps a row has, in [0, T]."""
        steps = self.kernel.param(self.op.domain[1])
        if not self.op.has_lengths:
            return lambda block, row: steps
        operand = self.op.inputs[1]
        data = self.kernel.buffer("lengths", operand.dtype)
        self.buffers.append(ValueBuffer(value=operand.value))
        offset, stride = self.kernel.param(operand.offset), self.kernel.param(operand.strides[0])

        def length(block: BlockBuilder, row: Rvalue) -> Rvalue:
            wanted = Convert(INDEX, block.load(data, offset + row * stride))
            return block.let("length", vmax(vmin(wanted, steps), 0))

        return length

    def result(self, operand: Operand | None) -> Result | None:
        """An output as a buffer, and as an operand over the whole domain (a final state does not move along the time)."""
        if operand is None:
            return None
        data = self.kernel.buffer("out", operand.dtype, writable=True)
        self.buffers.append(ValueBuffer(value=operand.value))
        if len(operand.shape) == 3:
            d, b, j = operand.strides
            operand = Operand(
                value=operand.value, dtype=operand.dtype, shape=self.op.domain, strides=(d, 0, b, j), offset=operand.offset
            )
        return data, operand


def time_of(op: Recurrence, direction: Rvalue, step: Rvalue, length: Rvalue) -> Rvalue:
    """Which time a direction's step of a row is about."""
    backwards = length - 1 - step
    if len(set(op.reverse)) == 1:
        return backwards if op.reverse[0] else step
    time = backwards if op.reverse[-1] else step
    for d, reverse in reversed(list(enumerate(op.reverse[:-1]))):
        time = Select(le(direction, d), backwards if reverse else step, time)
    return time


def for_each_vector(block: BlockBuilder, width: int, lanes: int, body: Callable[[Rvalue, Rvalue | None], None]) -> None:
    """Emit ``body(column, count)`` for all columns; of the last vector only ``count`` may exist."""
    whole = width - width % lanes
    if whole:
        with block.loop("column", 0, whole, lanes) as column:
            body(column, None)
    if whole < width:
        body(index(whole), index(width - whole))
