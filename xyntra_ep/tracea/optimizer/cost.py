"""What an op must at least do, and how long a machine needs for that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir.dims import TYPICAL, Size
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.core_ir.work import sized_work


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Floating-point operations (a multiply-add is two) and bytes that must cross the memory at least once."""

    flops: float
    bytes: float

    def __add__(self, other: Work) -> Work:
        return Work(flops=self.flops + other.flops, bytes=self.bytes + other.bytes)


def roofline_ns(work: Work, *, gflops: float, gbs: float) -> float:
    """The least time for ``work``: the slower of computing (10^9 flop/s) and moving (10^9 bytes/s).

    >>> roofline_ns(Work(flops=2e9, bytes=1e6), gflops=200, gbs=20)
    10000000.0
    """
    return max(work.flops / gflops, work.bytes / gbs)


def typical(size: Size) -> int:
    """As ``dims.typical``; a difference that comes out empty so is typical, too."""
    value = dims.typical(size)
    return value if value > 0 or isinstance(size, int) else TYPICAL


def work_of(op: CoreOp) -> Work:
    """The work of one op, at typical values of symbolic sizes."""
    work = sized_work(op)
    return Work(flops=float(typical(work.flops)), bytes=float(typical(work.bytes)))


def total(works: Iterable[Work]) -> Work:
    return sum(works, Work(flops=0.0, bytes=0.0))
