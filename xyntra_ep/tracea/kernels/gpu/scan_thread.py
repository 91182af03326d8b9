"""scan.thread: cumulative sums and products, a thread for each row."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Scan
from xyntra_ep.tracea.kernels.gpu._launch import estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.index import AccessTable
from xyntra_ep.tracea.kernels.shared.loops import Nest
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, lt
from xyntra_ep.tracea.semantic_ir.scalar_code import value_type

_THREADS = 128
_STEP = 8  # a load, what is computed from it, and a store, one after the other


def _admits(op: Scan, context: BuildContext) -> str | None:
    return None if op.kind in (ReduceKind.SUM, ReduceKind.PROD) else f"no scan by {op.kind}"


def _space(op: Scan, context: BuildContext) -> Sequence[Axis]:
    return ()


def _default(op: Scan, context: BuildContext) -> Config:
    return {}


def _cost_ns(op: Scan, config: Config, context: BuildContext) -> float:
    return estimate_ns(product(op.output.shape) * _STEP, gpu_of(context))


def _build(op: Scan, config: Config, context: BuildContext) -> list[KernelCall]:
    b = GpuBuilder(f"xy_scan_{op.output.dtype}", _THREADS)
    table = AccessTable(b, op.output.shape)
    body = table.reading(op.body if op.body.dtype is not DType.BOOL else call("to_i", op.body), op.inputs)
    output = table.writing(op.output)
    outside = Nest(b, table, None, [body]).outside()
    *rows, length = op.output.shape
    last = len(rows)
    number = b.let("row", b.block * _THREADS + b.thread)
    with b.when(lt(number, b.param(product(rows)))):
        row = outside.bind(dict(enumerate(b.split(number, rows))) if rows else {})
        total = b.variable("total", Const(value_type(body.dtype, 1), 0 if op.kind is ReduceKind.SUM else 1))
        with b.loop("i", 0, b.param(length)) as i:
            here = row.bind({last: b.param(length) - 1 - i if op.reverse else i})
            value = b.let("x", here.value(body))
            if op.exclusive:
                here.store(output, total)
            b.assign(total, total + value if op.kind is ReduceKind.SUM else total * value)
            if not op.exclusive:
                here.store(output, total)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(table.buffers),
            params=params,
            units=ceildiv(product(rows), _THREADS),
            cost_ns=steps_ns(product(op.output.shape) * _STEP, gpu_of(context)),
        )
    ]


VARIANTS = [
    Variant(
        name="scan.thread",
        op=Scan,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=FALLBACK_RANK,
    )
]
