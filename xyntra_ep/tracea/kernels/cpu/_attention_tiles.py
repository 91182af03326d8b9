"""The two matrix products of attention as register tiles: scores (q times k, with the score's expression) and weighted sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.kernels.cpu._attention_shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu._epilogue import Epilogue, Group
from xyntra_ep.tracea.kernels.cpu._gemm_rows import TileFamily, block_sizes
from xyntra_ep.tracea.kernels.cpu._gemm_tile import Matrix, Tile, accumulate
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Convert,
    Fma,
    Iota,
    Offset,
    Pointer,
    PointerType,
    Rvalue,
    Select,
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

F32_IN, F32_OUT = PointerType(DType.F32), PointerType(DType.F32, writable=True)
NEVER = float("-inf")  # the score of a column that does not exist


class Scores:
    """Scores of a block of rows and a panel of columns into rows of memory.

    Columns past the end get -inf, so what follows may work on whole vectors. Under a causal mask a tile that lies wholly in
    sight has no comparison in it.
    """

    def __init__(self, kernel: KernelBuilder, program: Program, shape: AttentionShape) -> None:
        self._k = kernel
        self._shape = shape
        op = shape.op
        root = shape.causal.visible if shape.causal is not None else op.score
        domain = (*shape.batch, shape.rows, shape.columns)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]
        self.epilogue = Epilogue(kernel, program, root, op.inputs, domain, groups, lane_group=3)

    def tiles(self) -> TileFamily:
        arguments: list[tuple[str, Type | PointerType]] = [
            ("q", PointerType(self._shape.q.dtype)),
            ("panel", F32_IN),
            ("scores", F32_OUT),
        ]
        arguments += [(name, INDEX) for name in ("batch", "head", "row", "column")]
        most = self._shape.tile.rows
        sizes = block_sizes(self._shape.rows, most)
        if self._shape.takes_few_rows:  # then there are two blocks at least
            sizes = [n for n in sizes if n >= (most + 1) // 2]
        return TileFamily(self._k, "scores", sizes, arguments, self._tile)

    def _tile(self, b: FunctionBuilder, rows: int, args: list[Var]) -> None:
        q, panel, scores, *at = args
        shape, tile = self._shape, replace(self._shape.tile, rows=rows)
        param = self._k.param
        a = Matrix(pointer=q, row=param(shape.q.strides[2]), step=param(shape.q.strides[3]))
        sums = accumulate(b, tile, a, Matrix(pointer=panel, row=index(tile.columns), step=index(1)), param(shape.depth))
        left = b.let("left", param(shape.columns) - at[3])
        with b.when(self.in_sight(at[2], at[3], left, tile.columns)):  # the first row sees least
            self._finish(b, tile, sums, scores, at, None)
        with b.otherwise():
            self._finish(b, tile, sums, scores, at, left)

    def _finish(
        self,
        b: BlockBuilder,
        tile: Tile,
        sums: Sequence[Sequence[Rvalue]],
        scores: Var,
        at: Sequence[Rvalue],
        left: Rvalue | None,
    ) -> None:
        here = self.epilogue.at(b)
        batch, head, first_row, first_column = at
        rows = [first_row + i for i in range(tile.rows)]
        for j in range(tile.vectors):
            column = first_column + j * tile.lanes
            count = None if left is None else b.let("count", left - j * tile.lanes)
            for i, row in enumerate(rows):
                value = here.value([batch, head, row, column], sums[i][j], tile.lanes, count)
                value = self.masked(b, value, row, column, count)
                b.store(scores, i * self._shape.score_stride + j * tile.lanes, value)

    def in_sight(self, row: Rvalue, column: Rvalue, left: Rvalue, columns: int) -> Rvalue:
        """Whether ``row`` sees all of ``columns`` columns, of which ``left`` exist."""
        seen: Rvalue = le(columns, left)
        if self._shape.causal is not None:
            seen = seen & le(column + columns, row + self._k.param(self._shape.causal.reach))
        return seen

    def masked(self, b: BlockBuilder, value: Rvalue, row: Rvalue, column: Rvalue, count: Rvalue | None) -> Rvalue:
        """``value`` with what is out of sight replaced; ``count`` None: nothing is."""
        if count is None:
            return value
        lanes = max(1, value.type.lanes)
        causal = self._shape.causal
        if causal is not None:
            seen = b.let("seen", row + self._k.param(causal.reach) - column)
            value = Select(_below(seen, lanes), value, Const(f32(lanes), causal.masked))
        return Select(_below(count, lanes), value, Const(f32(lanes), NEVER))


def _below(count: Rvalue, lanes: int) -> Rvalue:
    """The lanes whose number is less than ``count``."""
    return lt(Iota(i32(lanes)), splat(Convert(i32(1), count), lanes))


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
        sizes = block_sizes(shape.rows, shape.tile.rows)
        self._few = shape.tile.rows // 3  # rows that leave registers for three times as many columns
        few, many = [n for n in sizes if n <= self._few], [n for n in sizes if n > self._few]
        self._wide = self._strips(few, shape.tile.vectors * 3) if few else []
        self._narrow = self._strips(many, shape.tile.vectors) if many else []

    def call(self, rows: Rvalue, weights: Var, v: Pointer, args: Sequence[Rvalue], running: Sequence[Rvalue]) -> None:
        """``args``: v_row (from one row of v to the next), columns, scales, batch, head, row. ``running``: sums, factors,
        whether this is the first pass, whether it is the last."""
        k = self._k

        def emit(strips: Sequence[tuple[int, TileFamily]]) -> None:
            for start, family in strips:
                family.call(rows, [weights, Offset(v, index(start)), index(start), *args, *running])

        if not self._wide or not self._narrow:
            emit(self._wide or self._narrow)
            return
        with k.when(le(rows, self._few)):
            emit(self._wide)
        with k.otherwise():
            emit(self._narrow)

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
                value = c * scale
                if op.nan_to_zero:
                    value = Select(binary("eq", scale, scale), value, Const(f32(lanes), 0.0))
                count = index(width - j * lanes) if width - j * lanes < lanes else None
                here.store(op.output, self._out, [batch, head, row + i, column + j * lanes], b.let("value", value), count)
