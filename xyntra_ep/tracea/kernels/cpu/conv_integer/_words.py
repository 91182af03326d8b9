"""What convolutions of words of integers have in common: which ops they do, what they cost, their calls.

x is read where it lies when it is of the type of the words and each tap has whole words of channels; pixels outside it are left
out then. Else it is copied to an image with a border of zeros, in which runs of taps are filled up to whole words. Clamped words
have an excess beside them (`_excess.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from xyntra_ep.tracea.core_ir.ops import Conv
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
from xyntra_ep.tracea.kernels.cpu.conv_integer._excess import ExcessRuns, split_off
from xyntra_ep.tracea.kernels.cpu.gemm._choice import peak_of
from xyntra_ep.tracea.kernels.cpu.gemm._tile import CLAMPED_QUADS, I16_PAIRS, Words
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, TempBuffer, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

_CLAMPED = 1.5  # three instructions for a product of words, others without VNNI have two; the excess depends on the weights


def variant_of(words: Words, lacks: Callable[[Capabilities], str | None], *, needs: str = "") -> Variant[Conv]:
    """The row of the table for products of ``words``. ``lacks``: why a machine does not have them."""
    return Variant(
        name=f"conv.{words.name}",
        op=Conv,
        needs=needs,
        admits=lambda op, context: lacks(context.caps) or why_not(op, words, context),
        space=lambda op, context: blocking_space(conv_shape(op), context.caps),
        refuses=lambda op, config, context: blocking_refusal(conv_shape(op), config, context.caps),
        default=lambda op, context: choose_blocking(conv_shape(op), context.caps).config(),
        given=UNIT_SIZES,
        cost_ns=lambda op, config, context: words_ns(op, config, words, context),
        build=lambda op, config, context: build_words(op, config, words, context),
        rank=5,
    )


def why_not(op: Conv, words: Words, context: BuildContext) -> str | None:
    """None where ``op`` is a convolution of bytes that is described by ``words``."""
    types = tuple(o.dtype for o in op.inputs[:2])
    if words is not I16_PAIRS and types != (words.left, words.right):
        return f"{types[0]} times {types[1]}, not {words.left} times {words.right}"
    if op.group != 1:
        return f"{op.group} groups"
    return why_not_channels_last(op, context, of_integers=True)


def _in_place(shape: ConvShape, words: Words) -> bool:
    return shape.op.inputs[0].dtype is words.left and shape.cin % words.depth == 0 and not needs_halo(shape.x)


def build_words(op: Conv, config: Config, words: Words, context: BuildContext) -> list[KernelCall]:
    """Packing, perhaps a copy of x, the convolution."""
    shape, blocking = conv_shape(op), Blocking.of(config)
    width = blocking.vectors * context.caps.lanes
    copies: list[KernelCall] = []
    x: ValueBuffer | TempBuffer = ValueBuffer(value=op.inputs[0].value)
    if not _in_place(shape, words):
        copies, x, shape = narrow_image(shape, words.depth, context, words.left)
    runs = WordRuns(shape=shape, step=words.depth, columns=width, panels=panels(shape, width), words=words)
    packed = TempBuffer(name="words", size_bytes=runs.size_bytes)
    filled = runs if shape.cin % words.depth else None
    stretch = runs.padded if shape.cin % words.depth else shape.cin
    excess = ExcessRuns(runs=runs, stretch=stretch, lanes=context.caps.lanes) if words is CLAMPED_QUADS else None
    walk = walk_image(
        f"conv_{words.name}",
        shape,
        blocking,
        context,
        accumulate_words(words, filled, None if excess is None else excess.multiply),
        (x, words.left),
        (packed, words.right),
        filled_depth=None if filled is None else filled.depth,
        beside=() if excess is None else excess.buffers,
    )
    packing = [pack_runs(runs, packed, context)]
    if excess is not None:
        packing.append(split_off(excess, packed, context))
    return [*packing, *copies, walk]


def words_ns(op: Conv, config: Config, words: Words, context: BuildContext) -> float:
    """Estimated time on one core."""
    shape, caps = conv_shape(op), context.caps
    width = config["vectors"] * caps.lanes
    runs = WordRuns(shape=shape, step=words.depth, columns=width, panels=panels(shape, width), words=words)
    steps = work_steps(shape, config["pixels"], config["vectors"], caps) * runs.padded / runs.length
    if words is CLAMPED_QUADS:
        steps *= _CLAMPED
    streamed_ns = runs.size_bytes / caps.dram_gbs if runs.size_bytes >= STREAMED_BYTES else 0.0
    elements = typical(shape.batch * shape.y.inside * shape.x.inside) * shape.channels
    copy_ns = 0.0 if _in_place(shape, words) else narrow_ns(shape, words.depth, elements, words.left)
    return overlapped(steps * caps.lanes * 2 / peak_of(words, caps), streamed_ns) + copy_ns
