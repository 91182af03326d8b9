"""The ring as its readers see it: what is whole, what was lost, and what no reader believes."""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from xyntra_ep.diagnostics.trace.names import Names
from xyntra_ep.diagnostics.trace.ring import ALL_STEPS, Kind, Ring, TextKind, started
from xyntra_ep.errors import XyntraError
from xyntra_ep.provider.native_library import get_library_path

pytestmark = pytest.mark.native
SMALL = 64
HEADER = 14


def in_process(code: str) -> str:
    """What a new process prints, in which ``library`` is the plugin and ``Ring`` the reader."""
    prelude = (
        "import ctypes, os, threading\n"
        "from xyntra_ep.diagnostics.trace.ring import Kind, Ring\n"
        "from xyntra_ep.provider import registration\n"
        "library = registration.library()\n"
    )
    done = subprocess.run([sys.executable, "-c", prelude + code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_oldest_are_lost_and_counted() -> None:
    said = in_process(
        f"library.xyntra_trace(2, {SMALL})\n"
        "ring = Ring.own()\n"
        "for i in range(1000): library.xyntra_trace_stage(b'a stage', i, i + 1)\n"
        "batch = ring.read()\n"
        "print([r.begin_ns for r in batch] == list(range(1000 - 64, 1000)), batch.lost, batch.next)\n"
        "library.xyntra_trace_stage(b'a stage', 5, 6)\n"
        "more = ring.read(batch.next)\n"
        "print([(r.kind.name, r.begin_ns, r.ns) for r in more], more.lost)\n"
    )
    assert said.splitlines() == ["True 936 1000", "[('SPAN', 5, 1)] 0"]


def test_records_of_many_threads_are_whole() -> None:
    """Each says in three places who wrote it."""
    said = in_process(
        "library.xyntra_trace(2, 1 << 14)\n"
        "ring = Ring.own()\n"
        "def write(k):\n"
        "    for i in range(2000): library.xyntra_trace_stage(b'stage %d' % k, k * 10**6 + i, k * 10**6 + i + k)\n"
        "threads = [threading.Thread(target=write, args=(k,)) for k in range(1, 5)]\n"
        "for t in threads: t.start()\n"
        "seen, since, lost = [], 0, 0\n"
        "while any(t.is_alive() for t in threads) or since < ring.now:\n"
        "    batch = ring.read(since)\n"
        "    seen += list(batch); since = batch.next; lost += batch.lost\n"
        "from xyntra_ep.diagnostics.trace.names import Names\n"
        "names = Names.of(ring.texts()).plain\n"
        "torn = [r for r in seen if not (r.begin_ns // 10**6 == r.ns == int(names[r.name].split()[1]))]\n"
        "print(len(torn), len(seen) + lost, len({r.thread for r in seen}))\n"
    )
    torn, count, threads = map(int, said.split())
    assert (torn, count) == (0, 8000) and threads <= 4


def test_off_costs_no_memory_and_a_child_has_no_ring() -> None:
    said = in_process(
        "print(library.xyntra_trace_ring(ctypes.byref(ctypes.c_int())), library.xyntra_trace_files())\n"
        "library.xyntra_trace(1, 64)\n"
        "detail = ctypes.c_int()\n"
        "if (child := os.fork()) == 0:\n"
        "    fd = library.xyntra_trace_ring(ctypes.byref(detail))\n"
        "    library.xyntra_trace_stage(b'of the child', 1, 2)\n"
        "    os._exit(0 if (fd, detail.value) == (-1, 0) else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), Ring.own().now)\n"
    )
    assert said.splitlines() == ["-1 0", "0 0"]


def test_a_ring_has_no_name_and_cannot_shrink() -> None:
    said = in_process(
        "import fcntl\n"
        "fd = library.xyntra_trace(1, 64)\n"
        "print(os.readlink(f'/proc/self/fd/{fd}'), fcntl.fcntl(fd, 1034) & 7, os.get_inheritable(fd))\n"
    )
    assert said.strip() == "/memfd:xyntra-trace (deleted) 7 False"


# -- what no reader believes

Header = list[int]


def forged(change: Callable[[Header], object] = lambda header: None, *, size: int | None = None, seal: int = 2 | 4) -> int:
    """A descriptor of what looks like a ring of this process; ``change``: what is wrong with its header."""
    records_at = 4096 + 8192
    fd = os.memfd_create("xyntra-trace", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    header = [
        int.from_bytes(b"XYTRACE1", "little"),
        64,
        16,
        records_at,
        8192,
        4096,
        os.getpid(),
        started(os.getpid()),
        0,
        8,
        0,
        0,
        0,
        0,
    ]
    change(header)
    os.ftruncate(fd, records_at + 16 * 64 if size is None else size)
    os.pwrite(fd, np.array(header, np.uint64).tobytes(), 0)
    fcntl.fcntl(fd, 1033, seal)
    return fd


@pytest.fixture
def opened() -> Iterator[list[int]]:
    fds: list[int] = []
    yield fds
    for fd in fds:
        os.close(fd)


def put(place: int, value: int) -> Callable[[Header], object]:
    return lambda header: header.__setitem__(place, value)


def test_one_that_is_sound_is_believed(opened: list[int]) -> None:
    opened.append(forged())
    assert len(Ring(opened[0], pid=os.getpid()).read().words) == 0


@pytest.mark.parametrize(
    ("place", "value"),
    [(0, 1), (1, 32), (2, 17), (2, 0), (2, 1 << 40), (3, 0), (3, 4096), (4, 1 << 40), (4, 0), (5, 8)],
)
def test_a_forged_header_is_refused(place: int, value: int, opened: list[int]) -> None:
    opened.append(forged(put(place, value)))
    with pytest.raises(XyntraError, match="no header of this release"):
        Ring(opened[0])


def test_what_is_not_as_large_as_it_says_is_refused(opened: list[int]) -> None:
    opened += [forged(size=100 << 10), forged(size=4096 + 8192 + 15 * 64), forged(size=200)]
    for fd in opened[:2]:
        with pytest.raises(XyntraError, match="no header"):
            Ring(fd)
    with pytest.raises(XyntraError, match="too small"):
        Ring(opened[2])


def test_what_could_shrink_is_refused(opened: list[int], tmp_path: Path) -> None:
    opened.append(forged(seal=4))
    with pytest.raises(XyntraError, match="could shrink"):
        Ring(opened[0])
    file = tmp_path / "ring"
    file.write_bytes(os.pread(opened[0], 1 << 20, 0))
    opened.append(os.open(file, os.O_RDONLY))
    with pytest.raises(XyntraError, match="could shrink"):
        Ring(opened[1])


def test_that_of_another_process_is_refused(opened: list[int]) -> None:
    opened += [forged(put(6, 1)), forged(put(7, 5))]
    for fd in opened:
        with pytest.raises(XyntraError, match="belongs to process"):
            Ring(fd, pid=os.getpid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_that_of_another_user_is_refused(opened: list[int]) -> None:
    opened.append(forged())
    os.fchown(opened[0], 65534, 65534)
    with pytest.raises(XyntraError, match="another user"):
        Ring(opened[0])


def test_records_and_texts_of_anything_end_in_no_error(opened: list[int]) -> None:
    """Another process of the user may have written any bytes."""
    rng = np.random.default_rng(7)
    for seed in range(40):
        fd = forged(lambda header: (put(8, 20)(header), put(9, 1 << 40)(header)))
        opened.append(fd)
        words = rng.integers(0, 2**63, (16, 8), np.uint64)
        words[:, 0] = np.arange(17, 33) if seed % 2 else np.roll(np.arange(1, 17), 3)
        words[:4, 0] = range(17, 21)
        os.pwrite(fd, words.tobytes(), 4096 + 8192)
        texts = b"".join(
            np.array([kind, len(text)], np.uint32).tobytes() + text.ljust((len(text) + 7) // 8 * 8, b"\0")
            for kind, text in (
                (2, b'{"digest": "d", "plan": {"islands": 3}}'),
                (3, b'{"digest": "d"}'),
                (1, b"\x1b[2J"),
                (9, b""),
            )
        )
        os.pwrite(fd, texts if seed % 2 else rng.bytes(4000), 4096 + 8)
        ring = Ring(fd)
        names = Names.of(ring.texts())
        assert "\x1b" not in "".join(names.plain.values())
        for record in ring.read():
            assert names.island(record.name).step(record.alternative, record.step).title
        assert names.island(12345).step(0, ALL_STEPS).label and all(k in Kind for k in Kind)


def test_a_text_that_goes_beyond_the_others_is_no_text(opened: list[int]) -> None:
    opened.append(forged(put(9, 32)))
    os.pwrite(
        opened[0], np.array([1, 4], np.uint32).tobytes() + b"abcd\0\0\0\0" + np.array([1, 1 << 30], np.uint32).tobytes(), 4096 + 8
    )
    assert list(Ring(opened[0]).texts().values()) == [(TextKind.NAME, "abcd")]


def test_there_is_no_such_process() -> None:
    with pytest.raises(XyntraError, match="no such process"):
        Ring.of_process(2**22 + 1)
    assert started(2**22 + 1) == 0


def test_the_library_refuses_rings_of_odd_sizes() -> None:
    library = ctypes.CDLL(get_library_path())
    library.xyntra_trace.argtypes = [ctypes.c_int, ctypes.c_uint64]
    assert [library.xyntra_trace(2, n) for n in (0, 15, 17, 8, 1 << 25)] == [-1] * 5
