"""A DynamicQuantizeLSTM and what it is fed, and what ONNX Runtime gives for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from xyntra_ep.tracea.core_ir.ops.memory import Array

NAMES = ("X", "W", "R", "B", "lengths", "h", "c", "P", "W_scale", "W_zero", "R_scale", "R_zero")
ALL = ("B", "h", "c", "P")
DEPTH = 5


def quantised_lstm(
    *,
    direction: str = "forward",
    steps: int = 4,
    rows: int = 3,
    width: int = 6,
    dtype: Any = np.int8,
    each: bool = False,
    zero: int = 0,
    given: Sequence[str] = ALL,
    lengths: Sequence[int] | None = None,
    outputs: Sequence[str] = ("Y", "Y_h", "Y_c"),
    fed: Sequence[str] = ("X", "h", "c", "lengths"),
    seed: int = 0,
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """``each``: scales and zero points of each column; ``given``: of what may be left out; what is not ``fed`` is a constant.
    Sizes of what is fed are unknown, but for weights."""
    rng = np.random.default_rng((seed, steps, rows, width))
    d = 2 if direction == "bidirectional" else 1
    shapes = {"X": (steps, rows, DEPTH), "h": (d, rows, width), "c": (d, rows, width), "B": (d, 8 * width), "P": (d, 3 * width)}
    data: dict[str, Any] = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    info = np.iinfo(dtype)
    for name, depth in (("W", DEPTH), ("R", width)):
        data[name] = rng.integers(info.min, info.max + 1, (d, depth, 4 * width)).astype(dtype)
        of_columns = (d, 4 * width) if each else (d,)
        data[f"{name}_scale"] = (rng.uniform(0.5, 1.5, of_columns) / np.sqrt(depth) / 64).astype(np.float32)
        data[f"{name}_zero"] = np.full(of_columns, zero, dtype)
    if lengths is not None:
        data["lengths"] = np.array(lengths, np.int32)
    names = [n if n in data and (n not in ALL or n in given) else "" for n in NAMES]
    results = [n if n in outputs else "" for n in ("Y", "Y_h", "Y_c")]
    node = helper.make_node(
        "DynamicQuantizeLSTM", names, results, "n", domain="com.microsoft", hidden_size=width, direction=direction, **attributes
    )
    inputs = []
    for name in (n for n in names if n in fed):
        kind = helper.np_dtype_to_tensor_dtype(data[name].dtype)
        shape = data[name].shape if name[0] in "WR" else [f"{name}_{i}" for i in range(data[name].ndim)]
        inputs.append(helper.make_tensor_value_info(name, kind, shape))
    values = [helper.make_tensor_value_info(n, 1, None) for n in results if n]
    constants = [numpy_helper.from_array(data[n], n) for n in names if n and n not in fed]
    graph = helper.make_graph([node], "g", inputs, values, constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), {i.name: data[i.name] for i in inputs}


def by_rows(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """What ONNX Runtime gives with a thread for each row: it quantises the rows of a thread together."""
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = max(1, feeds["X"].shape[1])
    settings.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    return [np.asarray(x) for x in session.run(None, dict(feeds))]
