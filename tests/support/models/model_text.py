"""Models as text, and what ONNX Runtime's CPU provider makes of them.

model = parse("(float[N] x) => (float[N] y) { y = Mul(x, c) }", c=np.float32(2))
check(model, {"x": data})          both alternatives that apply, against ONNX Runtime, through the interpreter
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnxruntime as ort
from numpy.typing import NDArray

from tests.support.models.alternatives import OneIsland, one_island

Array = NDArray[Any]


def parse(graph: str, opset: int = 18, /, **constants: Any) -> onnx.ModelProto:
    """``graph`` is "(inputs) => (outputs) <constants> { nodes }" in ONNX's textual syntax."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {graph}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items())
    return model


def cpu(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs by ONNX Runtime's CPU provider, as the graph is written."""
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = 1
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    return [np.asarray(x) for x in session.run(None, dict(feeds))]


def check(model: onnx.ModelProto, feeds: Mapping[str, Array], tolerance: float = 1e-5) -> OneIsland:
    """All alternatives that apply to ``feeds`` give what the CPU provider gives; the one that declares is returned."""
    want = cpu(model, feeds)
    islands = [one_island(model, trust) for trust in (True, False)]
    for island in islands:
        if island.applies(feeds):
            close(island.run(feeds), want, tolerance)
    return islands[0]


def close(got: Sequence[Array], want: Sequence[Array], tolerance: float = 1e-5) -> None:
    """Same shapes, types and, relative to the largest element, values."""
    assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in want]
    for g, w in zip(got, want, strict=True):
        scale = float(np.max(np.abs(w), initial=1.0, where=np.isfinite(w))) if w.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(g, w, rtol=0, atol=tolerance * scale)


def normal(*shape: int, seed: int = 0) -> Array:
    """Seeded float32 data."""
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)
