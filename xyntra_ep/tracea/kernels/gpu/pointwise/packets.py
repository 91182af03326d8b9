"""pointwise.packets: any elementwise op, gathers, pads and windows included; a thread computes one packet of neighbours.

Loops are ordered and merged as for CPUs (by the output's strides), so consecutive threads write consecutive memory. Packets are
as wide as every operand's alignment proves. Where they are narrow and there is enough for all threads, a thread has several, a
block's threads apart: all of their loads are under way before the first is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.kernels.gpu.shared.launch import estimate_ns, gpu_of, launch_of, moved_ns, steps_ns
from xyntra_ep.tracea.kernels.gpu.shared.packets import Packet, packet_width
from xyntra_ep.tracea.kernels.shared.loops.nest import Scope
from xyntra_ep.tracea.kernels.shared.loops.pointwise import PointwisePlan, plan_pointwise
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, lt, vmin

_IN_FLIGHT = 4  # elements that a thread should be loading at least
_RESIDENT = 2048  # threads of a multiprocessor


def _admits(op: Pointwise, context: BuildContext) -> str | None:
    return None


def _space(op: Pointwise, context: BuildContext) -> Sequence[Axis]:
    return (Axis(name="threads", values=(64, 128, 256)),)


def _default(op: Pointwise, context: BuildContext) -> Config:
    return {"threads": 256}


def _cost_ns(op: Pointwise, config: Config, context: BuildContext) -> float:
    gpu = gpu_of(context)
    return max(estimate_ns(product(op.domain), gpu), moved_ns(op, gpu))


def _build(op: Pointwise, config: Config, context: BuildContext) -> list[KernelCall]:
    threads = config["threads"]
    b = GpuBuilder(f"xy_pointwise_{op.outputs[0].dtype}", threads)
    plan = plan_pointwise(op, b)
    nest, loops = plan.nest, plan.loops
    extent: Size = loops[-1].extent if loops else 1
    width = packet_width(nest, extent)
    packets = [loop.extent for loop in loops[:-1]] + [extent // width]
    total = product(packets)
    is_much = typical(total) >= _IN_FLIGHT * _RESIDENT * gpu_of(context).units
    each = max(1, _IN_FLIGHT // width) if is_much else 1
    first, outside = b.let("packet", b.block * (threads * each) + b.thread), nest.outside()
    if each == 1:
        with b.when(lt(first, b.param(total))):
            _store(plan, *_computed(b, plan, outside, first, packets, width))
    else:
        # Past the end the last one is computed once more, and not stored.
        numbers = [b.let("number", first + i * threads) for i in range(each)]
        found = [_computed(b, plan, outside, b.let("n", vmin(n, b.param(total) - 1)), packets, width) for n in numbers]
        for number, (packet, values) in zip(numbers, found, strict=True):
            with b.when(lt(number, b.param(total))):
                _store(plan, packet, values)
    return [
        launch_of(
            b, nest.table.buffers, units=ceildiv(total, threads * each), cost_ns=steps_ns(product(op.domain), gpu_of(context))
        )
    ]


def _computed(
    b: GpuBuilder, plan: PointwisePlan, outside: Scope, number: Rvalue, packets: Sequence[Size], width: int
) -> tuple[Packet, list[list[Rvalue]]]:
    """The results of the packet with this number, by output."""
    *outer, last = b.split(number, packets)
    scope = outside.bind({loop.axis: at for loop, at in zip(plan.loops, outer, strict=False)})
    packet = Packet(b, scope, b.let("at", last * width), width)
    return packet, [packet.values(body) for body in plan.bodies]


def _store(plan: PointwisePlan, packet: Packet, values: Sequence[Sequence[Rvalue]]) -> None:
    for k, stored in zip(plan.outputs, values, strict=True):
        packet.store(k, stored)


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
