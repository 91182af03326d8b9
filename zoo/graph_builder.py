"""A thin builder for ONNX graphs that look like what PyTorch's exporter writes.

Values are their names. Constants are `Constant` nodes, weights are initializers, and the names of nodes
follow the module path:

>>> g = GraphBuilder("example", opset=17)
>>> x = g.input("x", np.float32, ["batch", 4])
>>> with g.scope("layer.0"):
...     y = g.Relu(x)
>>> y
'/layer.0/Relu_output_0'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

Value = str
Dims = Sequence[int | str]


class GraphBuilder:
    """Collects nodes and weights; `g.MatMul(a, b)` appends a node and returns the name of its output."""

    def __init__(self, name: str, *, opset: int) -> None:
        self._name = name
        self._opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._weights: dict[str, onnx.TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._scopes: list[str] = []
        self._used: Counter[str] = Counter()

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Nodes made inside carry `name` in their path, as a submodule's nodes do in an exported model."""
        self._scopes.append(name)
        try:
            yield
        finally:
            self._scopes.pop()

    def input(self, name: str, dtype: npt.DTypeLike, dims: Dims) -> Value:
        self._inputs.append(_value_info(name, dtype, dims))
        return name

    def output(self, name: str, value: Value, dims: Dims, dtype: npt.DTypeLike = np.float32) -> None:
        """Rename `value` to `name` where it is produced and made a graph output."""
        for node in self._nodes:
            node.output[:] = [name if out == value else out for out in node.output]
            node.input[:] = [name if inp == value else inp for inp in node.input]
        self._outputs.append(_value_info(name, dtype, dims))

    def weight(self, name: str, array: npt.NDArray[Any]) -> Value:
        """An initializer. The same name again must be the same tensor (tied weights) and is stored once."""
        if name not in self._weights:
            self._weights[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def const(self, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> Value:
        tensor = numpy_helper.from_array(np.asarray(value, dtype=dtype))
        return self.node("Constant", value=tensor)

    def ints(self, *values: int) -> Value:
        """A 1-D int64 constant."""
        return self.const(values, np.int64)

    def node(self, op_type: str, *inputs: Value, **attributes: Any) -> Value:
        return self.multi(op_type, *inputs, outputs=1, **attributes)[0]

    def multi(self, op_type: str, *inputs: Value, outputs: int, **attributes: Any) -> list[Value]:
        """A node with several outputs."""
        name = self._unique("/" + "/".join([*self._scopes, op_type]))
        names = [f"{name}_output_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(op_type, inputs, names, name=name, **attributes))
        return names

    def __getattr__(self, op_type: str) -> Callable[..., Value]:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)
        return lambda *inputs, **attributes: self.node(op_type, *inputs, **attributes)

    def model(self) -> onnx.ModelProto:
        """The finished model, checked for being well formed."""
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, list(self._weights.values()))
        model = helper.make_model(
            graph,
            producer_name="xyntra-zoo",
            opset_imports=[helper.make_opsetid("", self._opset), *(helper.make_opsetid(name, 1) for name in self._domains())],
            ir_version=8,  # what PyTorch 2 writes for these opsets; old runtimes read it too
        )
        onnx.checker.check_model(model)
        return model

    def _domains(self) -> list[str]:
        return sorted({node.domain for node in self._nodes if node.domain})

    def _unique(self, name: str) -> str:
        count = self._used[name]
        self._used[name] += 1
        return name if count == 0 else f"{name}_{count}"


def _value_info(name: str, dtype: npt.DTypeLike, dims: Dims) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(dims))
