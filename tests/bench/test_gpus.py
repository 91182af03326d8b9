"""What a result says of GPUs, with NVML and without, and that nothing fails where there are none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from xyntra_bench.environment import GpuFacts
from xyntra_bench.gpus import Managed, facts_of, find_gpus, managed_gpus
from xyntra_ep.tracea.runtime.cuda import CudaDevice

H100 = CudaDevice(
    ordinal=0,
    identity="CUDA / NVIDIA H100 / sm_90 / driver 12.8 #1",
    name="NVIDIA H100",
    architecture="sm_90",
    driver="12.8",
    multiprocessors=132,
    max_threads=1024,
    shared_bytes=227 << 10,
    clock_khz=1_980_000,
    memory_clock_khz=0,
    memory_bus_bits=5120,
    l2_bytes=50 << 20,
    memory_bytes=80 << 30,
)

# NVML in a few lines: two GPUs, of which the first cannot be opened and the second limits its power.
NVML = r"""
#include <stdio.h>
#define CALL(name) int name
CALL(nvmlInit_v2)(void) { return FAIL; }
CALL(nvmlDeviceGetCount_v2)(unsigned *n) { *n = 2; return 0; }
CALL(nvmlSystemGetDriverVersion)(char *v, unsigned n) { snprintf(v, n, "570.1"); return 0; }
CALL(nvmlDeviceGetHandleByIndex_v2)(unsigned i, void **h) { *h = &nvmlInit_v2; return i == 0; }
CALL(nvmlDeviceGetName)(void *h, char *name, unsigned n) { snprintf(name, n, "NVIDIA H100"); return h != &nvmlInit_v2; }
CALL(nvmlDeviceGetPowerManagementLimit)(void *h, unsigned *mw) { *mw = 700000; return h != &nvmlInit_v2; }
"""


def nvml(folder: Path, fail: int) -> str:
    source, library = folder / "nvml.c", folder / f"nvml{fail}.so"
    source.write_text(NVML)
    subprocess.run(["cc", "-w", "-shared", "-fPIC", f"-DFAIL={fail}", "-o", str(library), str(source)], check=True)
    return str(library)


def test_facts_are_those_of_the_driver_and_of_nvml() -> None:
    told = (Managed(name="Other", driver="1", power_limit_w=1.0), Managed(name="NVIDIA H100", driver="570.1", power_limit_w=None))
    assert facts_of(H100, told) == GpuFacts(
        device=H100.identity,
        name="NVIDIA H100",
        api="CUDA 12.8",
        driver="570.1",
        architecture="sm_90",
        multiprocessors=132,
        clock_mhz=1980.0,
        memory_clock_mhz=None,
        memory_bytes=80 << 30,
        cache_bytes=50 << 20,
        power_limit_w=None,
    )
    alone = facts_of(H100, ())
    assert alone.driver == "" and alone.power_limit_w is None


@pytest.mark.compiler("cc")
def test_nvml_tells_drivers_and_limits_or_nothing(tmp_path: Path) -> None:
    assert managed_gpus(nvml(tmp_path, 0)) == (Managed(name="NVIDIA H100", driver="570.1", power_limit_w=700.0),)
    assert managed_gpus(nvml(tmp_path, 9)) == ()
    assert managed_gpus(str(tmp_path / "none.so")) == ()


@pytest.mark.native
def test_a_child_is_asked_and_its_end_is_no_end_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = find_gpus()
    assert all(gpu.name and gpu.device.startswith("CUDA / ") for gpu in found)
    broken = tmp_path / "sitecustomize.py"
    broken.write_text("import os\nos.kill(os.getpid(), 9)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert find_gpus() == ()
