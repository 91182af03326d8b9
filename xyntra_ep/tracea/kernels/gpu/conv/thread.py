"""conv.thread: any convolution of floats, one output a thread. Threads follow the output's memory, so that they store side by
side whatever the layout is."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.gpu.shared.launch import estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.conv_taps import accumulate, taps, why_no_sum
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, lt

_THREADS = 128


def _steps(op: Conv) -> Size:
    return taps(op) * 2


def _cost_ns(op: Conv, config: Config, context: BuildContext) -> float:
    return estimate_ns(_steps(op), gpu_of(context))


def _build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    k = GpuBuilder(f"xy_conv{len(op.strides)}d_thread", _THREADS)
    x, w, out = op.inputs[0], op.inputs[1], op.output
    pointers = [k.buffer("x", x.dtype), k.buffer("w", w.dtype)]
    target = k.buffer("out", out.dtype, writable=True)
    axes = range(len(op.domain))
    innermost = next((i for i in axes if out.strides[i] == 1), axes[-1])
    order = [*(i for i in axes if i != innermost), innermost]
    groups = [Group(axes=(i,), extents=(op.domain[i],)) for i in axes]
    epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, lane_group=innermost)
    number = k.let("element", k.block * _THREADS + k.thread)
    with k.when(lt(number, k.param(product(op.domain)))):
        split = dict(zip(order, k.split(number, [op.domain[i] for i in order]), strict=True))
        at: list[Rvalue] = [split[i] for i in axes]
        total = accumulate(k, op, pointers, at)
        here = epilogue.at(k)
        here.store(out, target, at, here.value(at, total, 1))
    kernel, params = k.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=(*(ValueBuffer(value=o.value) for o in (x, w, out)), *epilogue.buffers),
            params=params,
            units=ceildiv(product(op.domain), _THREADS),
            cost_ns=steps_ns(_steps(op), gpu_of(context)),
        )
    ]


VARIANTS = [
    Variant(
        name="conv.thread",
        op=Conv,
        admits=why_no_sum,
        cost_ns=_cost_ns,
        build=_build,
        rank=FALLBACK_RANK,
    )
]
