"""The products with constant matrices of a model, and what stands in their place when a matrix is two factors.

y = MatMul(x, W)      ->   t = MatMul(x, A);  y = MatMul(t, B)
y = Gemm(x, W, c)     ->   t = Gemm(x, A);    y = Gemm(t, B, c)          with its alpha, beta and what it transposes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A product with the constant ``weight``, which is read by it alone; ``transposed``: as [n, k]."""

    node: int
    name: str
    x: str
    weight: str
    transposed: bool
    k: int
    n: int


def layers_of(model: ModelProto) -> Iterator[Layer]:
    """Those of the main graph whose matrix nothing else reads."""
    graph = model.graph
    readers = Counter(name for node in _all_nodes(graph) for name in node.input)
    readers.update(o.name for o in graph.output)
    readers.update(i.name for i in graph.input)  # a caller may give another one
    matrices = {t.name: t for t in graph.initializer if len(t.dims) == 2 and t.data_type in _FLOATS}
    for number, node in enumerate(graph.node):
        if node.domain not in ("", "ai.onnx") or node.op_type not in ("MatMul", "Gemm") or node.input[1] not in matrices:
            continue
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        weight = matrices[node.input[1]]
        if readers[weight.name] != 1 or attributes.get("transA", 0):
            continue
        transposed = bool(attributes.get("transB", 0))
        k, n = reversed(weight.dims) if transposed else weight.dims
        name = node.name or node.output[0]
        yield Layer(node=number, name=name, x=node.input[0], weight=weight.name, transposed=transposed, k=int(k), n=int(n))


def _all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """With those of bodies."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from _all_nodes(body)


def matrix_of(model: ModelProto, layer: Layer) -> NDArray[Any]:
    """[k, n]"""
    [tensor] = [t for t in model.graph.initializer if t.name == layer.weight]
    array = numpy_helper.to_array(tensor)
    return array.T if layer.transposed else array


class Rewriting:
    """Puts factors into a model, which is changed."""

    def __init__(self, model: ModelProto) -> None:
        self._graph = model.graph
        self._names = {name for node in _all_nodes(model.graph) for name in (*node.input, *node.output)}
        self._names |= {t.name for t in model.graph.initializer} | {v.name for v in model.graph.input}
        self._nodes: dict[int, list[NodeProto]] = {}
        self._gone: set[str] = set()

    def factor(self, layer: Layer, a: NDArray[Any], b: NDArray[Any]) -> None:
        """``a`` [k, r] and ``b`` [r, n] in place of the layer's matrix, in its type."""
        node = self._graph.node[layer.node]
        kept = next(t for t in self._graph.initializer if t.name == layer.weight)
        dtype = helper.tensor_dtype_to_np_dtype(kept.data_type)
        names = [self._new(f"{layer.weight}_{part}") for part in ("left", "right")]
        for name, array in zip(names, (a, b), strict=True):
            stored = np.ascontiguousarray((array.T if layer.transposed else array).astype(dtype))
            self._graph.initializer.append(numpy_helper.from_array(stored, name))
        middle = self._new(f"{node.output[0]}_low_rank")
        first = helper.make_node(node.op_type, [layer.x, names[0]], [middle], name=f"{node.name}_left" if node.name else "")
        if layer.transposed:
            first.attribute.append(helper.make_attribute("transB", 1))
        second = NodeProto()
        second.CopyFrom(node)
        second.input[0], second.input[1] = middle, names[1]
        self._nodes[layer.node] = [first, second]
        self._gone.add(layer.weight)

    def finish(self) -> None:
        """Once all are factored."""
        graph = self._graph
        nodes = [made for number, node in enumerate(graph.node) for made in self._nodes.get(number, [node])]
        kept = [t for t in graph.initializer if t.name not in self._gone]
        for field, values in ((graph.node, nodes), (graph.initializer, kept)):
            copied = [type(value).FromString(value.SerializeToString()) for value in values]  # before what they are of is emptied
            del field[:]
            field.extend(copied)

    def _new(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            name, number = f"{wanted}_{number}", number + 1
        self._names.add(name)
        return name
