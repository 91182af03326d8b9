"""Nodes of GPU kernels: what threads share, when they wait for each other, and data that moves in packets.

A launch runs ``units`` blocks of ``Kernel.threads`` threads. Each thread runs the body with its own ``thread``, from 0 on,
and the ``block`` that it belongs to; a value is always one element, a vector is several values of a thread.

shared     ``SharedArray`` is memory of a block, in equal slots (the stages of a pipeline). What a thread writes there, others may
           read after the next ``Barrier``; and it may be written again after the next barrier that follows the reading
copies     ``AsyncCopy`` moves elements from global to shared memory while the thread goes on. ``AsyncCommit`` closes a group
           of them, ``AsyncWait(n)`` waits until all groups but the n latest have landed, for this thread: a barrier is still
           needed before others read them. Targets without such copies make them plain ones
packets    ``LoadPacket`` and ``StorePacket`` move up to 16 bytes of neighbours in one access, aligned to their size
subgroup   ``SubgroupXor`` gives a thread the value that the thread ``thread ^ mask`` of its subgroup has

`synchronization.py` has the rules, `lane_map.py` which thread touches what, `swizzle.py` where it then lies in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.nodes import Offset, Pointer, Rvalue, Statement, Type, Var

PACKET_BYTES = 16
SHARED_ALIGNMENT = 1024  # the largest that an array of shared memory can have
COPY_BYTES = (4, 8, 16)  # what one asynchronous copy moves


@dataclass(frozen=True, slots=True)
class Slot(Offset):
    """Slot ``number`` of a shared array: its memory from ``index`` on, which is the number times the slot's elements."""

    number: Rvalue


@dataclass(frozen=True, slots=True)
class SharedArray(Statement):
    """``slots`` times ``count`` elements, uninitialised, aligned to ``alignment`` bytes; only at the top of a kernel's body."""

    var: Var
    dtype: DType
    count: int
    slots: int = 1
    alignment: int = PACKET_BYTES

    @property
    def bytes(self) -> int:
        return self.slots * self.count * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class Barrier(Statement):
    """All threads of the block wait for each other; what they wrote to shared memory is seen by all."""


@dataclass(frozen=True, slots=True)
class AsyncCopy(Statement):
    """Copy ``count`` elements (4, 8 or 16 bytes, aligned so) from global to shared memory. Those from ``valid`` on are not read
    and become 0."""

    target: Pointer
    target_index: Rvalue
    source: Pointer
    source_index: Rvalue
    count: int
    valid: Rvalue | None = None


@dataclass(frozen=True, slots=True)
class AsyncCommit(Statement):
    """The copies since the last one are a group."""


@dataclass(frozen=True, slots=True)
class AsyncWait(Statement):
    """Until at most the ``pending`` latest groups of this thread are under way."""

    pending: int


@dataclass(frozen=True, slots=True)
class LoadPacket(Statement):
    """Declare ``variables`` as neighbours in memory from pointer + index on, widened as by ``Load``."""

    variables: tuple[Var, ...]
    pointer: Pointer
    index: Rvalue


@dataclass(frozen=True, slots=True)
class StorePacket(Statement):
    """Narrow ``values`` as ``Store`` does and write them as neighbours from pointer + index on."""

    pointer: Pointer
    index: Rvalue
    values: tuple[Rvalue, ...]


@dataclass(frozen=True, slots=True)
class SubgroupXor(Rvalue):
    """``value`` as the thread whose number differs in the bits of ``mask`` has it."""

    value: Rvalue
    mask: int

    @property
    def type(self) -> Type:
        return self.value.type
