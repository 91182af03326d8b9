"""Conv of any rank, layout, grouping and storage type: one multiplication at a time, always legal."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._shape import typical
from xyntra_ep.tracea.kernels.shared.conv_taps import accumulate, taps, why_no_sum
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Pointer

# Measured on AVX-512 machines: one FMA chain per output, a load or two per step.
_NS_PER_TAP = 1.1


def _cost_ns(op: Conv, config: Config, context: BuildContext) -> float:
    return _NS_PER_TAP * typical(taps(op))


def build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    """A unit is one row: the outputs along the last axis for one image, channel and position elsewhere."""
    k = KernelBuilder(f"xy_conv{len(op.strides)}d_generic")
    x, w, out = op.inputs[0], op.inputs[1], op.output
    pointers: list[Pointer] = [k.buffer("x", x.dtype), k.buffer("w", w.dtype)]
    target = k.buffer("out", out.dtype, writable=True)
    rows, last = tuple(range(len(op.domain) - 1)), len(op.domain) - 1
    groups = [Group(axes=rows, extents=op.domain[:-1]), Group(axes=(last,), extents=op.domain[-1:])]
    epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, lane_group=1)
    with k.units() as unit:
        outer = k.split(unit, op.domain[:-1])
        with k.loop("o", 0, k.param(op.domain[-1])) as o:
            acc = accumulate(k, op, pointers, [*outer, o])
            here = epilogue.at(k)
            here.store(out, target, [unit, o], here.value([unit, o], acc, 1))
    kernel, params = k.finish()
    buffers = (*(ValueBuffer(value=o.value) for o in (x, w, out)), *epilogue.buffers)
    units = product(op.domain[:-1])
    cost_ns = ceildiv(taps(op) * round(_NS_PER_TAP * 16), 16)
    return [KernelCall(kernel=kernel, buffers=buffers, params=params, units=units, cost_ns=cost_ns)]


VARIANTS = [
    Variant(
        name="conv.generic",
        op=Conv,
        admits=why_no_sum,
        cost_ns=_cost_ns,
        build=build,
        rank=100,
    )
]
