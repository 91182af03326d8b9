"""U = G g Gt for every pair of channels, as [panel][product][channel in][panel's channels out], made once per session."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.winograd._matrices import TAPS, both_sides
from xyntra_ep.tracea.kernels.cpu.winograd._shape import WinogradShape
from xyntra_ep.tracea.kernels.variant import KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Convert, Gather, Iota, i64, splat, vmin


def transform_weights(plan: WinogradShape) -> tuple[KernelCall, TempBuffer]:
    """Lanes are output channels; those past the end repeat the last one, and nobody stores what comes of them."""
    shape, lanes, w = plan.shape, plan.lanes, plan.shape.op.inputs[1]
    m_step, c_step, y_step, x_step = w.strides
    k = KernelBuilder(f"xy_conv_winograd_weights_{plan.outputs}x{plan.outputs}_{plan.width}")
    k.note("a unit is one panel of a group and one of its input channels")
    source, target = k.buffer("w", w.dtype), k.buffer("u", DType.F32, writable=True)
    with k.units() as unit:
        *group, panel, c = k.split(unit, (*plan.images[1:], plan.panels, shape.cin))
        with k.loop("j", 0, plan.width, lanes) as j:
            first = k.let("m", panel * plan.width + j)
            channel = vmin(splat(Convert(i64(1), first), lanes) + Iota(i64(lanes)), shape.cout - 1)
            for number in group:
                channel = channel + splat(Convert(i64(1), number * shape.cout), lanes)
            row = k.let("row", channel * Convert(i64(1), k.param(m_step)))
            start = k.let("from", k.param(w.offset) + c * k.param(c_step))

            taps = []
            for ky in range(TAPS):
                tap = [start + ky * k.param(y_step) + kx * k.param(x_step) for kx in range(TAPS)]
                taps.append([k.let("g", Gather(source, row + Convert(i64(1), t))) for t in tap])
            of_all = panel
            for number in group:
                of_all = number * plan.panels + panel
            at = k.let("to", (of_all * (plan.products * shape.cin) + c) * plan.width + j)
            for e, row_of_u in enumerate(both_sides(k, plan.matrices.g, taps)):
                for i, value in enumerate(row_of_u):
                    product = e * plan.matrices.inputs + i
                    k.store(target, at + product * (shape.cin * plan.width), value)
    kernel, params = k.finish()
    temp = TempBuffer(name="u", size_bytes=plan.u_bytes)
    call = KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=w.value), temp),
        params=params,
        units=shape.groups * plan.panels * shape.cin,
        cost_ns=plan.u_bytes // 4,
        phase=Phase.PREPARE,
    )
    return call, temp
