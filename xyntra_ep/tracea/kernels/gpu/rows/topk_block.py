"""topk.block: a block for each row, which keeps its best elements sorted, one in each thread.

The row comes in chunks of as many elements as there are threads. A chunk is sorted by a bitonic network (Batcher, "Sorting
networks and their applications", 1968), the worst first. Of each thread's two the better ones are then the best of both, and half
a network sorts them again. A chunk of which no element is among the k best so far is passed over.

NaN ranks as infinity and equal elements by their position, so that no two entries are equal and the result is unique.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import ReduceKind, TopK
from xyntra_ep.tracea.kernels.gpu.rows._topk_row import Entry, TopKRow
from xyntra_ep.tracea.kernels.gpu.shared.block_reduce import block_reduced
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, estimate_ns, gpu_of, launch_of, steps_ns
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, Rvalue, Select, Var, binary, i64, index, lt, vmin

_THREADS = (64, 128, 256, 512, 1024)
_ENOUGH = 256  # threads, where the k best need no more
_STEP = 4  # steps of each thread, as `_launch` counts them, for a comparison in the network


def _admits(op: TopK, context: BuildContext) -> str | None:
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from threads that share a row"
    return None if _space(op, context) else "more elements are wanted than a block has threads"


def _space(op: TopK, context: BuildContext) -> Sequence[Axis]:
    fitting = tuple(t for t in _THREADS if op.k <= t <= gpu_of(context).max_threads)
    return (Axis(name="threads", values=fitting),) if fitting else ()


def _default(op: TopK, context: BuildContext) -> Config:
    [threads] = _space(op, context)
    wanted = max(op.k, min(typical(op.inputs[0].shape[-1]), _ENOUGH))
    return {"threads": next((t for t in threads.values if t >= wanted), threads.values[-1])}


def _comparisons(threads: int) -> int:
    """Of a thread, to sort a chunk and to merge it."""
    levels = threads.bit_length() - 1
    return levels * (levels + 1) // 2 + levels + 1


def _steps(op: TopK, threads: int) -> Size:
    chunks = ceildiv(op.inputs[0].shape[-1], threads)
    return product(op.inputs[0].shape[:-1]) * chunks * (threads * _comparisons(threads) * _STEP)


def _cost_ns(op: TopK, config: Config, context: BuildContext) -> float:
    return estimate_ns(_steps(op, config["threads"]), gpu_of(context))


def _build(op: TopK, config: Config, context: BuildContext) -> list[KernelCall]:
    gpu, threads = gpu_of(context), config["threads"]
    b = GpuBuilder(f"xy_topk_{op.inputs[0].dtype}_block_{threads}", threads)
    rows = op.inputs[0].shape[:-1]
    row = TopKRow(b, op, rows, b.block)
    _Sorter(b, row, gpu).run()
    return [launch_of(b, row.buffers, units=product(rows), cost_ns=steps_ns(_steps(op, threads), gpu) + LAUNCH_NS)]


@dataclass(frozen=True, slots=True)
class _Kept:
    """The thread's entry among the best, the best one in thread 0."""

    key: Var
    position: Var

    @property
    def entry(self) -> Entry:
        return Entry(self.key, self.position)


class _Sorter:
    """What a block does for its row."""

    def __init__(self, b: GpuBuilder, row: TopKRow, gpu: Gpu) -> None:
        self._b, self._row, self._subgroup = b, row, gpu.subgroup
        dtype = row.key_dtype
        self._arrays = b.shared("keys", dtype, b.threads, slots=2), b.shared("at", DType.I32, b.threads, slots=2)
        self._worst = b.shared("worst", dtype, 1), b.shared("worst_at", DType.I32, 1)
        self._slot = 0

    def run(self) -> None:
        b, row = self._b, self._row
        nothing = row.nothing(b.thread)
        best = _Kept(b.variable("best", nothing.key), b.variable("best_at", nothing.position))
        with b.loop("first", 0, row.length, b.threads) as first:
            here = self._element(b.let("at", first + b.thread))
            with self._some_are_better(here, best):
                self._merge(best, self._sorted(here))
        with b.when(lt(b.thread, vmin(row.length, row.k))):
            row.store(b.thread, best.position)

    def _element(self, at: Rvalue) -> Entry:
        """Of the row, or what is worse than any."""
        b, row = self._b, self._row
        nothing = row.nothing(at)
        key = b.variable("key", nothing.key)
        with b.when(lt(at, row.length)):
            b.assign(key, row.key(at))
        return Entry(key, b.let("p", Select(lt(at, row.length), at, nothing.position)))

    def _some_are_better(self, here: Entry, best: _Kept) -> AbstractContextManager[None]:
        """Where threads agree quickly: whether an element of the chunk is better than the worst one of the k best."""
        b, row = self._b, self._row
        if self._subgroup < 2:
            return nullcontext()
        key, position = self._worst
        with b.when(binary("eq", b.thread, row.k - 1)):
            b.store(key, 0, best.key)
            b.store(position, 0, Convert(i64(1), best.position))
        b.barrier()
        worst = Entry(b.load(key, 0), Convert(INDEX, b.load(position, 0)))
        own, all_ = (Accumulator(b, ReduceKind.MAX, DType.I64, 1) for _ in range(2))
        own.update(Convert(i64(1), row.before(here, worst)))
        found = block_reduced(b, own, all_, self._subgroup, agreed=True).result(DType.I64)
        return b.when(lt(0, Convert(INDEX, found)))

    def _sorted(self, entry: Entry) -> Entry:
        """The thread's entry when those of all threads are sorted, the worst first."""
        b, size = self._b, 2
        while size <= b.threads:
            # The last of these networks sorts all, those before it every other piece the other way round.
            turned = b.let("turned", b.thread // size % 2) if size < b.threads else index(0)
            entry = self._halved(entry, size // 2, lambda up, turned=turned: binary("ne", up, turned))  # type: ignore[misc]
            size *= 2
        return entry

    def _merge(self, best: _Kept, chunk: Entry) -> None:
        """``chunk`` comes worst first: the better of each two are the best of all, up to one turn in one direction."""
        b, row = self._b, self._row
        better = b.let("better", row.before(chunk, best.entry))
        merged = Entry(*(b.let("m", Select(better, x, y)) for x, y in zip(chunk, best.entry, strict=True)))
        merged = self._halved(merged, b.threads // 2, lambda up: binary("ne", up, 1))
        b.assign(best.key, merged.key)
        b.assign(best.position, merged.position)

    def _halved(self, entry: Entry, distance: int, wants_better: Callable[[Rvalue], Rvalue]) -> Entry:
        """Compare with the entry ``distance`` threads away, then with one half as far, and so on. ``wants_better``: of whether
        the thread is the upper one of the two, whether the better entry goes there."""
        b = self._b
        while distance:
            other = self._exchanged(entry, distance)
            wanted = wants_better(b.let("up", b.thread // distance % 2))
            take = b.let("take", binary("eq", self._row.before(other, entry), wanted))
            entry = Entry(*(b.let("e", Select(take, x, y)) for x, y in zip(other, entry, strict=True)))
            distance //= 2
        return entry

    def _exchanged(self, entry: Entry, distance: int) -> Entry:
        """The entry of the thread whose number differs in this bit: from its registers, or by way of shared memory."""
        b = self._b
        if distance < self._subgroup:
            return Entry(*(b.let("other", b.subgroup_xor(part, distance)) for part in entry))
        keys, positions = (b.slot(array, self._slot) for array in self._arrays)
        self._slot = 1 - self._slot
        b.store(keys, b.thread, entry.key)
        b.store(positions, b.thread, Convert(i64(1), entry.position))
        b.barrier()
        there = b.let("there", binary("xor", b.thread, distance))
        return Entry(b.let("other", b.load(keys, there)), b.let("other", Convert(INDEX, b.load(positions, there))))


VARIANTS = [
    Variant(
        name="topk.block",
        op=TopK,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=0,
    )
]
