"""row_reduce.thread: a thread for each row, any RowReduce. Windows of pooling, columns, and rows too short for a block.

Where neighbouring rows are neighbours in memory, and short as windows are, a thread has a packet of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.expr import acc, acc_bool, acc_int
from xyntra_ep.tracea.core_ir.ops import RowReduce
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, estimate_ns, gpu_of, launch_of, moved_ns, steps_ns
from xyntra_ep.tracea.kernels.gpu.shared.packets import Packet, packet_width
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest, Scope, as_element
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator, is_arg
from xyntra_ep.tracea.kernels.shared.loops.rows import Rows, RowStage, keep_values, loops_around, plan_rows
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, lt

_WINDOW = 64  # elements of a row that is as short as a window
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
    return max(estimate_ns(_steps(op), gpu), estimate_ns(alone, gpu), moved_ns(op, gpu))


def _build(op: RowReduce, config: Config, context: BuildContext) -> list[KernelCall]:
    threads = config["threads"]
    b = GpuBuilder(f"xy_rows_thread_{op.outputs[0].operand.dtype}", threads)
    rows = keep_values(plan_rows(op, b), b, on_stack=False)
    outer = [loop.extent for loop in rows.outer]
    nest = Nest(b, rows.table, rows.outer[-1].axis if rows.outer else None, rows.roots)
    is_window = typical(product(op.inner)) <= _WINDOW
    width = packet_width(nest, outer[-1]) if rows.outer and is_window else 1
    packets = [*outer[:-1], outer[-1] // width] if outer else []
    outside = nest.outside()
    number = b.let("row", b.block * threads + b.thread)
    with b.when(lt(number, b.param(product(packets)))):
        places = b.split(number, packets)
        if width > 1:
            places[-1] = b.let("at", places[-1] * width)
        axes = {loop.axis: at for loop, at in zip(rows.outer, places, strict=True)}
        (_PacketOfRows(b, rows, width) if width > 1 else _OneRow(b, rows)).run(outside, axes)
    return [
        launch_of(
            b,
            nest.table.buffers,
            units=ceildiv(product(packets), threads),
            cost_ns=steps_ns(_steps(op), gpu_of(context)) + LAUNCH_NS,
        )
    ]


class _OneRow:
    """A row, by one thread."""

    def __init__(self, b: GpuBuilder, rows: Rows) -> None:
        self._b, self._rows = b, rows

    def run(self, outside: Scope, axes: Mapping[int, Rvalue]) -> None:
        row = outside.bind(axes)
        for j, stage in enumerate(self._rows.stages):
            row = row.bind(accs={j: self._reduced(row, stage)})
        for r in self._rows.results:
            if r.per_row:
                row.store(r.access, row.value(r.body))
        if full := self._rows.full:
            with loops_around(row, self._rows.inner) as (here, _):
                values = [here.value(body) for body, _ in full]
                for (_, access), value in zip(full, values, strict=True):
                    here.store(access, value)

    def _reduced(self, row: Scope, stage: RowStage) -> Rvalue:
        total = Accumulator(self._b, stage.kind, stage.body.dtype, 1)
        with loops_around(row, self._rows.inner) as (here, position):
            value = here.value(stage.body)
            if stage.keep is not None:
                here.store(stage.kept_in, here.value(stage.keep))
            total.update(value, as_element(position) if is_arg(stage.kind) else None)
        return total.result(stage.dtype)


class _PacketOfRows:
    """``width`` rows that are neighbours along the last of the outer axes."""

    def __init__(self, b: GpuBuilder, rows: Rows, width: int) -> None:
        self._b, self._rows, self._width = b, rows, width
        self._found: list[list[Rvalue]] = []  # of each stage so far, each row's result

    def run(self, outside: Scope, axes: Mapping[int, Rvalue]) -> None:
        lane = outside.nest.lane_axis
        assert lane is not None
        row, at = outside.bind({axis: place for axis, place in axes.items() if axis != lane}), axes[lane]
        for stage in self._rows.stages:
            self._found.append(self._reduced(row, at, stage))
        here = self._packet(row, at)
        for r in self._rows.results:
            if r.per_row:
                here.store(r.access, here.values(r.body))
        if full := self._rows.full:
            with loops_around(row, self._rows.inner) as (inside, _):
                here = self._packet(inside, at)
                values = [here.values(body) for body, _ in full]
                for (_, access), stored in zip(full, values, strict=True):
                    here.store(access, stored)

    def _packet(self, scope: Scope, at: Rvalue) -> Packet:
        packet = Packet(self._b, scope, at, self._width)
        for j, values in enumerate(self._found):
            for make in (acc, acc_int, acc_bool):
                packet.define(make(j), values)
        return packet

    def _reduced(self, row: Scope, at: Rvalue, stage: RowStage) -> list[Rvalue]:
        totals = [Accumulator(self._b, stage.kind, stage.body.dtype, 1) for _ in range(self._width)]
        with loops_around(row, self._rows.inner) as (inside, position):
            here = self._packet(inside, at)
            values = here.values(stage.body)
            if stage.keep is not None:
                here.store(stage.kept_in, here.values(stage.keep))
            for total, value in zip(totals, values, strict=True):
                total.update(value, as_element(position) if is_arg(stage.kind) else None)
        return [self._b.let("total", total.result(stage.dtype)) for total in totals]


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
