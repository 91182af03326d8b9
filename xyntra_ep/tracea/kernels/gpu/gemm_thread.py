"""gemm.thread: any types, any strides, one element of the result a thread. The variant that is always legal."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu._launch import estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, loaded_type, lt

_THREADS = 128


def _admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if a.dtype.compute is DType.BOOL or a.dtype.compute is not b.dtype.compute:
        return f"no product of {a.dtype} and {b.dtype}"
    return None


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return ()


def _default(op: Gemm, context: BuildContext) -> Config:
    return {}


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return estimate_ns(product(op.domain) * op.inputs[0].shape[-1] * 2, gpu_of(context))


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    a, b, out = op.inputs[0], op.inputs[1], op.output
    k = GpuBuilder(f"xy_gemm_{a.dtype}_thread", _THREADS)
    a_data, b_data = k.buffer("a", a.dtype), k.buffer("b", b.dtype)
    out_data = k.buffer("out", out.dtype, writable=True)
    epilogue = Epilogue(k, context.program, op.epilogue, op.inputs, op.domain, shape.groups, len(shape.groups) - 1)
    extents = [*shape.batch_extents, shape.m, shape.n]
    number = k.let("element", k.block * _THREADS + k.thread)
    with k.when(lt(number, k.param(product(extents)))):
        *batch, row, column = k.split(number, extents)
        a_at = k.param(a.offset) + row * k.param(shape.a_row)
        b_at = k.param(b.offset) + column * k.param(b.strides[-1])
        for group, coordinate in zip(shape.batch, batch, strict=True):
            a_at = a_at + coordinate * k.param(a.strides[group.axes[0]])
            b_at = b_at + coordinate * k.param(b.strides[group.axes[0]])
        a_row, b_column = k.pointer("a_row", a_data, a_at), k.pointer("b_column", b_data, b_at)
        total = k.variable("total", Const(loaded_type(a.dtype, 1), 0))
        with k.loop("k", 0, k.param(shape.depth)) as step:
            x, y = k.load(a_row, step * k.param(a.strides[-1])), k.load(b_column, step * k.param(b.strides[-2]))
            k.assign(total, Fma(x, y, total))
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
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=FALLBACK_RANK,
    )
]
