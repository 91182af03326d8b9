"""What the warpgroups of a cluster's blocks share while `rings.py` carries them out: mbarriers, copies under way, and who used
which slot last. Sets of events are integers, one bit for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.check import require
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import Mbarriers

Place = tuple[int, str, int]  # of a block in its cluster: a slot of an array


@dataclass(slots=True)
class Mbarrier:
    arrivals: int  # of each phase
    left: int  # of the phase under way
    phase: int = 0
    bytes: int = 0  # expected less those that have come
    coming: int = 0  # what the phase under way hands on
    known: int = 0  # what the complete ones hand on


@dataclass(slots=True)
class Use:
    """Of a slot: the events of its last copies, which one phase of an mbarrier counts, and those of products since."""

    phase: tuple[Place, int]
    copied: int = 0
    read: int = 0


class RingState:
    """``slots`` of each array, and the ``bytes`` of each tensor's box, in so many ``blocks``. ``eager``: copies land at once,
    else when nobody can go on without."""

    def __init__(
        self, blocks: int, mbarriers: Sequence[Mbarriers], slots: Mapping[str, int], bytes_: Mapping[str, int], eager: bool
    ) -> None:
        self.blocks, self.slots, self._bytes, self._eager = range(blocks), slots, bytes_, eager
        self.mbarriers = {
            (block, m.array.name, i): Mbarrier(m.arrivals, m.arrivals)
            for block in self.blocks
            for m in mbarriers
            for i in range(slots[m.array.name])
        }
        self.uses: dict[Place, Use] = {}
        self._flying: list[tuple[int, Place, int]] = []  # (event, mbarrier, bytes)
        self._events = 1
        self.acts = 0  # how much has been done

    def event(self) -> int:
        self._events <<= 1
        return self._events

    def passes(self, at: Place, parity: int) -> bool:
        return self.mbarriers[at].phase % 2 != parity

    def arrive(self, at: Place, count: int, known: int, size: int = 0) -> None:
        mbarrier = self.mbarriers[at]
        require(mbarrier.left >= count, "more arrive at {} than its phase expects", at[1])
        mbarrier.left -= count
        mbarrier.bytes += size
        mbarrier.coming |= known
        self._complete(mbarrier, at)

    def copy(self, event: int, tensor: str, at: Place) -> None:
        self._flying.append((event, at, self._bytes[tensor]))
        if self._eager:
            self.land()

    def land(self) -> bool:
        """All copies that are under way; whether there were any."""
        flying, self._flying = self._flying, []
        for event, at, size in flying:
            mbarrier = self.mbarriers[at]
            mbarrier.bytes -= size
            mbarrier.coming |= event
            self._complete(mbarrier, at)
        return bool(flying)

    def _complete(self, mbarrier: Mbarrier, at: Place) -> None:
        # What another block copies may come before the own one says that it expects it.
        early = mbarrier.left > 0 and len(self.blocks) > 1
        require(mbarrier.bytes >= 0 or early, "copies bring more bytes than {} expects", at[1])
        if mbarrier.left == 0 and mbarrier.bytes == 0:
            mbarrier.known |= mbarrier.coming
            mbarrier.coming = 0
            mbarrier.phase += 1
            mbarrier.left = mbarrier.arrivals
