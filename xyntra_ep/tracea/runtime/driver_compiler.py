"""The driver of a device as the kernel cache calls a compiler: each program in a child, which the driver may end."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep.tracea.runtime.children import driver_child


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverCompiler:
    """See `compilers.Compiler`. ``library``: libxyntra_ep.so, which asks the driver; ``device``: the identity of one, as native
    code finds it; ``suffix``: of what the driver makes; ``name``: as messages call the driver."""

    library: Path
    device: str
    suffix: str
    name: str

    @property
    def linker(self) -> None:
        """A program is compiled whole."""
        return None

    def salt(self, target: tuple[str, ...]) -> str:
        return "\0".join((self.device, *target))

    def argv(self, source: str, output: str, target: tuple[str, ...]) -> list[str]:
        return [sys.executable, driver_child.__file__, str(self.library), self.device, " ".join(target), source, output]

    def refusal(self, data: bytes) -> str:
        return "" if data else "an empty program"
