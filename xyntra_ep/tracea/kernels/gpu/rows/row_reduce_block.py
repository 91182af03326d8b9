"""row_reduce.block: a block for each row. LayerNorm, Softmax and reductions over rows that keep many threads busy.

A thread takes every so many packets of the row; the running values of all meet through registers and shared memory. A row of
known length that its threads can hold is read once: all packets are on their way before the first is used, and stay in registers.
Of a longer one, values that later passes need again wait in the output, where the thread that wrote them finds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from xyntra_ep.tracea.core_ir.dims import Size, product, typical
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import RowReduce
from xyntra_ep.tracea.kernels.gpu.shared.block_reduce import block_reduced
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, estimate_ns, gpu_of, launch_of, moved_ns, steps_ns
from xyntra_ep.tracea.kernels.gpu.shared.packets import Packet, packet_width
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest, Scope
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator, is_arg
from xyntra_ep.tracea.kernels.shared.loops.rows import Rows, RowStage, keep_values, loops_around, plan_rows
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var, index, lt, vmin

_THREADS = (32, 64, 128, 256, 512, 1024)
_PER_THREAD = 4  # elements that a thread should have at least
_LOOPING = 256  # threads that are enough for rows of any length
_HELD = 16  # elements of a row that a thread can hold
_LONG = 4096  # elements of a row whose sum by one thread would be off by more than rounding its parts
_FEW = 2  # rows for a multiprocessor: so few of them take as long as each one takes, not as all threads need
_MEETING, _EXCHANGING = 32, 8  # steps of each thread for a stage's results to meet by shared memory, by exchange


def _admits(op: RowReduce, context: BuildContext) -> str | None:
    if gpu_of(context).is_cpu and typical(product(op.inner)) < _LONG:
        return "a CPU gains nothing from threads that share a row"
    return "positions of extremes are found by one thread" if any(is_arg(s.kind) for s in op.stages) else None


def _space(op: RowReduce, context: BuildContext) -> Sequence[Axis]:
    return (Axis(name="threads", values=tuple(t for t in _THREADS if t <= gpu_of(context).max_threads)),)


def _default(op: RowReduce, context: BuildContext) -> Config:
    [threads] = _space(op, context)
    longest = typical(op.inner[-1]) if op.inner else 1
    if not _is_held(op, threads.values[-1]):
        return {"threads": next((t for t in threads.values if t * _PER_THREAD >= longest or t == _LOOPING), _LOOPING)}
    each = _PER_THREAD if typical(product(op.outer)) <= _FEW * gpu_of(context).units else _HELD
    return {"threads": next((t for t in threads.values if t * each >= longest), threads.values[-1])}


def _is_held(op: RowReduce, threads: int) -> bool:
    """Whether so many threads can hold a row, if it is made of packets."""
    return len(op.inner) == 1 and isinstance(op.inner[0], int) and op.inner[0] <= threads * _HELD


def _steps(op: RowReduce, config: Config, gpu: Gpu) -> Size:
    meeting = _EXCHANGING if gpu.subgroup > 1 else _MEETING
    per_row = product(op.inner) * (len(op.stages) + 1) + config["threads"] * meeting * len(op.stages)
    return product(op.outer) * per_row


def _cost_ns(op: RowReduce, config: Config, context: BuildContext) -> float:
    gpu = gpu_of(context)
    return max(estimate_ns(_steps(op, config, gpu), gpu), moved_ns(op, gpu))


def _build(op: RowReduce, config: Config, context: BuildContext) -> list[KernelCall]:
    gpu = gpu_of(context)
    b = GpuBuilder(f"xy_rows_block_{op.outputs[0].operand.dtype}", config["threads"])
    rows = plan_rows(op, b)
    lane, extent = (rows.inner[-1].axis, rows.inner[-1].extent) if rows.inner else (None, 1)
    width = packet_width(Nest(b, rows.table, lane, rows.roots), extent)
    is_held = width > 1 and len(rows.inner) == 1 and _is_held(op, b.threads)
    if not is_held:
        rows = keep_values(rows, b, on_stack=False)
    nest = Nest(b, rows.table, lane, rows.roots)
    outer = [loop.extent for loop in rows.outer]
    row = nest.outside().bind({loop.axis: at for loop, at in zip(rows.outer, b.split(b.block, outer), strict=True)})
    code = (_HeldRow if is_held else _LoopedRow)(b, rows, nest, gpu.subgroup)
    for j, stage in enumerate(rows.stages):
        row = row.bind(accs={j: code.reduce(row, stage)})
    code.write(row)
    return [launch_of(b, nest.table.buffers, units=product(outer), cost_ns=steps_ns(_steps(op, config, gpu), gpu) + LAUNCH_NS)]


class _Row(ABC):
    """The passes of a block over its row."""

    def __init__(self, b: GpuBuilder, rows: Rows, nest: Nest, subgroup: int) -> None:
        self._b = b
        self._rows = rows
        self._subgroup = subgroup
        self._extent = rows.inner[-1].extent if rows.inner else 1
        self._width = packet_width(nest, self._extent)

    def reduce(self, row: Scope, stage: RowStage) -> Rvalue:
        """The stage's result, in every thread."""
        partial, all_ = ([self._fresh(stage) for _ in range(n)] for n in (self._width, 1))
        self._gather(row, stage, partial)
        for own in partial[1:]:
            partial[0].merge(own)
        return block_reduced(self._b, partial[0], all_[0], self._subgroup).result(stage.dtype)

    def _fresh(self, stage: RowStage) -> Accumulator:
        return Accumulator(self._b, stage.kind, stage.body.dtype, 1)

    def write(self, row: Scope) -> None:
        """All results: those of the row by one thread."""
        b = self._b
        for r in self._rows.results:
            if r.per_row:
                with b.when(lt(b.thread, 1)):
                    here = row.bind()  # what it computes is not seen outside
                    here.store(r.access, here.value(r.body))
        if self._rows.full:
            self._write_full(row)

    @abstractmethod
    def _gather(self, row: Scope, stage: RowStage, partial: Sequence[Accumulator]) -> None:
        """Take in the thread's elements, each point of a packet by an accumulator of its own."""

    @abstractmethod
    def _write_full(self, row: Scope) -> None:
        """The results that have an element for each of the row."""


class _LoopedRow(_Row):
    """A row that each pass reads."""

    def _gather(self, row: Scope, stage: RowStage, partial: Sequence[Accumulator]) -> None:
        with loops_around(row, self._rows.inner[:-1]) as (scope, _), self._steps() as at:
            here = Packet(self._b, scope, at, self._width)
            values = here.values(stage.body)
            if stage.keep is not None:
                here.store(stage.kept_in, here.values(stage.keep))
            for own, value in zip(partial, values, strict=True):
                own.update(value)

    def _write_full(self, row: Scope) -> None:
        with loops_around(row, self._rows.inner[:-1]) as (scope, _), self._steps() as at:
            packet = Packet(self._b, scope, at, self._width)
            values = [packet.values(body) for body, _ in self._rows.full]
            for (_, access), stored in zip(self._rows.full, values, strict=True):
                packet.store(access, stored)

    def _steps(self) -> AbstractContextManager[Var]:
        """A thread's packets of the last loop."""
        first, step = self._b.thread * self._width, self._b.threads * self._width
        return self._b.loop("at", first, self._b.param(self._extent), index(step))


class _HeldRow(_Row):
    """A row whose packets the threads keep. Packets past its end are the last one once more, which counts for nothing."""

    def __init__(self, b: GpuBuilder, rows: Rows, nest: Nest, subgroup: int) -> None:
        super().__init__(b, rows, nest, subgroup)
        extent, together = self._extent, b.threads * self._width
        assert isinstance(extent, int)
        self._places: list[tuple[Rvalue, Rvalue | None]] = []  # where a packet is; whether it is there
        for first in range(0, extent, together):
            at = b.let("at", first + b.thread * self._width)
            inside = None if first + together <= extent else lt(at, extent)
            self._places.append((at if inside is None else b.let("at", vmin(at, extent - self._width)), inside))
        self._loaded: list[dict[int, Sequence[Rvalue]]] = [{} for _ in self._places]
        self._known: list[list[tuple[Expr, Sequence[Rvalue]]]] = [[] for _ in self._places]

    def _packets(self, row: Scope) -> list[Packet]:
        found = []
        for (at, _), loaded, known in zip(self._places, self._loaded, self._known, strict=True):
            found.append(Packet(self._b, row, at, self._width, loaded))
            for e, values in known:
                found[-1].define(e, values)
        return found

    def _there(self, inside: Rvalue | None) -> AbstractContextManager[None]:
        return nullcontext() if inside is None else self._b.when(inside)

    def _gather(self, row: Scope, stage: RowStage, partial: Sequence[Accumulator]) -> None:
        found = [[self._b.let("x", v) for v in packet.values(stage.body)] for packet in self._packets(row)]
        for values, known, (_, inside) in zip(found, self._known, self._places, strict=True):
            known.append((stage.body, values))
            with self._there(inside):
                for own, value in zip(partial, values, strict=True):
                    own.update(value)

    def _write_full(self, row: Scope) -> None:
        packets = self._packets(row)
        found = [[packet.values(body) for body, _ in self._rows.full] for packet in packets]
        for packet, values, (_, inside) in zip(packets, found, self._places, strict=True):
            with self._there(inside):
                for (_, access), stored in zip(self._rows.full, values, strict=True):
                    packet.store(access, stored)


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
