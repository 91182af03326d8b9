"""Convolution over channels-last images to few channels: each output is a dot product along the channels of x."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu._conv_dots import Dots, build_dots, dots_of, most_outputs
from xyntra_ep.tracea.kernels.cpu._conv_shape import conv_shape, why_not_channels_last
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, Variant

_MOST_OUTPUTS = 64  # a panel of them reads all of x
_MOST_BYTES = 128 << 10  # on the stack, of what a strip at the end of a row reads
_LARGEST = 8  # output channels of a panel


def admits(op: Conv, context: BuildContext) -> str | None:
    lanes = context.caps.lanes
    if op.group != 1:
        return f"{op.group} groups"
    if lanes == 1:
        return "no vectors"
    if (why := why_not_channels_last(op, context)) is not None:
        return why
    shape = conv_shape(op)
    if shape.cout > _MOST_OUTPUTS:
        return f"{shape.cout} output channels"
    if shape.x_strides[2] != shape.cin:
        return "the pixels of x are not adjacent"
    edges = Dots(shape=shape, pixels=1, outputs=1, lanes=lanes).edges
    size = edges.elements * DType.F32.bytes
    return None if size <= _MOST_BYTES else f"{size >> 10} KiB of x at the end of a row"


def space(op: Conv, context: BuildContext) -> list[Axis]:
    lanes = context.caps.lanes
    pixels = tuple(1 << i for i in range(lanes.bit_length()))
    return [Axis(name="pixels", values=pixels), Axis(name="outputs", values=tuple(range(1, _LARGEST + 1)))]


def _tiles(op: Conv, context: BuildContext) -> Sequence[Dots]:
    """Panels of nearly equal size that fit in the registers."""
    caps, shape = context.caps, conv_shape(op)
    found = []
    for pixels in space(op, context)[0].values:
        most = min(_LARGEST, most_outputs(pixels, caps))
        panels = -(-shape.cout // most)
        found.append(Dots(shape=shape, pixels=pixels, outputs=-(-shape.cout // panels), lanes=caps.lanes))
    return found


def default(op: Conv, context: BuildContext) -> Config:
    best = min(_tiles(op, context), key=lambda tile: tile.strip_ns(context.caps))
    return {"pixels": best.pixels, "outputs": best.outputs}


VARIANTS = [
    Variant(
        name="conv.nhwc_dots",
        op=Conv,
        admits=admits,
        space=space,
        default=default,
        cost_ns=lambda op, config, context: dots_of(conv_shape(op), config, context.caps.lanes).cost_ns(context.caps),
        build=lambda op, config, context: build_dots(dots_of(conv_shape(op), config, context.caps.lanes), context),
        rank=10,
    )
]
