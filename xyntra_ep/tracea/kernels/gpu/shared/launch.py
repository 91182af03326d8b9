"""What the GPU variants have in common: which device they build for, and what a launch is estimated to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, select, typical
from xyntra_ep.tracea.core_ir.ops import CoreOp
from xyntra_ep.tracea.core_ir.work import sized_work
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu

LAUNCH_NS = 3000
CACHE = 2.5  # times the memory's rate: what is read again comes from the second-level cache
_STEPS_PER_NS = 64.0  # of a unit: so many threads do one step, a load and what is computed from it, in a nanosecond


def gpu_of(context: BuildContext) -> Gpu:
    assert context.gpu is not None, "a GPU variant without a GPU"
    return context.gpu


def launch_of(b: GpuBuilder, buffers: Sequence[ValueBuffer | TempBuffer], units: Size, cost_ns: Size) -> KernelCall:
    """The launch of the kernel that ``b`` has written."""
    kernel, params = b.finish()
    return KernelCall(kernel=kernel, buffers=tuple(buffers), params=params, units=units, cost_ns=cost_ns)


def only_where(condition: Size, calls: Sequence[KernelCall]) -> list[KernelCall]:
    """What is done in runs, only in those of the ``condition``."""
    return [
        c
        if c.phase is Phase.PREPARE
        else replace(c, units=select(condition, c.units, 0), cost_ns=select(condition, c.cost_ns, 0))
        for c in calls
    ]


def blocks_held(gpu: Gpu, threads: int, registers: int, shared_bytes: int, *, unknown: int) -> int:
    """Blocks that a unit works on at a time, of threads that need about so many registers each; 0 where one needs more than there
    is, ``unknown`` where nobody knows what a unit has."""
    if gpu.multiprocessor is None:
        return unknown
    return gpu.multiprocessor.occupancy(threads=threads, registers=registers, shared_bytes=shared_bytes).blocks


def moved_ns(op: CoreOp, gpu: Gpu) -> float:
    """The least that a launch takes which reads and writes everything of ``op`` once."""
    return typical(sized_work(op).bytes) / gpu.memory_gbs + LAUNCH_NS


def steps_ns(steps: Size, gpu: Gpu) -> Size:
    """A launch in which threads do so many steps in all."""
    return steps // max(1, int(_STEPS_PER_NS * gpu.units)) + LAUNCH_NS


def estimate_ns(steps: Size, gpu: Gpu) -> float:
    """The same as a number, unknown dimensions taken as usual ones."""
    return typical(steps) / (_STEPS_PER_NS * gpu.units) + LAUNCH_NS
