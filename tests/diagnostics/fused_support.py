"""Small models in ONNX's own text, and running them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from xyntra_ep.diagnostics.fused.model import FusedModel, fuse
from xyntra_ep.diagnostics.sessions import open_session

Array = NDArray[Any]


def build(text: str, weights: Mapping[str, tuple[int, ...]], *, opset: int, seed: int = 0) -> onnx.ModelProto:
    """The graph ``text`` with random ``weights`` of these shapes as its initializers."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')
    rng = np.random.default_rng(seed)
    for name, shape in weights.items():
        data = (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(data, name))
    return model


def fused(model: onnx.ModelProto, folder: Path) -> tuple[Path, Path, FusedModel]:
    """The files of the model and of its fused form, and the summary."""
    source, target = folder / "model.onnx", folder / "fused.onnx"
    onnx.save(model, source)
    summary = fuse(source, target)
    onnx.checker.check_model(str(target))
    return source, target, summary


def drift(a: Sequence[Array], b: Sequence[Array]) -> float:
    """max |a - b| / max |b|, the worst of all outputs, which must be alive."""
    assert all(np.abs(y).max() >= 1e-3 for y in b)
    return max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in zip(a, b, strict=True))


def run(path: Path, feeds: dict[str, Array], options: dict[str, str] | None = None) -> list[Array]:
    """All outputs; without ``options`` on the CPU provider alone."""
    results: list[Array] = open_session(path, options).run(None, feeds)
    return results


def feeds_of(model: onnx.ModelProto, sizes: dict[str, int], seed: int = 1) -> dict[str, Array]:
    """Random float32 for every input."""
    rng = np.random.default_rng(seed)
    return {
        i.name: rng.standard_normal([d.dim_value or sizes[d.dim_param] for d in i.type.tensor_type.shape.dim], dtype=np.float32)
        for i in model.graph.input
    }
