"""topk.rows: the k best of every row, sorted. A row is read once, most elements fail one comparison with the worst one kept.

A short list of the best is kept sorted; a long one is a heap with the worst on top, sorted at the end. NaN ranks as infinity
and equal elements by their position, so the result is unique.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, load
from xyntra_ep.tracea.core_ir.ops import TopK
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import call_cost_ns, estimate_ns
from xyntra_ep.tracea.kernels.cpu.shared.row_units import rows_of_units, units_of
from xyntra_ep.tracea.kernels.shared.index import AccessTable
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest
from xyntra_ep.tracea.kernels.shared.loops.plan import Loop
from xyntra_ep.tracea.kernels.shared.loops.rows import ZERO
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, TempBuffer, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Convert,
    Function,
    Offset,
    Pointer,
    PointerType,
    Rvalue,
    Select,
    binary,
    f32,
    i64,
    lt,
    vmin,
)

_SORTED = 32  # elements up to which the best are kept sorted: shifting half of them is cheaper than a heap
_ON_STACK = 1024
_CYCLES = 2.0  # per element: one load, one comparison
_LEVELS = 40  # of a heap: more than memory can hold
_Key = Callable[[Rvalue], Rvalue]  # of the element at a position


def _admits(op: TopK, context: BuildContext) -> str | None:
    return None if op.k >= 1 else "k is 0"


def _cost_ns(op: TopK, config: Config, context: BuildContext) -> float:
    return estimate_ns(op.inputs[0].shape, _CYCLES)


@dataclass(frozen=True, slots=True)
class _Best:
    """The list: ``keys`` to compare (NaN is infinity) and where they were. ``largest``: greater keys are better."""

    keys: Pointer
    positions: Pointer
    largest: bool

    def better(self, a: Rvalue, b: Rvalue) -> Rvalue:
        """Whether key a beats key b (equal ones do not)."""
        return Convert(INDEX, binary("lt", *((b, a) if self.largest else (a, b))))

    def worse(self, block: BlockBuilder, a: Rvalue, b: Rvalue) -> Rvalue:
        """Whether entry a comes after entry b in the result."""
        x, y = block.let("x", block.load(self.keys, a)), block.let("y", block.load(self.keys, b))
        later = Convert(INDEX, binary("lt", block.load(self.positions, b), block.load(self.positions, a)))
        return binary("or", self.better(y, x), binary("and", Convert(INDEX, binary("eq", x, y)), later))

    def put(self, block: BlockBuilder, at: Rvalue, key: Rvalue, position: Rvalue) -> None:
        block.store(self.keys, at, key)
        block.store(self.positions, at, position)

    def swap(self, block: BlockBuilder, a: Rvalue, b: Rvalue) -> None:
        x, p = block.let("x", block.load(self.keys, a)), block.let("p", block.load(self.positions, a))
        self.put(block, a, block.load(self.keys, b), block.load(self.positions, b))
        self.put(block, b, x, p)


def _build(op: TopK, config: Config, context: BuildContext) -> list[KernelCall]:
    source = op.inputs[0]
    dtype = DType.F32 if source.dtype.is_float else DType.I64
    b = KernelBuilder(f"xy_topk_{source.dtype}_{'heap' if op.k > _SORTED else 'sorted'}")
    table = AccessTable(b, source.shape)
    element = table.reading(load(0, *map(axis, range(len(source.shape))), dtype=source.dtype), op.inputs)
    outputs = (table.writing(op.values), table.writing(op.indices))
    *rows, (last, length) = enumerate(source.shape)
    units = units_of([Loop(i, extent) for i, extent in rows], length)
    buffers: list[ValueBuffer | TempBuffer] = [*table.buffers]
    keys, positions = _lists(b, op, dtype, buffers, product(extent for _, extent in rows))
    outside = Nest(b, table, None, [element]).outside()
    with rows_of_units(b, units) as coordinates:
        row = outside.bind({loop.axis: c for loop, c in zip(units.loops, coordinates, strict=True)})
        best = _Best(keys, positions, op.largest)
        if op.k > _ON_STACK:
            number: Rvalue = Const(INDEX, 0)
            for loop, c in zip(units.loops, coordinates, strict=True):
                number = number * b.param(loop.extent) + c
            base = b.let("base", number * op.k)
            best = _Best(Offset(keys, base), Offset(positions, base), op.largest)
        n = b.param(length)

        def key(at: Rvalue) -> Rvalue:
            value = b.let("value", row.bind({last: at}).value(element))
            if dtype is DType.I64:
                return value
            return b.let("key", Select(binary("eq", value, value), value, Const(f32(1), float("inf"))))

        kept = b.let("kept", vmin(n, op.k))
        (_keep_heap if op.k > _SORTED else _keep_sorted)(b, best, kept, n, key)
        with b.loop("j", 0, kept) as j:
            position = b.let("p", b.load(best.positions, j))
            here = row.bind({last: j})
            here.store(outputs[0], row.bind({last: position}).value(element))
            here.store(outputs[1], position)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(buffers),
            params=params,
            units=units.count,
            cost_ns=call_cost_ns(source.shape, _CYCLES),
        )
    ]


def _lists(
    b: KernelBuilder, op: TopK, dtype: DType, buffers: list[ValueBuffer | TempBuffer], rows: Size
) -> tuple[Pointer, Pointer]:
    """Room for keys and positions: of one row on the stack, of all rows in temporaries when that is too much."""
    if op.k <= _ON_STACK:
        return b.array("keys", dtype, op.k), b.array("at", DType.I64, op.k)
    keys, positions = b.buffer("keys", dtype, writable=True), b.buffer("at", DType.I64, writable=True)
    buffers.append(TempBuffer(name="keys", size_bytes=rows * op.k * dtype.bytes))
    buffers.append(TempBuffer(name="positions", size_bytes=rows * op.k * 8))
    return keys, positions


def _keep_sorted(b: KernelBuilder, best: _Best, kept: Rvalue, n: Rvalue, key: _Key) -> None:
    with b.loop("i", 0, kept) as i:
        _insert(b, best, i, key(i), i)
    with b.loop("i", kept, n) as i:
        here = key(i)
        with b.when(best.better(here, b.load(best.keys, kept - 1))):
            _insert(b, best, kept - 1, here, i)


def _insert(b: KernelBuilder, best: _Best, free: Rvalue, key: Rvalue, position: Rvalue) -> None:
    """Put an entry among the sorted ones before ``free``; behind equal ones, which were met earlier."""
    slot = b.variable("slot", b.let("free", free))
    with b.loop("t", 0, free) as t:
        before = b.let("before", free - 1 - t)
        with b.when(best.better(key, b.load(best.keys, before))):
            best.put(b, before + 1, b.load(best.keys, before), b.load(best.positions, before))
            b.assign(slot, before)
    best.put(b, slot, key, Convert(i64(1), position))


def _keep_heap(b: KernelBuilder, best: _Best, kept: Rvalue, n: Rvalue, key: _Key) -> None:
    sift = b.function(_sift_down(best))

    def settle(start: Rvalue, size: Rvalue) -> None:
        b.call(sift, best.keys, best.positions, start, size)

    with b.loop("i", 0, kept) as i:
        best.put(b, i, key(i), Convert(i64(1), i))
    half = b.let("half", kept // 2)
    with b.loop("t", 0, half) as t:
        settle(half - 1 - t, kept)
    with b.loop("i", kept, n) as i:
        here = key(i)
        with b.when(best.better(here, b.load(best.keys, 0))):
            best.put(b, ZERO, here, Convert(i64(1), i))
            settle(ZERO, kept)
    with b.loop("t", 0, kept) as t:  # the worst goes behind those that are left
        end = b.let("end", kept - 1 - t)
        best.swap(b, ZERO, end)
        settle(ZERO, end)


def _sift_down(like: _Best) -> Function:
    """Restore the heap below ``start``: every entry comes after its children in the result."""
    f = FunctionBuilder("sift_down")
    keys = f.argument("keys", PointerType(_dtype(like.keys), writable=True))
    positions = f.argument("at", PointerType(DType.I64, writable=True))
    start, size = f.argument("start", INDEX), f.argument("size", INDEX)
    best = _Best(keys, positions, like.largest)
    parent = f.variable("parent", start)
    with f.loop("level", 0, _LEVELS), f.when(lt(parent * 2 + 1, size)):
        child = f.variable("child", parent * 2 + 1)
        with f.when(lt(child + 1, size)), f.when(best.worse(f, child + 1, child)):
            f.assign(child, child + 1)
        with f.when(best.worse(f, child, parent)):
            best.swap(f, child, parent)
            f.assign(parent, child)
        with f.otherwise():
            f.assign(parent, size)
    return f.finish()


def _dtype(pointer: Pointer) -> DType:
    kind = pointer.vtype
    assert isinstance(kind, PointerType)
    return kind.dtype


VARIANTS = [
    Variant(
        name="topk.rows",
        op=TopK,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
    )
]
