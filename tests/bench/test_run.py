"""The child process: its crash, its failure and its hang are results."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bench import run as module
from bench.contenders import Contender
from bench.plan import Case, Plan
from bench.results import Status
from bench.run import probe, run_case


def child(text: str) -> tuple[str, str]:
    return "-c", text


def test_a_case_comes_back_from_its_own_process(case: Case, plan: Plan) -> None:
    result = run_case(case, plan)
    assert result.status is Status.OK, result.error
    assert (result.model, result.shape, result.threads) == ("bert-base-tiny", "b1 s16", 1)
    assert result.peak_rss_bytes and result.contenders[0].ratio


def test_a_crash_is_recorded_with_its_signal_and_log(case: Case, plan: Plan) -> None:
    text = "import os, sys; print('last words', file=sys.stderr, flush=True); os.kill(os.getpid(), 11)"
    result = run_case(case, plan, child(text))
    assert result.status is Status.CRASHED and result.model == case.model
    assert result.error.splitlines() == ["killed by SIGSEGV", "last words"]


def test_an_exception_is_recorded_message_first(case: Case, plan: Plan) -> None:
    result = run_case(case, plan, child("raise ValueError('no weights')"))
    assert result.status is Status.FAILED
    assert result.error.startswith("ValueError: no weights\nTraceback")


def test_a_hang_is_ended(case: Case, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time_limit_s", lambda case, plan: 0.2)
    result = run_case(case, plan, child("import time; time.sleep(60)"))
    assert result.status is Status.TIMED_OUT and "no result after" in result.error


def test_a_mistake_of_the_caller_is_shown_without_its_class(case: Case, plan: Plan, tmp_path: Path) -> None:
    absent = dataclasses.replace(case, file=str(tmp_path / "absent.onnx"))
    assert "No such file" in run_case(absent, plan).error.splitlines()[0]


def test_probe() -> None:
    assert probe(Contender(provider="CPUExecutionProvider")) == ""
    reason = probe(Contender(provider="NoSuchEP"))
    assert reason.startswith("NoSuchEP: not in onnxruntime") and "this runtime has" in reason
    assert "\n" not in reason


def test_memory_is_measured_in_processes_of_their_own(case: Case, plan: Plan) -> None:
    result = run_case(dataclasses.replace(case, memory=True), plan)
    for m in result.arms:
        assert m.memory is not None, m.notes
        assert 0 < m.memory.loaded_bytes <= m.memory.peak_bytes
        assert m.memory.steady_bytes <= m.memory.peak_bytes
    assert all(m.memory is None for m in run_case(case, plan).arms), "only where the case asks for it"


def test_memory_that_cannot_be_measured_leaves_a_note(case: Case, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY", child("import os; os.kill(os.getpid(), 11)"))
    result = run_case(dataclasses.replace(case, memory=True), plan)
    assert result.baseline is not None and result.baseline.memory is None and result.baseline.latency is not None
    assert result.baseline.notes == ("memory: crashed: killed by SIGSEGV",)
