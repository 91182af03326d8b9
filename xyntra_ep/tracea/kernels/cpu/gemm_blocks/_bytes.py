"""Many rows by bytes: what accuracy level 4 of MatMulNBits allows, and what x86 processors are fastest at.

    rows      [row][k]        a in signed bytes: rint(a / scale), 0 behind the depth
    scales    [row][block]    of a: the largest magnitude of the block / 127; NaN where it has an infinity or a NaN
    offsets   [row][block]    -8 times the sum of the row's bytes: integers of 4 bits are multiplied as they are, from 0 to 15
    sums      [row][block]    that sum times the scale, where there are zero points

    c[row][n]  +=  scales[row] * scale[n] * (offsets[row] + bytes[row] . integers[n])  -  sums[row] * zero[n] * scale[n]

of each block. The integers of a word are taken apart into its even and its odd steps of k, four each, so the steps of eight in a
row of bytes lie in that order: 0 2 4 6 1 3 5 7. A tile has two sums for each vector, of the block in integers, of all in floats.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops.product import INT8_LARGEST, INT8_LEAST
from xyntra_ep.tracea.kernels.cpu.gemm._left import LeftRows, rows_in_place
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Matrix, Tile
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._panels import Panels, Sums
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import GROUP, PackedWeights, Panel
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import ClampedQuadDot, QuadDot
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Convert,
    Fma,
    Offset,
    PointerType,
    Reduce,
    Rvalue,
    Shuffle,
    Splat,
    Unary,
    Var,
    binary,
    f32,
    i32,
    index,
    vmax,
    vmin,
)

_FOUR = 0x0F0F0F0F  # the integers in the even places of a word
_QUADS = 2  # of a group
_OF_WORD = (0, 2, 4, 6, 1, 3, 5, 7)  # where in a word an integer's step is, as rows have them


class BytePanels(Panels):
    def __init__(self, k: KernelBuilder, shape: GemmShape, weights: PackedWeights, context: BuildContext) -> None:
        self._k, self._shape, self._weights = k, shape, weights
        self.tile, self.dtype, self._lanes = weights.tile, DType.U8, context.caps.lanes
        self._dot = QuadDot if context.caps.vnni else ClampedQuadDot  # 2 * 15 * 127 is not clamped
        extents = shape.batch_extents
        number = product(extents) * shape.m
        strides = tuple(product(extents[i + 1 :]) * shape.m for i in range(len(extents)))
        kinds = {"rows": DType.I8, "row_scales": DType.F32, "offsets": DType.I32}
        if weights.zero_dtype is not None:
            kinds["row_sums"] = DType.F32
        self._row_steps = {name: self._depth if name == "rows" else weights.blocks for name in kinds}
        sizes = {name: number * self._row_steps[name] * dtype.bytes for name, dtype in kinds.items()}
        self.buffers = [TempBuffer(name=name, size_bytes=size) for name, size in sizes.items()]
        self._numbers = LeftRows(buffer=self.buffers[0], offset=0, batch_strides=strides, row=1)
        self._rows = {name: k.buffer(name, dtype) for name, dtype in kinds.items()}
        self._kinds = kinds
        weighed = {"scales": weights.scale_dtype} | ({} if weights.zero_dtype is None else {"zeros": weights.zero_dtype})
        self.arguments = [(name, PointerType(dtype)) for name, dtype in {**kinds, **weighed}.items()]
        self.calls = [self._quantise(context)]

    @property
    def _depth(self) -> int:
        """Steps of whole blocks."""
        return self._weights.blocks * self._weights.op.block

    # -- the rows

    def _quantise(self, context: BuildContext) -> KernelCall:
        shape, weights, block = self._shape, self._weights, self._weights.op.block
        a = shape.op.inputs[0]
        k = KernelBuilder(f"xy_gemm_bytes_{a.dtype}_x{block}_{context.caps.isa}")
        source = k.buffer("a", a.dtype)
        made = {name: k.buffer(name, dtype, writable=True) for name, dtype in self._kinds.items()}
        whole, rest = divmod(weights.depth, block)
        with k.units() as unit:
            *batch, row = k.split(unit, [*shape.batch_extents, shape.m])
            start = k.let("from", rows_in_place(shape).start(k, batch, row))
            with k.loop("block", 0, whole) as number:
                self._quantise_block(k, source, made, start, unit, number, block)
            if rest:
                self._quantise_block(k, source, made, start, unit, index(whole), rest)
        kernel, params = k.finish()
        units = product(shape.batch_extents) * shape.m
        buffers = (ValueBuffer(value=a.value), *self.buffers)
        return KernelCall(kernel=kernel, buffers=buffers, params=params, units=units, cost_ns=units * (10 + self._depth // 10))

    def _quantise_block(
        self, k: KernelBuilder, source: Var, made: dict[str, Var], start: Rvalue, row: Rvalue, number: Rvalue, steps: int
    ) -> None:
        """``steps`` of the block are of a, the others 0."""
        block, lanes = self._weights.op.block, self._lanes
        order = tuple(first + i for first in range(0, lanes, GROUP) for i in _OF_WORD)
        first = k.let("first", number * block)
        vectors = [self._load(k, source, start, first, i, steps) for i in range(0, block, lanes)]
        peak: Rvalue = Unary("abs", vectors[0])
        strange = vectors[0] - vectors[0]  # 0, or NaN
        for v in vectors[1:]:
            peak, strange = vmax(Unary("abs", v), peak), strange + (v - v)
        largest = k.let("largest", vmax(Reduce("max", k.let("peak", peak)), INT8_LEAST))
        inverse = k.let("inverse", Splat(f32(lanes), binary("div", Const(f32(1), INT8_LARGEST), largest)))
        total: Rvalue = Const(i32(lanes), 0)
        for i, v in enumerate(vectors):
            level = k.let("level", Convert(i32(lanes), Unary("rint", vmin(v * inverse, INT8_LARGEST))))
            total = total + level
            k.store(made["rows"], row * self._depth + first + i * lanes, Shuffle(level, level, order))
        found = k.let("total", Reduce("add", k.let("totals", total)))
        nan = Reduce("add", k.let("strange", strange))
        scale = k.let("scale", largest * Const(f32(1), 1 / INT8_LARGEST) + nan)
        at = k.let("at", row * self._weights.blocks + number)
        k.store(made["row_scales"], at, scale)
        k.store(made["offsets"], at, found * -self._weights.op.middle)
        if "row_sums" in made:
            k.store(made["row_sums"], at, scale * Convert(f32(1), found))

    def _load(self, k: KernelBuilder, source: Var, start: Rvalue, first: Rvalue, i: int, steps: int) -> Rvalue:
        """Elements of a from number ``i`` of a block on, as many as the vector has or as there are."""
        lanes = self._lanes
        count = min(lanes, steps - i)
        if count <= 0:
            return Const(f32(lanes), 0.0)
        if self._shape.a_k == 1:
            at = start + first + i
            return k.let("v", k.load(source, at, lanes, None if count == lanes else index(count)))
        array = k.array("lanes", DType.F32, lanes)
        k.store(array, 0, Const(f32(lanes), 0.0))
        with k.loop("lane", 0, count) as lane:
            k.store(array, lane, k.load(source, start + (first + i + lane) * k.param(self._shape.a_k)))
        return k.let("v", k.load(array, 0, lanes))

    # -- the panel

    def widen(self, panel: Panel, scratch: Var, first: Rvalue, blocks: int) -> None:
        k, weights, tile = self._k, self._weights, self.tile
        of_block = weights.groups_of_block
        with k.loop("group", 0, blocks * of_block) as group:
            to = k.let("to", group * (GROUP * tile.columns))
            for v, word in enumerate(weights.words(k, panel.integers, first * of_block + group)):
                for half in range(_QUADS):
                    quad = binary("shr", word, 4) & _FOUR if half else word & _FOUR
                    k.store_words(scratch, to + 4 * (half * tile.columns + v * tile.lanes), k.let("quad", quad))

    # -- the product

    def data(self, panel: Panel, batch: Sequence[Rvalue], row: Rvalue, first: Rvalue) -> list[Rvalue]:
        k, weights = self._k, self._weights
        number = k.let("number", self._numbers.start(k, batch, row))
        block = k.let("of_block", first // index(weights.op.block))
        found: list[Rvalue] = [
            Offset(pointer, number * self._row_steps[name] + (first if name == "rows" else block))
            for name, pointer in self._rows.items()
        ]
        found.append(Offset(panel.scales, block * self.tile.columns))
        return found if panel.zeros is None else [*found, Offset(panel.zeros, block * self.tile.columns)]

    def sums(
        self, block: FunctionBuilder, tile: Tile, data: Sequence[Var], scratch: Var, depth: int, start: Matrix | None
    ) -> Sums:
        lanes, weights = tile.lanes, self._weights
        given = dict(zip((name for name, _ in self.arguments), data, strict=True))
        places = [(i, j) for i in range(tile.rows) for j in range(tile.vectors)]
        total = {}
        for i, j in places:
            total[i, j] = block.variable("c", Const(f32(lanes), 0.0))
            if start is not None:
                block.assign(total[i, j], block.load(start.pointer, index(i) * start.row + j * lanes, lanes))
        quads = weights.op.block // 4
        with block.loop("block", 0, -(-depth // weights.op.block)) as number:
            place = [block.let("place", number + i * weights.blocks) for i in range(tile.rows)]
            offsets = [block.let("offset", Splat(i32(lanes), Convert(i32(1), block.load(given["offsets"], at)))) for at in place]
            of_block = {(i, j): block.variable("s", offsets[i]) for i, j in places}
            first = block.let("first", number * quads)
            unrolled = min(quads, 8)
            with block.loop("quad", 0, quads, unrolled) as quad:
                for u in range(unrolled):
                    at = block.let("at", first + quad + u)
                    starts = (4 * (at * tile.columns + j * lanes) for j in range(tile.vectors))
                    columns = [block.let("w", block.load_words(scratch, w_at, lanes)) for w_at in starts]
                    for i in range(tile.rows):
                        word = block.load_words(given["rows"], at * 4 + i * self._depth)
                        x = block.let("x", Splat(i32(lanes), word))
                        for j, w in enumerate(columns):
                            block.assign(of_block[i, j], self._dot(w, x, of_block[i, j]))
            zeros = given.get("zeros")
            factors = weights.factors(block, given["scales"], zeros, number)
            for j, scale in enumerate(factors.scales):
                offset = block.let("offset", -(factors.zeros[j] * scale)) if factors.zeros else None
                for i in range(tile.rows):
                    scaled = block.let("scaled", Convert(f32(lanes), of_block[i, j]) * scale)
                    x = Splat(f32(lanes), block.load(given["row_scales"], place[i], 1))
                    block.assign(total[i, j], Fma(scaled, x, total[i, j]))
                    if offset is not None:
                        x = Splat(f32(lanes), block.load(given["row_sums"], place[i], 1))
                        block.assign(total[i, j], Fma(offset, x, total[i, j]))
        return [[total[i, j] for j in range(tile.vectors)] for i in range(tile.rows)]
