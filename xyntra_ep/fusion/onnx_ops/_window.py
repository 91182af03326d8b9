"""What convolution and pooling share: windows and the channels-last layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.frames import materialise
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, Lower, one
from xyntra_ep.fusion.tensor import Permute, Reshape, Tensor, View
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, le, smax, trunc_div


def from_last(rank: int) -> tuple[int, ...]:
    """The permutation from [N, spatial..., C] to [N, C, spatial...]."""
    return (0, rank - 1, *range(1, rank - 1))


def is_channels_last(t: Tensor) -> bool:
    """Whether ``t`` [N, C, spatial...] comes with its channels stored innermost."""
    is_moved = isinstance(t.node, View) and isinstance(t.node.step, Permute) and t.node.step.perm == from_last(t.rank)
    return is_moved and isinstance(t.node, View) and not isinstance(t.node.base.node, View)


def channels_last(t: Tensor) -> Tensor:
    """``t`` [N, C, spatial...] with its channels stored innermost: as it is when it already comes that way, else a copy."""
    if is_channels_last(t):
        return t
    back = from_last(t.rank)
    whole = t.node.base if isinstance(t.node, View) and isinstance(t.node.step, Reshape) else t
    if (t.shape[1] == 1 or all(s == 1 for s in t.shape[2:])) and not isinstance(whole.node, View):  # both orders are one
        return t.reshape((t.shape[0], *t.shape[2:], t.shape[1])).permute(back)
    return materialise(t.permute((0, *range(2, t.rank), 1))).permute(back)


def images(lower: Callable[[Context, Node, Inputs], Tensor], always_last: bool = False) -> Lower:
    """``lower``, whose first input and result are [N, C, spatial...], of [N, spatial..., C] with the attribute ``channels_last``,
    or always."""

    def either_way(c: Context, node: Node, inputs: Inputs) -> Tensor:
        x = one(inputs, 0)
        if x.rank < 3:
            raise UnsupportedError("an image without axes")
        if not (always_last or node.attr("channels_last", 0)):
            return lower(c, node, inputs)
        y = lower(c, node, [x.permute(from_last(x.rank)), *inputs[1:]])
        return y.permute((0, *range(2, y.rank), 1))

    return either_way


def kernel_of(node: Node, x: Tensor, w: Tensor) -> list[int]:
    """The extents of the weights' window, which the attribute must agree with."""
    kernel = [k for k in w.shape[2:] if isinstance(k, int)]
    if len(kernel) != x.rank - 2 or x.rank < 3:
        raise UnsupportedError("kernel of unknown size")
    if list(node.attr("kernel_shape") or kernel) != kernel:
        raise UnsupportedError("kernel_shape is not that of the weights")
    return kernel


def with_channels(c: Context, x: Tensor, channels: Size) -> Tensor:
    """``x``, whose channels must be as many as the weights say: a kernel would read beyond it otherwise."""
    c.require_equal(x.shape[1], channels, "Conv: the channels differ from those of the weights")
    return x.named((x.shape[0], channels, *x.shape[2:]))


def window(
    c: Context, node: Node, spatial: Sequence[Size], kernel: Sequence[int], ceil_mode: bool = False, must_fit: bool = False
) -> tuple[list[int], list[int], list[Size], list[Size]]:
    """(strides, dilations, begin pads, output extents) from the attributes; auto_pad included. ``must_fit``: a window that is
    larger than its padded input is an error."""
    rank = len(spatial)
    if len(kernel) != rank:
        raise UnsupportedError("a window of another rank than its input")
    strides = [int(s) for s in node.attr("strides") or [1] * rank]
    dilations = [int(d) for d in node.attr("dilations") or [1] * rank]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = node.attr("auto_pad", "NOTSET")
    pads = [int(p) for p in node.attr("pads") or [0] * (2 * rank)]
    begin: list[Size] = []
    out: list[Size] = []
    for i in range(rank):
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            if dilations[i] != 1:
                raise UnsupportedError(f"auto_pad {auto} with a dilation")
            extent = ceildiv(spatial[i], strides[i])
            if not must_fit:  # ORT crops what lies beyond the last window of a convolution, and refuses to pool
                c.require(le(0, (extent - 1) * strides[i] + reach[i] - spatial[i]), "padding values must be non-negative")
            total = smax(0, (extent - 1) * strides[i] + reach[i] - spatial[i])
            begin.append(total // 2 if auto == "SAME_UPPER" else ceildiv(total, 2))
        else:
            first, last = (0, 0) if auto == "VALID" else (pads[i], pads[rank + i])
            free = spatial[i] + first + last - reach[i]
            if must_fit:
                c.require(le(0, free), "the window is larger than its input")
            extent = free // strides[i] + 1 if must_fit else _extent(c, free, spatial[i] + first, strides[i], ceil_mode)
            begin.append(first)
        out.append(extent)
    for o in out:
        c.require(le(0, o), "the window is larger than its input")
    return strides, dilations, begin, out


def _extent(c: Context, free: Size, end: Size, stride: int, ceil_mode: bool) -> Size:
    """How many windows fit where ``free`` elements are left beside one, and none starts at ``end`` or later.

    A window that does not fit once (``free`` < 0) is still counted by ORT where it lacks less than a stride.
    """
    if ceil_mode:
        extent = ceildiv(free, stride) + 1
        return extent - le(end, (extent - 1) * stride)  # a window that would start in the trailing padding is left out
    if stride == 1 or c.checks.assume(le(0, free)):
        return free // stride + 1
    return trunc_div(free, stride) + 1
