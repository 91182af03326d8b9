"""The processor: kernels in C for its instruction set, in ordinary memory."""

from __future__ import annotations

from xyntra_ep.tracea.backends._backend import Backend


class Processor(Backend):
    name = "cpu"
    doc = ""

    def target(self) -> None:
        return None


BACKENDS = [Processor()]
