"""Kernels that native code times by themselves, on the devices that there are and on the driver that the host stands in for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fake_cuda import FakeCuda
from xyntra_ep.diagnostics.device_ceilings import kernel_timer
from xyntra_ep.errors import CompileError, XyntraError
from xyntra_ep.tracea.backends.cuda import Cuda
from xyntra_ep.tracea.backends.opencl import OpenCl
from xyntra_ep.tracea.doctor.device_ceilings import CHUNK, copy
from xyntra_ep.tracea.runtime.kernel_source import Definition

pytestmark = [pytest.mark.native]


@pytest.mark.device("opencl")
def test_times_each_launch_on_opencl(tmp_path: Path) -> None:
    time_kernel = kernel_timer(OpenCl().target(), tmp_path)
    times = time_kernel(copy(), units=2, buffer_bytes=(2 * CHUNK * 4,) * 2, params=(), runs=3)
    assert len(times) == 3
    assert all(ns > 0 for ns in times)


@pytest.mark.compiler("nvrtc")
def test_times_each_launch_on_cuda_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    gpu = FakeCuda(monkeypatch, tmp_path_factory.mktemp("cuda"))
    time_kernel = kernel_timer(Cuda().target(), tmp_path)
    before = {what: gpu.count(what) for what in ("LaunchKernel", "device", "host")}
    assert time_kernel(copy(), units=2, buffer_bytes=(2 * CHUNK * 4,) * 2, params=(), runs=3) == [250_000] * 3
    after = {what: gpu.count(what) for what in before}
    assert after == {**before, "LaunchKernel": before["LaunchKernel"] + 4}
    gpu.fail("LaunchKernel", calls_from_now=2)
    with pytest.raises(XyntraError, match=r"Simulated GPU: .*CUDA_ERROR_OUT_OF_MEMORY for a kernel"):
        time_kernel(copy(), units=2, buffer_bytes=(2 * CHUNK * 4,) * 2, params=(), runs=3)
    assert gpu.count("device") == before["device"]


@pytest.mark.device("opencl")
def test_says_what_cannot_be_compiled_or_found(tmp_path: Path) -> None:
    target = OpenCl().target()
    broken = kernel_timer(replace(target, emit=lambda kernel: (Definition(text="no kernel"),)), tmp_path)
    with pytest.raises(CompileError):
        broken(copy(), units=1, buffer_bytes=(CHUNK * 4,) * 2, params=(), runs=1)
    absent = kernel_timer(replace(target, identity="nobody / nothing / 1"), tmp_path)
    with pytest.raises(XyntraError):
        absent(copy(), units=1, buffer_bytes=(CHUNK * 4,) * 2, params=(), runs=1)
