"""Block tiles of a product by matrix units: sizes, who fetches and reads what, and where operands lie in shared memory.

A block computes ``rows`` x ``columns`` of the result in steps of ``depth``, each of its warps ``warp_rows`` x ``warp_columns``.
In shared memory a tile has a row for each row of a (column of b), along which k runs; an operand that is contiguous across k is
turned round while it is stored. A lane reads packets along k, each of as many elements as one product or several take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import BlockWork
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import COPY, MatrixShape
from xyntra_ep.tracea.semantic_ir.gpu.nodes import PACKET_BYTES
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout, choose

PACKET = 4  # elements that a thread fetches at once
SLOTS = 2
_STEP_BYTES = 64  # of a row of a tile
_SIDE = 64  # rows that a warp computes of a large tile
_LARGE = 128 * 64  # of a block's results: from there on, a warp has more of them, which reads least of shared memory


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """A configuration; every combination of the search space is legal."""

    rows: int
    columns: int
    shape: MatrixShape

    def __post_init__(self) -> None:
        shape = self.shape
        assert shape.contiguous(shape.a) == shape.contiguous(shape.b) == "k", "lanes read along k"

    @property
    def depth(self) -> int:
        return _STEP_BYTES // self.shape.dtype.bytes

    @property
    def is_large(self) -> bool:
        return self.rows * self.columns >= _LARGE

    @property
    def warp_rows(self) -> int:
        return _SIDE if self.is_large else _SIDE // 2

    @property
    def warp_columns(self) -> int:
        """With a lane of the larger warps holding as many sums as one of the smaller."""
        return self.shape.lanes if self.is_large else _SIDE // 2

    @property
    def threads(self) -> int:
        return self.rows // self.warp_rows * (self.columns // self.warp_columns) * self.shape.lanes

    @property
    def shared_bytes(self) -> int:
        return SLOTS * (self.rows + self.columns) * self.depth * self.shape.dtype.bytes

    @property
    def registers(self) -> int:
        """Of a thread, about: its sums, its operands of a step of the product, what it fetches, and addresses."""
        sums = self.warp_rows * self.warp_columns // self.shape.lanes
        blocks = self.warp_rows // self.shape.m + self.warp_columns // self.shape.n
        operands = blocks * self.read * self.shape.dtype.bytes // 4
        fetched = (self.rows + self.columns) * self.depth // self.threads
        return sums + operands + fetched + 40

    @property
    def read(self) -> int:
        """Elements along k that a lane reads for each block of the product: what a product takes, or several do."""
        return max(PACKET, self.shape.held(self.shape.a))

    @property
    def reach(self) -> int:
        """How far along k all lanes read together."""
        return self.read * self.shape.of_lanes(self.shape.a).extent("k")

    @property
    def packet(self) -> int:
        """Elements of one read."""
        return min(self.read, PACKET_BYTES // self.shape.dtype.bytes)

    def work(self, depth: int, element_bytes: int) -> BlockWork:
        """A block's, over so much of k."""
        return BlockWork(
            rows=self.rows,
            columns=self.columns,
            depth=depth,
            element_bytes=element_bytes,
            threads=self.threads,
            registers=self.registers,
            shared_bytes=self.shared_bytes,
            under_way_bytes=(self.rows + self.columns) * self.depth * element_bytes,
        )

    def warps(self) -> LaneMap:
        """Where a thread's warp is in the tile."""
        across, down = self.columns // self.warp_columns, self.rows // self.warp_rows
        lanes = Digit("lane", self.shape.lanes)
        return LaneMap((lanes, Digit("n", across, step=self.warp_columns), Digit("m", down, step=self.warp_rows)))


@dataclass(frozen=True, slots=True)
class Fetch:
    """How threads bring an operand's tile, ``extent`` rows of it, from memory. ``along_k``: that is contiguous along k;
    ``packet`` elements are moved at once. ``is_a``: which operand."""

    tile: MatrixTile
    extent: int
    along_k: bool
    packet: int
    is_a: bool

    def lanes(self) -> LaneMap:
        """The place of a thread's first packet; the others follow ``rounds`` apart."""
        threads, depth, packet = self.tile.threads, self.tile.depth, self.packet
        if self.along_k:
            across = min(depth // packet, threads)
            return LaneMap((Digit("k", across, step=packet), Digit("o", threads // across)))
        # A few along what is contiguous, then k: stored across rows, they meet few banks twice.
        near = 8 if packet > 1 else 16
        far = min(self.extent // packet // near, threads // near // depth)
        rest = (Digit("o", far, step=packet * near),) if far > 1 else ()
        return LaneMap((Digit("o", near, step=packet), Digit("k", min(depth, threads // near)), *rest))

    def rounds(self) -> list[tuple[int, int]]:
        """(o, k) that a thread adds to its place, for each packet that it moves."""
        lanes = self.lanes()
        step_o = lanes.extent("o") * (1 if self.along_k else self.packet)
        step_k = lanes.extent("k") * (self.packet if self.along_k else 1)
        return [(o, k) for o in range(0, self.extent, step_o) for k in range(0, self.tile.depth, step_k)]

    def reading(self) -> LaneMap:
        """Where a lane's first packet of a block of the product is."""
        shape = self.tile.shape
        digits = []
        for digit in shape.of_lanes(shape.a if self.is_a else shape.b).digits:
            axis = {"k": "k", COPY: COPY}.get(digit.axis, "o")
            # Lanes that have other parts of k read further apart than a product needs, where a packet is for several.
            digits.append(
                Digit(axis, digit.count, digit.step * self.tile.read // shape.held(shape.a) if axis == "k" else digit.step)
            )
        return LaneMap(tuple(digits))

    def accesses(self) -> Sequence[TileAccess]:
        """How tiles are read, and stored."""
        return (
            TileAccess(self.reading(), "o", "k", self.tile.packet),
            TileAccess(self.lanes(), "o", "k", self.packet if self.along_k else 1),
        )

    def layout(self) -> TileLayout:
        """Free of conflicts for reading, which is done again and again, and for storing where there is such a layout."""
        return _layout(self)


@cache
def _layout(fetch: Fetch) -> TileLayout:
    sizes = fetch.extent, fetch.tile.depth, fetch.tile.shape.dtype.bytes
    read, store = fetch.accesses()
    found = choose(*sizes, [read, store]) or choose(*sizes, [read])
    assert found is not None, f"{fetch} is read with conflicts"
    return found
