"""Operators of ONNX Runtime's own domain that are found in files, and those that ONNX previews."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import (
    Inputs,
    Lower,
    LowerMany,
    float_input,
    maybe,
    one,
    wanted_outputs,
    wrapped,
)
from xyntra_ep.fusion.onnx_ops.elementwise.activation import activation, swish
from xyntra_ep.fusion.onnx_ops.products.linear import product_of
from xyntra_ep.fusion.onnx_ops.rows.normalization import layer_norm
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import lt

DEFAULT_EPSILON = 1e-12  # of SkipLayerNormalization
QUICK_GELU_ALPHA = 1.702


def _of_the_last_axis(c: Context, x: Tensor, p: Tensor) -> Tensor:
    """``p``, which must have an element for each of the last axis of ``x``."""
    if p.rank != 1 or x.rank < 1:
        raise UnsupportedError("a parameter that is no vector over the last axis")
    c.require_equal(p.shape[0], x.shape[-1], "a parameter has another number of elements than the last axis")
    return p


def _biased(op: str) -> Lower:
    """op(x + bias), the bias being optional."""

    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        x, bias = float_input(inputs, 0), maybe(inputs, 1)
        operands = [x] if bias is None else [x, c.checks.fit(_of_the_last_axis(c, x, bias), x.shape)]
        return c.map(
            operands,
            lambda v, *b: wrapped(x.dtype, E.call(op, E.call("add", v, b[0]) if b else v)),
            x.dtype,
        )

    return lower


def _skip_layer_normalization(centred: bool) -> LowerMany:
    """Of x + skip (+ bias); outputs: the result, statistics that only training wants, and the sum."""

    def lower(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
        x, skip = float_input(inputs, 0), one(inputs, 1)
        if skip.rank > x.rank or min(skip.rank, x.rank) < 2:
            raise UnsupportedError("a skip of more axes than its input, or of less than two")
        c.require(lt(0, x.shape[-1]), "hidden_size must be positive")
        for have, want in zip(skip.shape[-2:], x.shape[-2:], strict=True):
            c.require_equal(have, want, "last two dimensions of skip needs to be same as input")
        skip = c.checks.fit(skip, x.shape)
        gamma, beta, bias = (
            None if p is None else _of_the_last_axis(c, x, p)
            for p in (one(inputs, 2), maybe(inputs, 3) if centred else None, maybe(inputs, 4 if centred else 3))
        )
        assert gamma is not None
        if any(node.outputs[1:3]):
            raise UnsupportedError("statistics of SkipLayerNormalization")
        total = c.map([x, skip], lambda v, s: E.call("add", v, s), x.dtype)
        if bias is not None:
            total = c.map([total, bias], lambda v, b: E.call("add", v, b), x.dtype)
        total = c.map([total], lambda v: wrapped(x.dtype, v), x.dtype)
        (result,) = layer_norm(c, total, gamma, beta, x.rank - 1, float(node.attr("epsilon", DEFAULT_EPSILON)), centred=centred)
        return [result] if wanted_outputs(node) == 1 else [result, result, result, total]

    return lower


def _fused_matmul(c: Context, node: Node, inputs: Inputs) -> Tensor:
    a, b = float_input(inputs, 0), float_input(inputs, 1)
    a, b = (_transposed(t) if node.attr(name, 0) else t for t, name in ((a, "transA"), (b, "transB")))
    return product_of(c, a, b, float(node.attr("alpha", 1.0)))


def _transposed(t: Tensor) -> Tensor:
    return t if t.rank < 2 else t.permute((*range(t.rank - 2), t.rank - 1, t.rank - 2))


def _swiglu(c: Context, node: Node, inputs: Inputs) -> Tensor:
    a, b = float_input(inputs, 0), float_input(inputs, 1)
    alpha = float(node.attr("alpha", 1.0))
    return c.map([a, b], lambda v, w: wrapped(a.dtype, E.call("mul", swish(v, alpha), w)), a.dtype)


OPS = [
    OpSpec(name="com.microsoft.Gelu", lower=_biased("gelu_erf"), types=(FLOATS,)),
    OpSpec(name="com.microsoft.BiasGelu", lower=_biased("gelu_erf"), inputs=2, types=(FLOATS,)),
    OpSpec(name="com.microsoft.FastGelu", lower=_biased("gelu_tanh"), inputs=2, types=(FLOATS,)),
    OpSpec(
        name="com.microsoft.QuickGelu",
        lower=activation(lambda v, node: swish(v, float(node.attr("alpha", QUICK_GELU_ALPHA)))),
        attributes=takes("alpha"),
        types=(FLOATS,),
    ),
    OpSpec(
        name="com.microsoft.SkipLayerNormalization",
        lower=_skip_layer_normalization(centred=True),
        inputs=5,
        attributes=takes("epsilon"),
        types=(FLOATS,),
        note="without the statistics that training wants",
    ),
    OpSpec(
        name="com.microsoft.SkipSimplifiedLayerNormalization",
        lower=_skip_layer_normalization(centred=False),
        inputs=4,
        attributes=takes("epsilon"),
        types=(FLOATS,),
        note="without the statistics that training wants",
    ),
    OpSpec(
        name="com.microsoft.FusedMatMul",
        lower=_fused_matmul,
        inputs=2,
        attributes=takes("alpha", transA=FLAG, transB=FLAG, transBatchA=(0,), transBatchB=(0,)),
        types=(FLOATS,),
    ),
    OpSpec(name="SwiGLU", lower=_swiglu, versions=(1, 28), inputs=2, attributes=takes("alpha"), types=(FLOATS,)),
]
