"""The ring that a process traces into (`native/trace_ring.h`), as its readers see it: this process, or another of the same user.

ring = Ring.of_process(4711)            # or of this one: Ring.own()
batch = ring.read(since=0)              # records that are whole, and how many were lost
ring.texts()                            # names, plans, islands

The memory is another process's. So everything in it is checked before it is used, and what does not hold is an error with a name.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import XyntraError
from xyntra_ep.provider import registration

MAGIC = b"XYTRACE1"
_NAME = "/memfd:xyntra-trace"
_WORDS, _PAGE = 8, 4096
_HEADER_WORDS = 14
_MOST_RECORDS, _MOST_TEXT_BYTES = 1 << 24, 64 << 20
_SEALS = getattr(fcntl, "F_SEAL_SHRINK", 2) | getattr(fcntl, "F_SEAL_GROW", 4)
_GET_SEALS = getattr(fcntl, "F_GET_SEALS", 1034)
_BEING_WRITTEN = np.uint64(2**64 - 1)
_UNDECIDED = 1024  # of the newest records, those that are yet being written are left for the next time

Words = NDArray[np.uint64]


class Kind(IntEnum):
    """Of a record; as TraceKind in native code."""

    SESSION, SPAN, RUN, ISLAND, STEP, SHARE, DEVICE_STEP = range(1, 8)


class TextKind(IntEnum):
    NAME, PLAN, ISLAND, FILE = range(1, 5)


ALL_STEPS = 0xFFFFFFFF  # of a device, together
FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """``name``: the place of a text. ``flags``: `FAILED`, or of a step how many threads had a share of it, 0 where one thread
    carried it out. ``number``: of a session, or how many iterations a step had."""

    kind: Kind
    flags: int
    alternative: int
    step: int
    name: int
    thread: int
    begin_ns: int
    end_ns: int
    flops: int
    bytes: int
    number: int
    tasks: int

    @property
    def ns(self) -> int:
        return self.end_ns - self.begin_ns

    @property
    def failed(self) -> bool:
        return self.kind in (Kind.RUN, Kind.ISLAND) and bool(self.flags & FAILED)

    @property
    def threads(self) -> int:
        """That carried out a step."""
        return max(1, self.flags) if self.kind is Kind.STEP else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """``words``: of each record eight. ``next``: where to go on. ``lost``: those that were overwritten before they were read."""

    words: Words
    next: int
    lost: int

    def of(self, kind: Kind) -> Words:
        """The records of one kind."""
        found: Words = self.words[(self.words[:, 1] & np.uint64(0xFF)) == np.uint64(kind)]
        return found

    def __iter__(self) -> Iterator[Record]:
        kinds = {int(kind) for kind in Kind}
        for _, what, who, begin, end, flops, size, amount in self.words.tolist():
            if what & 0xFF not in kinds:
                continue
            yield Record(
                kind=Kind(what & 0xFF),
                flags=what >> 8 & 0xFF,
                alternative=what >> 16 & 0xFFFF,
                step=what >> 32,
                name=who & 0xFFFFFFFF,
                thread=who >> 32,
                begin_ns=begin,
                end_ns=max(begin, end),
                flops=flops,
                bytes=size,
                number=amount & 0xFFFFFFFF,
                tasks=amount >> 32,
            )


class Ring:
    """Raises XyntraError where a descriptor is no ring that can be trusted to stay one."""

    def __init__(self, fd: int, *, pid: int | None = None) -> None:
        where = f"the trace of process {pid}" if pid is not None else "the trace"
        status = os.fstat(fd)
        if status.st_uid != os.geteuid():
            raise XyntraError("belongs to another user", where=where)
        if not stat.S_ISREG(status.st_mode):
            raise XyntraError("is not a file in memory", where=where)
        try:
            seals = fcntl.fcntl(fd, _GET_SEALS)
        except OSError:
            seals = 0
        if seals & _SEALS != _SEALS:
            raise XyntraError("could shrink while it is read", where=where)
        if status.st_size < _PAGE:
            raise XyntraError("is too small for a ring", where=where)
        self._map = mmap.mmap(fd, status.st_size, prot=mmap.PROT_READ)
        header = self._header()
        _, record_bytes, records, records_at, text_bytes, text_at = map(int, header[:6])
        sound = (
            self._map[:8] == MAGIC
            and record_bytes == 8 * _WORDS
            and 16 <= records <= _MOST_RECORDS
            and records & (records - 1) == 0
            and text_at == _PAGE
            and text_bytes <= _MOST_TEXT_BYTES
            and records_at == text_at + text_bytes
            and records_at % 8 == 0
            and status.st_size == records_at + records * record_bytes
        )
        if not sound:
            raise XyntraError("has no header of this release", where=where, hint="both sides want the same xyntra-ep")
        self.records, self._text_at, self._text_bytes = records, text_at, text_bytes
        self.pid, self._start = int(header[6]), int(header[7])
        if pid is not None and (self.pid != pid or self._start != started(pid)):
            raise XyntraError(f"belongs to process {self.pid}", where=where)
        self._slots = np.frombuffer(self._map, np.uint64, records * _WORDS, records_at).reshape(-1, _WORDS)

    @classmethod
    def own(cls) -> Ring | None:
        """This process's; None where nothing was ever traced."""
        fd = registration.library().xyntra_trace_ring(ctypes.byref(ctypes.c_int()))
        return cls(fd) if fd >= 0 else None

    @classmethod
    def of_process(cls, pid: int) -> Ring:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except FileNotFoundError:
            raise XyntraError("there is no such process", where=f"process {pid}") from None
        except PermissionError:
            raise XyntraError("belongs to another user", where=f"process {pid}") from None
        problem: XyntraError | None = None
        for number in numbers:
            try:
                if not os.readlink(f"/proc/{pid}/fd/{number}").startswith(_NAME):
                    continue
            except OSError:  # closed meanwhile
                continue
            try:
                fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                problem = XyntraError(f"its trace cannot be opened: {error.strerror}", where=f"process {pid}")
                continue
            try:
                return cls(fd, pid=pid)
            except XyntraError as error:  # a child made by fork holds its parent's, too
                problem = error
            finally:
                os.close(fd)
        hint = 'start it with XYNTRA_TRACE=live, or give its sessions the option {"trace": "live"}'
        raise problem or XyntraError("is not traced", where=f"process {pid}", hint=hint)

    def _header(self) -> Words:
        return np.frombuffer(self._map, np.uint64, _HEADER_WORDS).copy()

    def is_alive(self) -> bool:
        """Whether the process that writes into it is."""
        return started(self.pid) == self._start

    @property
    def now(self) -> int:
        """The number of the next record."""
        return int(self._header()[8])

    @property
    def memory_bytes(self) -> tuple[int, int]:
        """That the process has of ours: weights, and all blocks with them."""
        header = self._header()
        return int(header[12]), int(header[13])

    @property
    def texts_used(self) -> int:
        """It grows with each text."""
        return int(self._header()[9])

    @property
    def texts_lost(self) -> int:
        return int(self._header()[10])

    def read(self, since: int = 0) -> Batch:
        """The records from number ``since`` on that are there, whole."""
        header = self._header()
        end = int(header[8])
        first = max(since, end - self.records, 0)
        if first >= end:
            return Batch(words=np.empty((0, _WORDS), np.uint64), next=end, lost=0)
        numbers = np.arange(first, end, dtype=np.uint64)
        places = (numbers & np.uint64(self.records - 1)).astype(np.intp)
        words = self._slots[places]
        again = self._slots[places, 0]
        whole = (words[:, 0] == numbers + np.uint64(1)) & (again == words[:, 0])
        newest = max(len(numbers) - _UNDECIDED, 0)
        pending = ~whole[newest:] & ((again[newest:] == _BEING_WRITTEN) | (again[newest:] <= numbers[newest:]))
        if pending.any():
            keep = newest + int(np.argmax(pending))
            words, whole, end = words[:keep], whole[:keep], first + keep
        return Batch(words=words[whole], next=end, lost=first - since + int((~whole).sum()))

    def texts(self) -> Mapping[int, tuple[TextKind, str]]:
        """By their places."""
        used = min(int(self._header()[9]), self._text_bytes)
        found: dict[int, tuple[TextKind, str]] = {}
        at = 8
        while at + 8 <= used:
            begin = self._text_at + at
            kind = int.from_bytes(self._map[begin : begin + 4], "little")
            size = int.from_bytes(self._map[begin + 4 : begin + 8], "little")
            if at + 8 + size > used or kind not in list(TextKind):
                break
            found[at] = (TextKind(kind), self._map[begin + 8 : begin + 8 + size].decode("utf-8", "replace"))
            at += (8 + size + 7) // 8 * 8
        return found


def started(pid: int) -> int:
    """When a process began, in the system's ticks: with its number it names it for good. 0 where there is none, and where one has
    ended and nobody has asked how."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read().rpartition(b")")[2].split()
        return 0 if state in (b"Z", b"X") else int(fields[18])
    except (OSError, ValueError, IndexError):
        return 0


def traced_processes() -> list[int]:
    """Those of this user that trace."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            Ring.of_process(int(entry))
        except (XyntraError, OSError):
            continue
        found.append(int(entry))
    return found
