"""gemm.generic: any types, any strides, one element of the result at a time. The variant that is always legal."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu._gemm_choice import product_ns
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, loaded_type

SLOWDOWN = 100  # against the arithmetic peak: no vectors, and every sum waits for the one before


def admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if a.dtype.compute is DType.BOOL or a.dtype.compute is not b.dtype.compute:
        return f"no product of {a.dtype} and {b.dtype}"
    return None


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return ()


def default(op: Gemm, context: BuildContext) -> Config:
    return {}


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return SLOWDOWN * float(typical(product_ns(shape_of(op), context.caps))) + 1000.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    """A unit is one row of the result."""
    shape = shape_of(op)
    a, b, out = op.inputs[0], op.inputs[1], op.output
    k = KernelBuilder(f"xy_gemm_{a.dtype}_generic")
    a_data, b_data = k.buffer("a", a.dtype), k.buffer("b", b.dtype)
    out_data = k.buffer("out", out.dtype, writable=True)
    epilogue = Epilogue(k, context.program, op.epilogue, op.inputs, op.domain, shape.groups, len(shape.groups) - 1)
    with k.units() as unit:
        *batch, row = k.split(unit, [*shape.batch_extents, shape.m])
        a_at, b_at = k.param(a.offset) + row * k.param(shape.a_row), k.param(b.offset)
        for group, coordinate in zip(shape.batch, batch, strict=True):
            a_at = a_at + coordinate * k.param(a.strides[group.axes[0]])
            b_at = b_at + coordinate * k.param(b.strides[group.axes[0]])
        a_row, b_matrix = k.pointer("a_row", a_data, a_at), k.pointer("b_matrix", b_data, b_at)
        with k.loop("n", 0, k.param(shape.n)) as n:
            total = k.variable("total", Const(loaded_type(a.dtype, 1), 0))
            with k.loop("k", 0, k.param(shape.depth)) as step:
                x = k.load(a_row, step * k.param(a.strides[-1]))
                y = k.load(b_matrix, step * k.param(b.strides[-2]) + n * k.param(b.strides[-1]))
                k.assign(total, Fma(x, y, total))
            here = epilogue.at(k)
            here.store(out, out_data, [*batch, row, n], here.value([*batch, row, n], total, 1))
    kernel, params = k.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=(
                ValueBuffer(value=a.value),
                ValueBuffer(value=b.value),
                ValueBuffer(value=out.value),
                *epilogue.buffers,
            ),
            params=params,
            units=product([*shape.batch_extents, shape.m]),
            cost_ns=SLOWDOWN * product_ns(shape, context.caps),
        )
    ]


VARIANTS = [
    Variant(
        name="gemm.generic",
        op=Gemm,
        admits=admits,
        space=space,
        default=default,
        cost_ns=cost_ns,
        build=build,
        rank=FALLBACK_RANK,
    )
]
