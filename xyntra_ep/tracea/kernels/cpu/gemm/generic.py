"""gemm.generic: any types, any strides, one element of the result at a time. The variant that is always legal."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import product, typical
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._choice import product_ns
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_element import row_times_column, why_no_product
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder

SLOWDOWN = 100  # against the arithmetic peak: no vectors, and every sum waits for the one before


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return SLOWDOWN * float(typical(product_ns(shape_of(op), context.caps))) + 1000.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    """A unit is one row of the result."""
    shape = shape_of(op)
    a, b, out = op.inputs[0], op.inputs[1], op.output
    k = KernelBuilder(f"xy_gemm_{a.dtype}_generic")
    a_data, b_data = k.buffer("a", a.dtype), k.buffer("b", b.dtype)
    out_data = k.buffer("out", out.dtype, writable=True)
    epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, shape.groups, len(shape.groups) - 1)
    with k.units() as unit:
        *batch, row = k.split(unit, [*shape.batch_extents, shape.m])
        a_row = k.pointer("a_row", a_data, address(k, a, batch) + row * k.param(shape.a_row))
        b_matrix = k.pointer("b_matrix", b_data, address(k, b, batch))
        with k.loop("n", 0, k.param(shape.n)) as n:
            total = row_times_column(k, op, a_row, b_matrix, n * k.param(b.strides[-1]))
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
        admits=why_no_product,
        cost_ns=cost_ns,
        build=build,
        rank=FALLBACK_RANK,
    )
]
