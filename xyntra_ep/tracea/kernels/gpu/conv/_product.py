"""A convolution as products: for each group, pixels x channels, summed over depth = taps x the group's channels of x.

The matrix of x exists in no memory: what is at pixel p and depth k follows from coordinates. Depth counts taps first, channels
last, so that whole steps of it have one tap wherever the channels are many enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, known_nonnegative, product
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.gpu.gemm._tiles import PACKET, Fetch, GemmTile
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.shared.affine import CONSTANT
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.variant import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvProduct:
    """``together``: the pixels of all images are one axis, because they are so in the memory of the output; else each image is a
    product of its own. ``taps``, ``channels`` (of a group's outputs) and ``depth_channels`` (of its inputs) are constants."""

    op: Conv
    together: bool
    taps: tuple[int, ...]
    channels: int
    depth_channels: int

    @property
    def images(self) -> Size:
        """Products beside each other."""
        return 1 if self.together else self.op.domain[0]

    @property
    def pixel_axes(self) -> tuple[int, ...]:
        first = 0 if self.together else 2
        return tuple(i for i in range(first, len(self.op.domain)) if i != 1)

    @property
    def pixel_extents(self) -> tuple[Size, ...]:
        return tuple(self.op.domain[i] for i in self.pixel_axes)

    @property
    def pixels(self) -> Size:
        return product(self.pixel_extents)

    @property
    def depth(self) -> int:
        return product(self.taps) * self.depth_channels  # type: ignore[return-value]  # all are constants

    @property
    def channels_last(self) -> bool:
        """Whether neighbouring channels of the output are neighbours in memory."""
        return self.op.output.strides[1] == 1

    def groups(self) -> list[Group]:
        """Of the epilogue: images where they are apart, then the rows and the columns of a tile."""
        image = [] if self.together else [Group(axes=(0,), extents=(self.op.domain[0],))]
        pixels = Group(axes=self.pixel_axes, extents=self.pixel_extents)
        channels = Group(axes=(1,), extents=(self.op.domain[1],))
        return [*image, pixels, channels] if self.channels_last else [*image, channels, pixels]

    def tile(self, config: Config) -> GemmTile:
        """Columns are what the output has side by side."""
        pixels, channels = config["pixels"], config["channels"]
        return GemmTile(rows=pixels, columns=channels) if self.channels_last else GemmTile(rows=channels, columns=pixels)

    def blocks(self, config: Config) -> Size:
        tiles = ceildiv(self.pixels, config["pixels"]) * ceildiv(self.channels, config["channels"])
        return self.images * self.op.group * tiles

    def padded(self, axis: int) -> bool:
        """Whether a tap may be outside of x along a spatial axis."""
        op, taps = self.op, self.taps[axis]
        last = (op.domain[2 + axis] - 1) * op.strides[axis] + (taps - 1) * op.dilations[axis] - op.pads[axis]
        return not (known_nonnegative(op.pads[axis] * -1) and known_nonnegative(op.inputs[0].shape[2 + axis] - 1 - last))

    @property
    def along_depth(self) -> bool:
        """Whether x is read in the direction of its channels."""
        return self.op.inputs[0].strides[1] == 1

    def fetch(self, tile: GemmTile) -> Fetch:
        """How x is read."""
        return Fetch(tile, tile.rows if self.channels_last else tile.columns, self.along_depth, self._packet())

    def has_channels_in_packets(self, of: int) -> bool:
        """Whether x can be read in aligned packets of so many channels."""
        x = self.op.inputs[0]
        image, channel, *spatial = x.strides
        return channel == 1 and all(is_multiple(s, of) for s in (self.depth_channels, x.offset, image, *spatial))

    def _packet(self) -> int:
        """Elements of x that are read at once, along its channels or, where a pixel of the output is one of x, along pixels."""
        x, op = self.op.inputs[0], self.op
        image, channel, *spatial = x.strides
        if self.along_depth:
            return PACKET if self.has_channels_in_packets(PACKET) else 1
        same = all(n == 1 for n in (*op.strides, *self.taps)) and all(p == 0 for p in op.pads) and x.shape[2:] == op.domain[2:]
        rows = Group(axes=tuple(range(len(spatial))), extents=op.domain[2:])
        dense = rows.merged({CONSTANT: 0, **dict(enumerate(spatial))}) == 1
        aligned = all(is_multiple(s, PACKET) for s in (product(op.domain[2:]), x.offset, image, channel))
        return PACKET if same and dense and aligned else 1


def why_no_product(op: Conv) -> str | None:
    """None where the op has a ``product_of``."""
    known = all(isinstance(n, int) for n in (*op.inputs[1].shape, op.domain[1]))
    return None if known else "the weights' shape is not constant"


def product_of(op: Conv) -> ConvProduct:
    """Of an op whose weights have a known shape."""
    sizes = [n for n in (*op.inputs[1].shape, op.domain[1]) if isinstance(n, int)]
    assert len(sizes) == len(op.inputs[1].shape) + 1, why_no_product(op)
    _, depth_channels, *taps, channels = sizes
    axes = tuple(i for i in range(len(op.domain)) if i != 1)
    pixels = Group(axes=axes, extents=tuple(op.domain[i] for i in axes))
    together = pixels.merged({CONSTANT: 0, **dict(enumerate(op.output.strides))}) is not None
    return ConvProduct(op=op, together=together, taps=tuple(taps), channels=channels // op.group, depth_channels=depth_channels)
