"""The fused operators of domain ai.xyntra, claimed whole: what their function bodies say, without taking those apart."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, f, float_input, one, wrapped
from xyntra_ep.fusion.onnx_ops.elementwise.activation import activation
from xyntra_ep.fusion.onnx_ops.products.convolution import CONV_ATTRIBUTES, convolve
from xyntra_ep.fusion.onnx_ops.products.linear import as_dtype, matmul, product_of
from xyntra_ep.fusion.onnx_ops.rows.normalization import layer_norm
from xyntra_ep.fusion.onnx_ops.rows.softmax import softmax
from xyntra_ep.fusion.op_spec import FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import either, eq, lt
from xyntra_ep.tracea.core_ir.dtypes import DType

DOMAIN = "ai.xyntra"


def _sum(c: Context, a: Tensor, b: Tensor) -> Tensor:
    return c.map([a, b], lambda v, w: wrapped(a.dtype, E.call("add", v, w)), a.dtype)


def _unary(c: Context, t: Tensor, op: str) -> Tensor:
    return c.map([t], lambda v: wrapped(t.dtype, E.call(op, v)), t.dtype)


def _attention(c: Context, node: Node, inputs: Inputs) -> Tensor:
    q, k, v, mask = (float_input(inputs, i) for i in range(4))
    scale = f(node.need("scale"))
    raw = matmul(c, q, k.permute((0, 1, 3, 2)))
    scores = c.map([raw, mask], lambda s, m: E.call("add", E.call("mul", s, scale), m), DType.F32)
    return as_dtype(matmul(c, softmax(scores, [3]), v), q.dtype)


def _gemm_bias(c: Context, inputs: Inputs) -> Tensor:
    return _sum(c, product_of(c, float_input(inputs, 0), one(inputs, 1)), one(inputs, 2))


def _gemm_bias_gelu(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return _unary(c, _gemm_bias(c, inputs), "gelu_erf")


def _gemm_bias_residual(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return _sum(c, _gemm_bias(c, inputs), one(inputs, 3))


def _conv_bias_relu(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return _unary(c, convolve(c, node, float_input(inputs, 0), one(inputs, 1), one(inputs, 2)), "relu")


def _conv_bias_residual_relu(c: Context, node: Node, inputs: Inputs) -> Tensor:
    convolved = convolve(c, node, float_input(inputs, 0), one(inputs, 1), one(inputs, 2))
    return _unary(c, _sum(c, convolved, one(inputs, 3)), "relu")


def _layer_norm_residual(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    total = _sum(c, float_input(inputs, 0), one(inputs, 1))
    epsilon = float(node.attr("epsilon", 1e-5))
    c.require(lt(0, total.shape[-1]), "Size of X.shape[axis:] must be at least 1")  # its body is a LayerNormalization
    return [*layer_norm(c, total, one(inputs, 2), one(inputs, 3), total.rank - 1, epsilon), total]


def _rms_norm(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, scale = float_input(inputs, 0), one(inputs, 1)
    if scale.rank:  # its body would repeat a last axis of 1
        c.require(either(eq(scale.shape[-1], 1), eq(scale.shape[-1], x.shape[-1])), "the scale is longer than the last axis")
    (result,) = layer_norm(c, x, scale, None, x.rank - 1, float(node.attr("epsilon", 1e-6)), centred=False)
    return result


OPS = [
    OpSpec(name=f"{DOMAIN}.Attention", lower=_attention, inputs=4, attributes=takes("scale"), types=(FLOATS,)),
    OpSpec(name=f"{DOMAIN}.GemmBiasGelu", lower=_gemm_bias_gelu, inputs=3, types=(FLOATS,)),
    OpSpec(name=f"{DOMAIN}.GemmBiasResidual", lower=_gemm_bias_residual, inputs=4, types=(FLOATS,)),
    OpSpec(name=f"{DOMAIN}.ConvBiasRelu", lower=_conv_bias_relu, inputs=3, attributes=CONV_ATTRIBUTES, types=(FLOATS,)),
    OpSpec(
        name=f"{DOMAIN}.ConvBiasResidualRelu",
        lower=_conv_bias_residual_relu,
        inputs=4,
        attributes=CONV_ATTRIBUTES,
        types=(FLOATS,),
    ),
    OpSpec(
        name=f"{DOMAIN}.LayerNormResidual", lower=_layer_norm_residual, inputs=4, attributes=takes("epsilon"), types=(FLOATS,)
    ),
    OpSpec(name=f"{DOMAIN}.RmsNorm", lower=_rms_norm, inputs=2, attributes=takes("epsilon"), types=(FLOATS,)),
    OpSpec(name=f"{DOMAIN}.GeluTanh", lower=activation(lambda v, node: E.call("gelu_tanh", v)), types=(FLOATS,)),
    OpSpec(name=f"{DOMAIN}.Silu", lower=activation(lambda v, node: E.call("silu", v)), types=(FLOATS,)),
]
