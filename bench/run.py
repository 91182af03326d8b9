"""Runs cases, each in a process of its own, whose crash or hang is a result like any other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.codec import decode, encode
from bench.errors import BenchError
from bench.plan import Case, Contender, Plan
from bench.results import CaseResult, Status
from bench.worker import Job

WORKER = ("-m", "bench.worker")
TAIL_LINES = 12


def run_case(case: Case, plan: Plan, worker: tuple[str, ...] = WORKER) -> CaseResult:
    job = Job(case=case, contenders=plan.contenders, budget=plan.budget, quick=plan.quick)
    with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as folder:
        job_file, result_file, log_file = (Path(folder) / name for name in ("job.json", "result.json", "log"))
        job_file.write_text(json.dumps(encode(job)))
        with log_file.open("wb") as log:
            command = [sys.executable, *worker, str(job_file), str(result_file)]
            child = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=_environment())
            try:
                code = child.wait(timeout=time_limit_s(plan))
            except subprocess.TimeoutExpired:
                return _without_result(case, Status.TIMED_OUT, f"no result after {time_limit_s(plan):.0f} s")
            finally:
                if child.poll() is None:
                    child.kill()
                    child.wait()
        if code == 0 and result_file.exists():
            return decode(CaseResult, json.loads(result_file.read_text()))
        log_lines = log_file.read_text(errors="replace").splitlines()
        return _without_result(case, *_describe(code, log_lines[-TAIL_LINES:]))


def time_limit_s(plan: Plan) -> float:
    """Generous: it is there for a hang, not for a slow compiler."""
    return 4 * plan.budget.max_time_s + 300.0 * (1 + len(plan.contenders))


def probe(contender: Contender) -> None:
    """Fail before the first case when the provider is not there; in a child, as loading may crash."""
    command = [sys.executable, "-m", "bench.sessions", contender.provider]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
    if done.returncode != 0:
        _, what = _describe(done.returncode, done.stderr.splitlines()[-TAIL_LINES:])
        text = what if what.startswith(contender.provider) else f"{contender.provider}: cannot be loaded: {what}"
        raise BenchError(text)


def _describe(code: int, log_tail: list[str]) -> tuple[Status, str]:
    """The first line says what happened: the signal, or the exception, which Python prints last."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Status.CRASHED, "\n".join([f"killed by {name}", *log_tail])
    last = log_tail[-1] if log_tail else f"exit status {code}"
    return Status.FAILED, "\n".join([last.removeprefix("bench.errors.BenchError: "), *log_tail[:-1]])


def _environment() -> dict[str, str]:
    """The child must find this package also when it was started from a checkout that is not installed."""
    here = str(Path(__file__).parent.parent)
    inherited = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (here, inherited)))}


def _without_result(case: Case, status: Status, error: str) -> CaseResult:
    return CaseResult(
        model=case.model,
        family=case.family,
        shape=case.shape,
        batch=case.batch,
        seq=case.seq,
        threads=case.threads,
        model_sha256="",
        status=status,
        error=error,
    )
