"""The children, as the parent sees them: what was answered, or how one died or hung, and over what."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.hunt.case import Case, Class, Finding
from tests.hunt.judge import Verdict
from tests.hunt.processes import worker

# Nothing here takes a second; compilers on a machine that many share may take very long.
PATIENCE_S = {"session": 240.0}
PATIENCE_OTHERWISE_S = 45.0


@dataclass(slots=True, kw_only=True)
class Answer:
    """``case``: what was judged. ``value``: the answer to a request that is no judgement."""

    case: Case | None
    verdict: Verdict
    value: Any = None


@dataclass(slots=True)
class Child:
    """One worker, started again when it died."""

    preload: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    patience_s: float | None = None
    process: BaseProcess | None = None
    source: str = ""  # the package that the child has imported, once it has
    restarts: int = -1
    _conn: Connection | None = None
    _log: str = ""
    _case: Case | None = None
    _phase: str = ""
    _since: float = 0.0

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        descriptor, self._log = tempfile.mkstemp(prefix="hunt-worker-")
        os.close(descriptor)
        self._conn, theirs = context.Pipe()
        arguments = (theirs, self._log, self.preload, self.environment)
        self.process = context.Process(target=worker.main, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.source = ""
        self.restarts += 1

    def stop(self) -> None:
        """At once: there is nothing in it that is worth waiting for."""
        if self.process is not None and self.process.is_alive():
            self.process.kill()
        if self.process is not None:
            self.process.join()
        if self._conn is not None:
            self._conn.close()
            Path(self._log).unlink(missing_ok=True)
        self.process = self._conn = None

    # -- asking

    def ask(self, request: worker.Request) -> Answer:
        """One request to its end."""
        self.post(request)
        while True:
            answer = self.look(0.2)
            if answer is not None:
                return answer

    def post(self, request: worker.Request) -> None:
        if self.process is None:
            self.start()
        assert self._conn is not None
        self._case = request.case if isinstance(request, worker.Check | worker.Inside) else None
        self._phase, self._since = "", time.monotonic()
        with contextlib.suppress(OSError):  # it has died since; look() says so
            self._conn.send_bytes(pickle.dumps(request))

    def look(self, timeout_s: float) -> Answer | None:
        """The answer to what was posted, if it comes in this time. A child that died or hangs is an answer, too."""
        assert self._conn is not None and self.process is not None
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            if not wait([self._conn], left):
                break
            try:
                kind, value = self._conn.recv()
            except (EOFError, OSError):
                return self._died()
            self._since = time.monotonic()
            if kind == "done":
                return self._answer(value)
            if kind == "mistake":
                verdict = Verdict(refused=True, mistake=f"{self._case.name if self._case else ''}\n{value}")
                return Answer(case=self._case, verdict=verdict)
            if kind == "ready":
                self.source = value
            elif kind == "case":
                self._case = value
            else:
                self._phase = value
        if time.monotonic() - self._since > self._patience():
            return self._ended(Class.HANG, f"nothing for {self._patience():.0f} s")
        return None

    def _patience(self) -> float:
        if self.patience_s is not None and self._phase:
            return self.patience_s
        return next((s for word, s in PATIENCE_S.items() if word in self._phase or not self._phase), PATIENCE_OTHERWISE_S)

    def _answer(self, value: Any) -> Answer:
        if isinstance(value, Verdict):
            return Answer(case=self._case, verdict=value)
        return Answer(case=self._case, verdict=Verdict(), value=value)

    def _died(self) -> Answer:
        assert self.process is not None
        self.process.join(10)
        code = self.process.exitcode or 0
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        if not self.source:
            raise RuntimeError(f"a child does not start ({name}): {Path(self._log).read_text(errors='replace')[-2000:]}")
        return self._ended(Class.CRASH, name)

    def _ended(self, kind: Class, how: str) -> Answer:
        """A verdict of a child that gives none. While ONNX Runtime alone was at work, it is not ours."""
        verdict = Verdict()
        last = Path(self._log).read_text(errors="replace").strip().splitlines()[-1:]
        if self._case is None or self._phase.startswith("ORT") or not self._phase:
            verdict.refused = True
            verdict.counts["ORT itself crashes or hangs"] += 1
        else:
            words = self._phase.split()
            runs = tuple(range(int(words[1]) + 1)) if words[0] == "run" else ()
            text = f"{how} in {self._phase}" + (f": {last[0][:120]}" if last else "")
            verdict.findings.append(Finding(kind=kind, text=text, runs=runs))
            verdict.counts["sessions"] += 1
        case = self._case
        self.stop()
        return Answer(case=case, verdict=verdict)
