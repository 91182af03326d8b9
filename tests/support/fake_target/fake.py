"""A target in one file: what a target beside ours would be. Its devices are the simulated driver's (tests/support/fake_cuda), for
which the text of CUDA is compiled on the host."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep.tracea.backends import DeviceBackend, DeviceTarget
from xyntra_ep.tracea.runtime.survey import Survey


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeDevice:
    identity: str = "CUDA / Simulated GPU / sm_80 / driver 12.8"
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeCompiler:
    """See `kernel_cache.KernelCompiler`."""

    suffix: str = ".fake"
    name: str = "the fake compiler"
    linker: None = None

    def salt(self, target: tuple[str, ...]) -> str:
        return "\0".join(("fake", *target))

    def argv(self, source: str, output: str, target: tuple[str, ...]) -> list[str]:
        from tests.support import fake_cuda

        return [sys.executable, str(Path(fake_cuda.__file__).with_name("compile.py")), source, output]

    def refusal(self, data: bytes) -> str:
        return "" if data else "nothing"


class Fake(DeviceBackend[FakeDevice]):
    name = "fake"
    doc = ": a target of tests"
    rank = 9
    nothing = "there is no fake"

    def traces(self, library: ctypes.CDLL) -> Sequence[str]:
        return ()

    def at_hand(self) -> bool:
        return False

    def survey(self, limit_s: float | None = None) -> Survey[FakeDevice]:
        return Survey(devices=(FakeDevice(),))

    def open(self, device: FakeDevice) -> DeviceTarget:
        from xyntra_ep.tracea.emitters import cuda
        from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_80

        return DeviceTarget(
            backend=self.name,
            identity=device.identity,
            name="a fake",
            gpu=SM_80,
            emit=cuda.emit,
            compiler=FakeCompiler(),
            flags=("fake_80",),
        )

    def describe(self, found: Survey[FakeDevice]) -> Sequence[str]:
        return [f"{device.identity}: works" for device in found.devices]


BACKENDS = [Fake()]
