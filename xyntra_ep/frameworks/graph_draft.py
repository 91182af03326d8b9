"""A fusion graph in the making: values and ONNX nodes as a front end adds them.

>>> draft = GraphDraft("square")
>>> x = draft.input("x", DType.F32, ("n", 4))
>>> draft.output(draft.node("Mul", x, x))
>>> print(draft.graph().text())
graph square (%x:f32[nx4])
  %Mul_1:f32[?] = Mul-14(%x, %x)
  return %Mul_1
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import DeclaredDim, Graph, GraphValue, Node, NodeId
from xyntra_ep.fusion.trace import OPS
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64

Shape = tuple[DeclaredDim, ...]


class GraphDraft:
    """Declared shapes are exact: the front end runs a graph with none that differ."""

    def __init__(self, name: str, dim_hints: Mapping[str, int] | None = None) -> None:
        self.name = name
        self.values: dict[str, GraphValue] = {}
        self.nodes: list[Node] = []
        self._dim_hints = dict(dim_hints or {})
        self._numbers: dict[tuple[str, bytes, tuple[int, ...]], str] = {}

    def input(self, name: str, dtype: DType | None, shape: Shape | None) -> str:
        self.declare(name, dtype, shape, is_input=True)
        return name

    def declare(self, name: str, dtype: DType | None, shape: Shape | None, *, is_input: bool = False) -> None:
        """A value that something makes. One without a type is no tensor of ours."""
        self.values[name] = GraphValue(
            name=name, dtype=dtype, elem_type=dtype.ort if dtype is not None else 0, shape=shape, is_input=is_input
        )

    def set_hints(self, dim_hints: Mapping[str, int]) -> None:
        """What named dimensions usually are."""
        self._dim_hints = dict(dim_hints)

    def output(self, *names: str) -> None:
        for name in names:
            self.values[name] = dataclasses.replace(self.values[name], is_output=True)

    def weights(self, name: str, dtype: DType, shape: Sequence[int], nbytes: int, read: Callable[[], NDArray[Any]]) -> str:
        """A constant that is read when kernels are chosen and packed."""
        self.values[name] = GraphValue(
            name=name, dtype=dtype, elem_type=dtype.ort, shape=tuple(shape), is_constant=True, constant_bytes=nbytes, read=read
        )
        return name

    def constant(self, value: object, dtype: DType) -> str:
        """A small constant, each once."""
        array = np.asarray(value)
        stored = np.asarray(
            from_float64(array.astype(np.float64), dtype) if dtype.is_float else array.astype(dtype.numpy)
        ).reshape(array.shape)
        key = (dtype.value, stored.tobytes(), array.shape)
        if key not in self._numbers:
            name = f"const_{len(self._numbers)}"
            self._numbers[key] = self.weights(name, dtype, array.shape, stored.nbytes, lambda: stored)
        return self._numbers[key]

    def ints(self, *values: int) -> str:
        """A constant list of sizes or axes."""
        return self.constant(np.asarray(values, np.int64).reshape(-1), DType.I64)

    def dtype(self, name: str) -> DType:
        found = self.values[name].dtype
        if found is None:
            raise UnsupportedError(f"dtype of {name}")
        return found

    def node(self, op_type: str, *inputs: str, dtype: DType | None = None, domain: str = "", **attrs: Any) -> str:
        """Add a node of one output; it has the type ``dtype``, else that of the first input."""
        name = f"{op_type}_{len(self.nodes) + 1}"
        self.declare(name, dtype if dtype is not None else self.dtype(inputs[0]), None)
        key = f"{domain}.{op_type}" if domain else op_type
        version = OPS[key].versions[1] if key in OPS else 1
        self.opaque(op_type, inputs, (name,), version=version, domain=domain, attrs=attrs)
        return name

    def opaque(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        version: int = 1,
        domain: str = "",
        attrs: Mapping[str, Any] | None = None,
    ) -> NodeId:
        """Add a node as it is; the values it makes are declared."""
        number = NodeId(len(self.nodes))
        node = Node(
            id=number,
            ort_id=number,
            name="",
            op_type=op_type,
            domain=domain,
            version=version,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            attrs=dict(attrs or {}),
        )
        self.nodes.append(node)
        return number

    def graph(self) -> Graph:
        return Graph(nodes=tuple(self.nodes), values=self.values, name=self.name, is_exact=True, dim_hints=self._dim_hints)
