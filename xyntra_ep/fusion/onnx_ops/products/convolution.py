"""Convolutions, channels last inside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, float_input, maybe, one
from xyntra_ep.fusion.onnx_ops._window import channels_last, from_last, is_channels_last, kernel_of, window, with_channels
from xyntra_ep.fusion.onnx_ops.products._padding import unpadded
from xyntra_ep.fusion.onnx_ops.products.linear import as_dtype, matmul
from xyntra_ep.fusion.onnx_ops.quantised._absorbed import convolution_of_quantised
from xyntra_ep.fusion.op_spec import AUTO_PAD, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import ConvNode, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, lt, product
from xyntra_ep.tracea.core_ir.dtypes import DType

CONV_ATTRIBUTES = takes("dilations", "group", "kernel_shape", "pads", "strides", auto_pad=AUTO_PAD)

# Zen 4, one thread, 512 channels of 7 x 7 pixels: in 4 groups channels first takes 83 us and channels last 72, in 16 it is 25 and
# 30. A vector of 16 lanes wastes a fifth of itself on 49 pixels.
_FEW_PIXELS, _VERY_FEW_PIXELS = 64, 16
_DEEP = 64  # channels of a group


def with_bias(c: Context, conv: ConvNode, spatial: Sequence[Size], bias: Tensor | None, dtype: DType) -> Tensor:
    """The result [N, M, spatial...] of ``conv``, which is stored channels last. Where only the bias has a number for M, the
    weights are called by it, too: the sum of both has that size."""
    rank = conv.x.rank
    if bias is not None:
        bias = _one_per_output(c, bias, conv.w.shape[0])
        if isinstance(bias.size, int):
            conv = replace(conv, w=conv.w.named((bias.size, *conv.w.shape[1:])))
    stored = Tensor((conv.x.shape[0], *spatial, conv.w.shape[0]), DType.F32, conv)
    if bias is not None:
        stored = c.map([stored, bias], lambda v, b: E.call("add", v, b), DType.F32)
    return as_dtype(stored, dtype).permute(from_last(rank))


def _one_per_output(c: Context, bias: Tensor, outputs: Size) -> Tensor:
    if bias.rank != 1:
        raise UnsupportedError("a bias that is no vector")
    c.require_equal(bias.size, outputs, "bias must be a 1D tensor of size output_channels")
    return bias


def convolve(c: Context, node: Node, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """ONNX Conv with the attributes of ``node``."""
    of_integers = convolution_of_quantised(c, node, x, w, bias)
    if of_integers is not None:
        return of_integers
    strides, dilations, pads, out = window(c, node, x.shape[2:], kernel_of(node, x, w), must_fit=True)
    for extent in out:  # an image without elements may be padded
        c.require(lt(0, extent), "the window is larger than its input")
    x = with_channels(c, x, w.shape[1] * int(node.attr("group", 1)))
    x, before = unpadded(x)
    pads = [p + b for p, b in zip(pads, before, strict=True)]
    group = int(node.attr("group", 1))
    is_pointwise = out == list(x.shape[2:]) and _is_pointwise(w, group, strides, pads)
    if is_pointwise and not is_channels_last(x) and not _has_few_pixels(x, w):
        return _products_of_groups(c, x, w, bias, group)
    conv = ConvNode(
        x=channels_last(x),
        w=w,
        strides=tuple(strides),
        dilations=tuple(dilations),
        pads=tuple(pads),
        group=group,
    )
    return with_bias(c, conv, out, bias, x.dtype)


def _is_pointwise(w: Tensor, group: int, strides: Sequence[int], pads: Sequence[Size]) -> bool:
    """Whether there are groups in which each output sees the channels of one pixel, more than one of them."""
    outputs, depth, *kernel = w.shape
    has_groups = group > 1 and isinstance(outputs, int) and outputs % group == 0 and depth != 1
    return has_groups and all(n == 1 for n in (*kernel, *strides)) and all(p == 0 for p in pads)


def _has_few_pixels(x: Tensor, w: Tensor) -> bool:
    """Whether vectors of channels are so much fuller than vectors of pixels that it pays for two copies."""
    pixels, depth = product(x.shape[2:]), w.shape[1]
    return isinstance(pixels, int) and pixels < (_FEW_PIXELS if isinstance(depth, int) and depth >= _DEEP else _VERY_FEW_PIXELS)


def _products_of_groups(c: Context, x: Tensor, w: Tensor, bias: Tensor | None, group: int) -> Tensor:
    """A convolution of single pixels, channels first as ``x`` is stored: for each group the weights [out, in] times the pixels
    [in, pixels]. Two copies to channels last and back would take a third of the time, as the sums are short."""
    outputs, inputs = w.shape[0] // group, w.shape[1]
    pixels = product(x.shape[2:])
    a = w.reshape((group, outputs, inputs))
    b = x.reshape((x.shape[0], group, inputs, pixels))
    result = matmul(c, a, b)
    if bias is not None:
        bias = _one_per_output(c, bias, w.shape[0]).reshape((group, outputs, 1))
        result = c.map([result, bias], lambda v, k: E.call("add", v, k), DType.F32)
    return as_dtype(result, x.dtype).reshape((x.shape[0], w.shape[0], *x.shape[2:]))


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
