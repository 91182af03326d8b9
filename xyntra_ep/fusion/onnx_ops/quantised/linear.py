"""Between floats and integers: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, maybe, normal_axis, one
from xyntra_ep.fusion.onnx_ops.quantised._blocks import dequantised_blocks, quantised_blocks
from xyntra_ep.fusion.onnx_ops.quantised._integers import dequantised, quantise, scalar_or_axis
from xyntra_ep.fusion.onnx_ops.quantised._made_of import quantised, same_values
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Quantised, RowNode, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.byte_range import byte_range
from xyntra_ep.tracea.core_ir.dtypes import FOUR_BITS, LEVELS, DType, from_ort
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage

_INTEGERS = (*LEVELS, DType.I32)


def _parameters(c: Context, node: Node, x: Tensor, inputs: Inputs) -> list[Tensor]:
    """The scale and the zero point, if there is one, shaped so that they broadcast to ``x``."""
    given = [t for t in (one(inputs, 1), maybe(inputs, 2)) if t is not None]
    if all(t.size == 1 for t in given):
        return [t.reshape(()) for t in given]
    axis = normal_axis(int(node.attr("axis", 1)), x.rank)
    return [scalar_or_axis(c, t, x, axis, what) for t, what in zip(given, ("the scale", "the zero point"), strict=False)]


def _quantize(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, zero = one(inputs, 0), maybe(inputs, 2)
    named = int(node.attr("output_dtype", 0))
    dtype = zero.dtype if zero is not None else from_ort(named or DType.U8.ort)
    if dtype not in LEVELS or named not in (0, dtype.ort):
        raise UnsupportedError(f"output_dtype {named}")
    made_of = quantised(x)
    if made_of is not None and _is_undone(made_of, one(inputs, 1), zero, dtype):
        return made_of.q
    if block := int(node.attr("block_size", 0)):
        return quantised_blocks(c, x, one(inputs, 1), zero, normal_axis(int(node.attr("axis", 1)), x.rank), block, dtype)
    parameters = _parameters(c, node, x, inputs)
    return c.map([x, *parameters], lambda v, s, *z: quantise(v, s, z[0] if z else None, dtype), dtype).named(x.shape)


def _is_undone(made_of: Quantised, scale: Tensor, zero: Tensor | None, dtype: DType) -> bool:
    """Whether quantising gives back the integers that the floats were made of: (n * s) / s rounds to n."""
    alike = made_of.axis is None and made_of.q.dtype is dtype
    return alike and same_values(made_of.scale, scale) and same_values(made_of.zero, zero)


def _dequantize(c: Context, node: Node, inputs: Inputs) -> Tensor:
    q, scale = one(inputs, 0), one(inputs, 1)
    named, block = int(node.attr("output_dtype", 0)), int(node.attr("block_size", 0))
    if named not in (0, scale.dtype.ort):
        raise UnsupportedError(f"output_dtype {named}")
    if block:
        bits = 4 if c.graph.values[node.inputs[0]].elem_type in FOUR_BITS else 8
        along = normal_axis(int(node.attr("axis", 1)), q.rank)
        return dequantised_blocks(c, Quantised(q=q, scale=scale, zero=maybe(inputs, 2), axis=along, block=block, bits=bits))
    parameters = _parameters(c, node, q, inputs)
    scale = parameters[0]
    axis = None if scale.rank == 0 else normal_axis(int(node.attr("axis", 1)), q.rank)
    return dequantised(c, q, parameters, scale.dtype, axis)


def _dynamic_quantize(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    return dynamically_quantised(c, one(inputs, 0))


def dynamically_quantised(c: Context, x: Tensor, seen: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(bytes, their scale, their zero point). The range is that of the elements (of ``seen``, if that is given) and 0, so that no
    elements have one as well. Rows come first: threads share those."""
    seen = x if seen is None else seen
    lines = seen if seen.rank > 1 else seen.reshape((1, seen.size))
    here = [E.axis(i) for i in range(lines.rank)]
    low, high = _extremes(lines, E.load(0, *here, dtype=lines.dtype))
    node_ = RowNode(
        outer=(),
        inner=low.shape,
        inputs=(low, high),
        stages=(
            Stage(kind=ReduceKind.MIN, body=E.load(0, *here[:-1], dtype=DType.F32)),
            Stage(kind=ReduceKind.MAX, body=E.load(1, *here[:-1], dtype=DType.F32)),
        ),
        outputs=tuple((body, True) for body in byte_range(E.acc(0), E.acc(1))),
    )
    scale, zero = Tensor((), DType.F32, node_), Tensor((), DType.U8, node_, output=1)
    y = c.map([x, scale, zero], lambda v, s, z: quantise(v, s, z, DType.U8), DType.U8).named(x.shape)
    return y, scale, zero


def _extremes(x: Tensor, element: Expr) -> tuple[Tensor, Tensor]:
    """The least and the largest element of each row."""
    stages = tuple(Stage(kind=kind, body=element) for kind in (ReduceKind.MIN, ReduceKind.MAX))
    row = RowNode(
        outer=x.shape[:-1], inner=x.shape[-1:], inputs=(x,), stages=stages, outputs=((E.acc(0), True), (E.acc(1), True))
    )
    return Tensor(x.shape[:-1], DType.F32, row), Tensor(x.shape[:-1], DType.F32, row, output=1)


OPS = [
    OpSpec(
        name="QuantizeLinear",
        lower=_quantize,
        versions=(10, 28),
        inputs=3,
        attributes=takes("axis", "block_size", "output_dtype", saturate=FLAG, precision=(0, 1)),
        types=(FLOATS, FLOATS, LEVELS),
        note="to 8 or 16 bits",
    ),
    OpSpec(
        name="DequantizeLinear",
        lower=_dequantize,
        versions=(10, 28),
        inputs=3,
        attributes=takes("axis", "output_dtype", "block_size"),
        types=(_INTEGERS, FLOATS, _INTEGERS),
        note="of 8, 16 and 32 bits, and of constants in 4 bits",
    ),
    OpSpec(
        name="com.microsoft.QuantizeLinear",
        lower=_quantize,
        inputs=3,
        attributes=takes("axis"),
        types=((DType.F32,), (DType.F32,), LEVELS),
        note="to 8 or 16 bits",
    ),
    OpSpec(
        name="com.microsoft.DequantizeLinear",
        lower=_dequantize,
        inputs=3,
        attributes=takes("axis"),
        types=(_INTEGERS, (DType.F32,), _INTEGERS),
        note="of 8, 16 and 32 bits",
    ),
    OpSpec(name="DynamicQuantizeLinear", lower=_dynamic_quantize, versions=(11, 11), types=((DType.F32,),)),
]
