"""gemm.thread: any types, any strides, one element of the result a thread. The variant that is always legal."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu.shared.launch import estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_element import row_times_column, why_no_product
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import index, lt

_THREADS = 128


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return estimate_ns(product(op.domain) * op.inputs[0].shape[-1] * 2, gpu_of(context))


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    a, b, out = op.inputs[0], op.inputs[1], op.output
    k = GpuBuilder(f"xy_gemm_{a.dtype}_thread", _THREADS)
    a_data, b_data = k.buffer("a", a.dtype), k.buffer("b", b.dtype)
    out_data = k.buffer("out", out.dtype, writable=True)
    epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, shape.groups, len(shape.groups) - 1)
    extents = [*shape.batch_extents, shape.m, shape.n]
    number = k.let("element", k.block * _THREADS + k.thread)
    with k.when(lt(number, k.param(product(extents)))):
        *batch, row, column = k.split(number, extents)
        a_row = k.pointer("a_row", a_data, address(k, a, batch) + row * k.param(shape.a_row))
        b_column = k.pointer("b_column", b_data, address(k, b, batch) + column * k.param(b.strides[-1]))
        total = row_times_column(k, op, a_row, b_column, index(0))
        here = epilogue.at(k)
        here.store(out, out_data, [*batch, row, column], here.value([*batch, row, column], total, 1))
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
            units=ceildiv(product(extents), _THREADS),
            cost_ns=steps_ns(product(extents) * shape.depth * 2, gpu_of(context)),
        )
    ]


VARIANTS = [
    Variant(
        name="gemm.thread",
        op=Gemm,
        admits=why_no_product,
        cost_ns=_cost_ns,
        build=_build,
        rank=FALLBACK_RANK,
    )
]
