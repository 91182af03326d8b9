"""A fusion Graph straight from an ONNX model, without ONNX Runtime in between, and its meaning through the interpreter.

model -> graph_from_model -> trace -> build_program -> interpret

What ONNX Runtime does before it shows a provider its graph is done here too: functions that carry their body are inlined unless
we know the operator, Constant nodes become initializers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Graph, GraphValue, Node, NodeId
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.trace import OPS, Context, trace
from xyntra_ep.provider.fusion_graph import channel_block
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import FOUR_BITS, DType, from_ort, pack_nibbles
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Program

Array = NDArray[Any]


def graph_from_model(model: onnx.ModelProto) -> Graph:
    """The main graph of ``model``."""
    known = [(f.domain, f.name) for f in model.functions if f"{f.domain}.{f.name}" in OPS]
    if len(model.functions) > len(known):
        model = onnx.inliner.inline_selected_functions(model, known, exclude=True)
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    opsets = {o.domain: o.version for o in model.opset_import}
    constants: dict[str, Array] = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    constant_types = {t.name: t.data_type for t in model.graph.initializer}
    nodes: list[Node] = []
    for proto in model.graph.node:
        if proto.op_type == "Constant" and proto.domain in ("", "ai.onnx"):
            array, elem_type = _constant(proto)
            constants[proto.output[0]], constant_types[proto.output[0]] = array, elem_type
            continue
        nodes.append(_node(proto, NodeId(len(nodes)), opsets))
    values = {"": GraphValue(name="", dtype=None, elem_type=0, shape=None)}
    for name, array in constants.items():
        is_packed = constant_types[name] in FOUR_BITS
        stored = pack_nibbles(array) if is_packed else _stored(array, from_ort(constant_types[name]))
        values[name] = GraphValue(
            name=name,
            dtype=from_ort(constant_types[name]),
            elem_type=constant_types[name],
            shape=tuple(array.shape),
            is_constant=True,
            constant_bytes=stored.nbytes,
            read=lambda found=stored: found,  # type: ignore[misc]  # the default binds it
        )
    for proto in (*model.graph.input, *model.graph.value_info, *model.graph.output):
        if proto.name not in values:
            values[proto.name] = _value(proto, model)
    for n in nodes:
        for name in (*n.inputs, *n.outputs):
            values.setdefault(name, GraphValue(name=name, dtype=None, elem_type=0, shape=None))
    return Graph(nodes=tuple(nodes), values=values, opsets=opsets, name=model.graph.name, channel_block=channel_block())


def trace_model(model: onnx.ModelProto, trust: bool = True) -> tuple[Graph, Context]:
    """All nodes of ``model`` as one island. UnsupportedError where an operator declines."""
    graph = graph_from_model(model)
    if not graph.nodes:
        raise UnsupportedError("no nodes")
    inputs, _ = graph.boundary([n.id for n in graph.nodes])
    return graph, trace(graph, [n.id for n in graph.nodes], inputs, trust)


def interpret_model(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of ``model`` in stored types, as our operators define them; of its alternatives the first that applies."""
    return interpret(*applicable_program(model, feeds), keep_float64=False)


def applicable_program(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> tuple[Program, list[Array], list[Array]]:
    """The first of a model's alternatives that applies, with its inputs and constants in stored types."""
    for trust in (True, False):
        graph, context = trace_model(model, trust)
        inputs, _ = graph.boundary([n.id for n in graph.nodes])
        program = build_program(context, inputs, [o.name for o in model.graph.output])
        arrays = [_stored(np.asarray(feeds[name]), graph.values[name].dtype) for name in inputs]
        bound = {
            b.name: int(arrays[b.input].shape[b.index] if b.kind == "dim" else arrays[b.input].reshape(-1)[b.index])
            for b in program.bindings
        }
        symbols = program.with_definitions(bound)
        if all(evaluate(guard, symbols) for guard in program.guards):
            refused = [message for condition, message in program.checks if not evaluate(condition, symbols)]
            assert not refused, f"the run fails with INVALID_ARGUMENT: {refused}"
            return program, arrays, [_read(graph, name) for name in program.constants]
    raise AssertionError("the alternative that assumes nothing has guards")


def _read(graph: Graph, name: str) -> Array:
    read = graph.values[name].read
    assert read is not None
    return read()


def _stored(array: Array, dtype: DType | None) -> Array:
    """bfloat16, which numpy lacks, as its bits."""
    return array.view(np.uint16) if dtype is DType.BF16 else array


def _value(proto: onnx.ValueInfoProto, model: onnx.ModelProto) -> GraphValue:
    tensor = proto.type.tensor_type
    shape: tuple[int | str | None, ...] | None = None
    if proto.type.HasField("tensor_type") and tensor.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    return GraphValue(
        name=proto.name,
        dtype=from_ort(tensor.elem_type),
        elem_type=tensor.elem_type,
        shape=shape,
        is_input=any(i.name == proto.name for i in model.graph.input),
        is_output=any(o.name == proto.name for o in model.graph.output),
    )


def _node(proto: onnx.NodeProto, number: NodeId, opsets: Mapping[str, int]) -> Node:
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    version = opsets.get(domain, 1)
    if onnx.defs.has(proto.op_type, version, domain):
        version = onnx.defs.get_schema(proto.op_type, version, domain).since_version
    elif not onnx.defs.has(proto.op_type, domain):
        version = 1  # one of ONNX Runtime's, whose operators have a single version
    attrs = {a.name: _attribute(a) for a in proto.attribute}
    return Node(
        id=number,
        ort_id=number,
        name=proto.name,
        op_type=proto.op_type,
        domain=domain,
        version=version,
        inputs=tuple(proto.input),
        outputs=tuple(proto.output),
        attrs={k: v for k, v in attrs.items() if v is not None},
        has_subgraph=any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in proto.attribute),
    )


def _attribute(a: onnx.AttributeProto) -> Any:
    """As the native side hands it over: text decoded, lists as tuples, tensors as arrays; None without payload."""
    value = onnx.helper.get_attribute_value(a)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(v.decode() if isinstance(v, bytes) else v for v in value)
    return value if isinstance(value, (int, float, str)) else None


def _constant(proto: onnx.NodeProto) -> tuple[Array, int]:
    (a,) = proto.attribute
    if a.name == "value":
        return numpy_helper.to_array(a.t), a.t.data_type
    array = np.asarray(onnx.helper.get_attribute_value(a))
    if a.name.startswith("value_float"):
        return array.astype(np.float32), TensorProto.FLOAT
    if a.name.startswith("value_int"):
        return array.astype(np.int64), TensorProto.INT64
    return array.astype(object), TensorProto.STRING
