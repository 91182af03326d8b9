"""Convolution in bfloat16 over channels-last images with constant weights, by matrix tiles (Intel AMX).

prepare   w -> panels of pairs
run       (x -> an image of bfloat16 with a border of zeros, unless it can be read where it lies)
          for image: for pair of tiles of pixels, panel of channels; in the other order where the weights do not stay in L2
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import product
from xyntra_ep.tracea.core_ir.ops import Conv, Product
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, conv_shape, overlapped, typical, why_not_channels_last
from xyntra_ep.tracea.kernels.cpu.conv_bf16._matrix import CHANNELS, TILE_CHANNELS, multiply_tiles
from xyntra_ep.tracea.kernels.cpu.conv_bf16._narrow import narrow_image, narrow_ns
from xyntra_ep.tracea.kernels.cpu.conv_bf16._pack import WordRuns, pack_runs
from xyntra_ep.tracea.kernels.cpu.gemm._choice import tiles_peak_of
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BF16_PAIRS, Words
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, Variant
from xyntra_ep.tracea.semantic_ir.matrix_nodes import TILE_ROWS

_OF_PEAK = 0.6  # what tiles of full height reach while their operands come from L2
_EPILOGUE_NS = 0.08  # an element's way through the scratch and a plain epilogue


def admits(op: Conv, context: BuildContext) -> str | None:
    if op.product is not Product.BF16:
        return f"a product in {op.product} is asked for"
    if not context.caps.amx_bf16:
        return "the machine has no matrix tiles"
    if op.group != 1:
        return f"{op.group} groups"
    if (why := why_not_channels_last(op, context)) is not None:
        return why
    if context.strict and _runs(conv_shape(op), BF16_PAIRS).length % BF16_PAIRS.tile_depth:
        return "its weights are filled up with zeros, and zero times NaN or Inf is NaN (fp32_strict)"
    return None


def build_tiles(op: Conv, words: Words, context: BuildContext) -> list[KernelCall]:
    """Packing, perhaps a copy of x, the convolution."""
    copy, x, shape = narrow_image(conv_shape(op), words.tile_depth, context, words.left)
    runs = _runs(shape, words)
    weights = TempBuffer(name=words.name, size_bytes=runs.size_bytes)
    return [pack_runs(runs, weights, context), *copy, multiply_tiles(shape, x, runs, weights, context)]


def _runs(shape: ConvShape, words: Words) -> WordRuns:
    panels = -(-shape.cout // CHANNELS) * (CHANNELS // TILE_CHANNELS)
    return WordRuns(shape=shape, step=words.tile_depth, columns=TILE_CHANNELS, panels=panels, words=words)


def tiles_ns(op: Conv, words: Words, context: BuildContext) -> float:
    """Estimated time on one core."""
    shape, caps = conv_shape(op), context.caps
    runs = _runs(shape, words)
    pixels = typical(product((shape.batch, shape.y.out, shape.x.out)))
    # The lowest tiles wait for their operands.
    across = max(1, -(-typical(shape.x.out) // TILE_ROWS))
    height = max(1, typical(shape.x.out) // across)
    filling = max(1.0, TILE_ROWS / 2 / height)
    arithmetic = 2.0 * pixels * runs.panels * TILE_CHANNELS * runs.depth * filling / (_OF_PEAK * tiles_peak_of(words, caps))
    stores = _EPILOGUE_NS * pixels * shape.cout
    elements = typical(product((shape.batch, shape.y.inside, shape.x.inside))) * shape.channels
    copy = narrow_ns(shape, words.tile_depth, elements, words.left)
    return overlapped(arithmetic + stores, runs.size_bytes / caps.dram_gbs) + copy + 500.0


VARIANTS = [
    Variant(
        name="conv.tiles_bf16",
        op=Conv,
        needs="amx_bf16",
        admits=admits,
        cost_ns=lambda op, config, context: tiles_ns(op, BF16_PAIRS, context),
        build=lambda op, config, context: build_tiles(op, BF16_PAIRS, context),
    )
]
