"""A convolution over rows of pixels: the one form that all channels-last kernels work on.

1-D convolutions are images of one row. A pointwise convolution (1x1, stride 1, no padding) is one row of all
pixels when the memory allows it, which leaves no remainder at the end of every row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Operand, Product
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue

_BYTES_PER_NS = 64
_TYPICAL = 32  # what a symbol is taken for where a number is needed: images are smaller than sequences are long


def typical(size: Size) -> int:
    """The value of ``size`` that estimates are made for."""
    return dims.typical(size, _TYPICAL)


def moving_ns(shape: ConvShape) -> Size:
    """Time that x and the output take through L2 beside the arithmetic; next to nothing, but in a depthwise convolution."""
    if not shape.depthwise:
        return 0
    elements = product((shape.batch, shape.y.inside, shape.x.inside, shape.channels)) + product(shape.op.domain)
    return elements * DType.F32.bytes // _BYTES_PER_NS


def overlapped(work_ns: float, stream_ns: float) -> float:
    """Time of arithmetic while weights come from memory: the longer of the two, and half of what hides behind it, because
    both wait for the same buffers between the caches (3x3 layers of 7x7 pixels on two server CPUs)."""
    return max(work_ns, stream_ns) + min(work_ns, stream_ns) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One spatial axis: output ``o`` reads x at o * stride + tap * dilation - pad, if that is in [0, inside)."""

    out: Size
    inside: Size
    kernel: int
    stride: int
    dilation: int
    pad: Size

    @property
    def overrun(self) -> Size:
        """How far the last output's taps reach past the end of x (negative: not at all)."""
        return (self.out - 1) * self.stride + (self.kernel - 1) * self.dilation + 1 - self.pad - self.inside

    @property
    def is_inside(self) -> bool:
        """Whether no tap of any output is outside x."""
        return self.pad == 0 and known_nonnegative(-1 * self.overrun)

    @property
    def is_fixed(self) -> bool:
        return isinstance(self.out, int) and isinstance(self.inside, int) and isinstance(self.pad, int)


_ONE = Line(out=1, inside=1, kernel=1, stride=1, dilation=1, pad=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvShape:
    """``cin`` and ``cout`` are those of one group. Strides of x are per image, row and pixel; its channels are adjacent.
    ``pixel_axes``: the axes of the output's domain that ``x`` counts. ``depthwise``: output channel c sees channel c of x
    alone, or few in the same vector; then all channels are one group and ``cin`` counts those that it sees."""

    op: Conv
    groups: int
    cin: int
    cout: int
    y: Line
    x: Line
    x_offset: Size
    x_strides: tuple[Size, Size, int]
    row_axes: tuple[int, ...]
    pixel_axes: tuple[int, ...]
    depthwise: bool

    @property
    def channels(self) -> int:
        """Channels of x."""
        return self.cout if self.depthwise else self.groups * self.cin

    @property
    def batch(self) -> Size:
        return self.op.domain[0]

    @property
    def taps_are_adjacent(self) -> bool:
        """Whether the taps of a kernel row lie in memory like one long pixel."""
        return self.x.dilation == 1 and self.x_strides[2] == self.cin

    def epilogue_groups(self) -> tuple[Group, ...]:
        """How the kernels count the output's domain: image, channel (the lanes), row, pixel."""
        axes = ((0,), (1,), self.row_axes, self.pixel_axes)
        domain = self.op.domain
        return tuple(Group(axes=a, extents=tuple(domain[i] for i in a)) for a in axes if a)

    def point(self, image: Rvalue, channel: Rvalue, row: Rvalue, pixel: Rvalue) -> list[Rvalue]:
        """Indices of the groups above."""
        return [image, channel, row, pixel] if self.row_axes else [image, channel, pixel]


def why_not_channels_last(op: Conv, context: BuildContext, of_integers: bool = False) -> str | None:
    """None when ``ConvShape`` can describe ``op``, a product of integers or of floats, else what is in the way."""
    x, w, out = op.inputs[0], op.inputs[1], op.output
    if (op.product is Product.I32) != of_integers:
        return f"the product is in {op.product}"
    if len(op.strides) not in (1, 2):
        return f"{len(op.strides)} spatial axes"
    if not of_integers and not all(o.dtype.is_float for o in (x, w, out)):
        return "x, w and the output must be floating point"
    if not context.is_constant(w.value):
        return "w is not a constant"
    if any(not isinstance(s, int) for s in (*w.shape, *w.strides, w.offset)):
        return "w's shape is not fixed"
    for name, operand in (("x", x), ("the output", out)):
        if operand.strides[1] != 1 and operand.shape[1] != 1:
            return f"the channels of {name} are not adjacent"
    if not isinstance(x.strides[-1], int) and x.shape[-1] != 1:
        return "the step from pixel to pixel of x is not fixed"
    if x.shape[1] == 0 or out.shape[1] == 0 or 0 in w.shape:
        return "there are no channels or taps"
    return None


def conv_shape(op: Conv) -> ConvShape:
    """The shape of an op that ``why_not_channels_last`` lets through."""
    x, w = op.inputs[:2]
    lines = [
        Line(out=out, inside=inside, kernel=_fixed(kernel), stride=stride, dilation=dilation, pad=pad)
        for out, inside, kernel, stride, dilation, pad in zip(
            op.domain[2:], x.shape[2:], w.shape[2:], op.strides, op.dilations, op.pads, strict=True
        )
    ]
    pixel_step = x.strides[-1] if isinstance(x.strides[-1], int) else 0
    y, last, row_step = lines[0], lines[-1], x.strides[2]
    row_axes: tuple[int, ...] = (2,)
    pixel_axes: tuple[int, ...] = (3,)
    if len(lines) == 1 or _is_one_row(op, lines):
        y, row_step, row_axes, pixel_axes = _ONE, 0, (), tuple(range(2, len(op.domain)))
    if len(lines) == 2 and not row_axes:
        pixels = product(op.domain[2:])
        last = Line(out=pixels, inside=pixels, kernel=1, stride=1, dilation=1, pad=0)
    depthwise = 1 < op.group == w.shape[0] == x.shape[1]
    groups = 1 if depthwise else op.group
    return ConvShape(
        op=op, groups=groups, cin=_fixed(w.shape[1]), cout=_fixed(w.shape[0]) // groups, y=y, x=last, depthwise=depthwise,
        x_offset=x.offset, x_strides=(x.strides[0], row_step, pixel_step), row_axes=row_axes, pixel_axes=pixel_axes,
    )  # fmt: skip


def _is_one_row(op: Conv, lines: Sequence[Line]) -> bool:
    plain = all(li.kernel == 1 and li.stride == 1 and li.pad == 0 and li.out == li.inside for li in lines)
    return plain and all(_rows_are_adjacent(o) for o in (op.inputs[0], op.output))


def _rows_are_adjacent(operand: Operand) -> bool:
    return operand.strides[2] == operand.strides[3] * operand.shape[3]


def _fixed(size: Size) -> int:
    assert isinstance(size, int)
    return size
