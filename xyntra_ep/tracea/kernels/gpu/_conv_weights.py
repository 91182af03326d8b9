"""The weights of a convolution as its product reads them: [group][depth][channels], depth counting taps first and the input's
channels last, filled up with zeros to whole tiles. Packed once where they are constant, before each run where they are not."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu._conv_product import ConvProduct
from xyntra_ep.tracea.kernels.gpu._launch import gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, binary, f32, lt

_THREADS = 128


def padded_depth(shape: ConvProduct, step: int) -> int:
    return -(-shape.depth // step) * step


def padded_channels(shape: ConvProduct, extent: int) -> int:
    return -(-shape.channels // extent) * extent


def packed(shape: ConvProduct, step: int, extent: int, dtype: DType) -> TempBuffer:
    """For tiles of ``extent`` channels in steps of ``step``."""
    elements = shape.op.group * padded_depth(shape, step) * padded_channels(shape, extent)
    return TempBuffer(name="weights", size_bytes=elements * dtype.bytes)


def pack(shape: ConvProduct, step: int, extent: int, dtype: DType, context: BuildContext) -> KernelCall:
    """One element a thread."""
    op, w = shape.op, shape.op.inputs[1]
    k = GpuBuilder("xy_conv_pack_weights", _THREADS)
    source, target = k.buffer("w", w.dtype), k.buffer("packed", dtype, writable=True)
    extents = (op.group, padded_depth(shape, step), padded_channels(shape, extent))
    elements = product(extents)
    number = k.let("element", k.block * _THREADS + k.thread)
    with k.when(lt(number, k.param(elements))):
        group, depth, channel = k.split(number, extents)
        value = k.variable("value", Const(f32(1), 0.0))
        with k.when(binary("and", lt(depth, shape.depth), lt(channel, shape.channels))):
            *taps, of_input = k.split(depth, [*shape.taps, shape.depth_channels])
            at = address(k, w, (group * shape.channels + channel, of_input, *taps))
            k.assign(value, k.load(source, at))
        k.store(target, number, value)
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=w.value), packed(shape, step, extent, dtype)),
        params=params,
        units=ceildiv(elements, _THREADS),
        cost_ns=steps_ns(elements, gpu_of(context)),
        phase=Phase.PREPARE if context.is_constant(w.value) else Phase.RUN,
    )
