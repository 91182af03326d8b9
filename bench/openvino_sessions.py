"""OpenVINO through its own Python package, as its documentation says to use it."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xyntra_bench.contenders import FP32, Contender, did_you_mean
from xyntra_bench.errors import BenchError, Unavailable, reason_of
from xyntra_bench.results import Inside, Placement
from xyntra_bench.setups import Setup

if TYPE_CHECKING:  # its own names for things are in `sessions`, which imports this module when it is asked for
    from xyntra_bench.sessions import Feeds, FixedShapes, Session

DEVICE = "CPU"
# Its names for what an activation is computed in; asked for always, because its own default on a CPU with bf16
# instructions is bf16.
HINTS = {FP32: "f32", "bf16": "bf16", "fp16": "f16"}


@cache
def core() -> Any:
    try:
        import openvino
    except ImportError as error:
        raise Unavailable(f"OpenVINO: its package cannot be imported ({error}). pip install 'xyntra-ep[peers]'") from None
    return openvino.Core()


def properties_of(contender: Contender) -> dict[str, str]:
    """What its sessions are compiled with, but for threads and streams."""
    options = dict(contender.options)
    precision = options.pop("precision", FP32)
    if precision not in HINTS:
        raise Unavailable(f"OpenVINO: {precision} is none of its inference precisions. it has {', '.join(HINTS)}")
    return {"INFERENCE_PRECISION_HINT": HINTS[precision], **options}


def check_options(contender: Contender) -> None:
    """Known names, and values that they may have. A value that is right is set for the process, which is to end then."""
    writable = [name for name, access in core().get_property(DEVICE, "SUPPORTED_PROPERTIES").items() if access != "RO"]
    for name, value in properties_of(contender).items():
        if name not in writable:
            hint = did_you_mean(name, [*writable, "precision"]) or f"there are precision, {', '.join(writable)}"
            raise BenchError(f"OpenVINO: no property '{name}'. {hint}")
        try:
            core().set_property(DEVICE, {name: value})
        except Exception as error:
            raise BenchError(f"OpenVINO: {name}={value} is not valid. its runtime says: {reason_of(error)}") from None


class OpenVinoSession:
    """A compiled model. Each thread that calls has an infer request of its own, as the runtime demands."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._local = threading.local()

    def run(self, feeds: Feeds) -> object:
        # Inputs are read in place and outputs copied out, which is what ONNX Runtime's run() does.
        return self._request().infer(feeds, share_inputs=True)

    def outputs(self, feeds: Feeds, names: Sequence[str]) -> list[npt.NDArray[Any]]:
        request = self._request()
        request.infer(feeds, share_inputs=True, share_outputs=True)  # copied below
        return [np.array(request.get_tensor(name).data) for name in names]

    def placement(self) -> Placement | None:
        return None

    def precision(self) -> str:
        reported: str = self._compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        return next((name for name, hint in HINTS.items() if hint == reported), reported)

    def inside(self, feeds: Feeds, run_ns: int) -> Inside | None:
        return None

    def _request(self) -> Any:
        if not hasattr(self._local, "request"):
            self._local.request = self._compiled.create_infer_request()
        return self._local.request

    def device(self) -> str:
        return ""

    def device_ns(self, feeds: Feeds, run_ns: int) -> int | None:
        return None


class OpenVinoFactory:
    """Latency hint and one stream, as for one run at a time; as many streams as there are concurrent runs."""

    notes: tuple[str, ...] = ()

    def __init__(self, model: Path, setup: Setup, fixed: FixedShapes | None) -> None:
        self._model = model
        self._fixed = fixed
        streams = max(setup.streams, 1)
        self._config = {
            "INFERENCE_NUM_THREADS": setup.threads * streams,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": streams,
            **properties_of(setup.contender),
        }

    def create(self, *, watched: bool = False) -> tuple[Session, int]:
        gc.collect()
        begin = time.perf_counter_ns()
        model = core().read_model(str(self._model))
        if self._fixed:
            model.reshape({name: list(shape) for name, shape in self._fixed.shapes.items()})
        compiled = core().compile_model(model, DEVICE, self._config)
        took = time.perf_counter_ns() - begin
        return OpenVinoSession(compiled), took
