"""Block tiles of a product of 16-bit fragments: sizes, who copies what, and where it lies in shared memory.

A block computes ``rows`` x ``columns``, each of its warps 64 x 32 of them, in steps of ``depth``. Operands stay as they lie: a
tile has the rows of the operand's memory, which are copied in packets of 16 bytes and read as fragments, turned round by the load
where k is not the contiguous axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xyntra_ep.tracea.kernels.gpu._tile_cost import BlockWork
from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.semantic_ir.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.swizzle import TileAccess, TileLayout, choose

PACKET = 8  # elements of one copy, and of a row of a fragment
BYTES = 2
WARP_ROWS, WARP_COLUMNS = 64, 32
_EXTENTS = (64, 128)
_DEPTH = 32
_SLOTS = (2, 3)
_REGISTERS = 128  # of a thread, about: half of them are sums
SPACE = (Axis(name="rows", values=_EXTENTS), Axis(name="columns", values=_EXTENTS), Axis(name="slots", values=_SLOTS))


@dataclass(frozen=True, slots=True)
class FragmentTile:
    """A configuration; every combination of the search space is legal. ``slots``: steps in shared memory at a time."""

    rows: int
    columns: int
    slots: int
    depth: int = _DEPTH

    @property
    def threads(self) -> int:
        return self.rows // WARP_ROWS * (self.columns // WARP_COLUMNS) * 32

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
            registers=_REGISTERS,
            shared_bytes=self.shared_bytes,
        )

    def warps(self) -> LaneMap:
        """Where a thread's warp is in the tile."""
        across, down = self.columns // WARP_COLUMNS, self.rows // WARP_ROWS
        return LaneMap((Digit("lane", 32), Digit("n", across, step=WARP_COLUMNS), Digit("m", down, step=WARP_ROWS)))


def tile_of(config: Config) -> FragmentTile:
    return FragmentTile(rows=config["rows"], columns=config["columns"], slots=config["slots"])


def all_tiles() -> list[FragmentTile]:
    """The search space."""
    return [FragmentTile(m, n, slots) for m in _EXTENTS for n in _EXTENTS for slots in _SLOTS]


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


def all_copies() -> list[Copy]:
    """Every way to bring an operand of a tile of the search space."""
    return [
        Copy(tile, extent, along_k, is_a)
        for tile in all_tiles()
        for extent, is_a in ((tile.rows, True), (tile.columns, False))
        for along_k in (False, True)
    ]
