"""Code that brings tiles of a convolution's operands into shared memory: of x, whose matrix is made of coordinates on the way,
and of the packed weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.conv._places import Place, Places
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct
from xyntra_ep.tracea.kernels.gpu.gemm._tiles import PACKET, Fetch, GemmTile
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Slot
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, Var, f32, index


class _Registers:
    """What a thread moves of a tile: packets in registers on their way to shared memory."""

    def __init__(self, b: GpuBuilder, fetch: Fetch, axis: str) -> None:
        self.b, self.fetch = b, fetch
        self.layout = fetch.layout(axis)
        self.shared = b.shared(f"tile_{axis}", DType.F32, self.layout.elements, slots=2)
        place = fetch.lanes().emit(b, b.thread)
        self.o, self.k = place["o"], place["k"]
        zero = Const(f32(1), 0.0)
        self.values = {at: [b.variable("r", zero) for _ in range(fetch.packet)] for at in fetch.rounds()}

    def take(self, values: Sequence[Var], data: Pointer, at: Rvalue) -> None:
        for value, loaded in zip(values, self.b.load_packet("x", data, at, len(values)), strict=True):
            self.b.assign(value, loaded)

    def store(self, slot: Slot) -> None:
        """What the registers hold into a slot of shared memory."""
        for (more_o, more_k), values in self.values.items():
            o, k = self.o + more_o, self.k + more_k
            if not self.fetch.along_k:
                self.b.store_packet(slot, self.layout.emit(self.b, k, o), values)
                continue
            for i, value in enumerate(values):
                self.b.store(slot, self.layout.emit(self.b, k + i, o), value)


class PixelFetcher(_Registers):
    """Tiles of x. ``data``: at the first channel of the block's group; ``first``: the first step of the block's sum."""

    def __init__(
        self, b: GpuBuilder, product: ConvProduct, fetch: Fetch, axis: str, data: Pointer, places: Places, first: Rvalue
    ) -> None:
        super().__init__(b, fetch, axis)
        self._product, self._data, self._places, self._first = product, data, places, first
        self._rows = list(dict.fromkeys(o for o, _ in self.fetch.rounds()))
        self._pixels: dict[int, Place] = {}  # those whose coordinates are not in shared memory

    def begin(self) -> None:
        """Once, after the coordinates are prepared."""
        if not self._places.hoisted.pixels:
            self._pixels = {more: self._places.pixel(self.o + more) for more in self._rows}

    def load(self, step: Rvalue | int) -> None:
        """Tile ``step`` of k into registers; what is outside of x is 0."""
        grains = self._grains(self._first + step)
        for row in self._rows:
            pixel = self._pixels.get(row) or self._places.pixel(self.o + row)
            for depth, inner in grains:
                inside = self._places.inside(pixel, depth)
                if inside is None:
                    self._take_all(row, pixel, depth, inner)
                    continue
                for k in inner:
                    for value in self.values[row, k]:
                        self.b.assign(value, 0.0)
                with self.b.when(inside):
                    self._take_all(row, pixel, depth, inner)

    def _grains(self, step: Rvalue) -> list[tuple[Place, Mapping[int, Rvalue]]]:
        """The grains of channels that this thread reads of, with its element in there for each of its rounds along k."""
        grain, columns = self._places.hoisted.grain, list(dict.fromkeys(k for _, k in self.fetch.rounds()))
        if self.fetch.along_k:
            assert columns == [0], "threads side by side have all of k"
            place, inner = self._places.along(step, self.k, self.fetch.packet)
            return [(place, {0: inner})]
        if grain == 1:
            return [(self._places.depth(step, self.k + k), {k: index(0)}) for k in columns]
        parts: dict[int, dict[int, Rvalue]] = {}
        for k in columns:
            parts.setdefault(k // grain * grain, {})[k] = self.k + k % grain
        return [(self._places.depth(step, index(start)), inner) for start, inner in parts.items()]

    def _take_all(self, row: int, pixel: Place, depth: Place, inner: Mapping[int, Rvalue]) -> None:
        b = self.b
        start = b.let("from", pixel.address + depth.address)
        channel = b.param(self._product.op.inputs[0].strides[1])
        for k, element in inner.items():
            self.take(self.values[row, k], self._data, start + element * channel)


class WeightFetcher(_Registers):
    """Tiles of the packed weights: [depth][channels] of the block's group. ``data``: at the block's first channel; ``first``: as
    that of x."""

    def __init__(self, b: GpuBuilder, tile: GemmTile, axis: str, data: Pointer, row_elements: int, first: Rvalue) -> None:
        extent = tile.rows if axis == "m" else tile.columns
        super().__init__(b, Fetch(tile, extent, False, PACKET), axis)
        self._data, self._row_elements, self._first = data, row_elements, first

    def load(self, step: Rvalue | int) -> None:
        begin = self.b.let("begin", (self._first + step) * index(self.fetch.tile.depth))
        for (more_o, more_k), values in self.values.items():
            k, o = begin + self.k + more_k, self.o + more_o
            self.take(values, self._data, k * self._row_elements + o)
