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
        sizes = [n for n in block_sizes(self._shape.rows, self._shape.tile.rows) if n > 1 or self._shape.packs != 0]
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
        self, b: BlockBuilder, tile: Tile, sums: list[list[Rvalue]], scores: Var, at: Sequence[Rvalue], left: Rvalue | None
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
    """sums[row] = sums[row] * factor[row] + weights[row] . v, for the columns of one pass; v's rows lie ``v_row`` apart."""

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape) -> None:
        self._k = kernel
        self._shape = shape
        self._families: dict[int, TileFamily] = {}

    def define(self) -> None:
        """Make the tiles: as many full ones as v is wide, and a narrower one for the rest."""
        for _, width in self._strips():
            if width not in self._families:
                self._families[width] = self._family(width)

    def call(self, rows: Rvalue, weights: Var, v: Pointer, v_row: Rvalue, sums: Var, factors: Var, columns: Rvalue) -> None:
        for start, width in self._strips():
            self._families[width].call(
                rows, [weights, Offset(v, index(start)), v_row, Offset(sums, index(start)), factors, columns]
            )

    def _strips(self) -> list[tuple[int, int]]:
        """(first column, columns) of each tile across v."""
        width, most = self._shape.width, self._shape.tile.columns
        return [(start, min(most, width - start)) for start in range(0, width, most)]

    def _family(self, width: int) -> TileFamily:
        shape = self._shape
        lanes = shape.tile.lanes
        vectors = -(-width // lanes)

        def body(b: FunctionBuilder, rows: int, args: list[Var]) -> None:
            weights, v, v_row, sums, factors, columns = args
            tile = Tile(rows=rows, vectors=vectors, lanes=lanes, unroll=shape.tile.unroll)
            a = Matrix(pointer=weights, row=index(shape.score_stride), step=index(1))
            v_matrix = Matrix(pointer=v, row=v_row, step=index(1))
            count = index(width) if width % lanes else None
            products = accumulate(b, tile, a, v_matrix, columns, count=count)
            for i in range(rows):
                factor = b.let("factor", splat(b.load(factors, i), lanes))
                for j in range(vectors):
                    at = i * shape.sum_stride + j * lanes
                    b.store(sums, at, Fma(b.load(sums, at, lanes), factor, products[i][j]))

        arguments: list[tuple[str, Type | PointerType]] = [
            ("weights", F32_IN),
            ("v", F32_IN),
            ("v_row", INDEX),
            ("sums", F32_OUT),
            ("factors", F32_IN),
            ("columns", INDEX),
        ]
        return TileFamily(self._k, f"sums_{width}", block_sizes(shape.rows, shape.tile.rows), arguments, body)
