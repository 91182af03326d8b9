"""Types of values of which ONNX's own inference says nothing, from ONNX Runtime, which is what a session goes by.

ONNX has no inference for many operators of ai.onnx.ml, and none for ONNX Runtime's own; what follows them would be of no type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from onnx import GraphProto, ModelProto, ValueInfoProto, helper

from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.trace import SMALL_CONSTANT_BYTES

# As ONNX Runtime writes them where ONNX's name for the type is another.
_TYPES = {"float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9}
_TYPES |= {"float16": 10, "double": 11, "uint32": 12, "uint64": 13, "bfloat16": 16}


def untyped(typed: ModelProto) -> list[str]:
    """Values that nodes of the graph make and of which ``typed`` tells no type."""
    known = {v.name for v in (*typed.graph.value_info, *typed.graph.output) if v.type.WhichOneof("value")}
    return [name for node in typed.graph.node for name in node.output if name and name not in known]


def types_of(model: ModelProto, names: Collection[str]) -> Mapping[str, ValueInfoProto]:
    """What ONNX Runtime tells of the values ``names``: nothing where it cannot run the model. Large weights of ``model`` may be
    without data: they are inputs in the question."""
    asked = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph = model.graph
    asked.graph.CopyFrom(GraphProto(name=graph.name, node=graph.node, input=graph.input, value_info=graph.value_info))
    fed = {i.name for i in graph.input}
    for tensor in graph.initializer:
        if tensor.name in fed:
            continue
        if tensor.ByteSize() > SMALL_CONSTANT_BYTES or tensor.data_location == tensor.EXTERNAL:
            asked.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        else:
            asked.graph.initializer.append(tensor)
    asked.graph.output.extend(ValueInfoProto(name=name) for name in names)
    try:
        told = open_session(asked.SerializeToString(), None).get_outputs()
    except (ConfigError, ImportError):
        return {}
    return {o.name: _info(o.name, _TYPES[kind], o.shape) for o in told if (kind := _inside(o.type)) in _TYPES}


def _inside(text: str) -> str:
    """ "float" of "tensor(float)"; "" of what is no tensor."""
    return text.removeprefix("tensor(").removesuffix(")") if text.startswith("tensor(") else ""


def _info(name: str, elem_type: int, shape: Iterable[int | str | None]) -> ValueInfoProto:
    """Without a shape where ONNX Runtime gives none: a scalar's looks the same."""
    return ValueInfoProto(name=name, type=helper.make_tensor_type_proto(elem_type, list(shape) or None))
