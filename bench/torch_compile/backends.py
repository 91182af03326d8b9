"""A module of PyTorch as a session: eager, or compiled by torch.compile with the backend that the contender is called after.

-e xyntra:precision=bf16            provider options of XyntraEP, or mode=...
-e inductor:mode=max-autotune       mode=..., and freezing=1: weights as constants, as xyntra and ONNX Runtime have them

Inputs are NumPy's and outputs too, which costs PyTorch no copy on the CPU. A module is made and compiled once, when its first
session is created, and that creation has the first run in it: torch.compile compiles then. Later sessions are of the same module.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xyntra_bench.architectures._modules import module_row
from xyntra_bench.contenders import EAGER, FP32, INDUCTOR, XYNTRA, Contender, did_you_mean
from xyntra_bench.errors import BenchError, Unavailable
from xyntra_bench.feeds import synthetic_feeds
from xyntra_bench.known import give_known
from xyntra_bench.results import Placement
from xyntra_bench.setups import Setup
from xyntra_bench.torch_sessions import TorchSession

if TYPE_CHECKING:  # `sessions` imports this module when it is asked for
    from xyntra_bench.sessions import FixedShapes, Session

MODE, FREEZING = "mode", "freezing"
CPU = "cpu"
INSTALL = "pip install 'xyntra-ep[torch]'"
INDUCTOR_CACHE = "TORCHINDUCTOR_CACHE_DIR"


def make_backend_available(name: str) -> Any:
    """PyTorch, and the backend. Raises Unavailable, which says what to install."""
    try:
        import torch
        import transformers  # noqa: F401  # most rows are models of it
    except ImportError as error:
        raise Unavailable(f"{name}: `bench run torch` needs PyTorch and transformers ({error}). {INSTALL}") from None
    if name != EAGER and name not in torch._dynamo.list_backends():
        raise Unavailable(f"{name}: torch.compile has no such backend here. {INSTALL}")
    return torch


def check_options(contender: Contender) -> None:
    """Raises BenchError where the backend has no such option, or it has no such value."""
    settings_of(contender)


def settings_of(contender: Contender) -> dict[str, Any]:
    """The `options` of torch.compile. A mode is replaced by what it stands for, because torch.compile takes one of both."""
    given = dict(contender.options)
    if contender.provider == XYNTRA:
        return _of_xyntra(given)
    known = [MODE, FREEZING] if contender.provider == INDUCTOR else []
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known) or (f"there are {', '.join(known)}" if known else "it has none")
            raise BenchError(f"{contender.provider}: no option '{name}'. {hint}")
    return _of_inductor(given)


def _of_xyntra(given: dict[str, str]) -> dict[str, Any]:
    from xyntra_ep.errors import ConfigError
    from xyntra_ep.frameworks.torch.backend import MODES, settings

    mode = given.pop(MODE, None)
    try:
        settings(mode, given)
    except ConfigError as error:
        raise BenchError(str(error)) from None
    return {**MODES[mode], **given}


def _of_inductor(given: Mapping[str, str]) -> dict[str, Any]:
    if given.get(FREEZING, "0") not in ("0", "1"):
        raise BenchError(f"{INDUCTOR}: {FREEZING}={given[FREEZING]} is not valid. it is 0 or 1")
    found: dict[str, Any] = {"freezing": True} if given.get(FREEZING) == "1" else {}
    if MODE not in given:
        return found
    import torch

    modes = torch._inductor.list_mode_options()
    if given[MODE] not in modes:
        raise BenchError(f"{INDUCTOR}: {MODE}={given[MODE]} is not valid. there are {', '.join(modes)}")
    return {**modes[given[MODE]], **found}


class BackendSession(TorchSession):
    """With how many calls of the graphs that PyTorch found are the backend's, where it tells."""

    def __init__(self, module: Any, precision: str, placement: Placement | None) -> None:
        torch = make_backend_available(EAGER)
        super().__init__(module, CPU, torch.float32, precision)
        self._placement = placement

    def placement(self) -> Placement | None:
        return self._placement


class BackendFactory:
    notes: tuple[str, ...] = ()

    def __init__(self, module: str, setup: Setup, cache_dir: Path, fixed: FixedShapes | None) -> None:
        if not module:
            raise Unavailable(f"{setup.contender.provider}: it runs modules of PyTorch. try `bench run torch`")
        self._torch = make_backend_available(setup.contender.provider)
        self._torch.set_num_threads(setup.threads)
        self._row, self._fixed = module_row(module), fixed
        self._provider, self._cache_dir = setup.contender.provider, cache_dir
        self._settings = settings_of(setup.contender)
        self._precision = FP32 if setup.contender.precision == FP32 else ""
        self._called: Any = None
        self._placement: Placement | None = None

    def create(self, *, watched: bool = False) -> tuple[Session, int]:
        gc.collect()
        module = shared_module(self._row.name)  # all contenders run the same weights, and it is no backend's work to make them
        begin = time.perf_counter_ns()
        if self._called is None:
            self._called = self._compiled(module)
        session = BackendSession(self._called, self._precision, self._placement)
        return session, time.perf_counter_ns() - begin

    def _compiled(self, module: Any) -> Any:
        if self._provider == EAGER:
            return _by_name(module)
        if self._provider == XYNTRA:
            give_known(self._cache_dir)
            self._settings = {"cache_dir": str(self._cache_dir), **self._settings}
        else:
            os.environ[INDUCTOR_CACHE] = str(self._cache_dir)
        called = _by_name(self._torch.compile(module, backend=self._provider, options=self._settings or None))
        feeds = synthetic_feeds(self._row.declared, self._fixed.shapes if self._fixed else self._row.shapes, seed=0)
        before = _records()
        BackendSession(called, self._precision, None).run(feeds)
        if self._provider == XYNTRA:
            self._placement = _placed(_records()[len(before) :])
        return called


@cache
def shared_module(name: str) -> Any:
    """Of the row of that name, alive, with the same weights each time."""
    from xyntra_bench.architectures._export import built

    return built(module_row(name))


def _by_name(module: Any) -> Any:
    """Called with the inputs by their names, which are in the order of the row; returns a tuple of outputs."""
    return lambda **feeds: (module(*feeds.values()),)


def _records() -> tuple[Any, ...]:
    from xyntra_ep.frameworks.torch.record import RECORDS

    return tuple(RECORDS.all())


def _placed(records: tuple[Any, ...]) -> Placement:
    """Calls of PyTorch's operators, and islands of them, by who computes them."""
    ours, calls = sum(record.claimed for record in records), sum(len(record.calls) for record in records)
    islands = sum(len(record.kernels) for record in records)
    return Placement(nodes={XYNTRA: ours, "PyTorch": calls - ours}, groups={XYNTRA: islands})
