"""What is said of OpenCL on machines without it, with a driver that fails, and with one that takes the process along."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.gpu.opencl_queue import Queue
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.backends.opencl import OpenCl
from xyntra_ep.tracea.runtime.driver_compiler import DriverCompiler
from xyntra_ep.tracea.runtime.opencl import BROKEN, NO_DRIVER, NO_PACKAGE, read_survey, survey
from xyntra_ep.tracea.runtime.opencl_probe import MARK
from xyntra_ep.tracea.runtime.process import Outcome

DEVICE = {
    "identity": "a driver / a device / 1", "place": [0, 0],
    "name": "a device", "platform": "a driver", "version": "3.0", "is_cpu": True, "compute_units": 2,
    "max_threads": 64, "shared_bytes": 32768, "memory_bytes": 1 << 30,
    "divides_exactly": True, "has_half": False, "vendor": "a maker", "clock_mhz": 1000,
}  # fmt: skip


def log(*facts: object, noise: str = "") -> str:
    return "".join(f"{MARK}{json.dumps(fact)}\n" for fact in facts) + noise


def test_no_package() -> None:
    found = read_survey(Outcome(problem="", log=log({"missing": "pyopencl cannot be imported (No module)", "kind": "package"})))
    assert (found.missing, found.remedy) == ("pyopencl cannot be imported (No module)", NO_PACKAGE)


def test_no_driver() -> None:
    found = read_survey(Outcome(problem="", log=log({"missing": "there is no OpenCL driver (-1001)", "kind": "driver"})))
    assert found.remedy == NO_DRIVER
    assert read_survey(Outcome(problem="", log=log({"devices": []}))).remedy == NO_DRIVER


def test_a_device_that_does_not_compile_is_named_with_the_remedy() -> None:
    text = log(
        {"devices": [DEVICE, DEVICE]},
        {"trying": 0},
        {"tried": 0, "problem": "unknown CPU"},
        {"trying": 1},
        {"tried": 1, "problem": ""},
    )
    found = read_survey(Outcome(problem="", log=text))
    assert not found.missing and [d.problem for d in found.devices] == ["unknown CPU", ""] and len(found.working) == 1
    lines = OpenCl().describe(found)
    assert "BROKEN: unknown CPU" in lines[0] and "works" in lines[1]
    text = log({"devices": [DEVICE]}, {"trying": 0}, {"tried": 0, "problem": "unknown CPU"})
    found = read_survey(Outcome(problem="", log=text))
    assert found.missing == "no OpenCL device works (a device: unknown CPU)" and found.remedy == BROKEN
    assert OpenCl().describe(found)[1] == f"no: {found.missing}. {BROKEN}"


def test_a_driver_that_ends_the_process() -> None:
    text = log({"devices": [DEVICE, DEVICE]}, {"trying": 0}, noise="LLVM ERROR: unknown target CPU\n")
    found = read_survey(Outcome(problem="was ended by signal 6", log=text))
    assert [d.problem for d in found.devices] == [
        "the process was ended by signal 6 (LLVM ERROR: unknown target CPU)",
        "not tried: the process was ended by signal 6",
    ]
    found = read_survey(Outcome(problem="did not end within 120 s", log=""))
    assert found.missing == "asking for OpenCL devices did not end within 120 s" and found.remedy == BROKEN


@pytest.mark.device("opencl")
def test_a_working_device() -> None:
    found = survey()
    assert not found.missing and found.working
    queue = Queue(found.working[0])
    with pytest.raises(CompileError, match="refuses") as failed:
        queue.build("f", "__kernel void f(__global float *x) { x[0] = absent; }")
    assert "absent" in failed.value.log
    assert queue.download(queue.upload(np.arange(5, dtype=np.uint8)), 5).tolist() == [0, 1, 2, 3, 4]


def test_programs_of_two_drivers_never_meet() -> None:
    devices = [f"P / D / {driver}" for driver in (1, 2)]
    salts = {
        DriverCompiler(library=Path("lib.so"), device=d, suffix=".clbin", name="the OpenCL driver").salt(()) for d in devices
    }
    assert len(salts) == 2
