"""x as convolutions by matrix units read it: 16-bit floats, or f32 for tf32, channels side by side in whole packets. Where it is
stored otherwise (other types and layouts, the three channels of an image) it is copied first, with channels of zeros to fill the
packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Operand, contiguous_strides
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct, product_of, why_no_product
from xyntra_ep.tracea.kernels.gpu.gemm._narrow import dtype_of
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.packing import temporary
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_tiles import packet_of
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, f32, lt

_THREADS = 128
_RATE = 0.6  # of the memory's, by a copy that reads element by element


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """``product``: of an op that reads x from ``buffer``. ``copied``: that is a copy of ``original``."""

    product: ConvProduct
    buffer: ValueBuffer | TempBuffer
    original: Operand

    @property
    def dtype(self) -> DType:
        return self.product.op.inputs[0].dtype

    @property
    def is_copied(self) -> bool:
        return isinstance(self.buffer, TempBuffer)

    def copying_ns(self, gpu: Gpu) -> float:
        """What the copy takes: it is written, and read from."""
        if not self.is_copied:
            return 0.0
        read = typical(product(self.original.shape)) * self.original.dtype.bytes
        written = typical(product(self.product.op.inputs[0].shape)) * self.dtype.bytes
        return LAUNCH_NS + (read + written) / (_RATE * gpu.memory_gbs)

    def copies(self, context: BuildContext) -> list[KernelCall]:
        """The call that makes the copy, a packet of a pixel by each thread; none where there is none."""
        if not self.is_copied:
            return []
        k = GpuBuilder(f"xy_conv_pack_{self.original.dtype}_channels", _THREADS)
        data, packed = k.buffer("source", self.original.dtype), k.buffer("packed", self.dtype, writable=True)
        images, channels, *spatial = self.product.op.inputs[0].shape
        wide = packet_of(self.dtype)
        packets: list[Size] = [images, *spatial, channels // wide]
        number = k.let("packet", k.block * _THREADS + k.thread)
        with k.when(lt(number, k.param(product(packets)))):
            image, *place, packet = k.split(number, packets)
            values = [self._element(k, data, image, packet * wide + i, place) for i in range(wide)]
            k.store_packet(packed, number * wide, values)
        kernel, params = k.finish()
        return [
            KernelCall(
                kernel=kernel,
                buffers=(ValueBuffer(value=self.original.value), self.buffer),
                params=params,
                units=ceildiv(product(packets), _THREADS),
                cost_ns=int(self.copying_ns(gpu_of(context))),
                phase=Phase.PREPARE if context.is_constant(self.original.value) else Phase.RUN,
            )
        ]

    def _element(self, k: GpuBuilder, data: Pointer, image: Rvalue, channel: Rvalue, place: Sequence[Rvalue]) -> Rvalue:
        """0 where there is no such channel."""
        extent = self.original.shape[1]
        value = k.variable("value", Const(f32(1), 0.0))
        with k.when(lt(channel, k.param(extent))):
            k.assign(value, k.load(data, address(k, self.original, [image, channel, *place])))
        return value


def why_no_channels(op: Conv) -> str | None:
    """None where the op has ``channels_of``."""
    x, w = op.inputs[:2]
    dtype = dtype_of(op)
    if dtype is None or not op.output.dtype.is_float:
        return f"no fragments of {x.dtype} and {w.dtype}"
    if (why := why_no_product(op)) is not None:
        return why
    shape = product_of(op)
    if not shape.channels_last:
        return "channels of the result are not neighbours"
    return None if op.group == 1 or shape.depth_channels % packet_of(dtype) == 0 else "channels of a group are not whole packets"


def channels_of(op: Conv) -> Channels:
    """Of an op that has them."""
    x, shape, dtype = op.inputs[0], product_of(op), dtype_of(op)
    assert dtype is not None, why_no_channels(op)
    wide = packet_of(dtype)
    if x.dtype is dtype and shape.has_channels_in_packets(wide):
        return Channels(product=shape, buffer=ValueBuffer(value=x.value), original=x)
    of_group = -(-shape.depth_channels // wide) * wide
    images, _, *spatial = x.shape
    stored = (images, *spatial, op.group * of_group)
    outer, *steps, one = contiguous_strides(stored)
    copy = Operand(value=x.value, dtype=dtype, shape=(images, stored[-1], *spatial), strides=(outer, one, *steps))
    return Channels(
        product=replace(shape, op=replace(op, inputs=(copy, *op.inputs[1:])), depth_channels=of_group),
        buffer=temporary("channels", stored, dtype),
        original=x,
    )
