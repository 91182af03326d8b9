"""What convolutions of words of integers have in common: which ops they do, what they cost, their calls.

x is read where it lies when it is of the type of the words and each tap has whole words of channels; pixels outside it are left
out then. Else it is copied to an image with a border of zeros, in which runs of taps are filled up to whole words.
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._blocking import Blocking, work_steps
from xyntra_ep.tracea.kernels.cpu.conv._pack import STREAMED_BYTES, panels
from xyntra_ep.tracea.kernels.cpu.conv._row import needs_halo
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, conv_shape, overlapped, typical, why_not_channels_last
from xyntra_ep.tracea.kernels.cpu.conv._walk import walk_image
from xyntra_ep.tracea.kernels.cpu.conv_bf16._narrow import narrow_image, narrow_ns
from xyntra_ep.tracea.kernels.cpu.conv_bf16._pack import WordRuns, pack_runs
from xyntra_ep.tracea.kernels.cpu.conv_bf16._words import accumulate_words
from xyntra_ep.tracea.kernels.cpu.gemm._choice import peak_of
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Words
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, TempBuffer, ValueBuffer


def why_not(op: Conv, context: BuildContext) -> str | None:
    """None where ``op`` is a convolution of bytes that is described by words."""
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
    walk = walk_image(
        f"conv_{words.name}",
        shape,
        blocking,
        context,
        accumulate_words(words, filled),
        (x, words.left),
        (packed, words.right),
        filled_depth=None if filled is None else filled.depth,
    )
    return [pack_runs(runs, packed, context), *copies, walk]


def words_ns(op: Conv, config: Config, words: Words, context: BuildContext) -> float:
    """Estimated time on one core."""
    shape, caps = conv_shape(op), context.caps
    width = config["vectors"] * caps.lanes
    runs = WordRuns(shape=shape, step=words.depth, columns=width, panels=panels(shape, width), words=words)
    steps = work_steps(shape, config["pixels"], config["vectors"], caps) * runs.padded / runs.length
    streamed_ns = runs.size_bytes / caps.dram_gbs if runs.size_bytes >= STREAMED_BYTES else 0.0
    elements = typical(shape.batch * shape.y.inside * shape.x.inside) * shape.channels
    copy_ns = 0.0 if _in_place(shape, words) else narrow_ns(shape, words.depth, elements, words.left)
    return overlapped(steps * caps.lanes * 2 / peak_of(words, caps), streamed_ns) + copy_ns
