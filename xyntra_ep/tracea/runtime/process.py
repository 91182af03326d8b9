"""Child processes: many at a time, each in its own group with a deadline, and no threads."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from xyntra_ep import ending, spans

# What children find in their environment beside ours: where drivers are whose libraries the system's loader does not find.
ENVIRONMENT: dict[str, str] = {}

_LOG_LIMIT_BYTES = 64 << 10
_TERM_GRACE_S = 0.2
_KILL_GRACE_S = 2.0  # a process that a driver holds in the kernel does not even end then, and is left
_POLL_S = 0.005
_SLICE_S = 0.1  # of waiting, after which Python may tell a thread that the process ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a process ended. ``problem`` is empty when it ended by itself with status 0."""

    problem: str
    log: str = ""

    def said(self, mark: str) -> list[Any]:
        """What it printed as lines of JSON behind ``mark``, because drivers print too. A line that is not whole, as the last one
        of a process that was ended, says nothing."""
        found = []
        for line in self.log.splitlines():
            if not line.startswith(mark):
                continue
            try:
                found.append(json.loads(line.removeprefix(mark)))
            except ValueError:
                continue
        return found


class _Running:
    def __init__(self, index: int, argv: Sequence[str], folder: Path, timeout_s: float) -> None:
        self.index = index
        # A file, not a pipe: a talkative compiler can never block on a reader that waits for it.
        self.log: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed in finish()
        try:
            self.process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=self.log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                # Handed on, not read: the compiler's own environment with its scratch files in our folder.
                env={**ENVIRONMENT, **os.environ, "TMPDIR": str(folder), "LC_ALL": "C"},
                process_group=0,
            )
        except BaseException:
            self.log.close()
            raise
        self.begun_ns, self.program = time.monotonic_ns(), _about(argv)
        self.timeout_s = timeout_s
        self.deadline = time.monotonic() + timeout_s
        self.pidfd = _open_pidfd(self.process.pid)

    def signal(self, number: int) -> None:
        """To the whole group, as long as there is one."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def wait(self, grace_s: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(grace_s)

    def finish(self, problem: str = "") -> Outcome:
        if self.pidfd is not None:
            os.close(self.pidfd)
        spans.tell("process", self.program, self.begun_ns)
        status = self.process.returncode
        if not problem and status is None:
            problem = "could not be ended"
        elif not problem and status != 0:
            problem = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        with self.log:
            self.log.seek(0)
            text = self.log.read(_LOG_LIMIT_BYTES).decode(errors="replace")
        return Outcome(problem=problem, log=text)


def _about(argv: Sequence[str]) -> str:
    """A program, and what it was given to read, for a trace."""
    sources = (Path(word).name for word in argv[1:] if word.endswith((".c", ".cu", ".cl", ".wgsl", ".o")))
    return f"{Path(argv[0]).name} {next(sources, '')}".rstrip()


class ProcessPool:
    """Commands that run in ``folder`` as they come, each for at most ``timeout_s`` seconds.

    A command that cannot be started is an outcome too. Children never outlive the ``with`` block.
    """

    def __init__(self, *, folder: Path, timeout_s: float) -> None:
        self._folder = folder
        self._timeout_s = timeout_s
        self._count = 0
        self._waiting: deque[tuple[int, Sequence[str]]] = deque()
        self._running: list[_Running] = []
        self._outcomes: dict[int, Outcome] = {}
        self._told = 0  # of the outcomes before these

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End what still runs."""
        _kill(self._running)
        for child in self._running:
            child.finish()
        self._running.clear()
        for pid in _children_in(self._folder):
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def add(self, argv: Sequence[str]) -> None:
        """A command to be started by ``advance`` or ``finish``, after those before it."""
        self._waiting.append((self._count, argv))
        self._count += 1

    @property
    def active(self) -> int:
        """Commands that have not ended, as far as ``advance`` has seen."""
        return len(self._waiting) + len(self._running)

    def advance(self, parallel: int) -> None:
        """Take note of what has ended and start what may run beside the rest, at most ``parallel``; never waits."""
        now = time.monotonic()
        for child in list(self._running):
            if child.process.poll() is not None:
                self._outcomes[child.index] = child.finish()
            elif now >= child.deadline:
                _kill([child])
                self._outcomes[child.index] = child.finish(f"did not end within {child.timeout_s:g} s")
            else:
                continue
            self._running.remove(child)
        while self._waiting and len(self._running) < max(parallel, 1):
            index, argv = self._waiting.popleft()
            try:
                self._running.append(_Running(index, argv, self._folder, self._timeout_s))
            except OSError as error:
                self._outcomes[index] = Outcome(problem=f"could not be started ({error})")

    def finish(self, parallel: int, meanwhile: Callable[[Collection[int]], None] | None = None) -> list[Outcome]:
        """Wait for all commands, at most ``parallel`` at a time. Their outcomes in the order of ``add``, each told once.
        ``meanwhile`` is given the positions there of those that have ended, whenever the wait is looked after.
        """
        self.advance(parallel)
        while self.active:
            _wait(self._running)
            self.advance(parallel)
            if meanwhile is not None:
                meanwhile([i - self._told for i in self._outcomes])
        outcomes, self._outcomes = self._outcomes, {}
        self._told += len(outcomes)
        return [outcomes[i] for i in sorted(outcomes)]


def run_all(commands: Sequence[Sequence[str]], *, folder: Path, parallel: int, timeout_s: float) -> list[Outcome]:
    """Run all commands in ``folder``, at most ``parallel`` at a time, each for at most ``timeout_s`` seconds.

    >>> run_all([["true"], ["false"]], folder=Path("/tmp"), parallel=2, timeout_s=5)[1].problem
    'ended with status 1'
    """
    with ending.Interruptible(), ProcessPool(folder=folder, timeout_s=timeout_s) as pool:
        for argv in commands:
            pool.add(argv)
        return pool.finish(parallel)


def _kill(children: Sequence[_Running]) -> None:
    """End whole groups; politely first, so that a compiler driver removes its scratch files."""
    for number, grace_s in ((signal.SIGTERM, _TERM_GRACE_S), (signal.SIGKILL, _KILL_GRACE_S)):
        for child in children:
            child.signal(number)
        for child in children:
            child.wait(grace_s)


def _children_in(folder: Path) -> Iterator[int]:
    """Our children that work in ``folder``: Ctrl-C may come when one has been started and before anybody has noted which."""
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            for pid in (task / "children").read_text().split():
                with suppress(OSError):
                    if Path(f"/proc/{pid}/cwd").samefile(folder):
                        yield int(pid)


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, an old kernel, or a sandbox that forbids it
        return None


def _wait(running: Sequence[_Running]) -> None:
    """Sleep until a child ends or the nearest deadline, or for a slice of that time."""
    if not running:
        return
    left_s = min(_SLICE_S, max(0.0, min(child.deadline for child in running) - time.monotonic()))
    poller = select.poll()
    for child in running:
        if child.pidfd is None:
            time.sleep(min(left_s, _POLL_S))
            return
        poller.register(child.pidfd, select.POLLIN)
    poller.poll(left_s * 1000 + 1)
