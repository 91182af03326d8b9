"""Transposed convolutions: every element of x is spread over a window of the result.

With windows that are not dilated, what lies at positions of the same remainder by the strides (a phase) is an ordinary
convolution of x with every stride-th element of the kernel. Phases with as many elements are one convolution of as many times
the channels. What they make is then put in order:

    y[n, m, s * q + r - pad] = bias[m] + sum over (c, j) of x[n, c, q - j] * w[c, m, s * j + r]      0 <= r < s
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.frames import materialise
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, clamp_index, f, float_input, maybe, one, within
from xyntra_ep.fusion.onnx_ops._window import channels_last, from_last, kernel_of, with_channels
from xyntra_ep.fusion.onnx_ops.products.convolution import CONV_ATTRIBUTES, with_bias
from xyntra_ep.fusion.onnx_ops.products.linear import as_dtype
from xyntra_ep.fusion.op_spec import FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import ConvNode, Map, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, ceildiv, lt, smax
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr


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
    """By phases where it can be; else a convolution with the turned kernel over x with zeros put between its elements."""
    x, w, bias = float_input(inputs, 0), one(inputs, 1), maybe(inputs, 2)
    kernel = kernel_of(node, x, w)
    rank, group = len(kernel), int(node.attr("group", 1))
    channels = w.shape[0]
    if not isinstance(channels, int) or channels % group:
        raise UnsupportedError("ConvTranspose of an unknown number of channels")
    x = with_channels(c, x, channels)
    dilations = [int(d) for d in node.attr("dilations") or [1] * rank]
    for spatial in x.shape[2:]:
        if isinstance(spatial, Dim) and node.attr("output_shape") is not None:
            raise UnsupportedError("ConvTranspose to a given shape from an unknown one")
    pads, out = _transposed_window(node, x.shape[2:], kernel)
    for extent in out:
        c.require(lt(0, extent), "Computed output dimension is <= 0")
    strides = [int(s) for s in node.attr("strides") or [1] * rank]
    is_depthwise = group > 1 and w.shape[1] == 1  # its phases would be results of single elements, far from each other
    phases = None if is_depthwise else _phases(strides, kernel, dilations, pads)
    if phases is not None:
        return phases.result(c, x, w, bias, out, group)
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    spread = _spread(x, strides, [r - p for r, p in zip(reach, pads, strict=True)],
                     [o + r for o, r in zip(out, reach, strict=True)])  # fmt: skip
    per_group = w.reshape((group, channels // group, *w.shape[1:])).permute((0, 2, 1, *range(3, rank + 3)))
    m = group * w.shape[1]
    grouped = per_group.reshape((m, channels // group, *kernel))
    turned = grouped.slice([0, 0, *(k - 1 for k in kernel)], [1, 1, *([-1] * rank)], grouped.shape)
    conv = ConvNode(
        x=spread, w=materialise(turned), strides=(1,) * rank, dilations=tuple(dilations), pads=(0,) * rank, group=group
    )
    return with_bias(c, conv, out, bias, x.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Phases whose kernels have the same ``taps`` along each axis: ``number`` remainders from ``first`` on."""

    first: Sequence[int]
    number: Sequence[int]
    taps: Sequence[int]

    @property
    def phases(self) -> int:
        return math.prod(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phases:
    """``parts``: the convolutions that it takes, one where the strides divide the kernel."""

    strides: Sequence[int]
    kernel: Sequence[int]
    pads: Sequence[int]

    @property
    def begins(self) -> list[int]:
        """The q of the first element of the result."""
        return [p // s for p, s in zip(self.pads, self.strides, strict=True)]

    @property
    def parts(self) -> list[_Part]:
        """Those that have taps: what a kernel smaller than a stride does not reach is 0."""
        axes: list[list[tuple[int, int, int]]] = []
        for k, s in zip(self.kernel, self.strides, strict=True):
            taps, longer = -(-k // s), (k - 1) % s + 1
            shorter = [(longer, s - longer, taps - 1)] if longer < s and taps > 1 else []
            axes.append([(0, longer, taps), *shorter])
        found = []
        for along in product(*axes):
            first, number, sizes = zip(*along, strict=True)
            found.append(_Part(first=first, number=number, taps=sizes))
        return found

    @property
    def reach_all(self) -> bool:
        """Whether every element of the result has a tap."""
        return all(k >= s for k, s in zip(self.kernel, self.strides, strict=True))

    @property
    def begin_before(self) -> bool:
        """Whether no window begins behind the first element of x."""
        return all(min(taps) > q for *taps, q in zip(*(part.taps for part in self.parts), self.begins, strict=True))

    def result(self, c: Context, x: Tensor, w: Tensor, bias: Tensor | None, out: Sequence[Size], group: int) -> Tensor:
        per_group = w.shape[1]
        if not isinstance(per_group, int):
            raise UnsupportedError("ConvTranspose of an unknown number of channels")
        if bias is not None:
            if bias.rank != 1:
                raise UnsupportedError("a bias that is no vector")
            c.require_equal(bias.size, group * per_group, "bias must be a 1D tensor of size output_channels")
        x_last = channels_last(x)
        extents = [
            (o - 1 + p) // s - q + 1 for o, p, s, q in zip(out, self.pads, self.strides, self.begins, strict=True)
        ]  # fmt: skip
        made = []
        for part in self.parts:
            conv = ConvNode(
                x=x_last,
                w=materialise(self._weights(part, w, group, per_group)),
                strides=(1,) * len(out),
                dilations=(1,) * len(out),
                pads=tuple(taps - 1 - q for taps, q in zip(part.taps, self.begins, strict=True)),
                group=group,
            )
            made.append(Tensor((x.shape[0], *extents, conv.w.shape[0]), DType.F32, conv))
        return as_dtype(self._in_order(made, bias, out, group, per_group), x.dtype).permute(from_last(x.rank))

    def _weights(self, part: _Part, w: Tensor, group: int, per_group: int) -> Tensor:
        """w [C, M/G, kernel...] as [G * phases * M/G, C/G, taps...], turned."""
        m, channel = E.axis(0), E.axis(1)
        inner = w.shape[0] // group
        at = []
        phase = E.call("mod", E.call("div", m, E.const(per_group)), E.const(part.phases))
        behind = part.phases
        for i, (stride, first, number, taps) in enumerate(zip(self.strides, part.first, part.number, part.taps, strict=True)):
            behind //= number
            remainder = E.call("mod", E.call("div", phase, E.const(behind)), E.const(number))
            tap = E.call("mul", E.call("sub", E.const(taps - 1), E.axis(2 + i)), E.const(stride))
            place = E.call("add", tap, E.call("add", remainder, E.const(first)))
            at.append(place)
        source = E.call("add", E.call("mul", E.call("div", m, E.const(part.phases * per_group)), E.size(inner)), channel)
        value = E.load(0, source, E.call("mod", m, E.const(per_group)), *at, dtype=w.dtype)
        shape = (group * part.phases * per_group, inner, *part.taps)
        return Tensor(shape, w.dtype, Map(inputs=(w,), body=value))

    def _in_order(self, made: Sequence[Tensor], bias: Tensor | None, out: Sequence[Size], group: int, per_group: int) -> Tensor:
        """Of each part [N, q..., G * phases * M/G], all as [N, spatial..., M], with the bias."""
        home, m = E.axis(len(out) + 1), E.axis(len(out) + 2)
        at, remainders = [], []
        for i, (stride, pad) in enumerate(zip(self.strides, self.pads, strict=True)):
            place = E.call("add", E.axis(1 + i), E.const(pad % stride))
            at.append(E.call("div", place, E.const(stride)))
            remainders.append(E.call("mod", place, E.const(stride)))
        body: Expr | None = None if self.reach_all else f(0)
        for number, part in enumerate(self.parts):
            phase: Expr = E.const(0)
            here: Expr | None = None
            for remainder, first, count, stride in zip(remainders, part.first, part.number, self.strides, strict=True):
                digit = remainder
                if count < stride:
                    digit = E.call("sub", remainder, E.const(first))
                    mine = within(digit, count)
                    here = mine if here is None else E.call("and", here, mine)
                    digit = clamp_index(digit, count)
                phase = E.call("add", E.call("mul", phase, E.const(count)), digit)
            block = E.call("add", E.call("mul", home, E.const(part.phases)), phase)
            channel = E.call("add", E.call("mul", block, E.const(per_group)), m)
            value = E.load(number, E.axis(0), *at, channel, dtype=DType.F32)
            body = value if body is None or here is None else E.call("where", here, value, body)
        assert body is not None
        inputs = list(made)
        if bias is not None:
            channel = E.call("add", E.call("mul", home, E.const(per_group)), m)
            body = E.call("add", body, E.load(len(inputs), channel, dtype=bias.dtype))
            inputs.append(bias)
        apart = Tensor((made[0].shape[0], *out, group, per_group), DType.F32, Map(inputs=tuple(inputs), body=body))
        return apart.reshape((made[0].shape[0], *out, group * per_group))


def _phases(strides: Sequence[int], kernel: Sequence[int], dilations: Sequence[int], pads: Sequence[Size]) -> _Phases | None:
    """None where a window is dilated, or cut by as much as is not known or by more than a phase has."""
    known = [p for p in pads if isinstance(p, int)]
    if any(d != 1 for d in dilations) or len(known) != len(pads):
        return None
    if any(not 0 <= p < k for p, k in zip(known, kernel, strict=True)):
        return None
    phases = _Phases(strides=strides, kernel=kernel, pads=known)
    return phases if phases.begin_before else None


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
        name="ConvTranspose",
        lower=_conv_transpose,
        versions=(1, 22),
        inputs=3,
        attributes={**CONV_ATTRIBUTES, **takes("output_padding", "output_shape")},
        types=(FLOATS,),
    ),
]
