"""What a recurrence does to multiply bytes: matrices in words, and in each step the vector in words, too.

Panels are those of `_panels.py` with words for elements, and behind the last step of each pass the sums of its columns, as words:

    [direction][panel][pass][step of k, or the sums][vector of the pass][lane]

The bytes of a vector are made by each thread for itself, once in a superstep, when it has claimed its first chunk: that takes a
few percent of what the chunk does, and no further wait.

    bytes    [unit][row][depth, in whole cache lines]
    scales   [unit][row]        of these bytes
    offsets  [unit][row][2]     their zero point, and the sum of what they are above it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.byte_range import byte_of, finite_byte_range
from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_int
from xyntra_ep.tracea.core_ir.ops import Recurrence
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFunction
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BYTE_QUADS, I16_PAIRS, Words
from xyntra_ep.tracea.kernels.cpu.recurrence._memory import Memory, Vector, for_each_vector
from xyntra_ep.tracea.kernels.cpu.recurrence._panels import Panels
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Convert,
    Fma,
    Offset,
    PointerType,
    Reduce,
    Rvalue,
    Var,
    binary,
    f32,
    i32,
    index,
    lt,
    vmax,
    vmin,
)
from xyntra_ep.tracea.semantic_ir.scalar_code import ScalarCode

_LINE_BYTES = 64


def words_of(op: Recurrence, caps: Capabilities) -> Words | None:
    """In what it multiplies; None: in f32."""
    if not op.of_bytes:
        return None
    return BYTE_QUADS if caps.vnni else I16_PAIRS


def rate_of(words: Words | None) -> int:
    """How many products it makes where f32 makes one: without VNNI a product of two and its sum are two instructions."""
    return words.depth if words is BYTE_QUADS else 1


def quantising_ns(op: Recurrence, caps: Capabilities) -> Size:
    """What a step's states of one direction take (Zen 4: 3 to 4 for a vector)."""
    width = op.domain[3]
    assert isinstance(width, int)
    return op.domain[2] * (-(-width // caps.lanes) * 4 + 20) if op.of_bytes else 0


def pack_words(op: Recurrence, panels: Panels, words: Words, context: BuildContext) -> KernelCall:
    """As ``pack``. A unit is a panel of one direction; what does not exist is 0."""
    r, lanes, width, depth = op.inputs[0], panels.lanes, panels.width, words.depth
    directions = op.domain[0]
    assert isinstance(directions, int)
    bits, row = 8 * words.right.bytes, panels.together * lanes * depth
    b = KernelBuilder(f"xy_recurrence_{words.name}_{panels.gates}x{panels.units}_{context.caps.isa}")
    source, target = b.buffer("r", r.dtype), b.buffer("panels", words.right, writable=True)
    of_direction, of_gate, of_k, of_unit = (b.param(stride) for stride in r.strides)
    with b.units() as unit:
        panel, direction = unit % panels.number, unit // panels.number
        start = b.let("start", b.param(r.offset) + direction * of_direction + of_gate * panels.first_gate)
        for v in range(panels.vectors):
            u, gate = divmod(v, panels.gates)
            number, place = divmod(v, panels.together)
            first = b.let("first", panel * panels.columns + u * lanes)
            exist = b.let("exist", vmin(width - first, lanes))
            to = b.let("to", unit * panels.size + number * panels.pass_size + place * lanes * depth)
            with b.loop("lane", 0, lanes) as lane:
                total = b.variable("total", Const(i32(1), 0))
                here = b.let("here", to + lane * depth)
                at = b.let("at", start + of_gate * gate + (first + lane) * of_unit)

                def word(step: Rvalue, parts: int, at: Rvalue = at, here: Rvalue = here, total: Var = total) -> None:
                    found: Rvalue = Const(i32(1), 0)
                    for i in range(parts):
                        value = b.let("w", Convert(i32(1), b.load(source, at + (step * depth + i) * of_k)))
                        b.assign(total, total + value)
                        kept = value if i == depth - 1 else value & ((1 << bits) - 1)
                        found = found | (binary("shl", kept, Const(i32(1), i * bits)) if i else kept)
                    b.store_words(target, here + step * row, found)

                with b.when(lt(lane, exist)):
                    with b.loop("step", 0, width // depth) as step:
                        word(step, depth)
                    if width % depth:
                        word(index(width // depth), width % depth)
                with b.otherwise(), b.loop("step", 0, panels.steps) as step:
                    b.store_words(target, here + step * row, Const(i32(1), 0))
                b.store_words(target, here + panels.steps * row, total)
    kernel, params = b.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=r.value), panels.buffer(directions)),
        params=params,
        units=directions * panels.number,
        cost_ns=directions * panels.number * panels.size,
        phase=Phase.PREPARE if context.is_constant(r.value) else Phase.RUN,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantisedRows:
    """The vector that a superstep multiplies, as each unit has it."""

    data: Var
    scales: Var
    offsets: Var
    rows: Rvalue
    rounded: Rvalue  # rows, as scalars of each unit are counted
    row: int
    function: TileFunction

    @classmethod
    def declare(cls, kernel: KernelBuilder, memory: Memory, words: Words, units: Size) -> QuantisedRows:
        rows = memory.op.domain[2]
        row = ceildiv(memory.padded * words.left.bytes, _LINE_BYTES) * (_LINE_BYTES // words.left.bytes)
        assert isinstance(row, int)
        rounded = ceildiv(rows, _LINE_BYTES // 4) * (_LINE_BYTES // 4)

        def buffer(name: str, dtype: DType, size: Size) -> Var:
            memory.buffers.append(TempBuffer(name=name, size_bytes=units * size * dtype.bytes))
            return kernel.buffer(name, dtype, writable=True)

        width = memory.op.domain[3]
        assert isinstance(width, int)
        return cls(
            data=buffer("bytes", words.left, rows * row),
            scales=buffer("scales", DType.F32, rounded),
            offsets=buffer("offsets", DType.I32, 2 * rounded),
            rows=kernel.param(rows),
            rounded=kernel.param(rounded),
            row=row,
            function=_quantise(kernel, words, width, memory.lanes),
        )

    def make(self, kernel: KernelBuilder, vector: Vector, unit: Rvalue, direction: Rvalue, step: Rvalue) -> None:
        """Those of ``unit``."""
        with kernel.loop("row", 0, self.rows) as row:
            x = Offset(vector.data, kernel.let("vector", vector.at(direction, row, step)))
            self.function.call(kernel, [x, *self.at(kernel, unit, row)])

    def at(self, block: BlockBuilder, unit: Rvalue, row: Rvalue) -> list[Offset]:
        """Where a row's bytes are, its scale and its offsets."""
        number = block.let("number", unit * self.rounded + row)
        line = block.let("line", (unit * self.rows + row) * self.row)
        return [Offset(self.data, line), Offset(self.scales, number), Offset(self.offsets, number * 2)]

    @staticmethod
    def arguments(words: Words) -> list[tuple[str, PointerType]]:
        """What a tile takes of them."""
        return [("h", PointerType(words.left)), ("scales", PointerType(DType.F32)), ("offsets", PointerType(DType.I32))]


def _quantise(kernel: KernelBuilder, words: Words, width: int, lanes: int) -> TileFunction:
    """f(x, bytes, scale, offsets): one row. Lanes behind the width of a vector are 0, which is in the range of all."""
    b = FunctionBuilder("quantise")
    x = b.argument("x", PointerType(DType.F32))
    to = b.argument("to", PointerType(words.left, writable=True))
    scales = b.argument("scale", PointerType(DType.F32, writable=True))
    offsets = b.argument("offsets", PointerType(DType.I32, writable=True))
    low, high, spoilt = (b.variable(name, Const(f32(lanes), 0.0)) for name in ("low", "high", "spoilt"))

    def look(column: Rvalue, count: Rvalue | None) -> None:
        v = b.let("v", b.load(x, column, lanes, count))
        b.assign(low, vmin(v, low))
        b.assign(high, vmax(v, high))
        b.assign(spoilt, Fma(v, Const(f32(lanes), 0.0), spoilt))  # NaN of what is not finite, else 0

    for_each_vector(b, width, lanes, look)
    ends = [_over_lanes(b, op, v) for op, v in (("min", low), ("max", high), ("add", spoilt))]
    ends[0] = b.let("low", ends[0] + ends[2])
    scale, long_zero = _code(kernel, b, ends).emit(*finite_byte_range(acc(0), acc(1)))
    zero = b.let("zero", Convert(i32(1), long_zero))
    total = b.variable("total", Const(i32(lanes), 0))

    def quantise(column: Rvalue, count: Rvalue | None) -> None:
        v = b.let("v", b.load(x, column, lanes, count))
        q = b.let("q", _code(kernel, b, [v, scale, zero], lanes).emit_stored(byte_of(acc(0), acc(1), acc_int(2))))
        b.store(to, column, q)
        b.assign(total, total + q)

    for_each_vector(b, width, lanes, quantise)
    number = -(-width // lanes) * lanes
    b.store(scales, 0, scale)
    b.store(offsets, 0, zero)
    b.store(offsets, 1, _over_lanes(b, "add", total) - zero * number)
    captured = b.capture()
    return TileFunction(kernel.function(b.finish()), captured)


def _over_lanes(b: BlockBuilder, op: str, v: Var) -> Rvalue:
    return b.let(op, Reduce(op, v)) if v.type.lanes > 1 else v


def _code(kernel: KernelBuilder, block: BlockBuilder, results: Sequence[Rvalue], lanes: int = 1) -> ScalarCode:
    def leaf(e: Expr, _: int) -> Rvalue:
        number: int = e.attr
        return results[number]

    return ScalarCode(kernel, block, lanes, leaf, lambda _: DType.F32)
