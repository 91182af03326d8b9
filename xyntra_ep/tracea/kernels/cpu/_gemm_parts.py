"""The depth of a matrix product in parts of about 256 steps of k:

    for part of k:
        for block of rows:  sums are added to a scratch, the last part finishes with all of them

For two reasons. A rounding error grows with the length of its chain of additions: one chain for all of k had twice the difference
to ONNX Runtime on BERT, whose chains are as long as these. And a large panel does not stay in L2 beside the rows that stream past
it: 3072 x 768 for 128 rows ran at 84 % of the arithmetic peak of a core with 2 MiB of L2, in parts at 92 %.

The scratch is on the stack, so at most ``BLOCKS`` blocks of rows go through the parts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var

BLOCKS = 16
LENGTH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """``number`` parts of ``length`` steps of k, the last one of what is left."""

    number: int
    length: int


def parts_of(steps: Size, unroll: int) -> Parts | None:
    """None where one part is enough, or the depth unknown."""
    number = round(steps / LENGTH) if isinstance(steps, int) else 1
    if not isinstance(steps, int) or number < 2:
        return None
    return Parts(number=number, length=-(-steps // number // unroll) * unroll)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """Sums of one tile from part to part, zero at first. ``first``: step of the part, ``last``: the one behind its last."""

    scratch: Var
    first: Rvalue
    last: Rvalue

    def keep(self, block: BlockBuilder, sums: Sequence[Sequence[Rvalue]]) -> None:
        """Add them to those before."""
        for i, c in enumerate(c for row in sums for c in row):
            at = i * c.type.lanes
            block.store(self.scratch, at, block.load(self.scratch, at, c.type.lanes) + c)

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
