"""PyTorch as a contender: the zoo's models as its users write them (`bench/torch_models`), eager or compiled.

-e torch:mode=eager+bf16           each operator as it comes
-e torch:mode=compile+bf16         torch.compile with mode="max-autotune", which captures CUDA graphs
-e torch:mode=compile+freeze=1+bf16   with weights as constants, so that batch normalisation is folded into convolutions

Inputs come from the host and outputs go there in each run, as in a session of ONNX Runtime. TF32 is off in fp32 and on in
tf32; in bf16 and fp16 all weights and activations are of that type. A module is made and compiled once: compiling anew in each
round, as other sessions are created anew, would take minutes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from xyntra_bench.contenders import FP32, Contender, did_you_mean
from xyntra_bench.errors import Unavailable
from xyntra_bench.inside import repetitions
from xyntra_bench.results import Inside, Placement
from xyntra_bench.setups import Setup
from xyntra_bench.torch_models import torch_models
from xyntra_bench.torch_timing import Stopwatch

if TYPE_CHECKING:  # `sessions` imports this module when it is asked for
    from xyntra_bench.sessions import Feeds, FixedShapes, Session

EAGER, COMPILE = "eager", "compile"
TF32 = "tf32"
WARM_UP = 2
DTYPES = {FP32: "float32", TF32: "float32", "bf16": "bfloat16", "fp16": "float16"}


def available(device: str = "cuda") -> Any:
    """The package, if it can compute on the device."""
    try:
        import torch
    except ImportError as error:
        raise Unavailable(f"torch: its package cannot be imported ({error}). pip install torch") from None
    if device == "cuda" and not torch.cuda.is_available():
        raise Unavailable(f"torch: {torch.__version__} finds no CUDA device. on a CPU it is no contender here")
    return torch


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchOptions:
    precision: str = FP32
    mode: str = EAGER
    device: str = "cuda"
    freeze: str = "0"

    @classmethod
    def of(cls, contender: Contender) -> TorchOptions:
        """Raises Unavailable where there is no such option, or it has no such value."""
        known = [field.name for field in fields(cls)]
        for name in contender.options:
            if name not in known:
                hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
                raise Unavailable(f"torch: no option '{name}'. {hint}")
        found = cls(**contender.options)
        if found.precision not in DTYPES:
            raise Unavailable(f"torch: {found.precision} is none of its precisions here. it has {', '.join(DTYPES)}")
        if found.mode not in (EAGER, COMPILE):
            raise Unavailable(f"torch: mode={found.mode} is not valid. it is {EAGER} or {COMPILE}")
        if found.freeze not in ("0", "1") or (found.freeze == "1" and found.mode != COMPILE):
            raise Unavailable(f"torch: freeze=1 is for mode={COMPILE}: only a compiler makes use of it")
        return found


def check_options(contender: Contender) -> None:
    TorchOptions.of(contender)


class TorchSession:
    """A module on its device. `device_ns` is by the device's own events, with the inputs there already."""

    def __init__(self, module: Any, device: str, dtype: Any, precision: str) -> None:
        self._torch = available(device)
        self._module, self._device, self._dtype, self._precision = module, device, dtype, precision

    def run(self, feeds: Feeds) -> object:
        return self._to_host(self._computed(self._to_device(feeds)))

    def outputs(self, feeds: Feeds, names: Sequence[str]) -> list[npt.NDArray[Any]]:
        """The module's outputs are in the ONNX model's order, which is that of `names`."""
        made = self._to_host(self._computed(self._to_device(feeds)))
        assert len(made) == len(names)
        return made

    def placement(self) -> Placement | None:
        return None

    def precision(self) -> str:
        return self._precision

    def inside(self, feeds: Feeds, run_ns: int) -> Inside | None:
        return None

    def device(self) -> str:
        return f"CUDA / {self._torch.cuda.get_device_name()}" if self._device == "cuda" else ""

    def device_ns(self, feeds: Feeds, run_ns: int) -> int | None:
        if self._device != "cuda":
            return None
        there, watch = self._to_device(feeds), Stopwatch.of(self._torch)
        times = []
        for _ in range(WARM_UP + repetitions(run_ns)):  # the first ones show how long the work takes to be queued
            _, taken_ns = watch.time(lambda: self._computed(there))
            self._torch.cuda.synchronize()
            times.append(taken_ns())
        return int(median(times[WARM_UP:]))

    def _computed(self, feeds: dict[str, Any]) -> tuple[Any, ...]:
        backends = self._torch.backends  # their switches are the process's, and sessions take turns in it
        backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = self._precision == TF32
        with self._torch.inference_mode():
            made: tuple[Any, ...] = self._module(**feeds)
            return made

    def _to_device(self, feeds: Feeds) -> dict[str, Any]:
        """Floats in the precision of the module."""
        tensors = {name: self._torch.from_numpy(array).to(self._device, non_blocking=True) for name, array in feeds.items()}
        return {name: t.to(self._dtype) if t.is_floating_point() else t for name, t in tensors.items()}

    def _to_host(self, outputs: Sequence[Any]) -> list[npt.NDArray[Any]]:
        return [np.asarray(output.float().cpu()) for output in outputs]


class TorchFactory:
    notes: tuple[str, ...] = ()

    def __init__(self, model: Path, setup: Setup, fixed: FixedShapes | None) -> None:
        options = TorchOptions.of(setup.contender)
        self._precision, self._mode, self._device = options.precision, options.mode, options.device
        self._freezes = options.freeze == "1"
        name = model.stem.rpartition("-")[0]  # as the zoo calls its files
        if name not in torch_models:
            raise Unavailable(
                f"torch: {model.name} has no implementation in PyTorch. there are {', '.join(torch_models.names())}"
            )
        self._make, self._model = torch_models[name].make, model
        self._module: Any = None

    def create(self, *, watched: bool = False) -> tuple[Session, int]:
        gc.collect()
        torch = available(self._device)
        begin = time.perf_counter_ns()
        dtype = getattr(torch, DTYPES[self._precision])
        if self._module is None:
            module = self._make(weights_of(self._model)).eval().to(self._device, dtype)
            self._module = self._compiled(torch, module) if self._mode == COMPILE else module
        session = TorchSession(self._module, self._device, dtype, self._precision)
        return session, time.perf_counter_ns() - begin

    def _compiled(self, torch: Any, module: Any) -> Any:
        """`mode` and `options` of torch.compile exclude each other, so freezing comes with what its mode stands for."""
        compiled: Callable[..., Any] = torch.compile
        if not self._freezes:
            return compiled(module, mode="max-autotune", fullgraph=True)
        settings = torch._inductor.list_mode_options("max-autotune")
        return compiled(module, options={**settings, "freezing": True}, fullgraph=True)


def weights_of(model: Path) -> dict[str, npt.NDArray[Any]]:
    import onnx
    from onnx import numpy_helper

    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(str(model)).graph.initializer}
