"""What products in tiles are estimated to take: arithmetic, bringing operands, and how much of a device their blocks keep busy.

Estimates, to order configurations and variants by what differs between them. `stream_ns` was fitted to five products on an H200:
of twelve configurations it chooses one within 6 % of the best. Of the others `_ALONE` alone was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, product, typical
from xyntra_ep.tracea.kernels.gpu.shared.launch import CACHE, blocks_held
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, own_batches
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.gpu.multiprocessor import WARP

_ALONE = 0.87  # of what blocks reach that take turns: one alone on a unit waits at its barriers (H200)
_BUSY = 8  # warps of a unit that hide each other's waiting: two for each of four schedulers
LATENCY_NS = 600.0  # from a load to its value, under load; what is under way meanwhile makes the rate (Little's law)
START_NS = 1000.0  # of a block: from its start to its first products, and from its last to their stores
_CACHED_GBS = 50.0  # of a unit, at most: published microbenchmarks of H100 find about so much, and its cache is H200's too
_STREAMED_GBS = 120.0  # of a unit, by tensor copies: over 100 came with tiles of 64 x 128 (H200)
_STORED_GBS = 40.0  # of a unit, results to memory
_FIRST_NS = 2500.0  # of a block that stays: until its first products, and from its last to their stores (H200)
_READING = 0.85  # of the memory's rate: blocks wait for the last copies of each step
_HELD = 2  # blocks of a unit where nothing more is known


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockWork:
    """Of one block: ``rows`` x ``columns`` x ``depth`` products of elements of so many bytes, by ``threads`` that need about
    ``registers`` each."""

    rows: int
    columns: int
    depth: int
    element_bytes: int
    threads: int
    registers: int
    shared_bytes: int
    under_way_bytes: int  # copies that are waited for at a time


def wanted(threads: int, gpu: Gpu) -> int:
    """Blocks of so many threads that keep all units busy."""
    return gpu.units * max(1, _BUSY * WARP // threads)


def _cached_gbs(gpu: Gpu) -> float:
    """A unit's part of what the second-level cache gives."""
    return min(CACHE * gpu.memory_gbs / gpu.units, _CACHED_GBS)


def tiles_ns(blocks: Size, work: BlockWork, gflops: float, gpu: Gpu) -> float:
    """All blocks, of which each unit has its part, a few at a time. Of ``gflops``, and of the cache's rate, a unit has its part,
    too, if warps enough are there to ask for it. Copies are under way while products are made, but wait for each other's steps:
    taken as one after the other."""
    at_once = max(1, blocks_held(gpu, work.threads, work.registers, work.shared_bytes, unknown=_HELD))
    of_unit = -(-typical(blocks) // gpu.units)
    warps = min(of_unit, at_once) * work.threads / WARP
    arithmetic = 2 * work.rows * work.columns * work.depth / (gflops / gpu.units)
    rate = min(_cached_gbs(gpu), min(of_unit, at_once) * work.under_way_bytes / LATENCY_NS)
    copies = (work.rows + work.columns) * work.depth * work.element_bytes / max(rate, 1e-3)
    together = min(1.0, max(warps, 1) / _BUSY) * (_ALONE if at_once == 1 else 1.0)
    waves = -(-of_unit // at_once)
    return waves * START_NS + of_unit * (arithmetic + copies) / together


def stream_ns(of_unit: int, work: BlockWork, gflops: float, gpu: Gpu, *, sharing: int, hides_stores: bool) -> float:
    """So many tiles by one block a unit, which computes one after the other and copies ahead, into the next tile's steps too.
    Copies run beside products: what takes longer counts. Of b, so many blocks read what they are ``sharing`` once. Where a block
    cannot store one tile while it computes the next, its stores come between them."""
    arithmetic = 2 * work.rows * work.columns * work.depth / (gflops / gpu.units)
    rate = min(_STREAMED_GBS, work.under_way_bytes / LATENCY_NS)
    copies = (work.rows + work.columns / sharing) * work.depth * work.element_bytes / rate
    stores = 0.0 if hides_stores else work.rows * work.columns * work.element_bytes / _STORED_GBS
    return _FIRST_NS + of_unit * max(arithmetic, copies) + max(0, of_unit - 1) * stores


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmSizes:
    """Of a product, as estimates take them."""

    batch: int
    m: int
    n: int
    depth: int
    b_batch: int  # of which b is another

    def blocks(self, rows: int, columns: int) -> int:
        """How many tiles the result has."""
        return self.batch * -(-self.m // rows) * -(-self.n // columns)

    @property
    def results(self) -> int:
        return self.batch * self.m * self.n

    def reading_ns(self, element_bytes: int, gpu: Gpu) -> float:
        """What tiles take at least: each element of both operands is read from memory once."""
        return START_NS + (self.batch * self.m + self.b_batch * self.n) * self.depth * element_bytes / (_READING * gpu.memory_gbs)


def sizes_of(shape: GemmShape) -> GemmSizes:
    """What is not known is a usual size."""
    return GemmSizes(
        batch=typical(product(shape.batch_extents)),
        m=typical(shape.m),
        n=typical(shape.n),
        depth=typical(shape.depth),
        b_batch=typical(product(group.extents[0] for group in own_batches(shape))),
    )
