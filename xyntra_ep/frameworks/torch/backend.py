"""The backend of torch.compile: `torch.compile(model, backend="xyntra")`.

Dynamo -> AOTAutograd (functional core ATen; forward and backward) -> CompiledGraph for each
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from xyntra_ep.errors import ConfigError, did_you_mean
from xyntra_ep.frameworks.torch.compiled_graph import CompiledGraph
from xyntra_ep.frameworks.torch.record import Direction
from xyntra_ep.frameworks.torch.triton_calls import a_target
from xyntra_ep.options import Options, rows
from xyntra_ep.provider.opened_graph import checked

WHERE = 'torch.compile(backend="xyntra")'
FREEZE = "freeze"
# What each mode of torch.compile is for, as options of ours.
MODES: Mapping[str | None, Mapping[str, str]] = {
    None: {},
    "default": {},
    "reduce-overhead": {"policy": "latency"},
    "max-autotune": {"tune": "cached"},
    "max-autotune-no-cudagraphs": {"tune": "cached"},
}
# Gradients that are compositions of what there are rows for, and forms that AOTAutograd would keep whole.
_MORE = ("_adaptive_avg_pool2d", "hardsigmoid", "upsample_bilinear2d", "native_dropout")
# Whose decomposition has no gradient, or that a row says better.
_FEWER = ("_scaled_dot_product_flash_attention_for_cpu", "softplus", "mish")


def xyntra(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """What torch.compile calls for each graph that Dynamo has found."""
    chosen, freeze = settings(mode, options)
    return traced(functools.partial(_compile, chosen, freeze), module, example_inputs)


def traced(compile_graph: Callable[..., CompiledGraph], module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """``compile_graph`` is given each graph of core ATen operators, behind its direction."""
    backend = aot_autograd(
        fw_compiler=functools.partial(compile_graph, Direction.FORWARD),
        bw_compiler=functools.partial(compile_graph, Direction.BACKWARD),
        inference_compiler=functools.partial(compile_graph, Direction.INFERENCE),
        decompositions=decompositions(),
        keep_inference_input_mutations=False,
    )
    with a_target():
        return backend(module, example_inputs)  # type: ignore[no-any-return]  # torch has no types


def settings(mode: str | None, options: Mapping[str, Any] | None) -> tuple[Options, bool]:
    """Provider options, and whether weights are kept packed where no gradient is asked for. Raises ConfigError."""
    if mode not in MODES:
        raise ConfigError(f"no mode {mode!r}", where=WHERE, hint=did_you_mean(str(mode), [m for m in MODES if m]))
    given = {**MODES[mode], **{name: _text(value) for name, value in (options or {}).items()}}
    known = [row.name for row in rows()]
    for name in given:
        if name not in (*known, FREEZE):
            raise ConfigError(f"no option {name!r}", where=WHERE, hint=did_you_mean(name.lower(), [*known, FREEZE]))
    freeze = given.pop(FREEZE, "1")
    if freeze not in ("0", "1"):
        raise ConfigError(f"{FREEZE}={freeze!r} is not valid", where=WHERE, hint="allowed: True, False")
    return checked({"claim": "all"} | given), freeze == "1"


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


@functools.cache
def decompositions() -> Mapping[Any, Any]:
    aten = torch.ops.aten
    table = {**core_aten_decompositions(), **get_decompositions([getattr(aten, name) for name in _MORE])}
    fewer = {getattr(aten, name).default for name in _FEWER}
    return {op: formula for op, formula in table.items() if op not in fewer}


def _compile(options: Options, freeze: bool, direction: Direction, module: GraphModule, inputs: Sequence[Any]) -> CompiledGraph:
    static: Sequence[int] = ()
    if freeze and direction is Direction.INFERENCE:
        context = torch._guards.TracingContext.try_get()
        metadata = getattr(context, "fw_metadata", None)
        static = getattr(metadata, "static_input_indices", None) or ()
    return CompiledGraph(module, direction, options, static)
