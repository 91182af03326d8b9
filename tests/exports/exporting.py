"""Writing a case as ONNX with PyTorch's exporters."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from tests.exports.cases import Dims, ExportCase
from xyntra_bench.architectures._export import calibrate, enliven


class Exporter(StrEnum):
    """``torch.onnx.export`` with dynamo=False (opset 14 still writes LayerNormalization out) and dynamo=True."""

    TRACED_14 = "traced14"
    TRACED = "traced"
    DYNAMO = "dynamo"


_TRACED_OPSETS = {Exporter.TRACED_14: 14, Exporter.TRACED: 17}


class AsFunction(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
    """A model as a function of the case's tensors in order."""

    def __init__(self, model: Any, case: ExportCase) -> None:
        super().__init__()
        self.model = model
        self.case = case

    def forward(self, *tensors: Any) -> tuple[Any, ...]:
        return tuple(self.case.call(self.model, dict(zip(self.case.axes, tensors, strict=True))))


def build(case: ExportCase, settings: Mapping[str, Any]) -> Any:
    torch.manual_seed(0)
    config = getattr(transformers, case.config)(**settings)
    if case.kernels:
        config._attn_implementation = case.kernels
    model = getattr(transformers, case.model)(config).eval()
    enliven(model)
    seeds = itertools.count()
    calibrate(model, lambda: AsFunction(model, case)(*tensors(case, model.config, case.sizes[-1], next(seeds))))
    return model


def tensors(case: ExportCase, config: Any, dims: Dims, seed: int) -> tuple[Any, ...]:
    feeds = case.feeds(config, dims, np.random.default_rng(seed))
    return tuple(torch.from_numpy(feeds[name]) for name in case.axes)


def export(case: ExportCase, model: Any, exporter: Exporter, path: Path) -> None:
    """Write ``model`` to ``path``."""
    example = tensors(case, model.config, case.sizes[-1], 0)
    function = AsFunction(model, case).eval()
    names: dict[str, Any] = {"input_names": list(case.axes)}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the exporters say of transformers' code
        if exporter in _TRACED_OPSETS:
            outputs = function(*example)
            names["output_names"] = [f"out{i}" for i in range(len(outputs))]
            axes = {name: dict(named) for name, named in case.axes.items()}
            opset = _TRACED_OPSETS[exporter]
            torch.onnx.export(function, example, path, dynamo=False, opset_version=opset, dynamic_axes=axes, **names)
        else:
            shapes = (tuple({i: torch.export.Dim.DYNAMIC for i in named} for named in case.axes.values()),)
            torch.onnx.export(function, example, path, dynamo=True, dynamic_shapes=shapes, verbose=False, **names)
