"""Block tiles of a product of 16-bit fragments: sizes, who copies what, and where it lies in shared memory.

A block computes ``rows`` x ``columns``, each of its warps 64 x ``warp_columns`` of them, in steps of ``depth``. Operands stay as
they lie: a tile has the rows of the operand's memory, which are copied in packets of 16 bytes and read as fragments, turned round
by the load where k is not the contiguous axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xyntra_ep.tracea.kernels.gpu._tile_cost import BlockWork
from xyntra_ep.tracea.semantic_ir.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.swizzle import TileAccess, TileLayout, choose

PACKET = 8  # elements of one copy, and of a row of a fragment
BYTES = 2
WARP_ROWS = 64


@dataclass(frozen=True, slots=True)
class FragmentTile:
    """``slots``: steps in shared memory at a time. ``held``: fragments of how many times 16 of k are in registers, 1 or 2; with
    two, the next are loaded while those before them are multiplied."""

    rows: int
    columns: int
    slots: int
    depth: int
    warp_columns: int
    held: int

    @property
    def threads(self) -> int:
        return self.rows // WARP_ROWS * (self.columns // self.warp_columns) * 32

    @property
    def registers(self) -> int:
        """Of a thread, about: its sums, fragments, and addresses, of which two sets of fragments need more."""
        sums, fragments = WARP_ROWS * self.warp_columns // 32, 16 * (WARP_ROWS + self.warp_columns) // 2 // 32
        return sums + self.held * fragments + 24 + 16 * self.held

    @property
    def shared_bytes(self) -> int:
        return self.slots * (self.rows + self.columns) * self.depth * BYTES

    def work(self, depth: int) -> BlockWork:
        """A block's, over so much of k."""
        return BlockWork(
            rows=self.rows,
            columns=self.columns,
            depth=depth,
            element_bytes=BYTES,
            threads=self.threads,
            registers=self.registers,
            shared_bytes=self.shared_bytes,
            under_way_bytes=self.shared_bytes * (2 * self.slots - 3) // (2 * self.slots),  # the latest only in part
        )

    def warps(self) -> LaneMap:
        """Where a thread's warp is in the tile."""
        across, down = self.columns // self.warp_columns, self.rows // WARP_ROWS
        return LaneMap((Digit("lane", 32), Digit("n", across, step=self.warp_columns), Digit("m", down, step=WARP_ROWS)))


@dataclass(frozen=True, slots=True)
class Copy:
    """An operand's tile: ``extent`` rows or columns of the product (axis o) by the tile's depth (axis k). ``along_k``: k is
    contiguous, and the tile has a row for each o; else one for each k."""

    tile: FragmentTile
    extent: int
    along_k: bool
    is_a: bool

    @property
    def row_axis(self) -> str:
        return "o" if self.along_k else "k"

    @property
    def column_axis(self) -> str:
        return "k" if self.along_k else "o"

    def lanes(self) -> LaneMap:
        """The packet that a thread copies first."""
        columns = self.tile.depth if self.along_k else self.extent
        across = columns // PACKET
        return LaneMap((Digit(self.column_axis, across, step=PACKET), Digit(self.row_axis, self.tile.threads // across)))

    def rounds(self) -> range:
        """What a thread adds to its row, for each packet that it copies."""
        rows = self.extent if self.along_k else self.tile.depth
        return range(0, rows, self.lanes().extent(self.row_axis))

    def fragments(self) -> LaneMap:
        """The row of 8 elements that a thread points to: of a, matrices side by side along k are the later ones, of b the
        earlier."""
        near, far = ("o", "k") if self.is_a else ("k", "o")
        inner = [Digit("row", 8), Digit(near, 2, step=8), Digit(far, 2, step=8)]
        # Rows of 8 x 8 matrices run along the tile's rows.
        digits = [Digit(self.row_axis, d.count) if d.axis == "row" else d for d in inner]
        return LaneMap(tuple(digits))

    def layout(self) -> TileLayout:
        """Free of conflicts for copying and for fragments."""
        return _layout(self)

    def accesses(self) -> list[TileAccess]:
        row, column = self.row_axis, self.column_axis
        return [TileAccess(lanes, row, column, PACKET) for lanes in (self.lanes(), self.fragments())]


@cache
def _layout(copy: Copy) -> TileLayout:
    rows, columns = (copy.extent, copy.tile.depth) if copy.along_k else (copy.tile.depth, copy.extent)
    found = choose(rows, columns, BYTES, copy.accesses())
    assert found is not None, f"{copy} has conflicts"
    return found


def copies_of(tile: FragmentTile) -> list[Copy]:
    """Every way to bring an operand of a tile."""
    extents = ((tile.rows, True), (tile.columns, False))
    return [Copy(tile, extent, along_k, is_a) for extent, is_a in extents for along_k in (False, True)]
