"""The two matrix products of attention as register tiles: q times k, and weighted sums of v."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu.attention._softmax import normalised
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFamily
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Matrix, Tile, accumulate
from xyntra_ep.tracea.kernels.cpu.shared.row_parts import in_groups, in_parts, part_sizes
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Fma,
    Offset,
    Pointer,
    PointerType,
    Rvalue,
    Type,
    Var,
    binary,
    index,
    splat,
)

F32_IN, F32_OUT = PointerType(DType.F32), PointerType(DType.F32, writable=True)


class Products:
    """q times k for a block of rows and a panel of columns, into rows of memory ``score_stride`` apart."""

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape) -> None:
        self._k = kernel
        self._shape = shape
        arguments: list[tuple[str, Type | PointerType]] = [("q", PointerType(shape.q.dtype)), ("panel", F32_IN), ("out", F32_OUT)]
        self._sizes = part_sizes(shape.rows, shape.tile.rows)
        self._tiles = TileFamily(kernel, "products", self._sizes, arguments, self._tile)

    def call(self, rows: Rvalue, q: Offset, panel: Offset, out: Offset) -> None:
        shape, stride = self._shape, self._k.param(self._shape.q.strides[2])

        def part(size: int, row: Rvalue) -> None:
            here = [Offset(q, row * stride), panel, Offset(out, row * shape.score_stride)]
            self._tiles.call_exactly(size, here)

        if shape.groups == 1:
            in_parts(self._k, self._sizes, rows, part)
            return
        in_groups(self._k, shape.tile.rows, self._sizes, rows, part)

    def _tile(self, b: FunctionBuilder, rows: int, args: list[Var]) -> None:
        q, panel, out = args
        shape, tile = self._shape, replace(self._shape.tile, rows=rows)
        param = self._k.param
        a = Matrix(pointer=q, row=param(shape.q.strides[2]), step=param(shape.q.strides[3]))
        sums = accumulate(b, tile, a, Matrix(pointer=panel, row=index(tile.columns), step=index(1)), param(shape.depth))
        for i, row in enumerate(sums):
            for j, c in enumerate(row):
                b.store(out, i * shape.score_stride + j * tile.lanes, c)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumArguments:
    """``v_row``: from one row of v to the next; ``columns`` of this pass; ``head``: batch and head; ``row``: the block's first.

    Empty ``running`` in a single pass; else the sums so far, the factors they shrink by, whether this is the first pass, and
    whether it is the last.
    """

    v_row: Rvalue
    columns: Rvalue
    scales: Var
    head: Sequence[Rvalue]
    row: Rvalue
    running: tuple[Var, Var, Rvalue, Rvalue] | None

    def at(self, row: Rvalue, sum_stride: int) -> list[Rvalue]:
        """The arguments of a tile whose rows begin at the block's row ``row``."""
        args = [self.v_row, self.columns, Offset(self.scales, row), *self.head, self.row + row]
        if self.running is not None:
            sums, factors, first, last = self.running
            args += [Offset(sums, row * sum_stride), Offset(factors, row), first, last]
        return args


class WeightedSums:
    """sums[row] = sums[row] * factor[row] + weights[row] . v, for the columns of one pass.

    The first pass finds no sums; the last one multiplies with the row's scale and writes the output. A single pass is both
    and is told nothing of what runs from pass to pass.
    """

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape, result: Epilogue, out: Var) -> None:
        self._k = kernel
        self._shape = shape
        self._result = result
        self._out = out
        self._sizes = part_sizes(shape.rows, shape.tile.rows)
        few = shape.tile.rows // 3  # rows that leave registers for three times as many columns
        self._strips_of: dict[int, list[tuple[int, TileFamily]]] = {}
        for sizes, vectors in (
            ([n for n in self._sizes if n <= few], shape.tile.vectors * 3),
            ([n for n in self._sizes if n > few], shape.tile.vectors),
        ):
            if sizes:
                self._strips_of |= dict.fromkeys(sizes, self._strips(sizes, vectors))

    def call(self, rows: Rvalue, weights: Var, v: Pointer, args: SumArguments) -> None:
        stride = self._shape.score_stride

        def part(size: int, row: Rvalue) -> None:
            for start, family in self._strips_of[size]:
                strip(start, family, size, row)

        def strip(start: int, family: TileFamily, size: int, row: Rvalue) -> None:
            pointers = [Offset(weights, row * stride), Offset(v, index(start)), index(start)]
            family.call_exactly(size, [*pointers, *args.at(row, self._shape.sum_stride)])

        def wholes(size: int, end: Rvalue) -> None:
            for start, family in self._strips_of[size]:
                with self._k.loop("row", 0, end, size) as row:
                    strip(start, family, size, row)

        whole, groups = self._shape.tile.rows, self._shape.groups
        if groups == 1:
            in_parts(self._k, self._sizes, rows, part)
        else:
            in_groups(self._k, whole, self._sizes, rows, part, wholes)

    def _strips(self, sizes: Sequence[int], most: int) -> list[tuple[int, TileFamily]]:
        """(first column, its tiles) across v, in as few strips of at most ``most`` vectors as possible."""
        lanes, width = self._shape.tile.lanes, self._shape.width
        vectors = -(-width // lanes)
        each = -(-vectors // -(-vectors // most)) * lanes
        starts = range(0, width, each)
        families = {n: self._family(sizes, n) for n in dict.fromkeys(min(each, width - start) for start in starts)}
        return [(start, families[min(each, width - start)]) for start in starts]

    def _family(self, sizes: Sequence[int], width: int) -> TileFamily:
        shape, lanes = self._shape, self._shape.tile.lanes

        def body(b: FunctionBuilder, rows: int, args: list[Var]) -> None:
            weights, v, start, v_row, columns, scales, batch, head, first_row, *running = args
            tile = Tile(rows=rows, vectors=-(-width // lanes), lanes=lanes, unroll=shape.tile.unroll)
            a = Matrix(pointer=weights, row=index(shape.score_stride), step=index(1))
            v_matrix = Matrix(pointer=v, row=v_row, step=index(1))
            products = accumulate(b, tile, a, v_matrix, columns, count=index(width) if width % lanes else None)
            where = (batch, head, first_row, start)
            if not running:
                self._write(b, products, scales, where, width)
                return
            sums = [[b.variable("sum", c) for c in row] for row in products]
            before, factors, first, last = running
            with b.when(binary("eq", first, 0)):
                self._add(b, sums, Offset(before, start), factors)
            with b.when(last):
                self._write(b, sums, scales, where, width)
            with b.otherwise():
                for i, row_of_sums in enumerate(sums):
                    for j, c in enumerate(row_of_sums):
                        b.store(Offset(before, start), i * shape.sum_stride + j * lanes, c)

        arguments: list[tuple[str, Type | PointerType]] = [
            ("weights", F32_IN),
            ("v", PointerType(shape.v.dtype if shape.packs_v == 0 else DType.F32)),
            ("start", INDEX),
            ("v_row", INDEX),
            ("columns", INDEX),
            ("scales", F32_IN),
            ("batch", INDEX),
            ("head", INDEX),
            ("row", INDEX),
        ]
        if not shape.is_single_pass:
            arguments += [("sums", F32_OUT), ("factors", F32_IN), ("first", INDEX), ("last", INDEX)]
        return TileFamily(self._k, f"sums_{width}", sizes, arguments, body)

    def _add(self, b: BlockBuilder, sums: Sequence[Sequence[Var]], before: Pointer, factors: Var) -> None:
        lanes = self._shape.tile.lanes
        for i, row in enumerate(sums):
            factor = b.let("factor", splat(b.load(factors, i), lanes))
            for j, c in enumerate(row):
                b.assign(c, Fma(b.load(before, i * self._shape.sum_stride + j * lanes, lanes), factor, c))

    def _write(self, b: BlockBuilder, sums: Sequence[Sequence[Rvalue]], scales: Var, where: Sequence[Rvalue], width: int) -> None:
        op, lanes = self._shape.op, self._shape.tile.lanes
        batch, head, row, column = where
        here = self._result.at(b)
        for i, row_of_sums in enumerate(sums):
            scale = b.let("scale", splat(b.load(scales, i), lanes))
            for j, c in enumerate(row_of_sums):
                value = normalised(op, c, scale)
                count = index(width - j * lanes) if width - j * lanes < lanes else None
                here.store(op.output, self._out, [batch, head, row + i, column + j * lanes], b.let("value", value), count)
