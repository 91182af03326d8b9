"""row_reduce.thread: a thread for each row, any RowReduce. Windows of pooling, columns, and rows too short for a block."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import RowReduce
from xyntra_ep.tracea.kernels.gpu._launch import LAUNCH_NS, estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.loops import Nest, Scope, as_element
from xyntra_ep.tracea.kernels.shared.loops_reduce import Accumulator, is_arg
from xyntra_ep.tracea.kernels.shared.loops_rows import Rows, RowStage, keep_values, loops_around, plan_rows
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, lt

_APART = 8  # sectors that a warp fetches where its threads walk along rows of their own, for one that it uses


def _admits(op: RowReduce, context: BuildContext) -> str | None:
    return None


def _space(op: RowReduce, context: BuildContext) -> Sequence[Axis]:
    return (Axis(name="threads", values=(64, 128, 256)),)


def _default(op: RowReduce, context: BuildContext) -> Config:
    return {"threads": 128}


def _steps(op: RowReduce) -> Size:
    along = any(x.strides and x.strides[-1] == 1 and len(x.shape) == len(op.outer) + len(op.inner) for x in op.inputs)
    return product(op.outer) * product(op.inner) * (len(op.stages) + 1) * (_APART if along and op.inner else 1)


def _cost_ns(op: RowReduce, config: Config, context: BuildContext) -> float:
    gpu = gpu_of(context)
    # Few rows leave most of the device idle: a row takes as long alone as beside others.
    alone = typical(product(op.inner)) * (len(op.stages) + 1) * gpu.units * config["threads"]
    return max(estimate_ns(_steps(op), gpu), estimate_ns(alone, gpu))


def _build(op: RowReduce, config: Config, context: BuildContext) -> list[KernelCall]:
    threads = config["threads"]
    b = GpuBuilder(f"xy_rows_thread_{op.outputs[0].operand.dtype}", threads)
    rows = keep_values(plan_rows(op, b), b, on_stack=False)
    nest = Nest(b, rows.table, rows.inner[-1].axis if rows.inner else None, rows.roots)
    outer = [loop.extent for loop in rows.outer]
    outside = nest.outside()
    number = b.let("row", b.block * threads + b.thread)
    with b.when(lt(number, b.param(product(outer)))):
        row = outside.bind({loop.axis: at for loop, at in zip(rows.outer, b.split(number, outer), strict=True)})
        for j, stage in enumerate(rows.stages):
            row = row.bind(accs={j: _reduce(b, row, rows, stage)})
        _write(b, row, rows)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(nest.table.buffers),
            params=params,
            units=ceildiv(product(outer), threads),
            cost_ns=steps_ns(_steps(op), gpu_of(context)) + LAUNCH_NS,
        )
    ]


def _reduce(b: GpuBuilder, row: Scope, rows: Rows, stage: RowStage) -> Rvalue:
    total = Accumulator(b, stage.kind, stage.body.dtype, 1, stage.shows_nan)
    with loops_around(row, rows.inner) as (here, position):
        value = here.value(stage.body)
        if stage.keep is not None:
            here.store(stage.kept_in, here.value(stage.keep))
        total.update(value, as_element(position) if is_arg(stage.kind) else None)
    return total.result(stage.dtype)


def _write(b: GpuBuilder, row: Scope, rows: Rows) -> None:
    for r in rows.results:
        if r.per_row:
            row.store(r.access, row.value(r.body))
    if full := rows.full:
        with loops_around(row, rows.inner) as (here, _):
            values = [here.value(body) for body, _ in full]
            for (_, access), value in zip(full, values, strict=True):
                here.store(access, value)


VARIANTS = [
    Variant(
        name="row_reduce.thread",
        op=RowReduce,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=20,
    )
]
