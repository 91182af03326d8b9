"""The depth of a matrix product in parts of about 256 steps of k:

    for part of k:
        for block of rows:  sums are added to a scratch; after the last part a function that all tiles share finishes with them

For two reasons. A rounding error grows with the length of its chain of additions: one chain for all of k had twice the difference
to ONNX Runtime on BERT, whose chains are as long as these. And a large panel does not stay in L2 beside the rows that stream past
it: 3072 x 768 for 128 rows ran at 84 % of the arithmetic peak of a core with 2 MiB of L2, in parts at 92 %.

The scratch is on the stack, so at most ``BLOCKS`` blocks of rows go through the parts together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.given_size import decided_by
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var

BLOCKS = 16
LENGTH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """``number`` parts of ``length`` steps of k, the last one of what is left; multiples of the unroll, all of them with
    ``whole_iterations``."""

    number: int
    length: int
    whole_iterations: bool


def one_part(steps: int, unroll: int) -> Parts:
    """All steps, for sums that go through memory all the same."""
    return Parts(number=1, length=-(-steps // unroll) * unroll, whole_iterations=steps % unroll == 0)


def parts_of(steps: Size, unroll: int) -> Parts | None:
    """None where one part is enough, or the depth unknown."""
    number = decided_by("parts", round(steps / LENGTH), steps) if isinstance(steps, int) else 1
    if not isinstance(steps, int) or number < 2:
        return None
    return Parts(number=number, length=-(-steps // number // unroll) * unroll, whole_iterations=steps % unroll == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """Sums of one tile from part to part in ``scratch``, zero at first. ``steps`` of this part."""

    scratch: Var
    steps: Rvalue

    def keep(self, block: BlockBuilder, sums: Sequence[Sequence[Rvalue]]) -> None:
        """Add them to those before."""
        for i, c in enumerate(c for row in sums for c in row):
            at = i * c.type.lanes
            block.store(self.scratch, at, block.load(self.scratch, at, c.type.lanes) + c)
