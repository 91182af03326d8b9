"""Convolution over channels-last images to few channels: each output is a dot product along the channels of x."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._dots import Dots, build_dots, most_outputs
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape, why_not_channels_last
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

_MOST_OUTPUTS = 64  # a panel of them reads all of x
_MOST_BYTES = 128 << 10  # on the stack, of what a strip at the end of a row reads
_FEWEST_LANES = 4
_LARGEST = 8  # output channels of a panel


def narrowed(op: Conv, caps: Capabilities) -> Capabilities:
    """``caps`` with vectors as wide as the units that multiply: wider ones gain nothing, and those of x that are not aligned
    take twice as long to load (Zen 4: 100 of 115 GFLOP/s, and 48 to 80 by 512 bits). And no wider than a run of x is long."""
    lanes, gflops, run = caps.lanes, caps.fma_gflops, Dots(shape=conv_shape(op), pixels=1, outputs=1, lanes=1).length
    if caps.halves:
        lanes //= 2
    while run < lanes and lanes > _FEWEST_LANES:
        lanes, gflops = lanes // 2, gflops / 2
    return replace(caps, lanes=lanes, fma_gflops=gflops)


def admits(op: Conv, context: BuildContext) -> str | None:
    if op.group != 1:
        return f"{op.group} groups"
    if context.caps.lanes < _FEWEST_LANES:
        return "no vectors"
    if (why := why_not_channels_last(op, context)) is not None:
        return why
    shape = conv_shape(op)
    if shape.cout > _MOST_OUTPUTS:
        return f"{shape.cout} output channels"
    if shape.x_strides[2] != shape.cin:
        return "the pixels of x are not adjacent"
    tile = Dots(shape=shape, pixels=1, outputs=1, lanes=narrowed(op, context.caps).lanes)
    if tile.length < tile.lanes:
        return f"runs of {tile.length} elements"
    size = tile.edges.elements * DType.F32.bytes
    return None if size <= _MOST_BYTES else f"{size >> 10} KiB of x at the end of a row"


def space(op: Conv, context: BuildContext) -> list[Axis]:
    lanes = narrowed(op, context.caps).lanes
    pixels = tuple(1 << i for i in range(lanes.bit_length()))
    return [Axis(name="pixels", values=pixels), Axis(name="outputs", values=tuple(range(1, _LARGEST + 1)))]


def _tiles(op: Conv, context: BuildContext) -> Sequence[Dots]:
    """Panels of nearly equal size that fit in the registers."""
    caps, shape = narrowed(op, context.caps), conv_shape(op)
    found = []
    for pixels in space(op, context)[0].values:
        most = min(_LARGEST, most_outputs(pixels, caps))
        panels = -(-shape.cout // most)
        found.append(Dots(shape=shape, pixels=pixels, outputs=-(-shape.cout // panels), lanes=caps.lanes))
    return found


def default(op: Conv, context: BuildContext) -> Config:
    best = min(_tiles(op, context), key=lambda tile: tile.strip_ns(narrowed(op, context.caps)))
    return {"pixels": best.pixels, "outputs": best.outputs}


def _dots(op: Conv, config: Config, context: BuildContext) -> Dots:
    lanes = narrowed(op, context.caps).lanes
    return Dots(shape=conv_shape(op), pixels=config["pixels"], outputs=config["outputs"], lanes=lanes)


def _build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    return build_dots(_dots(op, config, context), replace(context, caps=narrowed(op, context.caps)))


VARIANTS = [
    Variant(
        name="conv.nhwc_dots",
        op=Conv,
        admits=admits,
        space=space,
        default=default,
        cost_ns=lambda op, config, context: _dots(op, config, context).cost_ns(narrowed(op, context.caps)),
        build=_build,
        rank=10,
    )
]
