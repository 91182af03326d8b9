"""Runs cases, each in a child process, whose crash or hang is a result like any other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xyntra_bench.codec import decode, encode
from xyntra_bench.contenders import BASELINE, EAGER, TORCH, TORCH_BACKENDS, Contender, parse_contenders
from xyntra_bench.errors import BenchError
from xyntra_bench.feeds import case_path
from xyntra_bench.measure import ALIVE_FILE, FEEDS_FILE, cache_dir
from xyntra_bench.memory import MemoryJob
from xyntra_bench.plan import Case, Plan
from xyntra_bench.record import result_of, row_of
from xyntra_bench.results import CaseResult, Measurement, Memory, Status
from xyntra_bench.setups import Setup, setups_of
from xyntra_bench.worker import Job

WORKER = ("-m", "xyntra_bench.worker")
MEMORY = ("-m", "xyntra_bench.memory")
MEMORY_LIMIT_S = 300.0
TAIL_LINES = 12
EXPLAINED = "xyntra_bench.errors.BenchError: "
DIED = (Status.CRASHED, Status.TIMED_OUT)


def run_case(case: Case, plan: Plan, worker: tuple[str, ...] = WORKER) -> CaseResult:
    """Measures a case in a child process. If a contender crashes it, the contenders that survive alone are measured again, so
    the crash costs them only time."""
    result = _attempt(case, plan, worker)
    if result.status not in DIED:
        return result
    dead = _fatal(case, plan, worker, result)
    if not dead:
        return replace(result, error=f"{result.error}\neach contender lives when it is alone with the CPU provider")
    survivors = tuple(contender for contender in plan.contenders if contender.label not in dead)
    again = _attempt(case, replace(plan, contenders=survivors), worker)
    if again.status is not Status.OK:
        return result
    measured = {m.label: m for m in again.measurements}
    setups = setups_of(case, plan.contenders)
    rows = [measured.get(setup.label) or row_of(setup, *dead[setup.contender.label]) for setup in setups]
    return replace(again, baseline=rows[0], contenders=tuple(rows[1:]))


def _fatal(case: Case, plan: Plan, worker: tuple[str, ...], together: CaseResult) -> dict[str, tuple[Status, str]]:
    """Each contender that crashes or hangs with only the CPU provider beside it, by its label. Each is tried in a child process;
    a single one need not be."""
    if len(plan.contenders) == 1:
        return {plan.contenders[0].label: (together.status, together.error)}
    budget = replace(
        plan.budget, rounds=2, min_iterations=2, min_runs=0, min_time_s=0.0, max_time_s=10.0, max_iterations=2, creations=1
    )
    found = {
        contender.label: _attempt(replace(case, memory=False), replace(plan, contenders=(contender,), budget=budget), worker)
        for contender in plan.contenders
    }
    return {label: (result.status, result.error) for label, result in found.items() if result.status in DIED}


def _attempt(case: Case, plan: Plan, worker: tuple[str, ...]) -> CaseResult:
    job = Job(case=case, contenders=plan.contenders, budget=plan.budget, quick=plan.quick)
    with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as folder:
        scratch = Path(folder)
        try:
            data = in_child(worker, encode(job), scratch, time_limit_s(case, plan))
        except ChildFailed as failure:
            return result_of(case, failure.status, error=failure.text)
        result = decode(CaseResult, data)
        if not case.memory:
            return result
        measured = {setup.label: setup for setup in setups_of(case, plan.contenders)}
        with_memory = [_with_memory(m, measured[m.label], case, scratch) for m in result.measurements]
        return replace(result, baseline=with_memory[0], contenders=tuple(with_memory[1:]))


def time_limit_s(case: Case, plan: Plan) -> float:
    """Without a sign of life, which each round gives. Generous: it is there for a hang, not for a slow compiler or model."""
    setups = len(setups_of(case, plan.contenders))
    return 4 * plan.budget.for_sessions(setups).max_time_s + 300.0 * setups


def probe(contender: Contender) -> str:
    """Why the contender cannot be measured here, in a line, or empty; asked in a child process, because loading may crash."""
    command = [sys.executable, "-P", "-m", "xyntra_bench.sessions", contender.label]
    done = subprocess.run(command, capture_output=True, text=True, env=child_environment(), check=False)
    if done.returncode == 0:
        return ""
    _, text = _describe(done.returncode, done.stderr.splitlines()[-TAIL_LINES:])
    what = text.partition("\n")[0]
    return what if what.startswith(contender.provider) else f"{contender.provider}: cannot be loaded: {what}"


def checked_contenders(specs: Sequence[str], reference: str = BASELINE) -> tuple[Contender, ...]:
    """The contenders asked for, beside the ``reference``. Raises BenchError if one cannot be measured here: better now than
    after hours of measuring."""
    contenders = parse_contenders(specs, reference)
    for contender in contenders:
        if reference != EAGER and contender.provider in TORCH_BACKENDS:
            raise BenchError(f"{contender.provider}: a backend of torch.compile, which runs no ONNX file. try `bench run torch`")
        if reference == EAGER and contender.provider == TORCH:
            raise BenchError(f"{TORCH}: here its backends are contenders. name {', '.join(TORCH_BACKENDS)}")
        if reason := probe(contender):
            raise BenchError(reason)
    return contenders


def kernel_compiler() -> str:
    """The compiler of XyntraEP's kernels, or empty without it; asked in a child process too."""
    command = [sys.executable, "-P", "-m", "xyntra_bench.inside"]
    done = subprocess.run(command, capture_output=True, text=True, env=child_environment(), check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def kernels_isa() -> str:
    """The class of processors that XyntraEP makes its kernels for; XYNTRA_ISA may lower it. Empty without XyntraEP."""
    command = [sys.executable, "-P", "-m", "xyntra_bench.inside", "isa"]
    done = subprocess.run(command, capture_output=True, text=True, env=child_environment(), check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def child_environment() -> dict[str, str]:
    """The child process must find this package also in a checkout that is not installed. It is started with -P, because a folder
    `bench` in the current directory would be found first."""
    here = str(Path(__file__).parent.parent)
    inherited = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (here, inherited)))}


class ChildFailed(Exception):
    """A child process crashed, failed or hung; the text begins with what happened."""

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def in_child(module: tuple[str, ...], job: Any, scratch: Path, limit_s: float) -> Any:
    """Runs a job in a child process and returns its result, as JSON values. Raises ChildFailed."""
    job_file, result_file, log_file, alive_file = (scratch / name for name in ("job.json", "result.json", "log", ALIVE_FILE))
    result_file.unlink(missing_ok=True)
    alive_file.touch()
    job_file.write_text(json.dumps(job))
    with log_file.open("wb") as log:
        command = [sys.executable, "-P", *module, str(job_file), str(result_file)]
        child = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=child_environment())
        try:
            code = _wait(child, alive_file, limit_s)
        except subprocess.TimeoutExpired:
            raise ChildFailed(Status.TIMED_OUT, f"no sign of life for {limit_s:.0f} s") from None
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    if code == 0 and result_file.exists():
        return json.loads(result_file.read_text())
    raise ChildFailed(*_describe(code, log_file.read_text(errors="replace").splitlines()[-TAIL_LINES:]))


def _wait(child: subprocess.Popen[bytes], alive_file: Path, limit_s: float) -> int:
    """The exit status of the child. Raises TimeoutExpired if `alive_file` was not touched for `limit_s`."""
    while True:
        touched = alive_file.stat().st_mtime_ns
        try:
            return child.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            if alive_file.stat().st_mtime_ns == touched:
                raise


def _with_memory(m: Measurement, setup: Setup, case: Case, scratch: Path) -> Measurement:
    """Adds the memory of a session of its own. If that fails, the figure stays empty, with a note. PyTorch's is not measured: its
    memory is the device's, and compiling its module again may take minutes."""
    if m.status is not Status.OK or m.provider == TORCH:
        return m
    files = {"model": str(case_path(case)), "feeds": str(scratch / FEEDS_FILE), "cache_dir": str(cache_dir(scratch, setup))}
    try:
        data = in_child(MEMORY, encode(MemoryJob(setup=setup, **files)), scratch, MEMORY_LIMIT_S)
    except ChildFailed as failure:
        return replace(m, notes=(*m.notes, f"memory: {failure.status}: {failure.text.splitlines()[0]}"))
    return replace(m, memory=decode(Memory, data))


def _describe(code: int, log_tail: list[str]) -> tuple[Status, str]:
    """The first line says what happened: the signal, or the exception, which Python prints last."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return Status.CRASHED, "\n".join([f"killed by {name}", *log_tail])
    said = [line for line in log_tail if line.strip()]
    explained = [line for line in said if line.startswith(EXPLAINED)]  # where it was raised is of no use to the user
    return Status.FAILED, (explained or said or [f"exit status {code}"])[-1].removeprefix(EXPLAINED)
