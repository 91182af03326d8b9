"""Sizes of an attention and how it is blocked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, lt
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import Attention, Operand
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.shared.causal_mask import CausalMask, find_causal, find_causal_sum
from xyntra_ep.tracea.kernels.shared.column_bounds import Bounds
from xyntra_ep.tracea.kernels.shared.mask_table import MaskTable, find_table
from xyntra_ep.tracea.kernels.variant import BuildContext

# Columns of k that one pass holds: 12 rows of scores stay in L1. More columns take several passes with a running maximum.
PASS_COLUMNS = 512
FEW = 16  # rows of q for which copies of k and v do not pay
REUSED_BLOCKS = 4  # so many blocks of rows must use a copy of v for it to pay


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    op: Attention
    tile: Tile
    causal: CausalMask | None
    groups: int = 1  # of a tile's rows, in a block
    table: MaskTable | None = None

    @property
    def q(self) -> Operand:
        return self.op.inputs[0]

    @property
    def k(self) -> Operand:
        return self.op.inputs[1]

    @property
    def v(self) -> Operand:
        return self.op.inputs[2]

    @property
    def batch(self) -> tuple[Size, Size]:
        return self.q.shape[0], self.q.shape[1]

    @property
    def rows(self) -> Size:
        return self.q.shape[2]

    @property
    def columns(self) -> Size:
        return self.k.shape[2]

    @property
    def depth(self) -> Size:
        return self.q.shape[3]

    @property
    def width(self) -> int:
        width = self.v.shape[3]
        assert isinstance(width, int)
        return width

    @property
    def panels(self) -> Size:
        return ceildiv(self.columns, self.tile.columns)

    @property
    def pass_columns(self) -> int:
        """Columns of a pass at most, whole panels."""
        most = PASS_COLUMNS // self.tile.columns * self.tile.columns
        if isinstance(self.panels, int):
            return max(self.tile.columns, min(most, self.panels * self.tile.columns))
        return most

    @property
    def score_stride(self) -> int:
        """From one row of scores to the next; not a power of two, which would put all rows in one set of the cache."""
        return self.pass_columns + 16

    @property
    def sum_stride(self) -> int:
        """From one row of the weighted sums to the next: whole vectors."""
        return -(-self.width // self.tile.lanes) * self.tile.lanes

    @property
    def block_rows(self) -> int:
        """Rows of q that go over the columns together: what they read of k and v comes from the first-level cache but once."""
        return self.groups * self.tile.rows

    @property
    def packs(self) -> Size:
        """1 when the columns of k are packed, 0 when the rows of q turn out to be few."""
        return lt(FEW, self.rows) if self.takes_few_rows else 1

    @property
    def takes_few_rows(self) -> bool:
        """Whether rows of q may be few, and k and v can then be used where they lie, in contiguous rows."""
        few = not isinstance(self.rows, int) or self.rows <= FEW
        return self.k.strides[3] == self.v.strides[3] == 1 and isinstance(self.depth, int) and few

    @property
    def is_single_pass(self) -> bool:
        """Whether one pass is known to see all columns that count. Of a mask that is finite, or added, it may turn out
        otherwise."""
        one = isinstance(self.columns, int) and self.columns <= self.pass_columns
        return one and self.table is None and not self.may_see_more

    @property
    def may_see_more(self) -> bool:
        """Whether columns that a mask hides may have weight after all: its number is finite, or added."""
        if self.table is not None:
            return self.limit is not None or not math.isinf(self.masked)
        if self.causal is None or self.bounds == Bounds():
            return False
        return self.causal.limit is not None or not math.isinf(self.causal.masked)

    @property
    def masked(self) -> float:
        """What a hidden score is at most, as long as no element of q and k is over the ``limit``, where there is one."""
        if self.table is not None:
            return self.table.masked
        assert self.causal is not None
        return self.causal.masked if self.causal.limit is None else 0.75 * self.causal.masked

    @property
    def limit(self) -> float | None:
        mask = self.causal if self.table is None else self.table
        return None if mask is None else mask.limit

    @property
    def bounds(self) -> Bounds:
        return Bounds() if self.causal is None else self.causal.bounds

    @property
    def sixteenths(self) -> int:
        """Of the scores, how many are computed."""
        return max(1, round(16 * self.bounds.share(self.rows, self.columns)))

    @property
    def packs_v(self) -> Size:
        """1 when v is copied to contiguous rows: where it must be, and where its rows lie far apart and are used often, which
        the caches bear up to one pass only."""
        if self.v.strides[3] != 1 or self.v.dtype is not DType.F32:
            return 1
        if self.v.strides[2] == self.width:
            return 0
        return lt(self.pass_columns, self.columns) * lt(REUSED_BLOCKS * self.tile.rows, self.rows)

    def heads_of(self, operand: Operand) -> list[int]:
        """Of batch and head, the axes along which k or v changes: the matrices that packing makes."""
        return [i for i in (0, 1) if operand.strides[i] != 0]


def shape_of(op: Attention, tile: Tile, context: BuildContext, *, looks: bool = False) -> AttentionShape:
    """``looks``: the kernel can look through packed columns of k, which masks that are added to scores take, and goes by lists of
    tiles. Strict kernels leave out nothing: NaN and infinity in what a mask hides show."""
    shape = AttentionShape(op=op, tile=tile, causal=None)
    if context.strict:
        return shape
    if looks and shape.packs != 0 and isinstance(shape.depth, int):
        mask = find_causal_sum(op.score, shape.depth)
    else:
        mask = find_causal(op.score)
    causal = None if mask is None else replace(mask, bounds=mask.bounds.without_idle(shape.columns))
    return replace(shape, causal=causal, table=_table_of(shape, context) if looks else None)


def _table_of(shape: AttentionShape, context: BuildContext) -> MaskTable | None:
    """A mask whose tiles are worth a list: there is more than one pass, and many products for each of its elements."""
    if (isinstance(shape.columns, int) and shape.columns <= shape.pass_columns) or not isinstance(shape.depth, int):
        return None
    table = find_table(shape.op.score, shape.depth if shape.packs != 0 else None)
    if table is None or shape.rows == 1:
        return None
    reads = {shape.op.inputs[e.attr].value for e in walk(table.seen) if e.kind == "load"}
    return table if 1 not in table.axes or all(map(context.is_constant, reads)) else None
