"""What runs cost is measured on a device, here PoCL: through native code, in a process of its own. Never how much."""

from __future__ import annotations

from pathlib import Path

import pytest

from xyntra_ep.provider import registration
from xyntra_ep.tracea.backends.opencl import OpenCl
from xyntra_ep.tracea.interface import device_costs, measuring
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.samples import Sample, named
from xyntra_ep.tracea.runtime.hashing import hash128_of

pytestmark = [pytest.mark.native, pytest.mark.device("opencl")]


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    """For which little is large."""
    monkeypatch.setattr(measuring, "_PRODUCT", Sample(name="a product", build=named("gemm", m=64, n=64, k=64)))
    monkeypatch.setattr(measuring, "_SUM", Sample(name="a sum", build=named("add", n=5000)))
    monkeypatch.setattr(measuring, "_RUNS", 5)
    return Context(cache_dir=tmp_path, hash128=hash128_of(registration.library()))


def test_runs_copies_and_kernels_are_measured(context: Context) -> None:
    costs = measuring.measure(OpenCl().target(), context)
    assert costs is not None and costs.is_measured and costs.gflops > 0
    assert [size for size, _ in costs.there_ns] == [size for size, _ in costs.back_ns] == list(measuring._COPIES[1:])
    assert device_costs.read(device_costs.stored(costs)) == costs, "a number is none"


def test_a_device_that_does_not_do_it_has_no_costs(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_COPIES", (4 << 10, 1 << 62))
    assert measuring.measure(OpenCl().target(), context) is None
