"""The weights of a convolution as its product reads them: [group][depth][channels], depth counting taps first and the input's
channels last, filled up with zeros to whole packets of these, and to whole tiles. Packed once where they are constant, before
each run where they are not."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct
from xyntra_ep.tracea.kernels.gpu.shared import packing
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, binary, lt


def padded_depth(shape: ConvProduct, step: int) -> int:
    return -(-shape.depth // step) * step


def padded_channels(shape: ConvProduct, extent: int) -> int:
    return -(-shape.channels // extent) * extent


def _extents(shape: ConvProduct, step: int, extent: int) -> tuple[int, int, int]:
    return shape.op.group, padded_depth(shape, step), padded_channels(shape, extent)


def packed(shape: ConvProduct, step: int, extent: int, dtype: DType) -> TempBuffer:
    """For tiles of ``extent`` channels in steps of ``step``."""
    return packing.temporary("weights", _extents(shape, step, extent), dtype)


def pack(shape: ConvProduct, step: int, extent: int, dtype: DType, context: BuildContext) -> KernelCall:
    """What fills the same."""

    known = shape.op.inputs[1].shape[1]
    assert isinstance(known, int)

    def place(k: GpuBuilder, at: Sequence[Rvalue]) -> tuple[Sequence[Rvalue], Rvalue]:
        group, depth, channel = at
        *taps, of_input = k.split(depth, [*shape.taps, shape.depth_channels])
        exists = binary("and", lt(depth, shape.depth), lt(channel, shape.channels))
        if shape.depth_channels != known:
            exists = binary("and", exists, lt(of_input, known))
        return (group * shape.channels + channel, of_input, *taps), exists

    target, extents = packed(shape, step, extent, dtype), _extents(shape, step, extent)
    return packing.pack("xy_conv_pack_weights", shape.op.inputs[1], target, extents, dtype, place, context)
