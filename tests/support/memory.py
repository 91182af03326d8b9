"""Memory that notices misuse: pages that cannot be touched, poisoned spare bytes, guard bytes."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPARE_BYTES = 64  # what docs/plan-format.md promises behind ARENA, POOL and LITERAL buffers
_GUARD_BYTES = 256
_POISON = 0xFF  # as f32 a NaN, as an index far outside
_GUARD = 0xA5
_PAGE = mmap.PAGESIZE
_PROT_NONE = 0

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class Tensor:
    """INPUT, OUTPUT, CONSTANT: ends at a page that must not be touched, so one element too many is a fault;
    guard bytes lie in front. The start is aligned to the element only, as ONNX Runtime's callers may have
    it."""

    def __init__(self, size_bytes: int) -> None:
        room = -(-(size_bytes + _GUARD_BYTES) // _PAGE) * _PAGE
        self._map = mmap.mmap(-1, room + _PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        if _libc.mprotect(base + room, _PAGE, _PROT_NONE) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        whole = np.frombuffer(self._map, dtype=np.uint8)
        self.data = whole[room - size_bytes : room]
        self._front = whole[: room - size_bytes]
        self.data[:] = _POISON
        self._front[:] = _GUARD
        self.address = base + room - size_bytes

    def problem(self) -> str:
        return "" if bool((self._front == _GUARD).all()) else "was written in front of its first byte"


class Block:
    """POOL, LITERAL, INIT: 64-byte aligned, spare bytes behind that may be read but not written, then guard bytes."""

    def __init__(self, size_bytes: int) -> None:
        whole = np.full(_GUARD_BYTES + size_bytes + SPARE_BYTES + _GUARD_BYTES + 64, _GUARD, dtype=np.uint8)
        start = _GUARD_BYTES + -(whole.ctypes.data + _GUARD_BYTES) % 64
        self.data = whole[start : start + size_bytes]
        self._spare = whole[start + size_bytes : start + size_bytes + SPARE_BYTES]
        self._outside = (whole[:start], whole[start + size_bytes + SPARE_BYTES :])
        self.data[:] = _POISON
        self._spare[:] = _POISON
        self.address = int(self.data.ctypes.data) if size_bytes else int(whole.ctypes.data) + start

    def problem(self) -> str:
        if not bool((self._spare == _POISON).all()):
            return "was written behind its last byte"
        return "" if all(bool((o == _GUARD).all()) for o in self._outside) else "was written far outside"


class Arena:
    """All ARENA buffers, laid out as native code does: larger first, each at the lowest place free in its lifetime."""

    def __init__(self, buffers: dict[int, tuple[int, int, int]]) -> None:
        """``buffers``: number -> (bytes, first step, last step)."""
        self._lifetimes = buffers
        self._at: dict[int, int] = {}
        for number in sorted(buffers, key=lambda n: (-buffers[n][0], n)):
            self._at[number] = self._place(number)
        total = max((at + buffers[n][0] + SPARE_BYTES for n, at in self._at.items()), default=0)
        self._block = Block(total)

    def _place(self, number: int) -> int:
        size, first, last = self._lifetimes[number]
        taken = sorted(
            (at, at + self._lifetimes[n][0] + SPARE_BYTES)
            for n, at in self._at.items()
            if self._lifetimes[n][1] <= last and first <= self._lifetimes[n][2]
        )
        place = 0
        for begin, end in taken:
            if place + size + SPARE_BYTES <= begin:
                break
            place = max(place, -(-end // 64) * 64)
        return place

    def address(self, number: int) -> int:
        return self._block.address + self._at[number]

    def before(self, step: int, again: tuple[int, int] | None = None) -> None:
        """Poison what comes alive: memory is never zero by chance. In steps that are carried out ``again``, from the first to the
        last, only what lives within them does."""
        for number, (_, first, _) in self._lifetimes.items():
            if first == step and self._is_within(number, again):
                self._region(number)[:] = _POISON

    def after(self, step: int, once_more: tuple[int, int] | None = None) -> str:
        """What is wrong with the buffers of ``step``; what died is poisoned, so a late read shows. Of steps that come
        ``once_more``, what lives within them has died."""
        for number, (size, first, last) in self._lifetimes.items():
            if first <= step <= last and not bool((self._region(number)[size:] == _POISON).all()):
                return f"temporary {number} was written behind its last byte"
            if last == step and self._is_within(number, once_more):
                self._region(number)[:] = _POISON
        return self._block.problem()

    def _is_within(self, number: int, steps: tuple[int, int] | None) -> bool:
        _, first, last = self._lifetimes[number]
        return steps is None or (steps[0] <= first and last <= steps[1])

    def _region(self, number: int) -> NDArray[Any]:
        at = self._at[number]
        return self._block.data[at : at + self._lifetimes[number][0] + SPARE_BYTES]
