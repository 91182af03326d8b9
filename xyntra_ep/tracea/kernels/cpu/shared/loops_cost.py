"""What evaluating expressions over a domain costs a CPU, roughly: enough to rank variants and to size work units."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, product, typical
from xyntra_ep.tracea.core_ir.expr import Expr, axis, walk
from xyntra_ep.tracea.kernels.cpu.shared.streams import LINE_BYTES
from xyntra_ep.tracea.kernels.shared.index import Lane
from xyntra_ep.tracea.kernels.shared.loops.lane_picks import are_picked
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest
from xyntra_ep.tracea.kernels.shared.operation_cost import operation_cycles
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

CLOCK_GHZ = 4.0
_LANE_CYCLES = {
    Lane.ONE: 0.0,
    Lane.VECTOR: 0.1,
    Lane.REPEATED: 0.1,
    Lane.GUARDED: 0.3,
    Lane.STRIDED: 1.2,
    Lane.GATHER: 3.0,
}
_KEPT_GATHER_CYCLES = 0.8  # at positions of the lane alone, which other rows read too: 0.5 with AVX2, 0.7 with AVX-512 (Zen 4)
_PICKED_CYCLES = 2.5  # a load and a shuffle
_WAYS = 8
_LINE_FROM_L2_CYCLES = 3.0


def cycles_per_element(
    nest: Nest,
    caps: Capabilities,
    walked: Size,
    *,
    lanes: int | None = None,
    shuffled: int | None = None,
    kept: Sequence[Expr] = (),
) -> float:
    """Cycles for one element of the innermost loop.

    ``walked``: elements that follow each other along the lane axis before those beside the first ones have their turn.
    ``lanes``: of them in a vector that are of use, ``caps.lanes`` by default. ``shuffled``: the access that costs nothing here,
    since the kernel has other ways for it. ``kept``: values of the lane alone that are there already.
    """
    lanes = caps.lanes if lanes is None else lanes
    done = {id(e) for e in walk(*kept)}
    lane = None if nest.lane_axis is None else axis(nest.lane_axis)
    known = [e for e in nest.nodes if id(e) not in done and lane in nest.table.deps(e)]
    total = sum(operation_cycles(e) for e in known) / max(1, min(16, lanes))
    for k in range(len(nest.table.accesses)):
        if k != shuffled:
            total += _access_cycles(nest, k, caps, max(1, typical(walked)), lanes, done)
    return total + (0.05 if lanes > 1 else 1.0)


def _access_cycles(nest: Nest, k: int, caps: Capabilities, walked: int, lanes: int, done: set[int]) -> float:
    access, address = nest.table.accesses[k], nest.address(k)
    step = abs(typical(address.step)) if address.mode in (Lane.STRIDED, Lane.GUARDED) else 0
    apart = address.mode is Lane.GUARDED and step > 1  # what a run will find where it decides
    mode = Lane.GATHER if apart else address.mode
    cycles = _LANE_CYCLES[mode]
    if address.mode is Lane.GATHER and any(id(e) in done and e.kind == "call" for e in walk(address.varying)):
        cycles = _KEPT_GATHER_CYCLES
    if mode is Lane.STRIDED and not access.writable and access.dtype.is_float and are_picked(step, lanes):
        cycles = _PICKED_CYCLES * step / lanes
    elif lanes == 1:
        cycles *= 4
    else:  # element by element short ones take no less time
        cycles *= max(access.dtype.bytes / 4, 1.0 if mode in (Lane.STRIDED, Lane.GATHER) else 0.0)
    if step > 1:
        cycles += _line_cycles(step * access.dtype.bytes, walked, caps) * (2 if access.writable else 1)
    return cycles


def _line_cycles(step_bytes: int, walked: int, caps: Capabilities) -> float:
    """What an element waits for its line, when no other of the line is used before ``walked`` elements have passed.

    Steps of a power of two meet few sets of a cache: those lines drive each other out long before it is full.
    """
    share = min(1.0, step_bytes / LINE_BYTES)  # of a line for each element
    lines = walked * share
    if lines <= lines_held(caps.l1d_bytes, step_bytes):
        return 0.0
    if lines <= lines_held(caps.l2_bytes, step_bytes):
        return share * _LINE_FROM_L2_CYCLES
    return share * LINE_BYTES / caps.dram_gbs * CLOCK_GHZ


def lines_held(cache_bytes: int, step_bytes: int) -> int:
    """How many of the lines, ``step_bytes`` apart, a cache of so many bytes keeps."""
    sets = max(1, cache_bytes // (LINE_BYTES * _WAYS))
    met = sets // math.gcd(sets, step_bytes // LINE_BYTES) if step_bytes % LINE_BYTES == 0 else sets
    return met * _WAYS


def call_cost_ns(domain: Sequence[Size], cycles: float) -> Size:
    """The cost of ``cycles`` per element of ``domain`` as a size."""
    picoseconds = max(1, round(cycles / CLOCK_GHZ * 1000))
    return product(domain) * picoseconds // 1000 + 100


def estimate_ns(domain: Sequence[Size], cycles: float) -> float:
    """The same as a number, unknown dimensions taken as usual ones."""
    return typical(product(domain)) * cycles / CLOCK_GHZ + 100.0
