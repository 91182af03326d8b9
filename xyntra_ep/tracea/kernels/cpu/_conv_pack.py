"""The weights of a convolution in the order in which its kernel reads them, made once when the session is created."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu._conv_shape import ConvShape
from xyntra_ep.tracea.kernels.variant import KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, f32, vmin

STREAMED_BYTES = 512 << 10  # weights from here on come from L3 or memory at every run
_C_BLOCK = 16  # channels read together: every cache line of w is used up while it is in L1


def packed_bytes(shape: ConvShape, width: int) -> int:
    """Size of the packed weights."""
    return panels(shape, width) * shape.y.kernel * shape.x.kernel * shape.cin * width * DType.F32.bytes


def panels(shape: ConvShape, width: int) -> int:
    """Panels of ``width`` output channels, of all groups; no panel spans two groups."""
    return shape.groups * -(-shape.cout // width)


def pack_weights(shape: ConvShape, width: int, name: str = "packed") -> tuple[KernelCall, TempBuffer]:
    """w as [panel][ky][kx][channel in][``width`` channels out], f32, zeros where a group's channels end."""
    op: Conv = shape.op
    w = op.inputs[1]
    rows, columns = shape.y.kernel, shape.x.kernel
    m_step, c_step, *tap_steps = (int(s) for s in w.strides if isinstance(s, int))
    y_step, x_step = (0, *tap_steps)[-2:]
    blocks = -(-shape.cin // _C_BLOCK)
    per_group = panels(shape, width) // shape.groups
    k = KernelBuilder(f"xy_conv_pack{width}")
    k.note("a unit is one panel and one block of input channels")
    source = k.buffer("w", w.dtype)
    packed = k.buffer("packed", DType.F32, writable=True)
    with k.units() as unit:
        panel, block = k.split(unit, (panels(shape, width), blocks))
        within = k.let("m", (panel % per_group) * width)
        first = k.let("m", (panel // per_group) * shape.cout + within)
        valid = k.let("valid", vmin(width, shape.cout - within))
        stop = k.let("stop", vmin(shape.cin, block * _C_BLOCK + _C_BLOCK))
        with k.loop("ky", 0, rows) as ky, k.loop("kx", 0, columns) as kx:
            tap = k.let("tap", ((panel * rows + ky) * columns + kx) * shape.cin)
            place = k.let("from", first * m_step + ky * y_step + kx * x_step + k.param(w.offset))
            with k.loop("c", block * _C_BLOCK, stop) as c:
                to = k.let("to", (tap + c) * width)
                start = k.let("from", place + c * c_step)
                with k.loop("j", 0, valid) as j:
                    k.store(packed, to + j, k.load(source, start + j * m_step, 1))
                with k.loop("j", valid, width) as j:
                    k.store(packed, to + j, Const(f32(1), 0.0))
    kernel, params = k.finish()
    temp = TempBuffer(name=name, size_bytes=packed_bytes(shape, width))
    units = panels(shape, width) * blocks
    call = KernelCall(
        kernel=kernel, buffers=(ValueBuffer(value=w.value), temp), params=params, units=units, cost_ns=packed_bytes(shape, width),
        phase=Phase.PREPARE,
    )  # fmt: skip
    return call, temp
