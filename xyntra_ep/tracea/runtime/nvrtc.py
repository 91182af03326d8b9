"""NVRTC, NVIDIA's run-time compiler: CUDA C++ to a cubin. It needs no GPU and no driver, only its library.

The library comes with the CUDA toolkit, or as a wheel: `pip install 'xyntra-ep[cuda]'`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xyntra_ep.errors import CompileError, ConfigError
from xyntra_ep.tracea.runtime.kernel_report import KernelReport
from xyntra_ep.tracea.runtime.program_compiler import ProgramCompiler

_ONE_BLOCK = "--ptxas-options=--minnctapersm=1"
REMEDY = "pip install 'xyntra-ep[cuda]', or install the CUDA toolkit"
_PACKAGES = ("nvidia.cuda_nvrtc", "nvidia.cu13")  # the wheels of CUDA 12, and of 13


@dataclass(frozen=True, slots=True, kw_only=True)
class Cubin:
    """Code for one architecture, with what the assembler reports of its kernels, by symbol, and the compiler's whole ``log``.
    Registers and shared memory are those of the first."""

    code: bytes
    reports: Mapping[str, KernelReport]
    log: str

    @property
    def registers(self) -> int:
        return self._first.registers

    @property
    def shared_bytes(self) -> int:
        return self._first.shared_bytes

    @property
    def spilled_bytes(self) -> int:
        """Of all kernels."""
        return sum(report.spilled_bytes for report in self.reports.values())

    @property
    def _first(self) -> KernelReport:
        return next(iter(self.reports.values()))


class Nvrtc(ProgramCompiler):
    """The library. ``version``: (major, minor) of CUDA."""

    name, prefix, code = "NVRTC", "nvrtc", "GetCUBIN"

    def architectures(self) -> frozenset[str]:
        """Those that it compiles for, as sm_80."""
        count = ctypes.c_int()
        self.call("GetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self.call("GetSupportedArchs", found)
        return frozenset(f"sm_{number}" for number in found)

    def compile(self, name: str, text: str, architecture: str) -> Cubin:
        """The kernels of ``text``; ``name`` is for messages. Raises CompileError with the log.

        Left alone, the assembler may keep values in memory to have room for one more block at a time. Such a kernel is compiled
        once more, with the registers that it needs if there are so many: estimates of variants count on them.
        """
        found = self._compiled(name, text, architecture)
        if not found.spilled_bytes or len(found.reports) > 1:
            return found
        try:
            other = self._compiled(name, text, architecture, _ONE_BLOCK)
        except CompileError:  # an assembler that does not know the option
            return found
        return min(found, other, key=lambda cubin: cubin.spilled_bytes)

    def _compiled(self, name: str, text: str, architecture: str, *more: str) -> Cubin:
        options = [f"--gpu-architecture={architecture}", "--std=c++17", "--ptxas-options=-v", *more]
        code, log = self.compiled(name, text, f"{name}.cu", options)
        return Cubin(code=code, reports=read_log(log), log=log)


def read_log(log: str) -> dict[str, KernelReport]:
    """What the assembler says of each kernel; what it does not mention is 0."""
    _, *kernels = re.split(r"Compiling entry function '(\w+)'", log)
    return {
        symbol: KernelReport(
            registers=_reported(r"Used (\d+) registers", said),
            shared_bytes=_reported(r"(\d+) bytes smem", said),
            spilled_bytes=_reported(r"(\d+) bytes spill stores", said),
        )
        for symbol, said in zip(kernels[::2], kernels[1::2], strict=True)
    }


def _reported(pattern: str, said: str) -> int:
    found = re.search(pattern, said)
    return int(found.group(1)) if found is not None else 0


@cache
def load() -> Nvrtc:
    """The newest library found. Raises ConfigError with the remedy when there is none."""
    for path in _candidates():
        try:
            return Nvrtc(ctypes.CDLL(path))
        except OSError:
            continue
    raise ConfigError("NVRTC is not installed", where="cuda", hint=REMEDY)


def _candidates() -> Iterator[str]:
    for package in _PACKAGES:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or []) if spec is not None else []:
            found = Path(folder, "lib").glob("libnvrtc.so.*")
            yield from sorted((str(path) for path in found), reverse=True)
    if (name := ctypes.util.find_library("nvrtc")) is not None:
        yield name
