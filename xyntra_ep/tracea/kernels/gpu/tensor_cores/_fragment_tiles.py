"""Block tiles of a product of fragments, of 16-bit floats or tf32: sizes, who copies what, and where it lies in shared memory.

A block computes ``rows`` x ``columns``, each of its warps 64 x ``warp_columns`` of them, in steps of ``depth``. Operands stay as
they lie: a tile has the rows of the operand's memory, which are copied in packets of 16 bytes and read as fragments, turned round
by the load where k is not the contiguous axis: elements of 16 bits by the matrix load itself, those of 32, which it cannot turn
round, one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import BlockWork
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import ROW_BYTES, SIDE, depth_of
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout, choose

WARP_ROWS = 64


def packet_of(dtype: DType) -> int:
    """Elements of one copy, and of a row of a fragment."""
    return ROW_BYTES // dtype.bytes


@dataclass(frozen=True, slots=True)
class FragmentTile:
    """``slots``: steps in shared memory at a time. ``held``: how many sets of fragments are in registers, 1 or 2; with two, the
    next are loaded while those before them are multiplied. ``dtype``: what is multiplied, f32 as tf32."""

    rows: int
    columns: int
    slots: int
    depth: int
    warp_columns: int
    held: int
    dtype: DType

    @property
    def packet(self) -> int:
        return packet_of(self.dtype)

    @property
    def fragment_depth(self) -> int:
        """Of k, in one set of fragments."""
        return depth_of(self.dtype)

    @property
    def threads(self) -> int:
        return self.rows // WARP_ROWS * (self.columns // self.warp_columns) * 32

    @property
    def registers(self) -> int:
        """Of a thread, about: its sums, fragments (of f32 once more, rounded), and addresses, of which two sets of fragments need
        more."""
        sums, fragments = WARP_ROWS * self.warp_columns // 32, 2 * ROW_BYTES * (WARP_ROWS + self.warp_columns) // 4 // 32
        return sums + (self.held + (self.dtype is DType.F32)) * fragments + 24 + 16 * self.held

    @property
    def shared_bytes(self) -> int:
        return self.slots * (self.rows + self.columns) * self.depth * self.dtype.bytes

    def work(self, depth: int) -> BlockWork:
        """A block's, over so much of k."""
        return BlockWork(
            rows=self.rows,
            columns=self.columns,
            depth=depth,
            element_bytes=self.dtype.bytes,
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
        packet = self.tile.packet
        across = columns // packet
        return LaneMap((Digit(self.column_axis, across, step=packet), Digit(self.row_axis, self.tile.threads // across)))

    def rounds(self) -> range:
        """What a thread adds to its row, for each packet that it copies."""
        rows = self.extent if self.along_k else self.tile.depth
        return range(0, rows, self.lanes().extent(self.row_axis))

    @property
    def one_by_one(self) -> bool:
        """Whether a thread reads its elements of fragments itself."""
        return not self.along_k and self.tile.dtype is DType.F32

    @property
    def matrices(self) -> list[tuple[int, int]]:
        """Where the four matrices of a load begin, along o and k: of a, those side by side along k are the later ones, of b the
        earlier."""
        o, k = SIDE, self.tile.fragment_depth // 2
        return [(0, 0), (o, 0), (0, k), (o, k)] if self.is_a else [(0, 0), (0, k), (o, 0), (o, k)]

    def fragments(self) -> LaneMap:
        """What a thread points to: a matrix's row, which runs along the tile's rows, or its own element of the first."""
        if self.one_by_one:
            return LaneMap((Digit("k", self.tile.packet), Digit("o", SIDE)))
        axes = {"o": Digit("o", 2, step=SIDE), "k": Digit("k", 2, step=self.tile.fragment_depth // 2)}
        near, far = "ok" if self.is_a else "ko"
        return LaneMap((Digit(self.row_axis, SIDE), axes[near], axes[far]))

    def layout(self) -> TileLayout:
        """Free of conflicts for copying and for fragments."""
        return _layout(self)

    def accesses(self) -> list[TileAccess]:
        row, column = self.row_axis, self.column_axis
        read = 1 if self.one_by_one else self.tile.packet
        return [TileAccess(self.lanes(), row, column, self.tile.packet), TileAccess(self.fragments(), row, column, read)]


@cache
def _layout(copy: Copy) -> TileLayout:
    rows, columns = (copy.extent, copy.tile.depth) if copy.along_k else (copy.tile.depth, copy.extent)
    found = choose(rows, columns, copy.tile.dtype.bytes, copy.accesses())
    assert found is not None, f"{copy} has conflicts"
    return found


def copies_of(tile: FragmentTile) -> list[Copy]:
    """Every way to bring an operand of a tile."""
    extents = ((tile.rows, True), (tile.columns, False))
    return [Copy(tile, extent, along_k, is_a) for extent, is_a in extents for along_k in (False, True)]
