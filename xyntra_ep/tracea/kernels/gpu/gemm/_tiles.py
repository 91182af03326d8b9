"""Block tiles of a matrix product: sizes, who computes and fetches what, and where operands lie in shared memory.

A block computes ``rows`` x ``columns`` of the result in steps of ``depth``; a thread computes ``side`` x ``side`` of it. An
operand's tile lies k-major in shared memory, one row of it for each k, so that a thread reads packets of neighbouring rows (or
columns) of the product. An operand that is contiguous along k is turned round while it is stored: that is where a swizzle is
needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import BlockWork
from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout, choose

PACKET = 4  # floats that a thread reads from shared memory at once
SLOTS = 2
_EXTENTS = (32, 64, 128)
_DEPTH = 16
_SMALL = 64 * 64  # of a block's results: below, a thread computes fewer, so that there are threads enough
SPACE = (Axis(name="rows", values=_EXTENTS), Axis(name="columns", values=_EXTENTS))


@dataclass(frozen=True, slots=True)
class GemmTile:
    """A configuration; every combination of the search space is legal."""

    rows: int
    columns: int
    depth: int = _DEPTH

    @property
    def side(self) -> int:
        return 8 if self.rows * self.columns >= _SMALL else 4

    @property
    def threads(self) -> int:
        return self.rows * self.columns // self.side**2

    @property
    def shared_bytes(self) -> int:
        return SLOTS * (self.rows + self.columns) * self.depth * DType.F32.bytes

    def work(self, depth: int, element_bytes: int) -> BlockWork:
        """A block's, over so much of k; a thread's registers hold its sums, two steps of the sides, and addresses."""
        return BlockWork(
            rows=self.rows,
            columns=self.columns,
            depth=depth,
            element_bytes=element_bytes,
            threads=self.threads,
            registers=self.side**2 + 4 * self.side + 32,
            shared_bytes=self.shared_bytes,
            under_way_bytes=(self.rows + self.columns) * self.depth * element_bytes,
        )

    def lanes(self) -> LaneMap:
        """Which packets of rows (m) and columns (n) a thread computes, the first of ``side`` / PACKET: a warp covers a patch."""
        across, down = self.columns // self.side, self.rows // self.side
        wide, high = min(8, across), min(4, down)
        return LaneMap(
            (
                Digit("n", wide, step=PACKET),
                Digit("m", high, step=PACKET),
                Digit("n", across // wide, step=PACKET * wide),
                Digit("m", down // high, step=PACKET * high),
            )
        )

    def packets(self, extent: int) -> list[int]:
        """Where a thread's packets are, from its first on: apart, so that those of neighbouring threads lie side by side."""
        count = self.side // PACKET
        return [i * (extent // count) for i in range(count)]


def tile_of(config: Config) -> GemmTile:
    return GemmTile(rows=config["rows"], columns=config["columns"])


@dataclass(frozen=True, slots=True)
class Fetch:
    """How threads bring an operand's tile, ``extent`` rows (or columns) of the product by ``depth``. ``along_k``: its memory is
    contiguous along k; ``packet`` elements are moved at once, and turned round where it is along k."""

    tile: GemmTile
    extent: int
    along_k: bool
    packet: int

    def lanes(self) -> LaneMap:
        """The place of a thread's first packet; the others follow ``rounds`` apart."""
        threads, depth, packet = self.tile.threads, self.tile.depth, self.packet
        if not self.along_k:
            across = min(threads, self.extent // packet)
            return LaneMap((Digit("o", across, step=packet), Digit("k", threads // across)))
        if packet > 1:
            return LaneMap((Digit("k", depth // packet, step=packet), Digit("o", threads * packet // depth)))
        # Single elements: 8 of k by 4 rows, so that the 32 of a warp can be stored to 32 banks in packets of 4 rows.
        rest = Digit("k", depth // 8, step=8), Digit("o", threads // depth // 4, step=4)
        return LaneMap((Digit("k", 8), Digit("o", 4), *rest))

    def rounds(self) -> list[tuple[int, int]]:
        """(o, k) that a thread adds to its place, for each packet that it moves."""
        lanes = self.lanes()
        step_o = lanes.extent("o") * (1 if self.along_k else self.packet)
        step_k = lanes.extent("k") * (self.packet if self.along_k else 1)
        return [(o, k) for o in range(0, self.extent, step_o) for k in range(0, self.tile.depth, step_k)]

    def store(self) -> TileAccess:
        """How a round is put into shared memory: packets along its rows, or single elements down its columns."""
        return TileAccess(self.lanes(), "k", "o", 1 if self.along_k else self.packet)

    def read(self, axis: str) -> TileAccess:
        """How the multiplication reads the tile: axis m or n of the threads, at one k."""
        lanes = self.tile.lanes()
        return TileAccess(lanes, "k", axis, PACKET)

    def layout(self, axis: str) -> TileLayout:
        """Free of conflicts for both."""
        return _layout(self, axis)


@cache
def _layout(fetch: Fetch, axis: str) -> TileLayout:
    found = choose(fetch.tile.depth, fetch.extent, DType.F32.bytes, [fetch.store(), fetch.read(axis)])
    assert found is not None, f"{fetch} has conflicts along {axis}"
    return found


def all_tiles() -> list[GemmTile]:
    """The search space."""
    return [GemmTile(rows=m, columns=n) for m in _EXTENTS for n in _EXTENTS]


def all_fetches() -> Mapping[str, list[Fetch]]:
    """Every way to bring an operand of a tile of the search space, by the axis of the product that it has."""
    kinds = [(along_k, packet) for along_k in (False, True) for packet in (1, PACKET)]
    return {
        "m": [Fetch(t, t.rows, *kind) for t in all_tiles() for kind in kinds],
        "n": [Fetch(t, t.columns, *kind) for t in all_tiles() for kind in kinds],
    }
