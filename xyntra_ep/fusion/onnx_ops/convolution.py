"""Convolutions, channels last inside."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.frames import materialise
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, f, float_input, maybe, one, within
from xyntra_ep.fusion.onnx_ops._padding import unpadded
from xyntra_ep.fusion.onnx_ops._window import channels_last, from_last, window
from xyntra_ep.fusion.onnx_ops.linear import as_dtype
from xyntra_ep.fusion.op_spec import AUTO_PAD, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import ConvNode, Map, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, ceildiv, lt, smax
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

CONV_ATTRIBUTES = takes("dilations", "group", "kernel_shape", "pads", "strides", auto_pad=AUTO_PAD)


def _kernel_of(node: Node, x: Tensor, w: Tensor) -> list[int]:
    kernel = [k for k in w.shape[2:] if isinstance(k, int)]
    if len(kernel) != x.rank - 2 or x.rank < 3:
        raise UnsupportedError("kernel of unknown size")
    if list(node.attr("kernel_shape") or kernel) != kernel:
        raise UnsupportedError("kernel_shape is not that of the weights")
    return kernel


def _with_bias(c: Context, conv: ConvNode, spatial: Sequence[Size], bias: Tensor | None, dtype: DType) -> Tensor:
    """The result [N, M, spatial...] of ``conv``, which is stored channels last."""
    rank = conv.x.rank
    stored = Tensor((conv.x.shape[0], *spatial, conv.w.shape[0]), DType.F32, conv)
    if bias is not None:
        if bias.rank != 1:
            raise UnsupportedError("a bias that is no vector")
        c.require_equal(bias.size, conv.w.shape[0], "bias must be a 1D tensor of size output_channels")
        stored = c.map([stored, bias], lambda v, b: E.call("add", v, b), DType.F32)
    return as_dtype(stored, dtype).permute(from_last(rank))


def _with_channels(c: Context, x: Tensor, channels: Size) -> Tensor:
    """``x``, whose channels must be as many as the weights say: a kernel would read beyond it otherwise."""
    c.require_equal(x.shape[1], channels, "Conv: the channels differ from those of the weights")
    return x.named((x.shape[0], channels, *x.shape[2:]))


def convolve(c: Context, node: Node, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """ONNX Conv with the attributes of ``node``."""
    strides, dilations, pads, out = window(c, node, x.shape[2:], _kernel_of(node, x, w), must_fit=True)
    for extent in x.shape[2:]:
        c.require(lt(0, extent), "Invalid input shape")
    for extent in out:
        c.require(lt(0, extent), "the window is larger than its input")
    x = _with_channels(c, x, w.shape[1] * int(node.attr("group", 1)))
    x, before = unpadded(x)
    conv = ConvNode(
        x=channels_last(x),
        w=w,
        strides=tuple(strides),
        dilations=tuple(dilations),
        pads=tuple(p + b for p, b in zip(pads, before, strict=True)),
        group=int(node.attr("group", 1)),
    )
    return _with_bias(c, conv, out, bias, x.dtype)


def _conv(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return convolve(c, node, float_input(inputs, 0), one(inputs, 1), maybe(inputs, 2))


def _transposed_window(node: Node, spatial: Sequence[Size], kernel: Sequence[int]) -> tuple[list[Size], list[Size]]:
    """(begin pads, output extents) of a ConvTranspose."""
    rank = len(kernel)
    strides, dilations = list(node.attr("strides") or [1] * rank), list(node.attr("dilations") or [1] * rank)
    more = list(node.attr("output_padding") or [0] * rank)
    pads, wanted = list(node.attr("pads") or [0] * (2 * rank)), node.attr("output_shape")
    auto = node.attr("auto_pad", "NOTSET")
    begin: list[Size] = []
    out: list[Size] = []
    for i in range(rank):
        whole = (spatial[i] - 1) * strides[i] + more[i] + (kernel[i] - 1) * dilations[i] + 1
        extent: Size
        if wanted is not None or auto in ("SAME_UPPER", "SAME_LOWER"):
            extent = spatial[i] * strides[i] if wanted is None else int(wanted[i - rank])
            total = smax(0, whole - extent)
            extent = whole - total if wanted is None else extent  # less than asked for where the stride leaves gaps at the end
            begin.append(total // 2 if auto == "SAME_UPPER" else ceildiv(total, 2))
        else:
            first, last = (0, 0) if auto == "VALID" else (pads[i], pads[rank + i])
            extent = whole - first - last
            begin.append(first)
        out.append(extent)
    return begin, out


def _conv_transpose(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """As a convolution with the turned kernel over x with zeros put between its elements."""
    x, w, bias = float_input(inputs, 0), one(inputs, 1), maybe(inputs, 2)
    kernel = _kernel_of(node, x, w)
    rank, group = len(kernel), int(node.attr("group", 1))
    channels = w.shape[0]
    if not isinstance(channels, int) or channels % group:
        raise UnsupportedError("ConvTranspose of an unknown number of channels")
    x = _with_channels(c, x, channels)
    dilations = [int(d) for d in node.attr("dilations") or [1] * rank]
    for spatial in x.shape[2:]:
        c.require(lt(0, spatial), "Input spatial dimension must be positive")
        if isinstance(spatial, Dim) and node.attr("output_shape") is not None:
            raise UnsupportedError("ConvTranspose to a given shape from an unknown one")
    pads, out = _transposed_window(node, x.shape[2:], kernel)
    for extent in out:
        c.require(lt(0, extent), "Computed output dimension is <= 0")
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    spread = _spread(x, [int(s) for s in node.attr("strides") or [1] * rank], [r - p for r, p in zip(reach, pads, strict=True)],
                     [o + r for o, r in zip(out, reach, strict=True)])  # fmt: skip
    per_group = w.reshape((group, channels // group, *w.shape[1:])).permute((0, 2, 1, *range(3, rank + 3)))
    m = group * w.shape[1]
    grouped = per_group.reshape((m, channels // group, *kernel))
    turned = grouped.slice([0, 0, *(k - 1 for k in kernel)], [1, 1, *([-1] * rank)], grouped.shape)
    conv = ConvNode(
        x=spread, w=materialise(turned), strides=(1,) * rank, dilations=tuple(dilations), pads=(0,) * rank, group=group
    )
    return _with_bias(c, conv, out, bias, x.dtype)


def _spread(x: Tensor, strides: Sequence[int], lead: Sequence[Size], extents: Sequence[Size]) -> Tensor:
    """x [N, C, spatial...] with element q of an axis at lead + q * stride and zeros elsewhere; stored channels last."""
    inside: Expr = E.const(True)
    at: list[Expr] = []
    for i, (stride, first) in enumerate(zip(strides, lead, strict=True)):
        position = E.call("sub", E.axis(1 + i), E.size(first))
        legal = E.call("le", E.const(0), position)
        if stride > 1:
            legal = E.call("and", legal, E.call("eq", E.call("mod", position, E.const(stride)), E.const(0)))
        source = E.call("div", position, E.const(stride)) if stride > 1 else position
        legal = E.call("and", legal, within(source, x.shape[2 + i]))
        inside = legal if inside is E.const(True) else E.call("and", inside, legal)
        at.append(source)
    value = E.load(0, E.axis(0), E.axis(len(strides) + 1), *at, dtype=x.dtype)
    shape = (x.shape[0], *extents, x.shape[1])
    stored = Tensor(shape, x.dtype, Map(inputs=(x,), body=E.call("where", inside, value, f(0)), keep=True))
    return stored.permute(from_last(x.rank))


OPS = [
    OpSpec(
        name="Conv",
        lower=_conv,
        versions=(1, 22),
        inputs=3,
        attributes=CONV_ATTRIBUTES,
        types=(FLOATS,),
    ),
    OpSpec(
        name="ConvTranspose",
        lower=_conv_transpose,
        versions=(1, 22),
        inputs=3,
        attributes={**CONV_ATTRIBUTES, **takes("output_padding", "output_shape")},
        types=(FLOATS,),
    ),
]
