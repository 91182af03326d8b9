"""gemm.low_rank_generic: any strides, one element of the result at a time. The variant that is always legal."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import product, typical
from xyntra_ep.tracea.core_ir.ops import LowRankGemm, Operand
from xyntra_ep.tracea.kernels.cpu.gemm.generic import SLOWDOWN
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Convert, Fma, Rvalue, Var, f32


def admits(op: LowRankGemm, context: BuildContext) -> str | None:
    wrong = [str(operand.dtype) for operand in op.inputs[:4] if not operand.dtype.is_float]
    return f"no product of {wrong[0]}" if wrong else None


def cost_ns(op: LowRankGemm, config: Config, context: BuildContext) -> float:
    return SLOWDOWN * typical(op.flops()) / context.caps.fma_gflops + 1000.0


def build(op: LowRankGemm, config: Config, context: BuildContext) -> list[KernelCall]:
    """A unit is one row of the result."""
    *outer, n = op.domain
    k = KernelBuilder("xy_gemm_low_rank_generic")
    names = ("a", "b", "left", "right")
    data = [k.buffer(name, operand.dtype) for name, operand in zip(names, op.inputs, strict=False)]
    out = k.buffer("out", op.output.dtype, writable=True)
    groups = tuple(Group(axes=(axis,), extents=(extent,)) for axis, extent in enumerate(op.domain))
    epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, len(groups) - 1)
    with k.units() as unit:
        row = k.split(unit, outer)
        with k.loop("n", 0, k.param(n)) as column:
            total = k.variable("total", Const(f32(1), 0.0))
            for first in (0, 2):
                _add(k, op.inputs[first : first + 2], data[first : first + 2], [*row, column], total)
            point = [*row, column]
            here = epilogue.at(k)
            here.store(op.output, out, point, here.value(point, total, 1))
    kernel, params = k.finish()
    values = [operand.value for operand in (*op.inputs[:4], op.output)]
    return [
        KernelCall(
            kernel=kernel,
            buffers=(*(ValueBuffer(value=value) for value in values), *epilogue.buffers),
            params=params,
            units=product(outer),
            cost_ns=SLOWDOWN * op.flops() // max(1, int(context.caps.fma_gflops)),
        )
    ]


def _add(k: KernelBuilder, factors: Sequence[Operand], data: Sequence[Var], point: Sequence[Rvalue], total: Var) -> None:
    """The product of the row and the column that meet at ``point``, added to ``total``."""
    a, b = factors
    *row, column = point
    left = k.pointer("left", data[0], address(k, a, row))
    right = k.pointer("right", data[1], address(k, b, row[:-1]) + column * k.param(b.strides[-1]))
    with k.loop("k", 0, k.param(a.shape[-1])) as step:
        x, y = k.load(left, step * k.param(a.strides[-1])), k.load(right, step * k.param(b.strides[-2]))
        k.assign(total, Fma(_as_f32(x), _as_f32(y), total))


def _as_f32(x: Rvalue) -> Rvalue:
    return x if x.type == f32(1) else Convert(f32(1), x)


VARIANTS = [
    Variant(name="gemm.low_rank_generic", op=LowRankGemm, admits=admits, cost_ns=cost_ns, build=build, rank=FALLBACK_RANK)
]
