"""A quantised model as other models: as its operators are defined, and with levels that are not rounded.

    defined      every operator by itself, in floats: a product of integers in double precision, QLinearConv as DequantizeLinear,
                 Conv and QuantizeLinear; nothing saturates that the definition does not, whatever a processor's instructions do
    unrounded    the same, and QuantizeLinear gives x / scale + zero point, clipped and not rounded

The second less the first is what quantising activations costs; that of constant weights cannot be told from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xyntra_ep.errors import UnsupportedError

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

QUANTISING = frozenset(
    {"QuantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger", "QLinearMatMul", "QLinearConv", "MatMulNBits"}
)
_LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767)}


def quantises(model: ModelProto) -> bool:
    """Whether an operator of the graph rounds to levels, or multiplies them."""
    return any(node.op_type in QUANTISING for node in model.graph.node)


def defined(model: ModelProto) -> ModelProto:
    """``model`` by its operators' definitions. Raises UnsupportedError, naming what is not known how to write down."""
    return _Rewriting(model, rounds=True).run()


def unrounded(model: ModelProto) -> ModelProto:
    """The same without rounding, and without outputs that are integers. Raises UnsupportedError as above."""
    return _Rewriting(model, rounds=False).run()


class _Rewriting:
    """Copies a model node by node; each operator that quantises has a method."""

    def __init__(self, model: ModelProto, *, rounds: bool) -> None:
        import onnx

        self._onnx = onnx
        self._model = onnx.ModelProto()
        self._model.CopyFrom(model)
        self._rounds = rounds
        self._nodes: list[NodeProto] = []
        self._made = 0
        self._constants = {i.name: i for i in model.graph.initializer}
        try:
            typed = onnx.shape_inference.infer_shapes(model).graph
        except onnx.shape_inference.InferenceError:  # operators that onnx does not know
            typed = model.graph
        self._types = {v.name: v.type.tensor_type for v in (*typed.value_info, *typed.input, *typed.output)}

    def run(self) -> ModelProto:
        graph = self._model.graph
        for node in graph.node:
            self._write(node)
        del graph.node[:], graph.value_info[:]
        graph.node.extend(self._nodes)
        if not self._rounds:
            floats = [o for o in graph.output if o.type.tensor_type.elem_type in _FLOATS]
            del graph.output[:]
            graph.output.extend(floats)
        return self._model

    def _write(self, node: NodeProto) -> None:
        written: dict[str, Callable[[NodeProto], None]] = {
            "MatMulInteger": self._matmul_integer,
            "ConvInteger": self._conv_integer,
            "QLinearMatMul": self._qlinear_matmul,
            "QLinearConv": self._qlinear_conv,
            "MatMulNBits": self._matmul_nbits,
        }
        if not self._rounds:
            written |= {
                "QuantizeLinear": self._clipped_levels,
                "DequantizeLinear": self._values,
                "DynamicQuantizeLinear": self._dynamic,
            }
        if node.op_type in written:
            written[node.op_type](node)
        elif node.domain == "com.microsoft" and node.op_type.startswith(("QLinear", "QGemm", "QAttention", "DynamicQuantize")):
            raise UnsupportedError(f"{node.op_type} quantises inside")
        else:
            self._nodes.append(node)

    # -- words

    def _node(self, op: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        self._made += 1
        output = output or f"xyntra_compare_{self._made}"
        self._nodes.append(self._onnx.helper.make_node(op, list(inputs), [output], **attributes))
        return output

    def _number(self, value: float) -> str:
        self._made += 1
        name = f"xyntra_compare_{self._made}"
        self._model.graph.initializer.append(self._onnx.numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def _cast(self, name: str, to: str, output: str = "") -> str:
        return self._node("Cast", [name], output, to=self._onnx.TensorProto.DataType.Value(to))

    def _given(self, node: NodeProto, position: int) -> str:
        return node.input[position] if position < len(node.input) else ""

    def _along(self, name: str, node: NodeProto, of: str) -> str:
        """The scale or zero point ``name`` so that it broadcasts to ``of``."""
        constant = self._constants.get(name)
        if constant is None or int(np.prod(constant.dims, initial=1)) == 1:
            return name
        if of not in self._types or not self._types[of].HasField("shape"):
            raise UnsupportedError(f"{node.op_type} with a scale for each channel of a tensor of unknown rank")
        rank = len(self._types[of].shape.dim)
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1) % rank
        if any(a.name == "block_size" and a.i for a in node.attribute):
            raise UnsupportedError(f"{node.op_type} in blocks")
        self._made += 1
        shape = f"xyntra_compare_{self._made}"
        sizes = np.array([constant.dims[0] if i == axis else 1 for i in range(rank)], np.int64)
        self._model.graph.initializer.append(self._onnx.numpy_helper.from_array(sizes, shape))
        return self._node("Reshape", [name, shape])

    # -- levels that are not rounded

    def _clipped_levels(self, node: NodeProto) -> None:
        zero = self._given(node, 2)
        low, high = self._limits(node, zero) if zero else _LIMITS["uint8"]
        level = self._levels(node, node.input[0], node.input[1], zero)
        self._node("Min", [self._node("Max", [level, self._number(low)]), self._number(high)], node.output[0])

    def _levels(self, node: NodeProto, x: str, scale: str, zero: str, output: str = "") -> str:
        level = self._node("Div", [x, self._along(scale, node, x)], "" if zero else output)
        return self._node("Add", [level, self._cast(self._along(zero, node, x), "FLOAT")], output) if zero else level

    def _limits(self, node: NodeProto, zero: str) -> tuple[int, int]:
        kind = self._constants[zero].data_type if zero in self._constants else getattr(self._types.get(zero), "elem_type", 0)
        name = str(self._onnx.TensorProto.DataType.Name(kind)).lower()
        if name not in _LIMITS:
            raise UnsupportedError(f"{node.op_type} to {name}")
        return _LIMITS[name]

    def _values(self, node: NodeProto) -> None:
        if node.input[0] in self._constants:  # weights: these were rounded before
            self._nodes.append(node)
            return
        value = self._cast(node.input[0], "FLOAT")
        if zero := self._given(node, 2):
            value = self._node("Sub", [value, self._cast(self._along(zero, node, node.input[0]), "FLOAT")])
        self._node("Mul", [value, self._along(node.input[1], node, node.input[0])], node.output[0])

    def _dynamic(self, node: NodeProto) -> None:
        rounded = f"{node.output[0]}_rounded"
        self._nodes.append(self._onnx.helper.make_node(node.op_type, [node.input[0]], [rounded, *node.output[1:]]))
        self._levels(node, node.input[0], node.output[1], node.output[2], node.output[0])  # all of its input is in its range

    # -- products

    def _less_zero(self, node: NodeProto, position: int, to: str) -> str:
        value = self._cast(node.input[position], to)
        zero = self._given(node, position + 2)
        if not zero:
            return value
        constant = self._constants.get(zero)
        if position == 0 and constant is not None and int(np.prod(constant.dims, initial=1)) > 1:
            raise UnsupportedError(f"{node.op_type} with a zero point for each row")
        return self._node("Sub", [value, self._cast(zero, to)])

    def _matmul_integer(self, node: NodeProto) -> None:
        factors = [self._less_zero(node, position, "DOUBLE") for position in (0, 1)]
        self._cast(self._node("MatMul", factors), "INT32" if self._rounds else "FLOAT", node.output[0])

    def _conv_integer(self, node: NodeProto) -> None:
        constant = self._constants.get(self._given(node, 3))
        if constant is not None and int(np.prod(constant.dims, initial=1)) > 1:
            raise UnsupportedError("ConvInteger with a zero point for each output")
        sums = self._node("Conv", [self._less_zero(node, position, "FLOAT") for position in (0, 1)])
        self._nodes[-1].attribute.extend(node.attribute)
        if self._rounds:
            sums = self._node("Round", [sums])
        self._cast(sums, "INT32" if self._rounds else "FLOAT", node.output[0])

    def _qlinear_matmul(self, node: NodeProto) -> None:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.input
        product = self._node("MatMul", [self._dequantised(a, a_scale, a_zero, 0), self._dequantised(b, b_scale, b_zero, 1)])
        self._quantised([product, y_scale, y_zero], node)

    def _qlinear_conv(self, node: NodeProto) -> None:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.input[:8]
        parts = [self._dequantised(x, x_scale, x_zero, 1), self._dequantised(w, w_scale, w_zero, 0)]
        if bias := self._given(node, 8):
            parts.append(self._node("Mul", [self._cast(bias, "FLOAT"), self._node("Mul", [x_scale, w_scale])]))
        sums = self._node("Conv", parts)
        self._nodes[-1].attribute.extend(node.attribute)
        self._quantised([sums, y_scale, y_zero], node)

    def _dequantised(self, q: str, scale: str, zero: str, axis: int) -> str:
        self._made += 1
        output = f"xyntra_compare_{self._made}"
        self._write(self._onnx.helper.make_node("DequantizeLinear", [q, scale, zero], [output], axis=axis))
        return output

    def _quantised(self, inputs: Sequence[str], node: NodeProto) -> None:
        self._write(self._onnx.helper.make_node("QuantizeLinear", list(inputs), [node.output[0]]))

    def _matmul_nbits(self, node: NodeProto) -> None:
        if not self._rounds:
            raise UnsupportedError("MatMulNBits rounds weights only")
        copy = self._onnx.NodeProto()
        copy.CopyFrom(node)
        kept = [a for a in copy.attribute if a.name != "accuracy_level"]
        del copy.attribute[:]
        copy.attribute.extend(kept)
        self._nodes.append(copy)


_FLOATS = (1, 10, 11, 16)  # TensorProto.FLOAT, FLOAT16, DOUBLE, BFLOAT16
