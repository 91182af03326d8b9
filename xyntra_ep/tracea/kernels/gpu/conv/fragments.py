"""conv.fragments: convolutions of 16-bit floats, or of tf32, by the matrix units of NVIDIA GPUs (compute capability 8.0 and
later), summed in f32, where channels of the result are neighbours in memory; x is copied where its own are not, in packets.

As `conv.implicit_gemm`, a product whose left matrix is in no memory: packets of channels are copied from x to shared memory by
coordinates, while steps before them are multiplied; a copy of what is outside of x reads nothing and fills in zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.gpu.conv._channels import channels_of, why_no_channels
from xyntra_ep.tracea.kernels.gpu.conv._places import Place, Places, hoisting
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct
from xyntra_ep.tracea.kernels.gpu.conv._store import Results
from xyntra_ep.tracea.kernels.gpu.conv._weights import pack, packed, padded_channels, padded_depth
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import AXIS as PARTS
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import MOST, End, Parts, Sums, meeting_ns, parts_of
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import tiles_ns, wanted
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_product import Copier, multiply
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_tiles import Copy, FragmentTile
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.magic_division import split
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Select, Var, index

_PEAK = 0.5  # of the matrix units' rate
_EXTENTS = (64, 128)
_SLOTS = (2, 3)
_STEP_BYTES = 64  # of a row of k in shared memory
_WARP = {"warp_columns": 32, "held": 1}  # more sums or fragments would leave no registers for coordinates, or a second block
SPACE = (Axis(name="rows", values=_EXTENTS), Axis(name="columns", values=_EXTENTS), Axis(name="slots", values=_SLOTS), PARTS)


def all_tiles(dtype: DType) -> list[FragmentTile]:
    """The search space."""
    return [tile_of({"rows": m, "columns": n, "slots": s}, dtype) for m in _EXTENTS for n in _EXTENTS for s in _SLOTS]


def tile_of(config: Config, dtype: DType) -> FragmentTile:
    depth = _STEP_BYTES // dtype.bytes
    return FragmentTile(config["rows"], config["columns"], config["slots"], depth, **_WARP, dtype=dtype)


def _admits(op: Conv, context: BuildContext) -> str | None:
    return why_no_channels(op) if gpu_of(context).fragment_gflops else "the GPU has no matrix units that are known"


def _space(op: Conv, context: BuildContext) -> Sequence[Axis]:
    return SPACE


def _default(op: Conv, context: BuildContext) -> Config:
    source, gpu = channels_of(op), gpu_of(context)
    shape = source.product
    fitting = [t for t in all_tiles(source.dtype) if t.shared_bytes <= gpu.common_shared_bytes]

    known = isinstance(shape.images * shape.pixels, int)

    def order(choice: tuple[FragmentTile, int]) -> tuple[float, ...]:
        tile, most = choice
        # Coordinates that stay in registers are what costs the largest tiles their second block.
        kept = hoisting(shape, _pixels_of(tile), gpu.shared_bytes).pixels > 0
        # Where only a run knows how many blocks there are, parts cost nothing until they are needed.
        return _tiles_ns(shape, tile, most, gpu), not kept, -tile.rows * tile.columns, -tile.slots, most if known else -most

    best, most = min(combinations(fitting, MOST), key=order)
    return {"rows": best.rows, "columns": best.columns, "slots": best.slots, "parts": most}


def _pixels_of(tile: FragmentTile) -> Copy:
    return Copy(tile, tile.rows, along_k=True, is_a=True)


def _blocks(shape: ConvProduct, tile: FragmentTile) -> Size:
    tiles = ceildiv(shape.pixels, tile.rows) * ceildiv(shape.channels, tile.columns)
    return shape.images * shape.op.group * tiles


def _parts(shape: ConvProduct, tile: FragmentTile, tiles: Size, most: int, gpu: Gpu) -> Parts:
    return parts_of(padded_depth(shape, tile.depth), tile.depth, tiles, wanted(tile.threads, gpu), most)


def _tiles_ns(shape: ConvProduct, tile: FragmentTile, most: int, gpu: Gpu) -> float:
    tiles = typical(_blocks(shape, tile))
    parts = _parts(shape, tile, tiles, most, gpu)
    ns = tiles_ns(parts.count * tiles, tile.work(typical(parts.length)), gpu.fragment_rate(tile.dtype) * _PEAK, gpu)
    return ns + meeting_ns(parts, typical(product(shape.op.domain)), gpu)


def _cost_ns(op: Conv, config: Config, context: BuildContext) -> float:
    channels, gpu = channels_of(op), gpu_of(context)
    tile = tile_of(config, channels.dtype)
    return LAUNCH_NS + channels.copying_ns(gpu) + _tiles_ns(channels.product, tile, config["parts"], gpu)


def _build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    source, gpu = channels_of(op), gpu_of(context)
    shape, dtype = source.product, source.dtype
    tile = tile_of(config, dtype)
    k = GpuBuilder(f"xy_conv{len(shape.taps)}d_{dtype}_fragments_{tile.rows}x{tile.columns}", tile.threads)
    x_data, w_data = k.buffer("x", dtype), k.buffer("w", dtype)
    parts = _parts(shape, tile, _blocks(shape, tile), config["parts"], gpu)
    sums = Sums(k, op, shape.groups(), parts, context)

    tiles = ceildiv(shape.pixels, tile.rows), ceildiv(shape.channels, tile.columns)
    count = [parts.count] if parts.is_cut else []
    *part, image, group, pixel_tile, channel_tile = split(k, k.block, [*count, shape.images, op.group, *tiles])
    pixel, channel = k.let("pixel", pixel_tile * tile.rows), k.let("channel", channel_tile * tile.columns)
    apart = None if shape.together else image
    depth, channels = padded_depth(shape, tile.depth), padded_channels(shape, tile.columns)
    copy = _pixels_of(tile)
    places = Places(k, shape, copy, hoisting(shape, copy, gpu.shared_bytes), apart, pixel)
    x_group = k.pointer("start", x_data, group * shape.depth_channels)
    w_group = k.pointer("start", w_data, group * (depth * channels) + channel)
    begin, end = parts.range(k, part[0] if part else index(0))
    first = k.let("first", begin // tile.depth)
    pixels = _PixelCopier(k, shape, copy, x_group, places, first)
    weights = _WeightCopier(k, shape, Copy(tile, tile.columns, along_k=False, is_a=False), w_group, channels, first)
    places.prepare()
    pixels.begin()
    totals = multiply(k, tile, pixels, weights, parts.steps(k, begin, end, tile.depth))

    def finish(end: End) -> None:
        results = Results(k, shape, end.epilogue, end.op.output, end.target, apart, group)
        _finish(k, tile, results, totals, pixel, channel)

    sums.finish(part[0] if part else index(0), finish)
    kernel, params = k.finish()
    work = 2 * shape.images * op.group * shape.pixels * shape.channels * shape.depth
    return [
        pack(shape, tile.depth, tile.columns, dtype, context),
        *source.copies(context),
        KernelCall(
            kernel=kernel,
            buffers=(
                source.buffer,
                packed(shape, tile.depth, tile.columns, dtype),
                *sums.buffers,
            ),
            params=params,
            units=parts.count * _blocks(shape, tile),
            cost_ns=work // int(gpu.fragment_rate(dtype) * _PEAK) + LAUNCH_NS,
        ),
        *sums.meeting(),
    ]


def _finish(
    k: GpuBuilder,
    tile: FragmentTile,
    results: Results,
    sums: dict[tuple[int, int], list[Var]],
    pixel: Rvalue,
    channel: Rvalue,
) -> None:
    """Store a thread's sums: of each matrix a pair of neighbouring channels of two pixels, 8 apart."""
    here = tile.warps().emit(k, k.thread)
    lane, width = here["lane"], min(2, results.width)
    for (i, j), values in sums.items():
        for half in range(2):
            m = k.let("m", pixel + here["m"] + 16 * i + lane // 4 + 8 * half)
            with results.row_exists(m, tile.rows):
                for first in range(0, 2, width):
                    n = k.let("n", channel + here["n"] + 8 * j + lane % 4 * 2 + first)
                    with results.column_exists(n, tile.columns):
                        results.put(results.here(), m, n, values[2 * half + first : 2 * half + first + width])


class _PixelCopier(Copier):
    """Tiles of x. ``data``: at the first channel of the block's group; ``first``: the first step of the block's sum."""

    def __init__(self, k: GpuBuilder, product: ConvProduct, copy: Copy, data: Pointer, places: Places, first: Rvalue) -> None:
        super().__init__(k, product.op.inputs[0].dtype, copy)
        self._data, self._places, self._first = data, places, first
        self._pixels: dict[int, Place] = {}  # those whose coordinates are not in shared memory

    def begin(self) -> None:
        """Once, after the coordinates are prepared."""
        if not self._places.hoisted.pixels:
            self._pixels = {more: self._places.pixel(self.place["o"] + more) for more in self.copy.rounds()}

    def fetch(self, step: Rvalue) -> None:
        k, at = self.k, self.place["k"]
        slot, packet = k.slot(self.shared, step % self.copy.tile.slots), self.copy.tile.packet
        depth, inner = self._places.along(step + self._first, at, packet)
        for more in self.copy.rounds():
            o = self.place["o"] + more
            pixel = self._pixels.get(more) or self._places.pixel(o)
            inside = self._places.inside(pixel, depth)
            valid = None if inside is None else k.let("valid", Select(inside, index(packet), index(0)))
            source = pixel.address + depth.address + inner
            k.copy_async(slot, self.layout.emit(k, o, at), self._data, source, packet, valid)


class _WeightCopier(Copier):
    """Tiles of the packed weights: [depth][channels] of the block's group. ``data``: at the block's first channel; ``first``: as
    that of x."""

    def __init__(self, k: GpuBuilder, product: ConvProduct, copy: Copy, data: Pointer, row_elements: int, first: Rvalue) -> None:
        super().__init__(k, product.op.inputs[0].dtype, copy)
        self._data, self._row_elements, self._first = data, row_elements, first

    def fetch(self, step: Rvalue) -> None:
        k, o = self.k, self.place["o"]
        begin = k.let("begin", (step + self._first) * self.copy.tile.depth)
        slot, packet = k.slot(self.shared, step % self.copy.tile.slots), self.copy.tile.packet
        for more in self.copy.rounds():
            at = self.place["k"] + more
            k.copy_async(slot, self.layout.emit(k, at, o), self._data, (begin + at) * self._row_elements + o, packet)


VARIANTS = [
    Variant(
        name="conv.fragments",
        op=Conv,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=0,
    )
]
