"""A model file as a fusion graph, without ONNX Runtime in between.

    model = read_model("model.onnx")          # data in files beside the model stays there
    source = source_of(model, Path("."))
    source.graph.nodes[3], source.protos[3]   # the same node, as the partitioner and as ONNX knows it

What ONNX Runtime does before it shows a provider its graph is done here too: functions that carry their body are inlined unless
we know the operator, Constant nodes count as constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from xyntra_ep.diagnostics.fused.types import types_of, untyped
from xyntra_ep.diagnostics.sessions import check_file
from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.graph import Graph, GraphValue, Node, NodeId
from xyntra_ep.fusion.trace import OPS, SMALL_CONSTANT_BYTES
from xyntra_ep.tracea.core_ir.dtypes import FOUR_BITS, DType, from_ort, pack_nibbles

ONNX_DOMAINS = ("", "ai.onnx")
_SUBGRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """``protos[i]`` is ``graph.nodes[i]``; ``constant_nodes`` are the Constant nodes, which the graph does not have as nodes.
    ``tensors``: the data of every constant that cannot be fed."""

    model: ModelProto
    graph: Graph
    protos: tuple[NodeProto, ...]
    constant_nodes: tuple[NodeProto, ...]
    tensors: Mapping[str, TensorProto]

    @property
    def opset(self) -> int:
        """The version of ONNX's own operators, 0 without an import."""
        return next((o.version for o in self.model.opset_import if o.domain in ONNX_DOMAINS), 0)


def check_model(path: Path) -> None:
    """ConfigError when the file at ``path`` is no valid model."""
    check_file(path)
    try:
        onnx.checker.check_model(str(path))
    except Exception as error:  # protobuf's and the checker's classes have no common base
        what = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(f"not a valid ONNX model: {what}", where=str(path)) from error


def read_model(path: Path) -> ModelProto:
    """The model at ``path``, checked, its external data left where it is."""
    check_model(path)
    return onnx.load(path, load_external_data=False)


def source_of(model: ModelProto, folder: Path, *, strict: bool = False) -> Source:
    """The main graph of ``model``; ``folder`` is where its external data lies, ``strict`` the option fp32_strict."""
    known = [(f.domain, f.name) for f in model.functions if f"{f.domain}.{f.name}" in OPS]
    if len(model.functions) > len(known):
        model = onnx.inliner.inline_selected_functions(model, known, exclude=True)
    typed = onnx.shape_inference.infer_shapes(_without_weights(model), data_prop=True)
    told = types_of(typed, missing) if (missing := untyped(typed)) else {}
    opsets = {"" if o.domain in ONNX_DOMAINS else o.domain: o.version for o in model.opset_import}
    constant_nodes = tuple(n for n in model.graph.node if n.op_type == "Constant" and n.domain in ONNX_DOMAINS)
    constant_names = {n.output[0] for n in constant_nodes}
    protos = tuple(n for n in model.graph.node if not constant_names.intersection(n.output))
    fed = {i.name for i in model.graph.input}
    tensors = {t.name: t for t in model.graph.initializer if t.name not in fed}
    tensors.update((n.output[0], _constant(n)) for n in constant_nodes)
    values = {"": GraphValue(name="", dtype=None, elem_type=0, shape=None)}
    outputs = {o.name for o in model.graph.output}
    for name, tensor in tensors.items():
        values[name] = _constant_value(name, tensor, folder, name in outputs)
    for value in (*typed.graph.input, *typed.graph.output, *typed.graph.value_info, *told.values()):
        values.setdefault(value.name, _value(value, value.name in fed, value.name in outputs))
    nodes = tuple(_node(proto, NodeId(i), opsets) for i, proto in enumerate(protos))
    for node in nodes:
        for name in (*node.inputs, *node.outputs, *node.implicit_inputs):
            values.setdefault(name, GraphValue(name=name, dtype=None, elem_type=0, shape=None))
    graph = Graph(nodes=nodes, values=values, opsets=opsets, name=model.graph.name, strict=strict)
    return Source(model=model, graph=graph, protos=protos, constant_nodes=constant_nodes, tensors=tensors)


def _without_weights(model: ModelProto) -> ModelProto:
    """The model with shapes in place of its larger tensors: inferring shapes copies what it is given, several times."""
    graph = model.graph
    light = GraphProto(name=graph.name, node=graph.node, input=graph.input, output=graph.output, value_info=graph.value_info)
    for t in graph.initializer:
        if t.ByteSize() > SMALL_CONSTANT_BYTES:
            t = TensorProto(name=t.name, dims=t.dims, data_type=t.data_type, data_location=TensorProto.EXTERNAL)
        light.initializer.append(t)
    return ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions, graph=light)


def _value(proto: ValueInfoProto, is_input: bool, is_output: bool) -> GraphValue:
    tensor = proto.type.tensor_type
    shape: tuple[int | str | None, ...] | None = None
    if proto.type.HasField("tensor_type") and tensor.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in tensor.shape.dim)
    return GraphValue(
        name=proto.name,
        dtype=from_ort(tensor.elem_type),
        elem_type=tensor.elem_type,
        shape=shape,
        is_input=is_input,
        is_output=is_output,
    )


def _constant_value(name: str, tensor: TensorProto, folder: Path, is_output: bool) -> GraphValue:
    dtype = from_ort(tensor.data_type)
    count = int(np.prod(tensor.dims, dtype=np.int64))
    return GraphValue(
        name=name,
        dtype=dtype,
        elem_type=tensor.data_type,
        shape=tuple(tensor.dims),
        is_output=is_output,
        is_constant=True,
        constant_bytes=-(-count // 2) if tensor.data_type in FOUR_BITS else count * (dtype.bytes if dtype is not None else 1),
        read=partial(_read, tensor, folder),
    )


def _read(tensor: TensorProto, folder: Path) -> NDArray[Any]:
    array = numpy_helper.to_array(tensor, base_dir=str(folder))
    if tensor.data_type in FOUR_BITS:
        return pack_nibbles(array)
    return array.view(np.uint16) if from_ort(tensor.data_type) is DType.BF16 else array


def _constant(node: NodeProto) -> TensorProto:
    """What a Constant node holds; of a kind that is no tensor of numbers: nothing, typed as text."""
    [attribute] = node.attribute
    if attribute.name == "value":
        tensor: TensorProto = attribute.t
        return tensor
    held = onnx.helper.get_attribute_value(attribute)
    if attribute.name.startswith("value_float"):
        return numpy_helper.from_array(np.asarray(held, np.float32))
    if attribute.name.startswith("value_int"):
        return numpy_helper.from_array(np.asarray(held, np.int64))
    return TensorProto(data_type=TensorProto.STRING)


def _node(proto: NodeProto, number: NodeId, opsets: Mapping[str, int]) -> Node:
    domain = "" if proto.domain in ONNX_DOMAINS else proto.domain
    version = opsets.get(domain, 1)
    if onnx.defs.has(proto.op_type, version, domain):
        version = onnx.defs.get_schema(proto.op_type, version, domain).since_version
    attributes = {a.name: _attribute(a) for a in proto.attribute if a.type not in _SUBGRAPHS}
    captured = dict.fromkeys(name for g in _subgraphs(proto) for name in _captured(g))
    return Node(
        id=number,
        ort_id=number,
        name=proto.name,
        op_type=proto.op_type,
        domain=domain,
        version=version,
        inputs=tuple(proto.input),
        outputs=tuple(proto.output),
        attrs={k: v for k, v in attributes.items() if v is not None},
        implicit_inputs=tuple(captured),
        has_subgraph=any(True for _ in _subgraphs(proto)),
    )


def nodes_inside(node: NodeProto) -> int:
    """How many nodes there are in the bodies of ``node``, and in theirs."""
    return sum(1 + nodes_inside(inner) for graph in _subgraphs(node) for inner in graph.node)


def names_read(node: NodeProto) -> Iterator[str]:
    """Names of values that ``node`` needs, its subgraphs included."""
    yield from filter(None, node.input)
    for graph in _subgraphs(node):
        yield from _captured(graph)


def _subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def _captured(graph: GraphProto) -> Iterator[str]:
    """Names that a subgraph takes from around it."""
    own = {t.name for t in graph.initializer} | {i.name for i in graph.input} | {o for n in graph.node for o in n.output}
    for node in graph.node:
        yield from (name for name in names_read(node) if name not in own)
    yield from (o.name for o in graph.output if o.name not in own)


def _attribute(attribute: AttributeProto) -> Any:
    """As the native side hands it over: text decoded, lists as tuples, tensors as arrays; None without payload."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(v.decode() if isinstance(v, bytes) else v for v in value)
    return value if isinstance(value, int | float | str) else None
