"""Tiles of a fused attention: sizes, who computes and fetches what, and where it lies in shared memory.

A block has ``rows`` rows of q and goes over k and v in tiles of ``columns``. All three lie in shared memory as they are stored,
a row of the tile for each row of the operand, and are read in packets of 4 along it. Eight threads share a row of scores, each
with every eighth column; a thread has every ``down``-th row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.semantic_ir.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.swizzle import TileAccess, TileLayout, choose

PACKET = 4  # elements that a thread reads from shared memory at once
ACROSS = 8  # threads that share a row of scores
LARGEST = 128  # of a head
_ROWS, _COLUMNS, _THREADS = (16, 32, 64), (16, 32, 64), (64, 128)


def whole(extent: int, step: int) -> int:
    """``extent`` rounded up to multiples of ``step``."""
    return -(-extent // step) * step


@dataclass(frozen=True, slots=True)
class Fetch:
    """How ``threads`` threads bring a tile of ``rows`` x ``columns`` elements (powers of two), ``packet`` neighbours at once."""

    rows: int
    columns: int
    threads: int
    packet: int

    def lanes(self) -> LaneMap:
        """The packet that a thread moves first: rows are filled one after the other."""
        across = min(self.threads, self.columns // self.packet)
        down = min(self.threads // across, self.rows)
        spare = self.threads // across // down  # threads without work in a small tile
        return LaneMap((Digit("c", across, step=self.packet), Digit("r", down), Digit("spare", spare)))

    def rounds(self) -> list[tuple[int, int]]:
        """(row, column) that a thread adds to its place, for each packet that it moves."""
        lanes = self.lanes()
        down, across = lanes.extent("r"), lanes.extent("c") * self.packet
        return [(r, c) for r in range(0, self.rows, down) for c in range(0, self.columns, across)]

    def access(self) -> TileAccess:
        return TileAccess(self.lanes(), "r", "c", self.packet)


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """A configuration, of heads of ``depth`` (q and k) and ``width`` (v) elements of ``element_bytes``."""

    rows: int
    columns: int
    threads: int
    depth: int
    width: int
    element_bytes: int = DType.F32.bytes

    @property
    def down(self) -> int:
        return self.threads // ACROSS

    @property
    def side(self) -> int:
        """Rows of a thread."""
        return self.rows // self.down

    @property
    def packets(self) -> int:
        """Packets of the result's columns that a thread has in each of its rows."""
        return -(-self.width // (ACROSS * PACKET))

    @property
    def shared_bytes(self) -> int:
        """q, k and v as they are stored, weights and what eight threads exchange as floats."""
        stored = (self.rows + self.columns) * padded(self.depth) + self.columns * padded(self.width)
        return stored * self.element_bytes + self.rows * (self.columns + ACROSS) * DType.F32.bytes

    def lanes(self) -> LaneMap:
        """Which row (m) and column (x) of the block's scores a thread has first; e: the columns of the result."""
        return LaneMap((Digit("x", ACROSS), Digit("m", self.down)))

    def result(self) -> LaneMap:
        """The same for the result, of which a thread has packets."""
        return LaneMap((Digit("e", ACROSS, step=PACKET), Digit("m", self.down)))

    def rows_of(self) -> range:
        """What a thread adds to its row."""
        return range(0, self.rows, self.down)

    def columns_of(self) -> range:
        """What a thread adds to its column."""
        return range(0, self.columns, ACROSS)

    def fetch(self, name: str, packet: int) -> Fetch:
        """Of q, k or v."""
        rows = self.rows if name == "q" else self.columns
        return Fetch(rows, padded(self.width if name == "v" else self.depth), self.threads, packet)

    def read(self, name: str) -> TileAccess:
        """How q, k, v, weights (w) or exchanged values (x) are read, in packets."""
        if name == "v":
            return TileAccess(self.result(), "row", "e", PACKET)
        return TileAccess(self.lanes(), "x" if name == "k" else "m", "column", PACKET)

    def layout(self, name: str, packet: int = 1) -> TileLayout:
        """Of q, k or v, fetched in packets of so many; or of weights (w) or exchanged values (x)."""
        return _layout(self, name, packet)

    def accesses(self, name: str, packet: int = 1) -> list[TileAccess]:
        """All that happens to a tile."""
        if name in "qkv":
            return [self.fetch(name, packet).access(), self.read(name)]
        return [TileAccess(self.lanes(), "m", "x"), self.read(name)]


def padded(extent: int) -> int:
    """The columns of a tile of rows of ``extent`` elements: a power of two, of packets."""
    return max(PACKET, 1 << (extent - 1).bit_length())


@cache
def _layout(tile: AttentionTile, name: str, packet: int) -> TileLayout:
    if name in "qkv":
        fetch = tile.fetch(name, packet)
        rows, columns, size = fetch.rows, fetch.columns, tile.element_bytes
    else:
        rows, columns, size = tile.rows, tile.columns if name == "w" else ACROSS, DType.F32.bytes
    found = choose(rows, columns, size, tile.accesses(name, packet))
    assert found is not None, f"{name} of {tile} has conflicts"
    return found


def space_of(depth: int, width: int, element_bytes: int, shared_bytes: int) -> tuple[Axis, ...]:
    """The most tiles of which every combination has room in a block's shared memory; none for heads that have no room."""

    def fitting(rows: int) -> list[int]:
        tiles = (AttentionTile(rows, columns, _THREADS[0], depth, width, element_bytes) for columns in _COLUMNS)
        return [tile.columns for tile in tiles if tile.shared_bytes <= shared_bytes]

    found = [(tuple(r for r in _ROWS if r <= rows), tuple(fitting(rows))) for rows in _ROWS]
    rows, columns = max(found, key=lambda space: (len(space[0]) * len(space[1]), len(space[0])))
    if not columns:
        return ()
    return (Axis(name="rows", values=rows), Axis(name="columns", values=columns), Axis(name="threads", values=_THREADS))


def tile_of(config: Config, depth: int, width: int, element_bytes: int) -> AttentionTile:
    return AttentionTile(config["rows"], config["columns"], config["threads"], depth, width, element_bytes)


def tiles_in(space: Sequence[Axis], depth: int, width: int, element_bytes: int) -> list[AttentionTile]:
    """Every tile of a space."""
    rows, columns, threads = (axis.values for axis in space)
    return [AttentionTile(r, c, t, depth, width, element_bytes) for r in rows for c in columns for t in threads]
