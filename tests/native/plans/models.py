"""Small ONNX models and the islands that fit them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import ARENA, CONSTANT, POOL, Alternative, Island, Tensor
from xyntra_ep.provider.graph_buffer import RawGraph, RawNode

Dims = list[int | str | None]


def tensor(name: str, dims: Dims, elem_type: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, dims)


def constant(name: str, data: npt.NDArray[Any]) -> onnx.TensorProto:
    return numpy_helper.from_array(data, name)


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: list[onnx.TensorProto] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def relu_model() -> onnx.ModelProto:
    """x [N, 4] -> Relu -> t -> Neg -> y"""
    nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    return model(nodes, [tensor("x", ["N", 4])], [tensor("y", ["N", 4])])


def relu_answer(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    result: npt.NDArray[Any] = -np.maximum(x, 0)
    return result


def add_model(w: npt.NDArray[Any]) -> onnx.ModelProto:
    """x [N, len(w)] + w -> y"""
    dims: Dims = ["N", len(w)]
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    return model(nodes, [tensor("x", dims)], [tensor("y", dims)], [constant("w", w)])


def node_of(raw: RawGraph, op_type: str) -> RawNode:
    return next(node for node in raw.nodes if node.op_type == op_type)


def names(raw: RawGraph, indices: tuple[int, ...]) -> list[str]:
    return [raw.values[index].name for index in indices]


def unary_island(raw: RawGraph, node: RawNode, *, rank: int = 2, cost: int = 0, kernel: str = "relu") -> Island:
    """One elementwise node over `x` of any shape."""
    (x,), (y,) = names(raw, node.inputs), names(raw, node.outputs)
    alternative = Alternative()
    dims = [alternative.dim(0, axis) for axis in range(rank)]
    alternative.output_dims(*dims)
    n = alternative.const(1)
    for dim in dims:
        n = alternative.op("mul", n, dim)
    units = alternative.op("ceildiv", n, alternative.const(16))
    moved = alternative.op("mul", n, alternative.const(8))
    buffers: list[int | tuple[int, int]] = [alternative.input(0), alternative.output(0)]
    alternative.step(NUMBER[kernel], buffers, [n], units, alternative.const(cost), label=kernel, flops=n, moved=moved)
    return Island(node.op_type.lower(), [node.id], [Tensor(x, rank=rank)], [Tensor(y, rank=rank)], [alternative])


def relu_island(raw: RawGraph, **more: Any) -> Island:
    return unary_island(raw, node_of(raw, "Relu"), **more)


def add_island(raw: RawGraph) -> Island:
    """x + w with w packed (and thereby doubled) in init, through a temporary."""
    node = node_of(raw, "Add")
    x, w = names(raw, node.inputs)
    (y,) = names(raw, node.outputs)
    length = raw.values[node.inputs[1]].nbytes // 4
    alternative = Alternative()
    rows, columns = alternative.dim(0, 0), alternative.const(length)
    alternative.output_dims(rows, columns)
    n = alternative.op("mul", rows, columns)
    n_bytes = alternative.op("mul", n, alternative.const(4))
    units = alternative.op("ceildiv", n, alternative.const(16))
    source = alternative.buffer(CONSTANT, 0)
    packed = alternative.buffer(POOL, size=alternative.const(4 * length))
    alternative.step(NUMBER["pack"], [source, packed], [columns], init=True, label="pack")
    between = alternative.buffer(ARENA, size=n_bytes, first=0, last=1)
    alternative.step(NUMBER["add"], [alternative.input(0), packed, between], [n, columns], units, label="add")
    alternative.step(NUMBER["relu"], [between, alternative.output(0)], [n], units, label="relu")
    return Island("add", [node.id], [Tensor(x, rank=2)], [Tensor(y, rank=2)], [alternative], [w])


def add_answer(x: npt.NDArray[Any], w: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What `add_island` computes: deliberately not x + w."""
    result: npt.NDArray[Any] = np.maximum(x + 2 * w, 0)
    return result
