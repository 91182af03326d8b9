"""A small stored run, made by hand: one win, one failure, one crash."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bench.environment import Environment
from bench.plan import QUICK
from bench.results import Accuracy, CaseResult, Check, Creation, Measurement, Placement, Run, Status, Warn
from bench.statistics import judge, latency, paired_ratio
from bench.store import dump

ENVIRONMENT = Environment(
    cpu="Example CPU",
    cpu_flags=("avx2",),
    cores_logical=4,
    cores_usable=2,
    quota_cores=1.5,
    memory_bytes=1 << 33,
    governor="performance",
    load_1m=0.1,
    os="Linux",
    kernel="6.1",
    libc="glibc-2.36",
    python="3.11.7",
    packages={"onnxruntime": "1.31.1"},
    git_revision="0123456789ab",
    git_dirty=False,
)


def measurement(label: str, ms: float, n: int = 120) -> Measurement:
    samples = tuple(int(ms * 1e6 * (1 + i / 10_000)) for i in range(n))
    return Measurement(
        label=label,
        provider=label,
        options={},
        status=Status.OK,
        latency=latency(samples),
        first_run_ns=int(ms * 2e6),
        creation=Creation(cold_ns=2_000_000_000, warm_ns=300_000_000, rss_growth_bytes=100 << 20),
        placement=Placement(nodes={label: 90, "CPUExecutionProvider": 10}, groups={label: 1}),
        samples_ns=samples,
    )


def contender(ms: float, base: Measurement, error: float) -> Measurement:
    m = measurement("XyntraEP", ms)
    good = error <= 2e-5
    state = Accuracy.OK if good else Accuracy.INACCURATE
    ratio = paired_ratio([base.samples_ns], [m.samples_ns]) if good else None
    return dataclasses.replace(
        m,
        ratio=ratio,
        verdict=judge(ratio),
        check=Check(state=state, max_err=2e-5, error=error, output="y"),
        warnings=() if good else (Warn.INACCURATE,),
    )


def case(model: str, threads: int, status: Status = Status.OK, error: float = 1e-6) -> CaseResult:
    ok = status is Status.OK
    base = measurement("CPUExecutionProvider", 130.0)
    return CaseResult(
        model=model,
        family="bert",
        shape="b1 s128",
        batch=1,
        seq=128,
        threads=threads,
        model_sha256="0" * 64,
        status=status,
        error="" if ok else "killed by SIGSEGV\nlog",
        baseline=base if ok else None,
        contenders=(contender(100.0, base, error),) if ok else (),
        turns=60,
    )


@pytest.fixture
def run() -> Run:
    return Run(
        command="bench run zoo --quick",
        started="2026-05-04T10:00:00+00:00",
        finished="2026-05-04T10:05:00+00:00",
        quick=True,
        environment=ENVIRONMENT,
        budget=QUICK,
        planned=3,
        cases=(case("wins", 1), case("wrong", 1, error=0.5), case("dies", 2, Status.CRASHED)),
    )


@pytest.fixture
def results(tmp_path: Path, run: Run) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "example.json").write_text(dump(run))
    return folder
