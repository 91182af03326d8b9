"""Tiles of a product by warpgroups: sizes, who computes what, in which order, and where operands lie in shared memory.

Two warpgroups multiply and one copies. Each of the two has a *part* of ``part_rows`` x ``columns``, as many sums as its
registers hold. Either both parts are one tile, one below the other: what a step copies is used most then. Or each warpgroup has
tiles of its own and they take turns: while one stores, the other multiplies. Steps are of 64 of k. Operands stay as they lie in
memory: a tile is of rows of 128 bytes along what is contiguous there, as tensor copies put them down.

Blocks may be in clusters: tiles one below the other, whose blocks each copy a share of what they all read of b, to all of them.
Where all rows are in one tile there is none below it, and no cluster.

The two arrangements are CUTLASS's for this architecture ("cooperative" and "ping-pong" warp-specialised persistent kernels), the
bands that tiles are taken in Triton's ("L2 cache optimizations", matrix multiplication tutorial; CUTLASS: threadblock swizzle).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import sqrt

from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import BlockWork
from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import DEPTH, ROW_BYTES, SWIZZLED_ROWS, WARPGROUP
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, vmin

BYTES = 2
STEP = ROW_BYTES // BYTES  # of k, and elements of a row
CONSUMERS = 2  # warpgroups that multiply
# Registers of a thread, where three warpgroups share those of a multiprocessor: who copies leaves most of its own to the others.
COPYING, MULTIPLYING = 40, 232
# Rows and columns of a part. Sums of 128 x 192 fit registers, too, but leave epilogues too few.
_PARTS = ((64, 128), (64, 256), (128, 128))
_MOST_SLOTS = 8  # more would not be under way before they are needed
_AXES = (
    Axis(name="part", values=tuple(range(len(_PARTS)))),
    Axis(name="turns", values=(1, CONSUMERS)),
    Axis(name="cluster", values=(1, 2)),
)


@dataclass(frozen=True, slots=True)
class WarpgroupTile:
    """A configuration. ``turns``: how many tiles the warpgroups of a block work on at a time. ``cluster``: blocks that share what
    they read of b. ``slots``: steps of k in shared memory at a time."""

    part_rows: int
    columns: int
    turns: int
    cluster: int
    slots: int

    @property
    def rows(self) -> int:
        return self.part_rows * CONSUMERS // self.turns

    @property
    def alone(self) -> WarpgroupTile:
        """Without a cluster, for results of so few rows that the second block of one would multiply nothing but zeros."""
        return replace(self, cluster=1)

    def fitting(self, m: int) -> WarpgroupTile:
        """What computes ``m`` rows."""
        return self if m > self.rows else self.alone

    @property
    def group_rows(self) -> int:
        """Of the tiles of a cluster."""
        return self.rows * self.cluster

    @property
    def step_bytes(self) -> int:
        """Of both operands' tiles for one step."""
        return (self.rows + self.columns) * ROW_BYTES

    @property
    def shared_bytes(self) -> int:
        return self.slots * (self.step_bytes + 2 * 16)

    def work(self, depth: int) -> BlockWork:
        """A tile's, over so much of k."""
        return BlockWork(
            rows=self.rows,
            columns=self.columns,
            depth=depth,
            element_bytes=BYTES,
            threads=(1 + CONSUMERS) * WARPGROUP,
            registers=MULTIPLYING,
            shared_bytes=self.shared_bytes,
            under_way_bytes=max(1, self.slots - 1) * self.step_bytes,
        )

    def band(self, gpu: Gpu) -> int:
        """Rows of clusters' tiles that are gone down before the next column is: so many that the tiles which a device works on at
        a time are about a square, which reads least of both operands."""
        return max(1, round(sqrt(gpu.units // self.cluster * self.columns / self.group_rows)))


def tile_of(config: Config, gpu: Gpu) -> WarpgroupTile:
    """With as many slots as there is room for."""
    rows, columns = _PARTS[config["part"]]
    one = WarpgroupTile(rows, columns, config["turns"], config["cluster"], 1)
    return replace(one, slots=min(_MOST_SLOTS, gpu.shared_bytes // one.shared_bytes))


def axes(gpu: Gpu) -> tuple[Axis, ...]:
    """The search space, without parts of k."""
    return tuple(replace(a, values=tuple(v for v in a.values if v <= gpu.units)) if a.name == "cluster" else a for a in _AXES)


def all_configs(gpu: Gpu) -> list[Config]:
    names, values = [a.name for a in axes(gpu)], [a.values for a in axes(gpu)]
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]


def in_bands(k: WarpgroupBuilder, number: Rvalue, down: Rvalue, across: Rvalue, rows: int) -> tuple[Rvalue, Rvalue]:
    """The row and the column of tile ``number`` of ``down`` x ``across``: down a band of so many rows, then the next column of
    it."""
    band = k.let("band", number // (across * rows))
    inside = k.let("inside", number - band * (across * rows))
    there = k.let("rows", vmin(down - band * rows, rows))
    return k.let("down", band * rows + inside % there), k.let("across", inside // there)


@dataclass(frozen=True, slots=True)
class Panels:
    """How an operand's tile of ``extent`` rows (or columns) of the product lies in its slot. ``across``: its memory is contiguous
    along these, so that the tile is in panels of 64, each with a row for every k; else it is one panel with a row for each. A
    block copies one of so many ``shares`` of each panel's rows."""

    extent: int
    across: bool
    shares: int = 1

    @property
    def count(self) -> int:
        return self.extent // STEP if self.across else 1

    @property
    def box(self) -> tuple[int, int]:
        """What a tensor copy brings, a share of a panel: (elements of a row, rows)."""
        return STEP, (STEP if self.across else self.extent) // self.shares

    @property
    def elements(self) -> int:
        """Of a panel."""
        return STEP * (STEP if self.across else self.extent)

    def start(self, first: int, k: int) -> int:
        """Where the matrix from row (or column) ``first`` and ``k`` of the tile on begins, in elements from the slot on."""
        assert first % (STEP if self.across else SWIZZLED_ROWS) == 0 and k % DEPTH == 0
        return first // STEP * self.elements + k * STEP if self.across else first * STEP + k

    @property
    def apart(self) -> int:
        """Bytes from one panel to the next."""
        return self.elements * BYTES if self.across else 0
