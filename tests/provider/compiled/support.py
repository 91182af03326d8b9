"""Compiled models of small graphs, and what can be done to them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper, parser

from xyntra_ep.diagnostics.compiled.compile_model import CompiledFile, compile_model
from xyntra_ep.provider import registration
from xyntra_ep.tracea.planning.compiled_model import CompiledModel, read_compiled_model, write_compiled_model
from xyntra_ep.tracea.runtime.hashing import hash128_of

CPU = "CPUExecutionProvider"


def chain() -> onnx.ModelProto:
    """One island: a product, a bias, a softmax, with a symbolic number of rows."""
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> chain (float[n, 64] x) => (float[n, 5] y)
        { a = MatMul(x, w) b = Add(a, bias) c = Relu(b) y = Softmax(c) }"""
    )
    rng = np.random.default_rng(0)
    model.graph.initializer.extend(
        [
            numpy_helper.from_array(rng.normal(size=(64, 5)).astype(np.float32), "w"),
            numpy_helper.from_array(rng.normal(size=5).astype(np.float32), "bias"),
        ]
    )
    return model


def divided() -> onnx.ModelProto:
    """Two islands with an operator between them that is not ours."""
    return parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> divided (float[n, 4] x) => (float[m] y, float[n, 4] z)
        { z = Sigmoid(x) flat = Unique(z) y = Exp(flat) }"""
    )


def branching() -> onnx.ModelProto:
    """An island in each branch of an If."""
    return parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> branching (bool c, float[n, 4] x) => (float[n, 4] y)
        { h = Tanh(x)
          y = If (c) <then_branch = yes () => (float[n, 4] p) { p0 = Mul(h, h) p = Exp(p0) },
                      else_branch = no () => (float[n, 4] q) { q0 = Add(h, h) q = Neg(q0) }> }"""
    )


def folded() -> onnx.ModelProto:
    """A plan that depends on the content of a constant."""
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> folded (float[n, 8] x) => (float[a, b] y)
        { s = Slice(x, starts, ends, axes) y = Exp(s) }"""
    )
    for name, value in (("starts", 2), ("ends", 5), ("axes", 1)):
        model.graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    return model


def compiled(
    model: onnx.ModelProto, folder: Path, isas: tuple[str, ...] = ("native",), *, name: str = "compiled.onnx", **more: Any
) -> CompiledFile:
    """The model in ``folder``, compiled to the file ``name`` there; everything that can be is taken."""
    given = folder / "given.onnx"
    onnx.save(model, given)
    options = {"claim": "all", **more.pop("options", {})}
    return compile_model(given, folder / name, isas=isas, options=options, **more)


def session(model: Path | bytes, options: Mapping[str, str] | None = None) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(source, settings, providers=[("XyntraEP", dict(options or {})), CPU], enable_fallback=0)


def expected(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    return list(ort.InferenceSession(model.SerializeToString(), providers=[CPU]).run(None, dict(feeds)))


def context_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type == "EPContext"]


def attribute(node: onnx.NodeProto, name: str) -> onnx.AttributeProto:
    [found] = [a for a in node.attribute if a.name == name]
    assert isinstance(found, onnx.AttributeProto)
    return found


def content(model: onnx.ModelProto) -> bytes:
    """The compiled part of a model that has one."""
    [data] = [a.s for node in context_nodes(model) for a in node.attribute if a.name == "ep_cache_context" and a.s]
    return bytes(data)


def with_content(model: onnx.ModelProto, data: bytes) -> onnx.ModelProto:
    """The model with other compiled bytes, whose name its nodes give."""
    name = hash128(data).hex()
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for node in context_nodes(changed):
        for a in node.attribute:
            if a.name == "ep_cache_context" and a.s:
                a.s = data
            if a.name == "partition_name":
                a.s = name.encode() + b"/" + a.s.split(b"/")[1]
    del changed.metadata_props[:]
    return changed


def sealed(body: bytes) -> bytes:
    """Bytes with the checksum that they should have: who forges them can compute it."""
    return body + hash128(body)


def edited(model: onnx.ModelProto, edit: Callable[[CompiledModel], CompiledModel]) -> onnx.ModelProto:
    """The model with its compiled part read, changed and written again."""
    return with_content(model, write_compiled_model(edit(read_compiled_model(content(model))), hash128))


def hash128(data: bytes) -> bytes:
    return hash128_of(registration.library())(data)


def u32(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + struct.pack("<I", value) + data[at + 4 :]


def initializer(model: onnx.ModelProto, name: str, value: np.ndarray[Any, Any]) -> None:
    """Another value for a constant."""
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(numpy_helper.from_array(value, name))


def input_shape(model: onnx.ModelProto, dims: list[int | str]) -> None:
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info(model.graph.input[0].name, onnx.TensorProto.FLOAT, dims))
