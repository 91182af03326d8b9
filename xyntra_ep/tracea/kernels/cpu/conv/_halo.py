"""A copy of x whose rows begin and end with zero pixels, where a kernel cannot know the borders beforehand."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._row import needs_halo, with_halo
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, typical
from xyntra_ep.tracea.kernels.cpu.gemm._tile import as_float
from xyntra_ep.tracea.kernels.variant import KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, f32, vmin

_BYTES_PER_NS = 8
_PIXEL_NS = 2.0  # of few channels: 1 with masks of AVX-512, 7 with those of AVX2


def halo_ns(shape: ConvShape, checks: bool = False) -> float:
    """Estimated time of the copy, 0 where none is needed. ``checks``: the kernel has tiles that check."""
    if not needs_halo(shape.x, checks):
        return 0.0
    pixels = typical(shape.batch * shape.y.inside * shape.x.inside)
    return pixels * max(shape.channels * DType.F32.bytes / _BYTES_PER_NS, _PIXEL_NS)


def copy_with_halo(shape: ConvShape, caps: Capabilities) -> tuple[KernelCall, TempBuffer, ConvShape]:
    """(the copy, its buffer, the convolution over it). Rows above and below x are the kernel's business."""
    halo, before, after = with_halo(shape)
    x = shape.op.inputs[0]
    channels = shape.channels
    k = KernelBuilder("xy_conv_halo")
    k.note("a unit is one row of one image")
    source = k.buffer("x", x.dtype)
    target = k.buffer("halo", DType.F32, writable=True)
    image_step, row_step, pixel_step = (k.param(s) for s in shape.x_strides)
    row = k.param(halo.x_strides[1])

    def pixels(count: Size, to: Rvalue, start: Rvalue | None) -> None:
        """Copy ``count`` pixels from x, or write zeros."""
        with k.loop("i", 0, k.param(count)) as i, k.loop("c", 0, channels, caps.lanes) as c:
            left = None if channels % caps.lanes == 0 else k.let("left", vmin(caps.lanes, channels - c))
            value: Rvalue = Const(f32(caps.lanes), 0.0)
            if start is not None:
                value = as_float(k.load(source, start + i * pixel_step + c, caps.lanes, left))
            k.store(target, to + i * channels + c, value, left)

    with k.units() as unit:
        image, y = k.split(unit, (shape.batch, shape.y.inside))
        to = k.let("to", unit * row)
        start = k.let("from", k.param(shape.x_offset) + image * image_step + y * row_step)
        pixels(before, to, None)
        middle = k.let("to", to + k.param(before) * channels)
        pixels(shape.x.inside, middle, start)
        pixels(after, k.let("to", middle + k.param(shape.x.inside) * channels), None)
    kernel, params = k.finish()
    rows = shape.batch * shape.y.inside
    size_bytes = product((rows, halo.x_strides[1])) * DType.F32.bytes
    temp = TempBuffer(name="halo", size_bytes=size_bytes)
    call = KernelCall(
        kernel=kernel, buffers=(ValueBuffer(value=x.value), temp), params=params, units=rows,
        cost_ns=size_bytes // _BYTES_PER_NS,
    )  # fmt: skip
    return call, temp, halo
