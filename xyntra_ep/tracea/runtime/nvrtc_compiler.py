"""NVRTC as the kernel cache calls a compiler: each unit in a process of its own, several at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from xyntra_ep.tracea.runtime.children import nvrtc_child


@dataclass(frozen=True, slots=True, kw_only=True)
class NvrtcCompiler:
    """See `compilers.Compiler`. ``version``: of the NVRTC that `nvrtc.load` finds; the target is an architecture, as sm_90."""

    version: tuple[int, int]

    @property
    def suffix(self) -> str:
        return ".cubin"

    @property
    def name(self) -> str:
        return "NVRTC"

    @property
    def linker(self) -> None:
        """A program is compiled whole."""
        return None

    def salt(self, target: tuple[str, ...]) -> str:
        return "\0".join(("nvrtc", *map(str, self.version), *target))

    def argv(self, source: str, output: str, target: tuple[str, ...]) -> list[str]:
        return [sys.executable, nvrtc_child.__file__, *target, source, output]

    def refusal(self, data: bytes) -> str:
        return "" if data.startswith(b"\x7fELF") else "no cubin"
