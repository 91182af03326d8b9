"""A row of TORCH_MODELS, and layers filled with weights of the zoo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from xyntra_zoo import Registry

Weights = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchModel:
    """`name` is the zoo's; `make` gives a torch module whose forward takes the model's inputs by name and returns the tuple of
    its outputs, in order."""

    name: str
    make: Callable[[Weights], Any]


torch_models: Registry[TorchModel] = Registry("xyntra_bench.torch_models", "TORCH_MODELS")


def linear(weights: Weights, name: str) -> Any:
    """`nn.Linear`, however the exporter has written it."""
    matrix = weights[f"{name}.weight"] if f"{name}.weight" in weights else weights[f"{name}.weight_T"].T
    return _linear(matrix, weights[f"{name}.bias"])


def conv1d(weights: Weights, name: str) -> Any:
    """GPT-2's linear layer, whose matrix is [in, out]."""
    return _linear(weights[f"{name}.weight"].T, weights[f"{name}.bias"])


def norm(weights: Weights, name: str, eps: float) -> Any:
    import torch

    layer = torch.nn.LayerNorm(weights[f"{name}.weight"].size, eps=eps)
    return _filled(layer, weight=weights[f"{name}.weight"], bias=weights[f"{name}.bias"])


def embedding(weights: Weights, name: str) -> Any:
    import torch

    table = weights[f"{name}.weight"]
    return _filled(torch.nn.Embedding(*table.shape), weight=table)


def conv_bn(weights: Weights, conv: str, bn: str, *, stride: int, groups: int = 1, eps: float) -> Any:
    """A convolution of odd size that keeps the centre, and its normalisation, as two modules."""
    import torch

    kernel = weights[f"{conv}.weight"]
    out, inner, size = kernel.shape[:3]
    layer = torch.nn.Conv2d(inner * groups, out, size, stride=stride, padding=size // 2, groups=groups, bias=False)
    names = ("weight", "bias", "running_mean", "running_var")
    normal = _filled(torch.nn.BatchNorm2d(out, eps=eps), **{name: weights[f"{bn}.{name}"] for name in names})
    return torch.nn.Sequential(_filled(layer, weight=kernel), normal)


def parameter(weights: Weights, name: str) -> Any:
    import torch

    return torch.nn.Parameter(torch.from_numpy(np.array(weights[name])), requires_grad=False)


def _linear(matrix: npt.NDArray[Any], bias: npt.NDArray[Any]) -> Any:
    import torch

    out, inner = matrix.shape
    return _filled(torch.nn.Linear(inner, out), weight=matrix, bias=bias)


def _filled(layer: Any, **tensors: npt.NDArray[Any]) -> Any:
    import torch

    layer.load_state_dict({name: torch.from_numpy(np.array(tensor)) for name, tensor in tensors.items()}, strict=False)
    return layer
