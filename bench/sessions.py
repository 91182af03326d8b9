"""Sessions of a contender, whichever its runtime: created and timed, run, asked for placement.

A runtime is imported when one of its contenders is measured, so that the memory of one is not that of all."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from xyntra_bench.contenders import OPENVINO, PLUGINS, TORCH, TORCH_BACKENDS, Contender
from xyntra_bench.errors import BenchError, Unavailable
from xyntra_bench.results import Inside, Placement
from xyntra_bench.setups import Setup

Feeds = Mapping[str, npt.NDArray[Any]]


class Session(Protocol):
    """What measuring needs of a live session."""

    def run(self, feeds: Feeds) -> object: ...

    def outputs(self, feeds: Feeds, names: Sequence[str]) -> list[npt.NDArray[Any]]:
        """One more run, whose outputs are copies in the order of `names`."""

    def placement(self) -> Placement | None: ...

    def precision(self) -> str:
        """What it computes in, empty where the runtime does not tell."""

    def inside(self, feeds: Feeds, run_ns: int) -> Inside | None:
        """Where the time of a run goes, of which one takes `run_ns`; None where the runtime does not tell."""

    def device(self) -> str:
        """Where it computes, as its runtime tells after creation; empty for the CPU, and where the runtime does not tell."""

    def device_ns(self, feeds: Feeds, run_ns: int) -> int | None:
        """Of a run, which takes `run_ns` in all, by the clock of the device that computes it: between an event before its work
        and one behind it, inputs and outputs in the device's memory. None on the CPU, and where the runtime does not tell."""


class Factory(Protocol):
    def create(self, *, watched: bool = False) -> tuple[Session, int]:
        """A session and the nanoseconds its creation took; `watched` collects the runtime's warnings."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the runtime warned of while it was watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedShapes:
    """Every input's shape, and the value of every dim that has a name."""

    shapes: Mapping[str, tuple[int, ...]]
    dims: Mapping[str, int]
    unnamed: str = ""  # an input with a dynamic dim that has none

    @classmethod
    def of(cls, inputs: Sequence[Any], feeds: Feeds) -> FixedShapes:
        dims: dict[str, int] = {}
        unnamed = ""
        for value in inputs:
            for dim, size in zip(value.shape, feeds[value.name].shape, strict=True):
                if isinstance(dim, int):
                    continue
                if not dim or dims.setdefault(dim, size) != size:
                    unnamed = value.name
        return cls(shapes={name: array.shape for name, array in feeds.items()}, dims=dims, unnamed=unnamed)


def make_available(provider: str) -> None:
    """Load what the provider needs, and refuse to go on without it."""
    if provider == OPENVINO:
        from xyntra_bench.openvino_sessions import core

        core()
    elif provider == TORCH:
        from xyntra_bench.torch_sessions import available

        available()
    elif provider in TORCH_BACKENDS:
        from xyntra_bench.torch_compile.backends import make_backend_available

        make_backend_available(provider)
    else:
        from xyntra_bench.ort_sessions import register

        register(provider)


def check_contender(contender: Contender) -> None:
    """Whether its sessions can be asked for: what it needs is there, and it has such options. Raises a BenchError that says in a
    sentence what is wrong. ONNX Runtime's own providers tell of wrong options only when a session of theirs is created."""
    make_available(contender.provider)
    if contender.provider == OPENVINO:
        from xyntra_bench.openvino_sessions import check_options
    elif contender.provider == TORCH:
        from xyntra_bench.torch_sessions import check_options
    elif contender.provider in TORCH_BACKENDS:
        from xyntra_bench.torch_compile.backends import check_options
    elif contender.provider in PLUGINS:
        from xyntra_bench.ort_sessions import check_options
    else:
        return
    check_options(contender)


def factory_for(model: Path | None, setup: Setup, cache_dir: Path, fixed: FixedShapes | None = None, module: str = "") -> Factory:
    """Makes sessions of the setup's contender. `fixed` says what a specialised setup's shapes are fixed to, and what a `module`
    of PyTorch is compiled for. Raises Unavailable where the contender runs files, or modules, and there is none."""
    if setup.contender.provider in TORCH_BACKENDS:
        from xyntra_bench.torch_compile.backends import BackendFactory

        return BackendFactory(module, setup, cache_dir, fixed)
    if model is None:
        raise Unavailable(f"{setup.contender.provider}: {module} has not been exported to ONNX. `bench run torch` has said why")
    shapes = fixed if setup.specialised else None
    if setup.contender.provider == OPENVINO:
        from xyntra_bench.openvino_sessions import OpenVinoFactory

        return OpenVinoFactory(model, setup, shapes)
    if setup.contender.provider == TORCH:
        from xyntra_bench.torch_sessions import TorchFactory

        return TorchFactory(model, setup, shapes)
    from xyntra_bench.ort_sessions import OrtFactory

    return OrtFactory(model, setup, cache_dir, shapes)


if __name__ == "__main__":
    try:
        check_contender(Contender.parse(sys.argv[1]))
    except BenchError as error:
        sys.exit(" ".join(str(error).split()))
