"""What a fused operator is: its ONNX function, its meaning in numpy, and a call that exercises it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxscript import FLOAT, OnnxFunction, opset20
from onnxscript.values import Opset

DOMAIN = "ai.xyntra"
VERSION = 1
ONNX_OPSET = 20  # the first with Gelu
XYNTRA = Opset(DOMAIN, VERSION)

Array: TypeAlias = NDArray[np.float64]
# A script is ONNX in Python's clothes: onnxscript reads its text, and type checkers should not.
op: Any = opset20
if TYPE_CHECKING:
    Tensor: TypeAlias = Any
else:
    Tensor = FLOAT[...]
Attribute: TypeAlias = int | float | str | Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One call: a shape for each input, in order, and the attributes that are not left at their defaults."""

    shapes: Sequence[tuple[int, ...]]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomOp:
    """A fused operator.

    `reference` takes the inputs in float64 and the attributes by name, and returns one array for each output.
    `max_err` bounds max |a - b| / max |b| between a float32 run of `function` and `reference`.
    """

    name: str
    function: OnnxFunction[..., Any]
    reference: Callable[..., tuple[Array, ...]]
    examples: Sequence[Example]
    max_err: float


def to_model(custom: CustomOp, example: Example) -> onnx.ModelProto:
    """A model of one node that calls the operator, with its body beside it.

    >>> from xyntra_custom_ops.silu import CUSTOM_OPS
    >>> model = to_model(CUSTOM_OPS[0], Example(shapes=[(2, 3)]))
    >>> [(node.domain, node.op_type) for node in model.graph.node]
    [('ai.xyntra', 'Silu')]
    """
    body = custom.function.to_function_proto()
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip(body.input, example.shapes, strict=True)
    ]
    results = custom.reference(*(np.zeros(shape) for shape in example.shapes), **example.attributes)
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, result.shape)
        for name, result in zip(body.output, results, strict=True)
    ]
    node = helper.make_node(custom.name, list(body.input), list(body.output), domain=DOMAIN)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in example.attributes.items())
    return helper.make_model(
        helper.make_graph([node], custom.name, inputs, outputs),
        functions=[body],
        opset_imports=[helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(DOMAIN, VERSION)],
        ir_version=10,
    )
