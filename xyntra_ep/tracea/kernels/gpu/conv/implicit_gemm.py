"""conv.implicit_gemm: convolutions of floats as products, by fused multiply-adds, in tiles of shared memory, on any GPU. The
matrix of x is never in memory: blocks read x by coordinates, which they keep in shared memory where those fit.

Groups are products beside each other; where blocks are too few, so are parts of the sum. Strides, pads, dilations and the layout
of x and the output are any; images and their sizes may be known at run time only, the weights' shape may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.gpu.conv._fetch import PixelFetcher, WeightFetcher
from xyntra_ep.tracea.kernels.gpu.conv._places import Places, hoisting
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct, product_of, why_no_product
from xyntra_ep.tracea.kernels.gpu.conv._store import Results
from xyntra_ep.tracea.kernels.gpu.conv._weights import pack, packed, padded_channels, padded_depth
from xyntra_ep.tracea.kernels.gpu.gemm._tile_product import multiply
from xyntra_ep.tracea.kernels.gpu.gemm._tiles import GemmTile
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import AXIS as PARTS
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import MOST, End, Parts, Sums, meeting_ns, parts_of
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import tiles_ns, wanted
from xyntra_ep.tracea.kernels.shared.conv_taps import why_not_floats
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.magic_division import split
from xyntra_ep.tracea.semantic_ir.nodes import index

_EXTENTS = (32, 64, 128)
SPACE = (Axis(name="pixels", values=_EXTENTS), Axis(name="channels", values=_EXTENTS), PARTS)
_FEWEST = 4  # channels of a group: fewer leave most of the narrowest tile empty
_PEAK = {8: 0.7, 4: 0.45}  # of the arithmetic peak, by a thread's side: gemm.block_tiles' less what coordinates take


def _admits(op: Conv, context: BuildContext) -> str | None:
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from tiles in shared memory"
    if (why := why_not_floats(op, context) or why_no_product(op)) is not None:
        return why
    shape = product_of(op)
    if shape.depth_channels == 1 and op.group > 1:
        return "a depthwise convolution has no sum over channels"
    if min(shape.channels, shape.depth) < _FEWEST:
        return f"less than {_FEWEST} channels of a group"
    return None


def _space(op: Conv, context: BuildContext) -> Sequence[Axis]:
    return SPACE


def _default(op: Conv, context: BuildContext) -> Config:
    shape, gpu = product_of(op), gpu_of(context)
    known = isinstance(shape.images * shape.pixels, int)
    configs = [{"pixels": p, "channels": c, "parts": most} for p, c, most in combinations(_EXTENTS, _EXTENTS, MOST)]

    def order(config: Config) -> tuple[float, ...]:
        # Where only a run knows how many blocks there are, parts cost nothing until they are needed.
        most = config["parts"] if known else -config["parts"]
        return _tiles_ns(shape, config, gpu), -config["pixels"] * config["channels"], most

    fitting = [config for config in configs if shape.tile(config).shared_bytes <= gpu.shared_bytes]
    return min(fitting, key=order)


def _parts(shape: ConvProduct, tile: GemmTile, tiles: Size, most: int, gpu: Gpu) -> Parts:
    return parts_of(padded_depth(shape, tile.depth), tile.depth, tiles, wanted(tile.threads, gpu), most)


def _tiles_ns(shape: ConvProduct, config: Config, gpu: Gpu) -> float:
    tile, tiles = shape.tile(config), typical(shape.blocks(config))
    parts = _parts(shape, tile, tiles, config["parts"], gpu)
    work = tile.work(typical(parts.length), shape.op.inputs[0].dtype.bytes)
    ns = tiles_ns(parts.count * tiles, work, gpu.fma_gflops * _PEAK[tile.side], gpu)
    return ns + meeting_ns(parts, typical(product(shape.op.domain)), gpu)


def _cost_ns(op: Conv, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _tiles_ns(product_of(op), config, gpu_of(context))


def _build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, gpu = product_of(op), gpu_of(context)
    tile, extent = shape.tile(config), config["channels"]
    x, w = op.inputs[:2]
    k = GpuBuilder(f"xy_conv{len(shape.taps)}d_{x.dtype}_{config['pixels']}x{extent}", tile.threads)
    x_data, w_data = k.buffer("x", x.dtype), k.buffer("w", w.dtype)
    parts = _parts(shape, tile, shape.blocks(config), config["parts"], gpu)
    sums = Sums(k, op, shape.groups(), parts, context)

    tiles = ceildiv(shape.pixels, config["pixels"]), ceildiv(shape.channels, extent)
    count = [parts.count] if parts.is_cut else []
    *cut, image, group, pixel_tile, channel_tile = split(k, k.block, [*count, shape.images, op.group, *tiles])
    part = cut[0] if cut else index(0)
    pixel, channel = k.let("pixel", pixel_tile * config["pixels"]), k.let("channel", channel_tile * extent)
    apart = None if shape.together else image
    depth, channels = padded_depth(shape, tile.depth), padded_channels(shape, extent)
    fetch = shape.fetch(tile)
    places = Places(k, shape, fetch, hoisting(shape, fetch, gpu.shared_bytes), apart, pixel)
    x_group = k.pointer("start", x_data, group * shape.depth_channels * k.param(x.strides[1]))
    w_group = k.pointer("start", w_data, group * (depth * channels) + channel)
    x_axis, w_axis = ("m", "n") if shape.channels_last else ("n", "m")
    begin, end = parts.range(k, part)
    first = k.let("first", begin // tile.depth)
    pixels = PixelFetcher(k, shape, fetch, x_axis, x_group, places, first)
    weights = WeightFetcher(k, tile, w_axis, w_group, channels, first)
    places.prepare()
    pixels.begin()
    rows, columns = (pixels, weights) if shape.channels_last else (weights, pixels)
    totals = multiply(k, tile, rows, columns, parts.steps(k, begin, end, tile.depth))

    def finish(end: End) -> None:
        results = Results(k, shape, end.epilogue, end.op.output, end.target, apart, group)
        results.store(tile, totals, pixel, channel)

    sums.finish(part, finish)
    kernel, params = k.finish()
    work = 2 * shape.images * op.group * shape.pixels * shape.channels * shape.depth
    return [
        pack(shape, tile.depth, extent, w.dtype, context),
        KernelCall(
            kernel=kernel,
            buffers=(
                ValueBuffer(value=x.value),
                packed(shape, tile.depth, extent, w.dtype),
                *sums.buffers,
            ),
            params=params,
            units=parts.count * shape.blocks(config),
            cost_ns=work // int(gpu.fma_gflops) + LAUNCH_NS,
        ),
        *sums.meeting(),
    ]


VARIANTS = [
    Variant(
        name="conv.implicit_gemm",
        op=Conv,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
