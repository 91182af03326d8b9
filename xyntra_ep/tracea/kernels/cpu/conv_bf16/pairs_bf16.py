"""Convolution in bfloat16 by products of pairs (vdpbf16ps): the direct convolution with two channels a step.

for each run of taps:
  for pair:                                          # of neighbouring channels, or of the last and the first of two taps
    b[j] = w[pair][j];  for pixel i of the run: acc[i][j] += x[i][pair].lo * b[j].lo + x[i][pair].hi * b[j].hi
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Product
from xyntra_ep.tracea.kernels.cpu.conv._blocking import (
    UNIT_SIZES,
    Blocking,
    blocking_refusal,
    blocking_space,
    choose_blocking,
    work_steps,
)
from xyntra_ep.tracea.kernels.cpu.conv._pack import STREAMED_BYTES, panels
from xyntra_ep.tracea.kernels.cpu.conv._row import needs_halo
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, conv_shape, overlapped, typical, why_not_channels_last
from xyntra_ep.tracea.kernels.cpu.conv._walk import walk_image
from xyntra_ep.tracea.kernels.cpu.conv_bf16._narrow import narrow_image, narrow_ns
from xyntra_ep.tracea.kernels.cpu.conv_bf16._pack import WordRuns, pack_runs
from xyntra_ep.tracea.kernels.cpu.conv_bf16._words import accumulate_words
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BF16_PAIRS
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, TempBuffer, ValueBuffer, Variant

_PAIR = BF16_PAIRS.depth


def admits(op: Conv, context: BuildContext) -> str | None:
    if op.product is not Product.BF16:
        return f"a product in {op.product} is asked for"
    if not context.caps.avx512_bf16:
        return "the machine has no fast products of pairs"
    if op.group != 1:
        return f"{op.group} groups"
    if (why := why_not_channels_last(op, context)) is not None:
        return why
    cin = conv_shape(op).cin
    return f"{cin} channels do not make pairs" if cin % _PAIR else None


def _in_place(shape: ConvShape) -> bool:
    """Pixels outside x are left out, so only its type and a row without end are in the way."""
    return shape.op.inputs[0].dtype is DType.BF16 and not needs_halo(shape.x)


def build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, blocking = conv_shape(op), Blocking.of(config)
    copies: list[KernelCall] = []
    x: ValueBuffer | TempBuffer = ValueBuffer(value=op.inputs[0].value)
    if not _in_place(shape):
        copies, x, shape = narrow_image(shape, _PAIR, context)
    width = blocking.vectors * context.caps.lanes
    runs = WordRuns(shape=shape, step=_PAIR, columns=width, panels=panels(shape, width))
    packed = TempBuffer(name="pairs", size_bytes=runs.size_bytes)
    walk = walk_image("conv_pairs", shape, blocking, context, accumulate_words(BF16_PAIRS), (x, DType.BF16), (packed, DType.BF16))
    return [pack_runs(runs, packed, context), *copies, walk]


def cost_ns(op: Conv, config: Config, context: BuildContext) -> float:
    shape, caps = conv_shape(op), context.caps
    steps = work_steps(shape, config["pixels"], config["vectors"], caps)
    width = config["vectors"] * caps.lanes
    weights = panels(shape, width) * width * shape.y.kernel * shape.x.kernel * shape.cin * DType.BF16.bytes
    streamed_ns = weights / caps.dram_gbs if weights >= STREAMED_BYTES else 0.0
    elements = typical(shape.batch * shape.y.inside * shape.x.inside) * shape.channels
    copy_ns = 0.0 if _in_place(shape) else narrow_ns(shape, _PAIR, elements)
    return overlapped(steps * caps.lanes * 2 / caps.bf16_gflops, streamed_ns) + copy_ns


VARIANTS = [
    Variant(
        name="conv.pairs_bf16",
        op=Conv,
        needs="avx512_bf16",
        admits=admits,
        space=lambda op, context: blocking_space(conv_shape(op), context.caps),
        refuses=lambda op, config, context: blocking_refusal(conv_shape(op), config, context.caps),
        default=lambda op, context: choose_blocking(conv_shape(op), context.caps).config(),
        given=UNIT_SIZES,
        cost_ns=cost_ns,
        build=build,
        rank=5,
    )
]
