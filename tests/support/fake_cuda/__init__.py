"""A GPU's driver and compiler for machines without one, CUDA's or HIP's: the text that would run on it runs on the host.

Everything of ours is real but what is the vendor's: sessions, plans, the text of kernels, native code. See driver.cc and block.h.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import ClassVar

import pytest

from xyntra_ep.tracea.runtime import cuda
from xyntra_ep.tracea.runtime.hip import compilers, devices
from xyntra_ep.tracea.runtime.nvrtc_compiler import NvrtcCompiler

OUT_OF_MEMORY, ECC_UNCORRECTABLE, NOT_READY, ILLEGAL_ADDRESS, LAUNCH_FAILED = 2, 214, 600, 700, 719
_HERE = Path(__file__).parent


@cache
def _driver(folder: Path, name: str, source: str) -> ctypes.CDLL:
    """Loaded, so that who opens the library later gets it."""
    made = folder / name
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-Wl,-soname,{name}"]
    subprocess.run(["g++", *flags, "-o", str(made), str(_HERE / source), "-ldl"], check=True)
    driver = ctypes.CDLL(str(made))
    driver.fake_cuda_count.argtypes, driver.fake_cuda_count.restype = [ctypes.c_char_p], ctypes.c_long
    return driver


class FakeCuda:
    """In place of the real one for as long as ``monkeypatch`` lasts. ``folder`` must outlive the process's sessions; the first
    one's counts, because a process has one driver."""

    library, source = "libcuda.so.1", "driver.cc"
    _home: ClassVar[Path | None] = None

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        folder = FakeCuda._home = FakeCuda._home or folder
        self._driver = _driver(folder, self.library, self.source)
        self._monkeypatch = monkeypatch
        path = os.pathsep.join(filter(None, [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]))
        monkeypatch.setenv("LD_LIBRARY_PATH", path)  # of the process that lists devices
        monkeypatch.setenv("XYNTRA_TRIALS", "0")  # its kernels are slow to compile
        self._take_the_place_of_the_compiler()
        self._forget_devices()

    def _take_the_place_of_the_compiler(self) -> None:
        self._monkeypatch.setattr(NvrtcCompiler, "argv", _argv)

    def _forget_devices(self) -> None:
        cuda.survey.cache_clear()

    def count(self, name: str) -> int:
        """How often the driver was called for ``name``; "all": for anything on the device; "device", "host": allocations that are
        left, "graphs": those."""
        return int(self._driver.fake_cuda_count(name.encode()))

    def fail(self, name: str, *, calls_from_now: int, code: int = OUT_OF_MEMORY) -> None:
        """Let one such call say ``code``; all do after it where it is an error that lasts."""
        self._monkeypatch.setenv("FAKE_CUDA_FAIL", f"{name}:{self.count(name) + calls_from_now}={code}")

    def reset(self) -> None:
        """What lasted is over, and memory on the device gone."""
        self._monkeypatch.delenv("FAKE_CUDA_FAIL", raising=False)
        self._driver.fake_cuda_reset()

    def misbehave(self, **kernels: str) -> None:
        """Let those with this part of a name ``stray`` or ``hang`` (see driver.cc). It is for processes that are started from now
        on: what a kernel leaves behind stays in its process."""
        for name, part in kernels.items():
            self._monkeypatch.setenv(f"FAKE_CUDA_{name.upper()}", part)

    def set(self, **facts: int) -> None:
        """What is listed from now on: ``devices``, ``capability`` (as 80)."""
        for name, value in facts.items():
            self._monkeypatch.setenv(f"FAKE_CUDA_{name.upper()}", str(value))
        self._forget_devices()


class FakeHip(FakeCuda):
    """The same in place of AMD's."""

    library, source = "libamdhip64.so.7", "hip.cc"

    def _take_the_place_of_the_compiler(self) -> None:
        for name, function in (("argv", _hip_argv), ("refusal", lambda self, data: "" if data else "nothing")):
            self._monkeypatch.setattr(compilers.HipCompiler, name, function)
        self._monkeypatch.setattr(compilers, "find", lambda: compilers.HipCompiler(version="of tests"))

    def _forget_devices(self) -> None:
        devices.survey.cache_clear()

    def set_architecture(self, name: str) -> None:
        """As gfx942, of all that is listed from now on."""
        self._monkeypatch.setenv("FAKE_HIP_ARCHITECTURE", name)
        self._forget_devices()


def _hip_argv(self: compilers.HipCompiler, source: str, output: str, target: tuple[str, ...]) -> list[str]:
    return [sys.executable, str(_HERE / "compile.py"), source, output, "hip"]


def _argv(self: NvrtcCompiler, source: str, output: str, target: tuple[str, ...]) -> list[str]:
    return [sys.executable, str(_HERE / "compile.py"), source, output]
