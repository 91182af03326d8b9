"""What NVIDIA's compiler and assembler make of a kernel, without a device: each text is compiled once a process."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from functools import cache

from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.runtime.kernel_report import KernelReport

# "serialized" are products by warpgroups (C7508, C7510): their sums could not stay where they are.
_COMPLAINTS = ("warning", "serialized", "setmaxnreg", "C7508", "C7510")

# A variable that nothing reads, which costs nothing, and the remark that follows.
_UNUSED = ("warning #177-D", "The warnings can be suppressed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """``log``: the assembler's; ``ptx``: what it was given."""

    report: KernelReport
    log: str
    ptx: str

    @property
    def flaws(self) -> list[str]:
        """What a kernel whose values are all in registers has none of."""
        log = "\n".join(line for line in self.log.splitlines() if not any(word in line for word in _UNUSED))
        found = [word for word in _COMPLAINTS if word in log]
        stack = sum(map(int, re.findall(r"(\d+) bytes stack frame", self.log)))
        found += [f"{stack} bytes of stack"] if stack else []
        found += [f"{self.report.spilled_bytes} bytes spilled"] if self.report.spilled_bytes else []
        return found + (["an array in local memory"] if "__local_depot" in self.ptx else [])


class _WithPtx(nvrtc.Nvrtc):
    """Keeps the PTX of the last text."""

    ptx = ""

    def _bytes(self, getter: str, program: ctypes.c_void_p) -> bytes:
        if getter == self.code:
            self.ptx = super()._bytes("GetPTX", program).rstrip(b"\0").decode()
        return super()._bytes(getter, program)


@cache
def _compiler() -> _WithPtx:
    return _WithPtx(nvrtc.load()._library)


@cache
def assembled(symbol: str, text: str, target: str) -> Assembled:
    """As sessions have it compiled; ``target`` as sm_90a."""
    compiler = _compiler()
    made = compiler.compile(symbol, text, target)
    [report] = made.reports.values()
    return Assembled(report=report, log=made.log, ptx=compiler.ptx)
