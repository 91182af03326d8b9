"""A group of nodes as a function: its inputs and outputs, and its own nodes as the body.

Scalars and short integer lists (axes, shapes, epsilons) become Constant nodes of the body; every other value from outside is an
input. Names are normalised and the function is called after its kind and a hash of its body, so that equal structures (the layers
of a transformer) share one function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from onnx import FunctionProto, NodeProto, TensorProto, helper

from xyntra_custom_ops import DOMAIN
from xyntra_ep.diagnostics.fused.graph import ONNX_DOMAINS, Source
from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.tracea.core_ir.ops import CoreOp

_SHORT_LIST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The values of a group that others know. ``small``: constants that belong to the body."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    small: tuple[str, ...]


def signature(source: Source, nodes: Sequence[NodeId]) -> Signature:
    """What flows into and out of ``nodes`` (in order)."""
    graph = source.graph
    inside = set(nodes)
    made = {name for n in nodes for name in graph.nodes[n].outputs}
    read = dict.fromkeys(name for n in nodes for name in graph.nodes[n].inputs if name and name not in made)
    small = tuple(name for name in read if _is_small(source, name))
    outputs = tuple(
        name
        for n in nodes
        for name in graph.nodes[n].outputs
        if name and (graph.values[name].is_output or any(c not in inside for c in graph.consumers.get(name, ())))
    )
    return Signature(inputs=tuple(name for name in read if name not in small), outputs=outputs, small=small)


def _is_small(source: Source, name: str) -> bool:
    tensor = source.tensors.get(name)
    if tensor is None or tensor.data_location == TensorProto.EXTERNAL or source.graph.values[name].is_output:
        return False
    count = 1
    for size in tensor.dims:
        count *= size
    return count == 1 or (tensor.data_type in (TensorProto.INT64, TensorProto.INT32) and count <= _SHORT_LIST)


def outline(source: Source, op: CoreOp, nodes: Sequence[NodeId], known: Signature) -> FunctionProto:
    """The function of ``nodes``, named."""
    names = {name: f"in{i}" for i, name in enumerate(known.inputs)}
    names |= {name: f"out{i}" for i, name in enumerate(known.outputs)}
    names |= {name: f"const{i}" for i, name in enumerate(known.small)}
    names[""] = ""
    body = [_small_constant(source.tensors[name], names[name]) for name in known.small]
    for n in nodes:
        proto = NodeProto()
        proto.CopyFrom(source.protos[n])
        for field in ("name", "doc_string", "metadata_props"):
            proto.ClearField(field)
        for row in (proto.input, proto.output):
            row[:] = [names.setdefault(name, f"t{len(names)}") for name in row]
        body.append(proto)
    used = {"" if node.domain in ONNX_DOMAINS else node.domain for node in body}
    imports = [o for o in source.model.opset_import if ("" if o.domain in ONNX_DOMAINS else o.domain) in used]
    function = helper.make_function(
        DOMAIN,
        "",
        [names[name] for name in known.inputs],
        [names[name] for name in known.outputs],
        body,
        opset_imports=imports,
    )
    digest = hashlib.sha256(function.SerializeToString(deterministic=True)).hexdigest()[:8]
    function.name = f"{op.title()}_{digest}"
    function.doc_string = "One kernel: " + ", ".join(source.graph.nodes[n].op_type for n in nodes)
    return function


def _small_constant(tensor: TensorProto, name: str) -> NodeProto:
    value = TensorProto()
    value.CopyFrom(tensor)
    value.ClearField("name")
    value.ClearField("doc_string")
    return helper.make_node("Constant", [], [name], value=value)
