"""topk.thread: a thread for each row, any TopK. It goes over the row once for each result: short rows, and more results than a
block has threads."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import TopK
from xyntra_ep.tracea.kernels.gpu.rows._topk_row import Entry, TopKRow
from xyntra_ep.tracea.kernels.gpu.shared.launch import estimate_ns, gpu_of, launch_of, steps_ns
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Select, Var, binary, index, lt, vmin

_THREADS = 128
_STEP = 4  # a load that is seldom beside those of other threads, and two comparisons


def _admits(op: TopK, context: BuildContext) -> str | None:
    return None if op.k >= 1 else "k is 0"


def _of_a_row(op: TopK) -> Size:
    return op.inputs[0].shape[-1] * (op.k * _STEP)


def _steps(op: TopK) -> Size:
    return product(op.inputs[0].shape[:-1]) * _of_a_row(op)


def _cost_ns(op: TopK, config: Config, context: BuildContext) -> float:
    gpu = gpu_of(context)
    # Few rows leave most of the device idle: a row takes as long alone as beside others.
    return max(estimate_ns(_steps(op), gpu), estimate_ns(typical(_of_a_row(op)) * gpu.units * _THREADS, gpu))


def _build(op: TopK, config: Config, context: BuildContext) -> list[KernelCall]:
    b = GpuBuilder(f"xy_topk_{op.inputs[0].dtype}_thread", _THREADS)
    rows = op.inputs[0].shape[:-1]
    number = b.let("row", b.block * _THREADS + b.thread)
    with b.when(lt(number, b.param(product(rows)))):
        row = TopKRow(b, op, rows, number)
        _find_all(b, row)
    return [launch_of(b, row.buffers, units=ceildiv(product(rows), _THREADS), cost_ns=steps_ns(_steps(op), gpu_of(context)))]


def _find_all(b: GpuBuilder, row: TopKRow) -> None:
    """Each result is the first element of those that come after the one before it."""
    start = row.nothing(index(0))
    last = Entry(b.variable("last", start.key), b.variable("last_at", index(-1)))
    with b.loop("j", 0, vmin(row.length, row.k)) as j:
        best = Entry(b.variable("best", start.key), b.variable("best_at", start.position))
        with b.loop("i", 0, row.length) as i:
            here = Entry(b.let("key", row.key(i)), i)
            is_left = Select(lt(last.position, 0), index(1), row.before(last, here))
            with b.when(binary("and", is_left, row.before(here, best))):
                _assign(b, best, here)
        row.store(j, best.position)
        _assign(b, last, best)


def _assign(b: GpuBuilder, target: Entry, value: Entry) -> None:
    for var, part in zip(target, value, strict=True):
        assert isinstance(var, Var)
        b.assign(var, part)


VARIANTS = [
    Variant(
        name="topk.thread",
        op=TopK,
        admits=_admits,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
