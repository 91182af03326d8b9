"""Block tiles of a product by matrix units: sizes, who fetches and reads what, and where operands lie in shared memory.

A block computes ``rows`` x ``columns`` of the result in steps of ``depth``, each of its warps ``warp_rows`` x ``warp_columns``.
In shared memory a tile has a row for each row of a (column of b), along which k runs, or the other way round for a b of which
lanes have neighbours along n. An operand that lies otherwise in memory is turned round while it is stored. A lane reads packets,
along k each of as many elements as one product or several take.
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
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue

PACKET = 4  # elements that a thread fetches at once
SLOTS = 2
_STEP_BYTES = 64  # of a row of a tile
_SIDE = 64  # rows and columns that a warp computes of a large tile
_LARGE = 128 * 64  # of a block's results: from there on, a warp has more of them, which reads least of shared memory


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """A configuration; every combination of the search space is legal."""

    rows: int
    columns: int
    shape: MatrixShape

    def __post_init__(self) -> None:
        shape = self.shape
        assert shape.contiguous(shape.a) == "k" and shape.held(shape.a) == shape.held(shape.b), "lanes read a along k"

    @property
    def across(self) -> bool:
        """Whether lanes have neighbours of b along n."""
        return self.shape.contiguous(self.shape.b) != "k"

    @property
    def depth(self) -> int:
        return _STEP_BYTES // self.shape.dtype.bytes

    @property
    def warp_rows(self) -> int:
        """Of a large tile more, but where each element of an operand is held once: copies leave no registers for more sums."""
        is_large = self.rows * self.columns >= _LARGE and self.shape.a.extent(COPY) == 1
        return _SIDE if is_large else _SIDE // 2

    @property
    def warp_columns(self) -> int:
        return self.warp_rows

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
        """Elements that a lane reads for each block of the product: what a product takes, or along k several do."""
        held = self.shape.held(self.shape.a)
        return held if self.across else max(PACKET, held)

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

    @property
    def rows_are_k(self) -> bool:
        """In shared memory."""
        return self.tile.across and not self.is_a

    def place(self, o: Rvalue, k: Rvalue) -> tuple[Rvalue, Rvalue]:
        """Row and column in shared memory."""
        return (k, o) if self.rows_are_k else (o, k)

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
        row, column = ("k", "o") if self.rows_are_k else ("o", "k")
        return (
            TileAccess(self.reading(), row, column, self.tile.packet),
            TileAccess(self.lanes(), row, column, self.packet if self.along_k is not self.rows_are_k else 1),
        )

    def layout(self) -> TileLayout:
        """Free of conflicts for reading, which is done again and again, and for storing where there is such a layout."""
        return _layout(self)


@cache
def _layout(fetch: Fetch) -> TileLayout:
    rows, columns = (fetch.tile.depth, fetch.extent) if fetch.rows_are_k else (fetch.extent, fetch.tile.depth)
    sizes = rows, columns, fetch.tile.shape.dtype.bytes
    read, store = fetch.accesses()
    found = choose(*sizes, [read, store]) or choose(*sizes, [read])
    assert found is not None, f"{fetch} is read with conflicts"
    return found
