"""A block's part of a product of few rows: who reads what of b, and how much of it is under way at a time.

A thread reads patches of ``deep`` by ``wide`` elements of b (along k and along its columns) in packets of up to 16 bytes, and
multiplies them with all rows of a. Threads that are neighbours read what is contiguous: 128 bytes along the columns, then further
down; or, where b is contiguous along k, as much as a warp can of one column. What threads have of the same column is added up
between registers first, as far as threads exchange those, then in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.nodes import PACKET_BYTES

ROWS = (1, 2, 4, 8)
THREADS = 256
_LINE_BYTES = 128  # what a row of b is best read in
_SIDE = 4  # of a patch, across its packets: so many are under way in each thread
_WARP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class GemvTile:
    """``rows`` of the result a block. ``along_k``: b is contiguous along k; ``packet``: elements of ``dtype`` that are read at
    once. ``subgroup``: threads that exchange registers, 1 where none can."""

    rows: int
    along_k: bool
    packet: int
    dtype: DType
    subgroup: int

    @property
    def deep(self) -> int:
        return self.packet if self.along_k else _SIDE

    @property
    def wide(self) -> int:
        return _SIDE if self.along_k else self.packet

    @property
    def columns(self) -> int:
        """Of a block."""
        return self.lanes().extent("o") * self.wide

    @property
    def depth(self) -> int:
        """What a block's threads read of k at once."""
        return self.lanes().extent("k") * self.deep

    def lanes(self) -> LaneMap:
        """A thread's patch: the number of its columns' place (o) and of its place along k."""
        if self.along_k:
            return LaneMap((Digit("k", _WARP), Digit("o", THREADS // _WARP)))
        across = min(_WARP, _LINE_BYTES // (self.packet * self.dtype.bytes))
        return LaneMap((Digit("o", across), Digit("k", THREADS // across)))

    def exchanges(self) -> list[int]:
        """Masks of the threads of a subgroup that have other parts of the same columns."""
        first = 1 if self.along_k else self.lanes().extent("o")
        return [first << i for i in range(_WARP.bit_length()) if first << i < min(self.subgroup, _WARP)]

    @property
    def meeting(self) -> int:
        """How many parts of each result meet in shared memory."""
        return self.lanes().extent("k") >> len(self.exchanges())

    @property
    def pitch(self) -> int:
        """From one part's results to the next's: where single elements are stored by threads that are neighbours along k, an odd
        number, so that no two of them want one bank."""
        return self.rows * self.columns + (1 if self.along_k and self.meeting > 1 else 0)

    @property
    def run(self) -> int:
        """Of a thread's columns, those whose results lie side by side in shared memory: a packet of f32 at most. Its next ones
        follow those of all threads, so that neighbours store to neighbouring banks."""
        return min(self.wide, PACKET_BYTES // DType.F32.bytes)

    @property
    def shared_bytes(self) -> int:
        return self.meeting * self.pitch * DType.F32.bytes

    @property
    def bytes_under_way(self) -> int:
        """Of b, that a block waits for at a time."""
        return THREADS * _SIDE * self.packet * self.dtype.bytes


def widest(dtype: DType) -> int:
    """Elements of a packet."""
    return PACKET_BYTES // dtype.bytes
