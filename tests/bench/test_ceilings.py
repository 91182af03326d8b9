from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from tests.reports.conftest import CEILINGS
from xyntra_bench.ceilings import best_of, measure_ceilings
from xyntra_bench.codec import encode


class Child:
    """Stands in for subprocess.run: writes what it is told to, or fails."""

    def __init__(self, *, stderr: str = "") -> None:
        self.stderr = stderr
        self.counts: list[int] = []

    def __call__(self, command: list[str], **_: object) -> Child:
        assert command[:4] == [sys.executable, "-P", "-m", "xyntra_bench.ceilings"]
        self.counts.append(int(command[4]))
        Path(command[5]).write_text(json.dumps(encode(CEILINGS)))
        return self

    @property
    def returncode(self) -> int:
        return 1 if self.stderr else 0


def test_each_number_of_threads_has_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child()
    monkeypatch.setattr("xyntra_bench.ceilings.subprocess.run", child)
    assert measure_ceilings([1, 2], {}) == ((CEILINGS, CEILINGS), "") and child.counts == [1, 2]


def test_the_best_of_all_measurements_counts() -> None:
    """One processor alone may be as fast as before, and two share a core for a while."""
    two = dataclasses.replace(CEILINGS, threads=2)
    slow = dataclasses.replace(two, fp32_gflops=two.fp32_gflops / 2, l1_gbs=two.l1_gbs * 2)
    best = dataclasses.replace(two, l1_gbs=slow.l1_gbs)
    assert best_of((CEILINGS, slow), (two,)) == best_of((two,), (CEILINGS, slow)) == (CEILINGS, best)
    assert best_of((), (two,)) == (two,)


def test_without_a_compiler_there_are_none_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child(stderr="Traceback\nno C compiler was found")
    monkeypatch.setattr("xyntra_bench.ceilings.subprocess.run", child)
    assert measure_ceilings([1, 2], {}) == ((), "ceilings: cannot be measured: no C compiler was found")
    assert child.counts == [1], "another number of threads would fail alike"
