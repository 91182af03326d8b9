"""pointwise.packets: any elementwise op, gathers, pads and windows included; a thread computes one packet of neighbours.

Loops are ordered and merged as for CPUs (by the output's strides), so consecutive threads write consecutive memory. Packets are
as wide as every operand's alignment proves; otherwise a thread computes one element.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.gpu._launch import estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.gpu._packets import Packet, packet_width
from xyntra_ep.tracea.kernels.shared.loops_pointwise import plan_pointwise
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import lt


def _admits(op: Pointwise, context: BuildContext) -> str | None:
    return None


def _space(op: Pointwise, context: BuildContext) -> Sequence[Axis]:
    return (Axis(name="threads", values=(64, 128, 256)),)


def _default(op: Pointwise, context: BuildContext) -> Config:
    return {"threads": 256}


def _cost_ns(op: Pointwise, config: Config, context: BuildContext) -> float:
    return estimate_ns(product(op.domain), gpu_of(context))


def _build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    threads = config["threads"]
    b = GpuBuilder(f"xy_pointwise_{op.outputs[0].dtype}", threads)
    plan = plan_pointwise(op, b)
    nest, loops = plan.nest, plan.loops
    extent: Size = loops[-1].extent if loops else 1
    width = packet_width(nest, extent)
    packets = [loop.extent for loop in loops[:-1]] + [extent // width]
    total = product(packets)
    number = b.let("packet", b.block * threads + b.thread)
    with b.when(lt(number, b.param(total))):
        *outer, last = b.split(number, packets)
        scope = nest.outside().bind({loop.axis: at for loop, at in zip(loops, outer, strict=False)})
        here = Packet(b, scope, b.let("at", last * width), width)
        values = [here.values(body) for body in plan.bodies]
        for k, stored in zip(plan.outputs, values, strict=True):
            here.store(k, stored)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(nest.table.buffers),
            params=params,
            units=ceildiv(total, threads),
            cost_ns=steps_ns(product(op.domain), gpu_of(context)),
        )
    ]


VARIANTS = [
    Variant(
        name="pointwise.packets",
        op=Pointwise,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
