"""The table of ORT's efficiency: how a row follows from what was timed, and that each of its models runs."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from xyntra_bench.environment import read_environment
from xyntra_bench.ort_cases import KINDS, Kind
from xyntra_bench.ort_efficiency import Rate, Timed, measure, parted, rate, table, text


class Steady:
    """Ceilings that do nothing: what is measured against them means nothing."""

    def fma(self, rounds: int) -> float:
        return float(sum(range(2000)))

    def read(self, data: NDArray[np.float32]) -> float:
        return float(sum(range(2000)))


@pytest.fixture
def add() -> Kind:
    return next(kind for kind in KINDS if kind.name == "Add")


def test_a_row_frees_times_of_the_machine(add: Kind) -> None:
    near, far = add.at(1000), add.at(100_000)
    tiny = Timed(flops=500.0, bytes_read=0.0)
    slow_memory = Timed(flops=9e6, bytes_read=2.4e6)
    assert rate(tiny, Timed(flops=20_500.0, bytes_read=1.0), slow_memory, (near, far)) == Rate(flops=20.0, dram=0.5)
    hidden = Timed(flops=2.1e6, bytes_read=2.4e6)
    assert rate(tiny, Timed(flops=20_500.0, bytes_read=1.0), hidden, (near, far)) == Rate(flops=20.0, dram=0.0)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_models_run(kind: Kind) -> None:
    case = kind.at(kind.sizes[0])
    session = ort.InferenceSession(case.model(), providers=["CPUExecutionProvider"])
    assert session.run(None, dict(case.feeds))
    assert case.units > 0 and case.moved > 0


def test_a_row_is_measured(add: Kind) -> None:
    small = Kind(name="Add", at=add.at, sizes=(4, 64, 256))
    assert measure(small, Steady(), np.ones(4, np.float32)).flops >= 0


def test_the_file_reads_row_by_row(monkeypatch: pytest.MonkeyPatch, add: Kind) -> None:
    small = Kind(name="Add", at=add.at, sizes=(4, 64, 256))
    monkeypatch.setattr("xyntra_bench.ort_efficiency.KINDS", [small])
    monkeypatch.setattr("xyntra_bench.ort_integer_cases.KINDS", [])
    written = text(table(read_environment(compiler=""), Steady()))
    content = json.loads(written)
    assert list(content["rows"]) == ["Add"] and content["environment"]["threads"] == 1
    assert any(line.startswith('  "Add": {"flops"') for line in written.splitlines())


def test_rows_of_integers_are_parted_from_the_others() -> None:
    content = {"environment": {"cpu": "C"}, "node_us": 1.0, "rows": {"Add": 1, "integers.product.row": 2}}
    rest, of_bytes = parted(content)
    assert rest == {"environment": {"cpu": "C"}, "node_us": 1.0, "rows": {"Add": 1}}
    assert of_bytes == {"environment": {"cpu": "C"}, "rows": {"integers.product.row": 2}}
