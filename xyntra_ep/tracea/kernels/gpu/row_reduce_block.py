"""row_reduce.block: a block for each row. LayerNorm, Softmax and reductions over rows that keep many threads busy.

A thread takes every so many packets of the row; the running values of all meet through registers and shared memory. Values that
later passes need again wait in the output, where the thread that wrote them finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from xyntra_ep.tracea.core_ir.dims import Size, product, typical
from xyntra_ep.tracea.core_ir.ops import RowReduce
from xyntra_ep.tracea.kernels.gpu._block_reduce import block_reduced
from xyntra_ep.tracea.kernels.gpu._launch import LAUNCH_NS, estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.gpu._packets import Packet, packet_width
from xyntra_ep.tracea.kernels.shared.loops import Nest, Scope
from xyntra_ep.tracea.kernels.shared.loops_reduce import Accumulator, is_arg
from xyntra_ep.tracea.kernels.shared.loops_rows import Rows, RowStage, keep_values, loops_around, plan_rows
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var, index, lt

_THREADS = (32, 64, 128, 256)
_PER_THREAD = 4  # elements that a thread should have at least
_MEETING = 32  # steps of each thread for a stage's results to meet


def _admits(op: RowReduce, context: BuildContext) -> str | None:
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from threads that share a row"
    return "positions of extremes are found by one thread" if any(is_arg(s.kind) for s in op.stages) else None


def _space(op: RowReduce, context: BuildContext) -> Sequence[Axis]:
    return (Axis(name="threads", values=_THREADS),)


def _default(op: RowReduce, context: BuildContext) -> Config:
    longest = typical(op.inner[-1]) if op.inner else 1
    return {"threads": next((t for t in _THREADS if t * _PER_THREAD >= longest), _THREADS[-1])}


def _steps(op: RowReduce, config: Config) -> Size:
    per_row = product(op.inner) * (len(op.stages) + 1) + config["threads"] * _MEETING * len(op.stages)
    return product(op.outer) * per_row


def _cost_ns(op: RowReduce, config: Config, context: BuildContext) -> float:
    return estimate_ns(_steps(op, config), gpu_of(context))


def _build(op: RowReduce, config: Config, context: BuildContext) -> list[KernelCall]:
    gpu = gpu_of(context)
    b = GpuBuilder(f"xy_rows_block_{op.outputs[0].operand.dtype}", config["threads"])
    rows = keep_values(plan_rows(op, b), b, on_stack=False)
    nest = Nest(b, rows.table, rows.inner[-1].axis if rows.inner else None, rows.roots)
    outer = [loop.extent for loop in rows.outer]
    code = _BlockCode(b, rows, nest, gpu.subgroup)
    row = nest.outside().bind({loop.axis: at for loop, at in zip(rows.outer, b.split(b.block, outer), strict=True)})
    for j, stage in enumerate(rows.stages):
        row = row.bind(accs={j: code.reduce(row, stage)})
    code.write(row)
    kernel, params = b.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=tuple(nest.table.buffers),
            params=params,
            units=product(outer),
            cost_ns=steps_ns(_steps(op, config), gpu) + LAUNCH_NS,
        )
    ]


class _BlockCode:
    """The passes of a block over its row."""

    def __init__(self, b: GpuBuilder, rows: Rows, nest: Nest, subgroup: int) -> None:
        self._b = b
        self._rows = rows
        self._subgroup = subgroup
        self._extent = rows.inner[-1].extent if rows.inner else 1
        self._width = packet_width(nest, self._extent)

    def reduce(self, row: Scope, stage: RowStage) -> Rvalue:
        """The stage's result, in every thread."""
        b = self._b

        def fresh() -> Accumulator:
            return Accumulator(b, stage.kind, stage.body.dtype, 1, stage.shows_nan)

        partial = [fresh() for _ in range(self._width)]
        with loops_around(row, self._rows.inner[:-1]) as (scope, _), self._steps() as at:
            here = Packet(b, scope, at, self._width)
            values = here.values(stage.body)
            if stage.keep is not None:
                here.store(stage.kept_in, here.values(stage.keep))
            for own, value in zip(partial, values, strict=True):
                own.update(value)
        for own in partial[1:]:
            partial[0].merge(own)
        return block_reduced(b, partial[0], fresh(), self._subgroup).result(stage.dtype)

    def write(self, row: Scope) -> None:
        """All results: those of the row by one thread."""
        b = self._b
        for r in self._rows.results:
            if r.per_row:
                with b.when(lt(b.thread, 1)):
                    here = row.bind()  # what it computes is not seen outside
                    here.store(r.access, here.value(r.body))
        full = self._rows.full
        if not full:
            return
        with loops_around(row, self._rows.inner[:-1]) as (scope, _), self._steps() as at:
            packet = Packet(b, scope, at, self._width)
            values = [packet.values(body) for body, _ in full]
            for (_, access), stored in zip(full, values, strict=True):
                packet.store(access, stored)

    def _steps(self) -> AbstractContextManager[Var]:
        """A thread's packets of the last loop."""
        first, step = self._b.thread * self._width, self._b.threads * self._width
        return self._b.loop("at", first, self._b.param(self._extent), index(step))


VARIANTS = [
    Variant(
        name="row_reduce.block",
        op=RowReduce,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
