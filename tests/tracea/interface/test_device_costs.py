"""What runs cost on a device: sums, what is kept of them, and what is said."""

from __future__ import annotations

import json
from typing import Any

import pytest

from xyntra_ep.tracea.interface import measuring
from xyntra_ep.tracea.interface.device_costs import ASSUMED, DeviceCosts, read, stored
from xyntra_ep.tracea.interface.trial_jobs import Answer

MEASURED = DeviceCosts(
    run_ns=20e3, there_ns=((1000, 200.0), (3000, 400.0)), back_ns=((1000, 100.0),), kernels=1.5, gflops=900.0, is_measured=True
)


def test_a_run_is_its_copies_and_kernels_and_what_it_costs_anyway() -> None:
    assert MEASURED.total_ns([], [], 1000.0) == 20e3 + 1500
    assert MEASURED.total_ns([500, 2000], [500], 0.0) == 20e3 + 100 + 300 + 50
    assert MEASURED.total_ns([6000], [10_000], 0.0) == 20e3 + 800 + 1000, "beyond the largest one at its rate"
    assert ASSUMED.total_ns([12_000_000], [], 0.0) == pytest.approx(30e3 + 1e6)


def test_what_is_said() -> None:
    assert str(MEASURED) == (
        "a run there takes 20 us beside its kernels, copies 7.5 GB/s there and 10 GB/s back, kernels 1.5 times their estimates"
        " (measured)"
    )
    assert "copies 12 GB/s there and 12 GB/s back" in str(ASSUMED) and str(ASSUMED).endswith("(assumed)")


def test_what_is_kept_is_read_and_nothing_else_is() -> None:
    row = json.loads(json.dumps(stored(MEASURED)))
    assert read(row) == MEASURED
    changes: list[dict[str, Any]] = [
        {"run_ns": None}, {"run_ns": 0}, {"kernels": -1.0}, {"kernels": float("inf")}, {"there_ns": []}, {"back_ns": [[1]]},
        {"there_ns": 5},
    ]  # fmt: skip
    assert all(read(row | change) is None for change in changes)
    others: list[object] = [None, [], "", {}, {name: row[name] for name in ("run_ns", "kernels")}]
    assert all(read(other) is None for other in others)


def test_a_larger_copy_takes_no_less_than_a_smaller_one() -> None:
    answers = [Answer(problem="", ns={"there_ns": ns}) for ns in (5e3, 4e3, 90e3, 80e3)]
    assert measuring._times(answers, "there_ns") == tuple(zip(measuring._COPIES[1:], (1.0, 85e3, 85e3), strict=True))
