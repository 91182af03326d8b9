"""Warpgroups with roles in the simulated GPU: each runs by itself until it must wait at an mbarrier, then another one.

What is asynchronous happens as late as it may. A copy takes away what its slot held when it is begun, and brings what it copies
when nobody can go on without; a product reads its operands when it is waited for. So who does not wait computes with NaN, or with
the next step's tiles. Where elements lie follows from addresses: tensor copies swizzle chunks of 16 bytes by the number of their
row, products unswizzle bits of the address, each as the PTX ISA has it ("Tensors: Swizzling modes", "Matrix-Descriptor Format").
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.gpu.simulated import Block, Memory
from xyntra_ep.tracea.core_ir.dtypes import to_float64
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Slot
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import (
    ROW_BYTES,
    WARPGROUP,
    Arrive,
    CopyTensor,
    ExpectBytes,
    Once,
    Roles,
    SharedMatrix,
    WaitAt,
    WarpgroupCommit,
    WarpgroupDot,
    WarpgroupFence,
    WarpgroupWait,
)
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Statement, Var

_CHUNK = 16  # bytes that a swizzle keeps together
_NAN = 0x7FFF  # of f16 and of bf16


@dataclass(slots=True)
class _Mbarrier:
    arrivals: int
    left: int
    phase: int = 0
    bytes: int = 0

    def complete(self) -> None:
        assert self.left >= 0, "more arrive at an mbarrier than its phase expects"
        if self.left == 0 and self.bytes == 0:
            self.phase, self.left = self.phase + 1, self.arrivals


@dataclass(slots=True)
class _Together:
    """What the warpgroups of a cluster share. ``mbarriers``: by block, array and slot."""

    blocks: Sequence[Block]
    mbarriers: dict[tuple[int, str, int], _Mbarrier] = field(default_factory=dict)
    flying: list[Callable[[], None]] = field(default_factory=list)
    moves: int = 0


def take_roles(blocks: Sequence[Block], s: Roles) -> None:
    """All roles of a cluster's blocks, in either order, by its number."""
    together = _Together(blocks)
    members = []
    for number, block in enumerate(blocks):
        for m in s.mbarriers:
            for i in range(block.memories[m.array.name].data.size):
                together.mbarriers[number, m.array.name, i] = _Mbarrier(m.arrivals, m.arrivals)
        first = 0
        for part in s.parts:
            for group in range(part.warpgroups):
                names = {} if part.group is None else {part.group.name: group}
                members.append(_Member(block, number, together, part.body, first + group * WARPGROUP, first, names))
            first += part.warpgroups * WARPGROUP
    if blocks[0].number // len(blocks) % 2:
        members.reverse()
    try:
        _take_turns(members, together)
    finally:
        for member in members:
            member.stop()


def _take_turns(members: Sequence[_Member], together: _Together) -> None:
    while any(not member.done for member in members):
        before = together.moves
        for member in members:
            member.turn()
        if together.moves == before:
            assert together.flying, "warpgroups wait for each other for ever"
            flying, together.flying = together.flying, []
            for land in flying:
                land()
    assert not together.flying, "a copy is under way when the block ends"


def _land(target: NDArray[np.uint16], to: NDArray[np.int64], rows: NDArray[np.uint16], mbarrier: _Mbarrier) -> None:
    target[to] = rows
    mbarrier.bytes -= rows.size * 2
    mbarrier.complete()


class _Stopped(Exception):
    pass


class _Member(Block):
    """One warpgroup, in a thread of its own that runs when it has its turn."""

    def __init__(
        self,
        block: Block,
        rank: int,
        together: _Together,
        body: Sequence[Statement],
        first: int,
        role: int,
        names: Mapping[str, int],
    ) -> None:
        self.__dict__.update(block.__dict__)
        self._ranks = range(len(together.blocks)), range(rank, rank + 1)  # of all blocks, and of the own
        self._names = self._names | {name: np.full(self._threads.shape, value) for name, value in names.items()}
        self._active = (self._threads >= first) & (self._threads < first + WARPGROUP)
        self._group, self._role, self._together = self._active, role, together
        self._open: list[Callable[[], None]] = []
        self._products: list[list[Callable[[], None]]] = []
        self.done = False
        self._failed: BaseException | None = None
        self._stopped = False
        self._mine, self._others = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._live, args=(body,), daemon=True)
        self._thread.start()

    def turn(self) -> None:
        """Until it has to wait, or is done."""
        if self.done:
            return
        self._mine.release()
        self._others.acquire()
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        if not self.done:
            self._stopped = True
            self._mine.release()
        self._thread.join()

    def _live(self, body: Sequence[Statement]) -> None:
        self._mine.acquire()
        try:
            with np.errstate(all="ignore"):
                if not self._stopped:
                    self._body(body)
                    assert not self._open and not self._products, "a product is under way when the block ends"
                    self._together.moves += 1
        except _Stopped:
            pass
        except BaseException as error:
            self._failed = error
        self.done = True
        self._others.release()

    def _statement(self, s: Statement) -> None:
        match s:
            case Once():
                assert (self._active == self._group).all(), "not all threads of the warpgroup come by"
                before, self._active = self._active, self._active & (self._threads == self._role)
                if self._active.any():
                    self._body(s.body)
                self._active = before
            case ExpectBytes():
                assert self._active.sum() == 1, "several threads expect bytes"
                self._arrive(s.mbarrier, 1, s.bytes, False)
            case Arrive():
                assert (self._active == self._group).all(), "not all threads of the warpgroup come by"
                self._arrive(s.mbarrier, 4, 0, s.everywhere)
            case WaitAt():
                self._wait(s)
            case CopyTensor():
                self._copy_tensor(s)
            case WarpgroupDot():
                assert (self._active == self._group).all(), "not all threads of the warpgroup come by"
                self._open.append(self._product(s))
            case WarpgroupCommit():
                self._products.append(self._open)
                self._open = []
            case WarpgroupWait():
                while len(self._products) > s.pending:
                    for multiply in self._products.pop(0):
                        multiply()
            case WarpgroupFence():
                pass
            case _:
                super()._statement(s)

    # -- mbarriers

    def _one(self, value: Any) -> int:
        """What all threads here agree on."""
        found = np.unique(np.broadcast_to(value, self._active.shape)[self._active])
        assert found.size == 1, "threads of a warpgroup do not agree"
        return int(found[0])

    def _mbarriers(self, slot: Slot, everywhere: bool) -> list[_Mbarrier]:
        assert isinstance(slot.pointer, Var)
        memory, at = self._place(slot, np.zeros(1, dtype=np.int64))
        everyone, own = self._ranks
        return [self._together.mbarriers[rank, memory.name, self._one(at)] for rank in (everyone if everywhere else own)]

    def _arrive(self, slot: Slot, count: int, size: int, everywhere: bool) -> None:
        for mbarrier in self._mbarriers(slot, everywhere):
            mbarrier.left -= count
            mbarrier.bytes += size
            mbarrier.complete()

    def _wait(self, s: WaitAt) -> None:
        [mbarrier], parity = self._mbarriers(s.mbarrier, False), self._one(self._value(s.parity))
        assert parity in (0, 1), "a parity is 0 or 1"
        while mbarrier.phase % 2 == parity:
            self._others.release()
            self._mine.acquire()
            if self._stopped:
                raise _Stopped
        self._together.moves += 1

    # -- copies

    def _byte_of(self, pointer: Pointer, at: Any) -> tuple[Memory, int]:
        memory, where = self._place(pointer, np.broadcast_to(at, self._threads.shape))
        return memory, self._one(where) * memory.dtype.bytes

    def _copy_tensor(self, s: CopyTensor) -> None:
        assert self._active.sum() == 1, "several threads copy a tensor"
        tensor, mbarriers = self.tensors[s.map], self._mbarriers(s.mbarrier, s.everywhere)
        memory, start = self._byte_of(s.target, 0)
        assert start % 1024 == 0, "a box does not begin where swizzles do"
        rows = tensor.boxed([self._one(self._value(x)) for x in s.coordinates])
        assert rows.shape[1] * 2 == ROW_BYTES
        row, column = np.indices(rows.shape)
        chunk, rest = np.divmod(column * 2, _CHUNK)
        to = (start + row * ROW_BYTES + (chunk ^ row % 8) * _CHUNK + rest) // 2
        assert to.max() < memory.data.size, f"{memory.name} is too small for a box"
        everyone, own = self._ranks
        for rank, mbarrier in zip(everyone if s.everywhere else own, mbarriers, strict=True):
            target = self._together.blocks[rank].memories[memory.name].data.view(np.uint16)
            target[to] = _NAN
            self._together.flying.append(partial(_land, target, to, rows, mbarrier))

    # -- products

    def _product(self, s: WarpgroupDot) -> Callable[[], None]:
        a = self._matrix(s.a, 64) if isinstance(s.a, SharedMatrix) else partial(self._fragments, s.a)
        b = self._matrix(s.b, s.columns)
        lane = np.arange(WARPGROUP)
        row, column = 16 * (lane // 32) + lane % 32 // 4, 2 * (lane % 4)

        def multiply() -> None:
            result = to_float64(a().view(s.dtype.numpy), s.dtype) @ to_float64(b().view(s.dtype.numpy), s.dtype).T
            for i, var in enumerate(s.c):
                sums = self._names[var.name].copy()
                before = 0.0 if s.fresh else sums[self._group]
                sums[self._group] = before + result[row + 8 * (i // 2 % 2), column + 8 * (i // 4) + i % 2]
                self._names[var.name] = sums.astype(np.float32)

        return multiply

    def _fragments(self, registers: Sequence[Var]) -> NDArray[np.uint16]:
        """[64 rows, 16 of k] of registers, read when it is called."""
        lane = np.arange(WARPGROUP)
        row, k = 16 * (lane // 32) + lane % 32 // 4, 2 * (lane % 4)
        found = np.empty((64, 16), np.uint16)
        for i, var in enumerate(registers):
            both = np.broadcast_to(self._names[var.name], self._threads.shape)[self._group].astype(np.int64)
            for half in range(2):
                found[row + 8 * (i % 2), k + 8 * (i // 2) + half] = both >> 16 * half & 0xFFFF
        return found

    def _matrix(self, m: SharedMatrix, extent: int) -> Callable[[], NDArray[np.uint16]]:
        """[rows (or columns) of the product, k], read when it is called."""
        memory, start = self._byte_of(m.pointer, self._value(m.index))
        r, k = np.indices((extent, 16))
        if m.across:
            at = r // 64 * m.apart + k // 8 * 1024 + k % 8 * ROW_BYTES + r % 64 * 2
        else:
            at = r // 8 * 1024 + r % 8 * ROW_BYTES + k * 2
        at = at + start
        at = (at ^ (at >> 7 & 7) << 4) // 2
        assert at.max() < memory.data.size, f"a matrix ends behind {memory.name}"
        return lambda: memory.data.view(np.uint16)[at]
