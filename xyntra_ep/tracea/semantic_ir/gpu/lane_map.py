"""Which thread touches what: the bits of a thread's number, dealt out to the axes of a tile.

One description gives the index arithmetic of the generated code and the addresses that `banks.py` simulates, so what is proven
of the one holds for the other.

>>> transposing = LaneMap((Digit("k", 4, step=4), Digit("m", 8)))        # 32 threads, packets of 4 along k
>>> transposing.at(5)
{'k': 4, 'm': 1}
>>> transposing.threads
32
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, binary, index


@dataclass(frozen=True, slots=True)
class Digit:
    """``count`` values (a power of two) that move ``axis`` by ``step`` each (a power of two)."""

    axis: str
    count: int
    step: int = 1


@dataclass(frozen=True, slots=True)
class LaneMap:
    """A thread's number as digits, the lowest first. Digits of one axis add up; together they reach each place once."""

    digits: tuple[Digit, ...]

    def __post_init__(self) -> None:
        powers = all(n > 0 and n & (n - 1) == 0 for d in self.digits for n in (d.count, d.step))
        assert powers, f"{self.digits}: not all powers of two"

    @property
    def threads(self) -> int:
        return prod(d.count for d in self.digits)

    def extent(self, axis: str) -> int:
        """How many steps of ``axis`` the threads reach together."""
        return prod(d.count for d in self.digits if d.axis == axis)

    def at(self, thread: int) -> dict[str, int]:
        """Where a thread is, per axis."""
        place = {d.axis: 0 for d in self.digits}
        for d in self.digits:
            place[d.axis] += thread % d.count * d.step
            thread //= d.count
        return place

    def emit(self, b: BlockBuilder, thread: Rvalue) -> Mapping[str, Rvalue]:
        """The same as code."""
        place: dict[str, Rvalue] = {d.axis: index(0) for d in self.digits}
        below = 1
        for i, d in enumerate(self.digits):
            if d.count == 1:
                continue
            digit = binary("shr", thread, below.bit_length() - 1) if below > 1 else thread
            if i + 1 < len(self.digits):
                digit = binary("and", digit, d.count - 1)
            place[d.axis] = place[d.axis] + digit * d.step
            below *= d.count
        return {axis: b.let(axis, value) for axis, value in place.items()}
