"""The depth of a matrix product in parts, where a whole panel would not stay in L2 beside the rows that stream past it:
3072 x 768 for 128 rows ran at 84 % of the arithmetic peak of a core with 2 MiB of L2, in three parts at 92 %.

    for part of k:
        for block of rows:  the first part stores its sums, the next ones add to them, the last one finishes with theirs

The sums lie in a scratch in L1 meanwhile, so at most ``BLOCKS`` blocks of rows go through the parts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.kernels.cpu._gemm_tile import Tile
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var, lt

BLOCKS = 16
_WHOLE, _PART = 6, 10  # of L2: what a panel may take to be used as a whole, and what a part of it should take


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """``number`` parts of ``length`` steps of k, the last one of what is left."""

    number: int
    length: int


def parts_of(steps: Size, tile: Tile, l2_bytes: int) -> Parts | None:
    """None where a panel may stay whole."""
    if not isinstance(steps, int):
        return None
    panel = 4 * steps * tile.columns
    if panel <= l2_bytes // _WHOLE:
        return None
    number = -(-panel // (l2_bytes // _PART))
    length = -(-steps // number // tile.unroll) * tile.unroll
    return Parts(number=-(-steps // length), length=length) if length < steps else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """Sums of one tile from part to part. ``first``: step of the part, ``last``: the one behind its last."""

    scratch: Var
    first: Rvalue
    last: Rvalue

    def keep(self, block: BlockBuilder, sums: Sequence[Sequence[Rvalue]]) -> None:
        """Store them, with those before if there are any."""
        places = [(i, c) for i, c in enumerate(c for row in sums for c in row)]
        with block.when(lt(0, self.first)):
            for i, c in places:
                at = i * c.type.lanes
                block.store(self.scratch, at, block.load(self.scratch, at, c.type.lanes) + c)
        with block.otherwise():
            for i, c in places:
                block.store(self.scratch, i * c.type.lanes, c)

    def added(self, block: BlockBuilder, sums: Sequence[Sequence[Rvalue]]) -> list[list[Rvalue]]:
        """With those of all parts before the last."""
        width = len(sums[0])
        return [
            [
                block.let("c", c + block.load(self.scratch, (i * width + j) * c.type.lanes, c.type.lanes))
                for j, c in enumerate(row)
            ]
            for i, row in enumerate(sums)
        ]
