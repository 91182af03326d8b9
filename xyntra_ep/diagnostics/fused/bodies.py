"""The named operators' bodies in the operators of an older ONNX.

A function's body is inlined into the model that calls it, so it must be written in the model's opset. `custom_ops` writes it in a
recent one; where the model's is older, what that lacks is written out here. float32 only, like the calls that are made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import FunctionProto, NodeProto, helper

from xyntra_custom_ops import CustomOp
from xyntra_ep.diagnostics.fused.graph import ONNX_DOMAINS
from xyntra_ep.registry import Registry

CUSTOM_OPS: Registry[CustomOp] = Registry("xyntra_custom_ops", "CUSTOM_OPS")
OLDEST_OPSET = 13  # below, Softmax flattens and reductions differ
_DEFAULTS_SINCE_IR = 9  # attributes of functions with defaults

_GELU = """
<domain: "older", opset_import: ["": 13]>
Gelu (x) => (y) {
    root = Constant <value_float = 1.4142135623730951> ()
    one = Constant <value_float = 1.0> ()
    half = Constant <value_float = 0.5> ()
    scaled = Div(x, root)
    erf = Erf(scaled)
    shifted = Add(erf, one)
    product = Mul(x, shifted)
    y = Mul(product, half)
}"""
_GELU_TANH = """
<domain: "older", opset_import: ["": 13]>
Gelu (x) => (y) {
    root = Constant <value_float = 0.7978845608028654> ()
    cubic = Constant <value_float = 0.044715> ()
    one = Constant <value_float = 1.0> ()
    half = Constant <value_float = 0.5> ()
    square = Mul(x, x)
    cube = Mul(square, x)
    bent = Mul(cube, cubic)
    sum = Add(x, bent)
    scaled = Mul(sum, root)
    tanh = Tanh(scaled)
    shifted = Add(tanh, one)
    product = Mul(x, shifted)
    y = Mul(product, half)
}"""
_LAYER_NORM = """
<domain: "older", opset_import: ["": 13]>
LayerNormalization <epsilon> (x, scale, bias) => (y) {
    small = Constant <value_float: float = @epsilon> ()
    mean = ReduceMean <axes = [-1], keepdims = 1> (x)
    centred = Sub(x, mean)
    square = Mul(centred, centred)
    variance = ReduceMean <axes = [-1], keepdims = 1> (square)
    shifted = Add(variance, small)
    deviation = Sqrt(shifted)
    normal = Div(centred, deviation)
    scaled = Mul(normal, scale)
    y = Add(scaled, bias)
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Older:
    """Before opset ``since`` an operator is missing, or takes its parts otherwise; ``write`` says it in the older operators."""

    since: int
    write: Callable[[NodeProto, Mapping[str, NodeProto]], list[NodeProto]]


def named_body(name: str, opset: int, ir_version: int) -> FunctionProto:
    """The function of the named operator for a model of ``opset`` (13 or later) and ``ir_version``."""
    function = CUSTOM_OPS[name].function.to_function_proto()
    makers = {output: node for node in function.node for output in node.output}
    nodes = [new for node in function.node for new in _in_opset(node, opset, makers)]
    read = {name for node in nodes for name in node.input} | set(function.output)
    del function.node[:]
    function.node.extend(node for node in nodes if read.intersection(node.output))
    for imported in function.opset_import:
        if imported.domain in ONNX_DOMAINS:
            imported.version = opset
    if ir_version < _DEFAULTS_SINCE_IR:  # every call gives every attribute
        function.attribute.extend(a.name for a in function.attribute_proto)
        del function.attribute_proto[:]
    return function


def attribute_names(name: str) -> dict[str, onnx.AttributeProto | None]:
    """The named operator's attributes with their defaults, None for one that must be given."""
    function = CUSTOM_OPS[name].function.to_function_proto()
    return {**dict.fromkeys(function.attribute), **{a.name: a for a in function.attribute_proto}}


def _in_opset(node: NodeProto, opset: int, makers: Mapping[str, NodeProto]) -> Iterator[NodeProto]:
    older = _OLDER.get(node.op_type)
    if older is None or opset >= older.since:
        yield node
    else:
        yield from older.write(node, makers)


def _cast_like(node: NodeProto, makers: Mapping[str, NodeProto]) -> list[NodeProto]:
    return [helper.make_node("Identity", [node.input[0]], list(node.output))]  # all is float32


def _reduce_mean(node: NodeProto, makers: Mapping[str, NodeProto]) -> list[NodeProto]:
    [axes] = makers[node.input[1]].attribute
    older = helper.make_node("ReduceMean", [node.input[0]], list(node.output), axes=list(axes.ints))
    older.attribute.extend(node.attribute)
    return [older]


def _gelu(node: NodeProto, makers: Mapping[str, NodeProto]) -> list[NodeProto]:
    return _written_out(node, _GELU_TANH if any(a.s == b"tanh" for a in node.attribute) else _GELU)


def _layer_norm(node: NodeProto, makers: Mapping[str, NodeProto]) -> list[NodeProto]:
    return _written_out(node, _LAYER_NORM)


def _written_out(node: NodeProto, text: str) -> list[NodeProto]:
    """The nodes of the function ``text`` in place of ``node``; attributes it refers to are the caller's by the same name."""
    function = onnx.parser.parse_function(text)
    names = dict(zip((*function.input, *function.output), (*node.input, *node.output), strict=True))
    for inner in function.node:
        for row in (inner.input, inner.output):
            row[:] = [names.setdefault(name, f"{node.output[0]}_{name}") for name in row]
    return list(function.node)


_OLDER = {
    "CastLike": _Older(since=15, write=_cast_like),
    "LayerNormalization": _Older(since=17, write=_layer_norm),
    "ReduceMean": _Older(since=18, write=_reduce_mean),
    "Gelu": _Older(since=20, write=_gelu),
}
