"""Convolutions, channels last inside."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, float_input, maybe, one
from xyntra_ep.fusion.onnx_ops._padding import unpadded
from xyntra_ep.fusion.onnx_ops._window import channels_last, from_last, window
from xyntra_ep.fusion.onnx_ops.linear import as_dtype
from xyntra_ep.fusion.op_spec import AUTO_PAD, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import ConvNode, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, lt
from xyntra_ep.tracea.core_ir.dtypes import DType

CONV_ATTRIBUTES = takes("dilations", "group", "kernel_shape", "pads", "strides", auto_pad=AUTO_PAD)


def kernel_of(node: Node, x: Tensor, w: Tensor) -> list[int]:
    kernel = [k for k in w.shape[2:] if isinstance(k, int)]
    if len(kernel) != x.rank - 2 or x.rank < 3:
        raise UnsupportedError("kernel of unknown size")
    if list(node.attr("kernel_shape") or kernel) != kernel:
        raise UnsupportedError("kernel_shape is not that of the weights")
    return kernel


def with_bias(c: Context, conv: ConvNode, spatial: Sequence[Size], bias: Tensor | None, dtype: DType) -> Tensor:
    """The result [N, M, spatial...] of ``conv``, which is stored channels last."""
    rank = conv.x.rank
    stored = Tensor((conv.x.shape[0], *spatial, conv.w.shape[0]), DType.F32, conv)
    if bias is not None:
        if bias.rank != 1:
            raise UnsupportedError("a bias that is no vector")
        c.require_equal(bias.size, conv.w.shape[0], "bias must be a 1D tensor of size output_channels")
        stored = c.map([stored, bias], lambda v, b: E.call("add", v, b), DType.F32)
    return as_dtype(stored, dtype).permute(from_last(rank))


def with_channels(c: Context, x: Tensor, channels: Size) -> Tensor:
    """``x``, whose channels must be as many as the weights say: a kernel would read beyond it otherwise."""
    c.require_equal(x.shape[1], channels, "Conv: the channels differ from those of the weights")
    return x.named((x.shape[0], channels, *x.shape[2:]))


def convolve(c: Context, node: Node, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """ONNX Conv with the attributes of ``node``."""
    strides, dilations, pads, out = window(c, node, x.shape[2:], kernel_of(node, x, w), must_fit=True)
    for extent in x.shape[2:]:
        c.require(lt(0, extent), "Invalid input shape")
    for extent in out:
        c.require(lt(0, extent), "the window is larger than its input")
    x = with_channels(c, x, w.shape[1] * int(node.attr("group", 1)))
    x, before = unpadded(x)
    conv = ConvNode(
        x=channels_last(x),
        w=w,
        strides=tuple(strides),
        dilations=tuple(dilations),
        pads=tuple(p + b for p, b in zip(pads, before, strict=True)),
        group=int(node.attr("group", 1)),
    )
    return with_bias(c, conv, out, bias, x.dtype)


def _conv(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return convolve(c, node, float_input(inputs, 0), one(inputs, 1), maybe(inputs, 2))


OPS = [
    OpSpec(
        name="Conv",
        lower=_conv,
        versions=(1, 22),
        inputs=3,
        attributes=CONV_ATTRIBUTES,
        types=(FLOATS,),
    ),
]
