"""What evaluating expressions over a domain costs a CPU, roughly: enough to rank variants and to size work units."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.shared.index import Lane, LaneAddress
from xyntra_ep.tracea.kernels.shared.loops import Nest
from xyntra_ep.tracea.kernels.shared.operation_cost import operation_cycles

CLOCK_GHZ = 4.0
_LANE_CYCLES = {
    Lane.ONE: 0.0,
    Lane.VECTOR: 0.1,
    Lane.REPEATED: 0.1,
    Lane.GUARDED: 0.3,
    Lane.STRIDED: 1.2,
    Lane.GATHER: 3.0,
}


def cycles_per_element(nest: Nest, lanes: int) -> float:
    """Cycles for one element of the innermost loop."""
    known = [e for e in nest.nodes if any(d.kind == "axis" and d.attr == nest.lane_axis for d in nest.table.deps(e))]
    total = sum(operation_cycles(e) for e in known) / max(1, min(16, lanes))
    for k, access in enumerate(nest.table.accesses):
        total += _LANE_CYCLES[_likely(nest.address(k))] * (access.dtype.bytes / 4 if lanes > 1 else 4)
    return total + (0.05 if lanes > 1 else 1.0)


def _likely(address: LaneAddress) -> Lane:
    """What a run will probably find where it decides."""
    apart = address.mode is Lane.GUARDED and not isinstance(address.step, int) and typical(address.step) > 1
    return Lane.GATHER if apart else address.mode


def strided_cycles(dtype: DType) -> float:
    """The part of ``cycles_per_element`` that a strided access has: for kernels that shuffle vectors instead."""
    return _LANE_CYCLES[Lane.STRIDED] * dtype.bytes / 4


def call_cost_ns(domain: Sequence[Size], cycles: float) -> Size:
    """The cost of ``cycles`` per element of ``domain`` as a size."""
    picoseconds = max(1, round(cycles / CLOCK_GHZ * 1000))
    return product(domain) * picoseconds // 1000 + 100


def estimate_ns(domain: Sequence[Size], cycles: float) -> float:
    """The same as a number, unknown dimensions taken as usual ones."""
    return typical(product(domain)) * cycles / CLOCK_GHZ + 100.0
