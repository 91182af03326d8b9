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
from xyntra_ep.tracea.kernels.gpu.attention._fetch import Fetch, padded
from xyntra_ep.tracea.kernels.gpu.attention._space import axes_that_fit
from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout, choose

PACKET = 4  # elements that a thread reads from shared memory at once
ACROSS = 8  # threads that share a row of scores
_ROWS, _COLUMNS, _THREADS = (16, 32, 64), (16, 32, 64), (64, 128)


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """A configuration, of heads of ``depth`` (q and k) and ``width`` (v) elements."""

    rows: int
    columns: int
    threads: int
    depth: int
    width: int
    dtype: DType = DType.F32

    @property
    def slots(self) -> int:
        """One: weights go by way of shared memory, where threads meet anyway."""
        return 1

    @property
    def down(self) -> int:
        return self.threads // ACROSS

    @property
    def side(self) -> int:
        """Rows of a thread."""
        return self.rows // self.down

    @property
    def grain(self) -> int:
        """Rows in shared memory are whole multiples of so many elements."""
        return PACKET

    @property
    def packets(self) -> int:
        """Packets of the result's columns that a thread has in each of its rows."""
        return -(-self.width // (ACROSS * PACKET))

    @property
    def sums(self) -> int:
        """Scores and results of a thread."""
        return self.side * (self.columns // ACROSS + PACKET * self.packets)

    @property
    def shared_bytes(self) -> int:
        """q, k and v as they are stored, weights and what eight threads exchange as floats."""
        stored = (self.rows + self.columns) * padded(self.depth, PACKET) + self.columns * padded(self.width, PACKET)
        return stored * self.dtype.bytes + self.rows * (self.columns + ACROSS) * DType.F32.bytes

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
        return Fetch(rows, padded(self.width if name == "v" else self.depth, PACKET), self.threads, packet)

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


@cache
def _layout(tile: AttentionTile, name: str, packet: int) -> TileLayout:
    if name in "qkv":
        fetch = tile.fetch(name, packet)
        rows, columns, size = fetch.rows, fetch.columns, tile.dtype.bytes
    else:
        rows, columns, size = tile.rows, tile.columns if name == "w" else ACROSS, DType.F32.bytes
    found = choose(rows, columns, size, tile.accesses(name, packet))
    assert found is not None, f"{name} of {tile} has conflicts"
    return found


def space_of(depth: int, width: int, dtype: DType, shared_bytes: int) -> tuple[Axis, ...]:
    """Tiles that have room in a block's shared memory; none for heads that have no room."""

    def fits(rows: int, columns: int) -> bool:
        return AttentionTile(rows, columns, _THREADS[0], depth, width, dtype).shared_bytes <= shared_bytes

    axes = axes_that_fit(_ROWS, _COLUMNS, fits)
    return (*axes, Axis(name="threads", values=_THREADS)) if axes else ()


def tile_of(config: Config, depth: int, width: int, dtype: DType) -> AttentionTile:
    return AttentionTile(config["rows"], config["columns"], config["threads"], depth, width, dtype)


def tiles_in(space: Sequence[Axis], depth: int, width: int, dtype: DType) -> list[AttentionTile]:
    """Every tile of a space."""
    rows, columns, threads = (axis.values for axis in space)
    return [AttentionTile(r, c, t, depth, width, dtype) for r in rows for c in columns for t in threads]
