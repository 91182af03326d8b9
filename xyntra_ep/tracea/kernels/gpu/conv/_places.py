"""Where a tile's pixels and steps of depth are in x: coordinates that are worked out once for a block and kept in shared memory
where they fit, and worked out by each thread wherever it needs them where they do not.

A pixel is the address of its first tap and the coordinates of that; a place in depth is what is added to both. The sum of the
coordinates must be inside x, so one of the two being `OUTSIDE` is how pixels and depths that do not exist read as 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import LaneMap
from xyntra_ep.tracea.semantic_ir.magic_division import divide, split
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, Rvalue, Select, Var, binary, index, lt


class _Tile(Protocol):
    @property
    def depth(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...


class Reading(Protocol):
    """How threads bring a tile of x: ``extent`` pixels, along depth or along pixels."""

    @property
    def tile(self) -> _Tile: ...
    @property
    def extent(self) -> int: ...
    @property
    def along_k(self) -> bool: ...
    def lanes(self) -> LaneMap: ...


OUTSIDE = -(1 << 29)  # of x, whatever is added; two of them are no overflow
_SHARED_BYTES = 96 << 10  # of tiles and coordinates, where a device lets a block have more
_BYTES = DType.I32.bytes


@dataclass(frozen=True, slots=True)
class Place:
    """An address, or what is added to one, with its coordinates along the axes that are checked."""

    address: Rvalue
    coordinates: Sequence[Rvalue]


@dataclass(frozen=True, slots=True)
class Hoisting:
    """What goes through shared memory: the coordinates of ``pixels`` pixels and of ``steps`` places in depth, ``grain`` channels
    apart. ``axes``: the spatial axes that are checked."""

    pixels: int
    steps: int
    grain: int
    axes: tuple[int, ...]

    @property
    def shared_bytes(self) -> int:
        return (self.pixels + self.steps) * (1 + len(self.axes)) * _BYTES


def hoisting(product: ConvProduct, fetch: Reading, limit_bytes: int) -> Hoisting:
    """As much as fits beside the tile, pixels first: those may take divisions by what only a run knows. Threads that read x along
    pixels have one or two of them, which they keep in registers."""
    tile, pixels = fetch.tile, fetch.extent
    ragged = product.depth % tile.depth != 0 or not is_multiple(product.pixels, pixels)
    axes = tuple(i for i in range(len(product.taps)) if product.padded(i) or (ragged and i == 0))
    grain = _grain(product, fetch)
    steps = -(-product.depth // tile.depth) * (tile.depth // grain)
    kept = pixels if fetch.along_k else 0
    # More would cost blocks at a time: registers leave room for about so much of each.
    left = min(min(limit_bytes, _SHARED_BYTES) - tile.shared_bytes, tile.shared_bytes // 2)
    choices = (Hoisting(kept, steps, grain, axes), Hoisting(kept, 0, grain, axes))
    return next((h for h in choices if h.shared_bytes <= left), Hoisting(0, 0, grain, axes))


def _grain(product: ConvProduct, fetch: Reading) -> int:
    """How many neighbouring channels have one tap wherever they begin, of those that threads read together."""
    widest = math.gcd(product.depth_channels, fetch.tile.depth)
    return widest if fetch.along_k or widest >= fetch.lanes().extent("k") else 1


class Places:
    """The pixels of a block's tile, from pixel ``first`` of ``image`` on, and depth, in code. ``prepare`` fills shared memory."""

    def __init__(
        self, b: GpuBuilder, product: ConvProduct, fetch: Reading, hoisted: Hoisting, image: Rvalue | None, first: Rvalue
    ) -> None:
        self.hoisted = hoisted
        self._b, self._product, self._fetch, self._image, self._first = b, product, fetch, image, first
        names = ("address", *(f"at{axis}" for axis in hoisted.axes))
        self._pixels = [b.shared(f"pixel_{n}", DType.I32, hoisted.pixels) for n in names] if hoisted.pixels else []
        self._steps = [b.shared(f"depth_{n}", DType.I32, hoisted.steps) for n in names] if hoisted.steps else []

    def prepare(self) -> None:
        """Every thread works out its part; all wait for it."""
        for count, tables, work_out in (
            (self.hoisted.pixels, self._pixels, self._work_out_pixel),
            (self.hoisted.steps, self._steps, lambda entry: self._work_out_depth(entry * self.hoisted.grain)),
        ):
            if tables:
                with self._b.loop("entry", self._b.thread, count, self._fetch.tile.threads) as entry:
                    place = work_out(entry)
                    for table, value in zip(tables, (place.address, *place.coordinates), strict=True):
                        self._b.store(table, entry, value)
        if self._pixels or self._steps:
            self._b.barrier()

    def pixel(self, at: Rvalue) -> Place:
        """Pixel ``at`` of the tile."""
        return self._read(self._pixels, at) if self._pixels else self._work_out_pixel(at)

    def depth(self, step: Rvalue | int, at: Rvalue) -> Place:
        """Of the grain that begins at element ``at`` of a step."""
        tile, grain = self._fetch.tile, self.hoisted.grain
        if not self._steps:
            return self._work_out_depth(self._b.let("k", step * index(tile.depth) + at))
        per_step = tile.depth // grain
        return self._read(self._steps, step * index(per_step) + at // grain)

    def along(self, step: Rvalue | int, at: Rvalue, packet: int) -> tuple[Place, Rvalue]:
        """Of the grain that element ``at`` of a step is in, the first of a packet; and what is to be added to its address."""
        grain, depth = self.hoisted.grain, self._fetch.tile.depth
        if grain <= packet:
            return self.depth(step, at), index(0)
        if grain == depth:
            return self.depth(step, index(0)), at
        return self.depth(step, binary("and", at, depth - grain)), binary("and", at, grain - 1)

    def inside(self, pixel: Place, depth: Place) -> Rvalue | None:
        """Whether an element of x is; None where all are."""
        result: Rvalue | None = None
        for axis, begin, move in zip(self.hoisted.axes, pixel.coordinates, depth.coordinates, strict=True):
            at = self._b.let("at", begin + move)
            extent = self._b.param(self._product.op.inputs[0].shape[2 + axis])
            fits = binary("and", lt(-1, at), lt(at, extent))
            result = fits if result is None else binary("and", result, fits)
        return result

    def _read(self, tables: Sequence[Var], at: Rvalue) -> Place:
        b = self._b
        address, *coordinates = (b.let(t.name.rstrip("_"), Convert(INDEX, b.load(t, at))) for t in tables)
        return Place(address, coordinates)

    def _work_out_pixel(self, at: Rvalue) -> Place:
        b, product = self._b, self._product
        op, x = product.op, product.op.inputs[0]
        number = b.let("pixel", self._first + at)
        coordinates = split(b, number, product.pixel_extents)
        image = self._image
        if product.together:
            image, *coordinates = coordinates
        assert image is not None
        address = b.param(x.offset) + image * b.param(x.strides[0])
        begins = []
        for axis, place in enumerate(coordinates):
            begins.append(b.let("begin", place * op.strides[axis] - b.param(op.pads[axis])))
            address = address + begins[-1] * b.param(x.strides[2 + axis])
        exists = None if is_multiple(product.pixels, self._fetch.extent) else lt(number, b.param(product.pixels))
        return Place(b.let("address", address), self._checked(begins, exists))

    def _work_out_depth(self, k: Rvalue) -> Place:
        b, product = self._b, self._product
        op, x = product.op, product.op.inputs[0]
        rest, channel = divide(b, k, product.depth_channels)
        taps = split(b, rest, product.taps)
        moves = [b.let("tap", tap * d) for tap, d in zip(taps, op.dilations, strict=True)]
        address = channel * b.param(x.strides[1])
        for axis, move in enumerate(moves):
            address = address + move * b.param(x.strides[2 + axis])
        exists = None if product.depth % self._fetch.tile.depth == 0 else lt(k, product.depth)
        return Place(b.let("address", address), self._checked(moves, exists))

    def _checked(self, coordinates: Sequence[Rvalue], exists: Rvalue | None) -> list[Rvalue]:
        """Those along the axes that are checked, the first of them `OUTSIDE` for what does not exist."""
        checked = [coordinates[axis] for axis in self.hoisted.axes]
        if exists is not None:
            checked[0] = self._b.let("at", Select(exists, checked[0], index(OUTSIDE)))
        return checked
