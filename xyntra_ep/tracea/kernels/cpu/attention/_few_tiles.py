"""The two matrix products of attention where q has few rows: k and v are read once, where they lie, and what comes next is
fetched meanwhile."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu.gemm._dots import Ahead, column_sums, dot_tile_of
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFamily
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Ahead as FetchAhead
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Matrix, Tile, accumulate
from xyntra_ep.tracea.kernels.cpu.shared.row_parts import in_groups, part_sizes
from xyntra_ep.tracea.kernels.cpu.shared.streams import elements_of_a_line
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Prefetching
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Offset,
    PointerType,
    Rvalue,
    Type,
    Var,
    f32,
    index,
    vmin,
)

# How far ahead of its use k is fetched. With 8 lanes and heads of 64 the next panel begins 2 KiB on, which is too near (Zen 4,
# one query of 32 heads over 8, 16384 keys: 4.0 ms, so 2.6); of 16 KiB some is gone when it is used (2.8).
_AHEAD_BYTES = 8 << 10
_NEAR_BYTES = 16 << 10  # of v: what lies in L1 while strips of it are summed up


class FewProducts:
    """Rows of q times columns of k in place, by dot products along d."""

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape, context: BuildContext) -> None:
        assert isinstance(shape.depth, int)
        self._k, self._shape, self._depth, self._caps = kernel, shape, shape.depth, context.caps
        self._sizes = part_sizes(shape.rows, _rows_at_once(context.caps))
        self.padded = -(-max(shape.depth, 1) // context.caps.lanes) * context.caps.lanes
        arguments: list[tuple[str, Type | PointerType]] = [
            ("query", PointerType(DType.F32)),
            ("keys", PointerType(shape.k.dtype)),
            ("exist", INDEX),
            ("out", PointerType(DType.F32, writable=True)),
        ]
        self._tiles = TileFamily(kernel, "products", self._sizes, arguments, self._tile)

    def copy_query(self, q: Offset, rows: Rvalue, query: Var) -> None:
        """The rows of q, which may have any strides, one behind the other in whole vectors."""
        k, lanes = self._k, self._shape.tile.lanes
        with k.loop("i", 0, rows) as i:
            k.store(query, i * self.padded + (self.padded - lanes), Const(f32(lanes), 0.0))
            with k.loop("d", 0, self._depth) as d:
                element = k.load(q, i * k.param(self._shape.q.strides[2]) + d * k.param(self._shape.q.strides[3]))
                k.store(query, i * self.padded + d, element)

    def multiply(self, query: Var, keys: Offset, rows: Rvalue, columns: Rvalue, out: Var) -> None:
        """``rows`` rows times ``columns`` columns to ``out``, whole vectors."""
        k, lanes, stride = self._k, self._shape.tile.lanes, self._k.param(self._shape.k.strides[2])
        with k.loop("t", 0, columns, lanes) as t:
            exist = k.let("exist", vmin(columns - t, lanes))

            def part(size: int, row: Rvalue) -> None:
                here = [Offset(query, row * self.padded), Offset(keys, t * stride), exist]
                self._tiles.call_exactly(size, [*here, Offset(out, row * self._shape.score_stride + t)])

            in_groups(k, _rows_at_once(self._caps), self._sizes, rows, part)

    def _tile(self, b: FunctionBuilder, rows: int, args: list[Var]) -> None:
        query, keys, exist, out = args
        tile, stride = dot_tile_of(rows, self._caps), self._k.param(self._shape.k.strides[2])
        ahead = None
        if self._caps.prefetching is not Prefetching.BURST:
            panels = max(1, -(-_AHEAD_BYTES // (tile.lanes * self._depth * self._shape.k.dtype.bytes)))
            following = (Offset(keys, stride * (panels * tile.lanes)), stride)
            ahead = Ahead(first=following, number=tile.lanes, share=tile.columns, done=index(0))
        columns = (keys, stride)
        sums = column_sums(b, tile, rows, (query, index(self.padded)), columns, index(self._depth), exist, ahead, all_groups=True)
        for i, total in enumerate(sums):
            b.store(out, i * self._shape.score_stride, total)


class FewSums:
    """Sums of rows of v by their weights, added to those in memory: a block of v's rows after the other, that all strips of
    columns find in L1."""

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape, context: BuildContext) -> None:
        self._k, self._shape, self._caps = kernel, shape, context.caps
        self._sizes = part_sizes(shape.rows, _rows_at_once(context.caps))
        self._block = max(4, _NEAR_BYTES // (shape.v.dtype.bytes * shape.sum_stride) // 4 * 4)
        self._strips = {size: self._strips_of(size) for size in self._sizes}

    def add(self, weights: Var, v: Offset, rows: Rvalue, columns: Rvalue, sums: Var) -> None:
        k, shape = self._k, self._shape
        row_of_v = k.param(shape.v.strides[2])
        with k.loop("column", 0, columns, self._block) as column:
            here = k.let("here", vmin(columns - column, self._block))
            at = k.let("rows_of_v", column * row_of_v)

            def part(size: int, row: Rvalue) -> None:
                for start, family in self._strips[size]:
                    near = [Offset(weights, row * shape.score_stride + column), Offset(v, at + start)]
                    # Strips share out the next block, as if it were one row.
                    fetched = Offset(v, at + (self._block * shape.width + self._block * start))
                    family.call_exactly(size, [*near, fetched, Offset(sums, row * shape.sum_stride + start), here])

            in_groups(k, _rows_at_once(self._caps), self._sizes, rows, part)

    def _strips_of(self, rows: int) -> list[tuple[int, TileFamily]]:
        """(first column, its tile) across v, in as few strips as the registers allow, as equal as possible."""
        lanes, width = self._shape.tile.lanes, self._shape.width
        most = max(1, (self._caps.vector_registers - 1) // (rows + 1))
        vectors = -(-width // lanes)
        each = -(-vectors // -(-vectors // most)) * lanes
        starts = range(0, width, each)
        families = {n: self._family(rows, n) for n in dict.fromkeys(min(each, width - start) for start in starts)}
        return [(start, families[min(each, width - start)]) for start in starts]

    def _family(self, rows: int, width: int) -> TileFamily:
        shape, lanes = self._shape, self._shape.tile.lanes

        def body(b: FunctionBuilder, rows: int, args: list[Var]) -> None:
            weights, v, fetched, sums, columns = args
            tile = Tile(rows=rows, vectors=-(-width // lanes), lanes=lanes)
            a = Matrix(pointer=weights, row=index(shape.score_stride), step=index(1))
            of_v = Matrix(pointer=v, row=self._k.param(shape.v.strides[2]), step=index(1))
            start = Matrix(pointer=sums, row=index(shape.sum_stride), step=index(1))
            count = index(width) if width % lanes else None
            totals = accumulate(b, tile, a, of_v, columns, count=count, ahead=self._ahead(tile, fetched), start=start)
            for i, row in enumerate(totals):
                for j, c in enumerate(row):
                    b.store(sums, i * shape.sum_stride + j * lanes, c)

        pointers = [PointerType(DType.F32), PointerType(shape.v.dtype), PointerType(shape.v.dtype)]
        kinds: list[Type | PointerType] = [*pointers, PointerType(DType.F32, writable=True), INDEX]
        names = ("weights", "v", "fetched", "sums", "columns")
        return TileFamily(self._k, f"sums_{width}", [rows], list(zip(names, kinds, strict=True)), body)

    def _ahead(self, tile: Tile, pointer: Var) -> FetchAhead | None:
        """Of v whose rows are one behind the other."""
        line, turn = elements_of_a_line(pointer), tile.columns * tile.unroll
        if self._caps.prefetching is Prefetching.BURST or self._shape.v.strides[2] != self._shape.width or turn % line:
            return None
        return FetchAhead(pointer=pointer, lines=turn // line, step=index(tile.columns), apart=index(line))


def _rows_at_once(caps: Capabilities) -> int:
    """Rows of q whose sums fit the registers together with those of several columns."""
    return 8 if caps.vector_registers >= 32 else 4
