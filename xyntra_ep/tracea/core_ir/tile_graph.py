"""Which tiles of a product's iteration space exist: the work that is done, and by that the work that is left out.

A product adds terms k to elements (m, n) of its output. A tile is a rectangle of the output and a range of terms. In attention
m are the rows of q, k the columns of keys, and n the elements of a head; in a matrix product by blocks, n and k are those of the
weights. A graph is made dense, from what each row sees (a causal mask, a window), from a mask, or by hand:

>>> graph = TileGraphBuilder(4, 8, 6, tile=(2, 8, 2)).build_rows([0, 0, 1, 2], [1, 2, 3, 4])
>>> [(str(t.region_m), t.k_start, t.k_end, str(t.role)) for t in graph.tiles]
[('0:2', 0, 2, 'masked'), ('2:4', 0, 2, 'masked'), ('2:4', 2, 4, 'masked')]
>>> graph.share
0.5
>>> graph.compressed().spans()
[[(0, 2)], [(0, 4)]]

Legal is a graph that writes each element once and counts no term twice (`TileGraph.problems`). Tiles of one rectangle depend on
each other in the order of their terms, since they add to the same sums; all others may run at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


class Role(StrEnum):
    """What a kernel has to look at in a tile: nothing, the edge of the matrix, or which elements are masked."""

    MAIN = "main"
    BOUNDARY = "boundary"
    MASKED = "masked"


ROLES = tuple(Role)


@dataclass(frozen=True, slots=True, order=True)
class Region:
    """Rows or columns [begin, end)."""

    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.begin}:{self.end}"


@dataclass(frozen=True, slots=True, order=True)
class Tile:
    """Terms [k_start, k_end) of the output's rectangle ``region_m`` x ``region_n``."""

    region_m: Region
    region_n: Region
    k_start: int
    k_end: int
    role: Role

    @property
    def terms(self) -> int:
        m, n = self.region_m, self.region_n
        return (m.end - m.begin) * (n.end - n.begin) * (self.k_end - self.k_start)


@dataclass(frozen=True, slots=True)
class TileMap:
    """A graph as kernels read it, row by row of its grid: rectangle i has the tiles [``pointers[i]``, ``pointers[i + 1]``), each
    the ``columns``-th range of ``tile_k`` terms, of a role numbered as in ``ROLES``. int32, int32, uint8."""

    pointers: NDArray[np.int32]
    columns: NDArray[np.int32]
    roles: NDArray[np.uint8]
    tile_k: int
    k: int

    def spans(self) -> list[list[tuple[int, int]]]:
        """Of each rectangle the terms [begin, end) that its tiles cover, those side by side in one."""
        found = []
        for begin, end in pairwise(self.pointers.tolist()):
            spans: list[tuple[int, int]] = []
            for column in self.columns[begin:end].tolist():
                first, last = column * self.tile_k, min((column + 1) * self.tile_k, self.k)
                if spans and spans[-1][1] == first:
                    spans[-1] = (spans[-1][0], last)
                else:
                    spans.append((first, last))
            found.append(spans)
        return found


@dataclass(frozen=True)
class TileGraph:
    """The tiles of a product of ``m`` x ``n`` elements with ``k`` terms each, by rectangle, then by term; ``tile``: the grid's
    (m, n, k), to which those by hand need not keep."""

    m: int
    n: int
    k: int
    tile: tuple[int, int, int]
    tiles: tuple[Tile, ...]

    @cached_property
    def rectangles(self) -> dict[tuple[Region, Region], list[Tile]]:
        """The tiles of each, in the order of their terms."""
        found: dict[tuple[Region, Region], list[Tile]] = {}
        for tile in self.tiles:
            found.setdefault((tile.region_m, tile.region_n), []).append(tile)
        return found

    @property
    def dependencies(self) -> list[int | None]:
        """Of each tile, the number of the one to whose sums it adds; None where it begins them."""
        numbers = range(-1, len(self.tiles) - 1)
        same = (before for before in map(self._continues, range(len(self.tiles))))
        return [number if continues else None for number, continues in zip(numbers, same, strict=True)]

    def _continues(self, i: int) -> bool:
        here, before = self.tiles[i], self.tiles[i - 1]
        return i > 0 and (here.region_m, here.region_n) == (before.region_m, before.region_n)

    @property
    def share(self) -> float:
        """Of the terms of a dense graph, how many exist."""
        return sum(tile.terms for tile in self.tiles) / max(1, self.m * self.n * self.k)

    def problems(self, needed: NDArray[np.bool_] | None = None) -> Iterator[str]:
        """What makes the graph illegal: an element that no rectangle or more than one writes, a term counted twice or outside,
        or of those ``needed`` [m, k], of every n, one that is left out. A rectangle without terms writes zeros."""
        written = np.zeros((self.m + 1, self.n + 1), np.int64)
        for (rows, columns), tiles in self.rectangles.items():
            if not (0 <= rows.begin <= rows.end <= self.m and 0 <= columns.begin <= columns.end <= self.n):
                yield f"the rectangle {rows} x {columns} is not inside {self.m} x {self.n}"
                continue
            for sign_m, i in ((1, rows.begin), (-1, rows.end)):
                for sign_n, j in ((1, columns.begin), (-1, columns.end)):
                    written[i, j] += sign_m * sign_n
            for tile in tiles:
                if not 0 <= tile.k_start <= tile.k_end <= self.k:
                    yield f"the terms {tile.k_start}:{tile.k_end} of {rows} x {columns} are not inside {self.k}"
            for a, b in pairwise(tiles):
                if b.k_start < a.k_end:
                    yield f"the terms {b.k_start}:{min(a.k_end, b.k_end)} of {rows} x {columns} are counted twice"
        times = written.cumsum(0).cumsum(1)[: self.m, : self.n]
        for wrong, why in ((times < 1, "never"), (times > 1, "more than once")):
            if wrong.any():
                i, j = np.argwhere(wrong)[0].tolist()
                yield f"element ({i}, {j}) is written {why}"
        if needed is not None:
            yield from self._missing(needed)

    def _missing(self, needed: NDArray[np.bool_]) -> Iterator[str]:
        for (rows, columns), tiles in self.rectangles.items():
            wanted = np.asarray(needed[rows.begin : rows.end].any(axis=0))
            for tile in tiles:
                wanted[tile.k_start : tile.k_end] = False
            if wanted.any():
                yield f"term {int(wanted.argmax())} of {rows} x {columns} is left out"

    def compressed(self) -> TileMap:
        """Of a graph on its grid; ValueError for others."""
        tile_m, tile_n, tile_k = self.tile
        across = -(-self.n // tile_n)
        counts = np.zeros(-(-self.m // tile_m) * across, np.int64)
        columns, roles = [], []
        for tile in sorted(self.tiles):
            if tile not in (self._cell(tile, role) for role in ROLES):
                raise ValueError(f"{tile} is not on the grid of {tile_m} x {tile_n} x {tile_k}")
            counts[tile.region_m.begin // tile_m * across + tile.region_n.begin // tile_n] += tile.k_end > tile.k_start
            if tile.k_end > tile.k_start:
                columns.append(tile.k_start // tile_k)
                roles.append(ROLES.index(tile.role))
        pointers = np.concatenate([[0], np.cumsum(counts)])
        return TileMap(pointers.astype(np.int32), np.asarray(columns, np.int32), np.asarray(roles, np.uint8), tile_k, self.k)

    def _cell(self, tile: Tile, role: Role) -> Tile:
        """The grid's tile where ``tile`` begins; without terms where that has none."""
        m, n, k = (
            Region(at // size * size, min(at // size * size + size, extent))
            for at, size, extent in zip(
                (tile.region_m.begin, tile.region_n.begin, tile.k_start), self.tile, (self.m, self.n, self.k), strict=True
            )
        )
        return Tile(m, n, k.begin, k.end if tile.k_end > tile.k_start else k.begin, role)


@dataclass(slots=True)
class TileGraphBuilder:
    """Of a product of ``m`` x ``n`` elements with ``k`` terms, by a grid of ``tile``: by hand (``add_tile``, ``build_sparse``),
    or by one of the others. ValueError: what was added by hand is no legal graph, or another way was taken after it."""

    m: int
    n: int
    k: int
    tile: tuple[int, int, int] = (64, 64, 64)
    _tiles: list[Tile] = field(default_factory=list)

    def add_tile(
        self, region_m: tuple[int, int], region_n: tuple[int, int], k_start: int, k_end: int, role: Role = Role.MAIN
    ) -> TileGraphBuilder:
        self._tiles.append(Tile(Region(*region_m), Region(*region_n), k_start, k_end, role))
        return self

    def build_sparse(self) -> TileGraph:
        """What was added, and nothing else."""
        graph = TileGraph(self.m, self.n, self.k, self.tile, tuple(sorted(self._tiles)))
        for problem in graph.problems():
            raise ValueError(problem)
        return graph

    def build_dense(self) -> TileGraph:
        """Every tile of the grid."""
        return self._build(np.ones(self._grid, np.int64))

    def build_rows(self, begins: Sequence[int], ends: Sequence[int]) -> TileGraph:
        """Row i has the terms [``begins[i]``, ``ends[i]``), as far as they are inside."""
        columns = np.arange(self.k)
        begin, end = (np.asarray(x).reshape(self.m, 1) for x in (begins, ends))
        return self.build_mask((begin <= columns) & (columns < end))

    def build_mask(self, visible: NDArray[np.bool_]) -> TileGraph:
        """``visible`` [m, k]: the terms that count; a tile exists where one of its own does."""
        tile_m, _, tile_k = self.tile
        rows, columns = np.arange(0, self.m, tile_m), np.arange(0, self.k, tile_k)
        if not rows.size or not columns.size:
            return self._build(np.zeros(self._grid, np.int64))
        sums = np.add.reduceat(np.add.reduceat(visible.astype(np.int64), rows, axis=0), columns, axis=1)
        sizes = np.minimum(tile_m, self.m - rows)[:, None] * np.minimum(tile_k, self.k - columns)
        return self._build(np.where(sums == 0, 0, np.where(sums < sizes, 2, 1)))

    @property
    def _grid(self) -> tuple[int, int]:
        return -(-self.m // self.tile[0]), -(-self.k // self.tile[2])

    def _build(self, state: NDArray[np.int64]) -> TileGraph:
        """``state`` of each range of rows and terms: 0 without, 1 with all elements, 2 with some that are masked. Rectangles
        without terms have a tile that is empty."""
        if self._tiles:
            raise ValueError("tiles were added by hand, of which only build_sparse makes a graph")
        tile_m, tile_n, tile_k = self.tile
        tiles = []
        for i in range(state.shape[0]):
            rows = Region(i * tile_m, min((i + 1) * tile_m, self.m))
            for j in range(-(-self.n // tile_n)):
                columns = Region(j * tile_n, min((j + 1) * tile_n, self.n))
                ranges = [
                    (t * tile_k, min((t + 1) * tile_k, self.k), int(state[i, t])) for t in np.flatnonzero(state[i]).tolist()
                ]
                for begin, end, kind in ranges or [(0, 0, 1)]:
                    ragged = rows.end - rows.begin < tile_m or columns.end - columns.begin < tile_n or end - begin < tile_k
                    role = Role.MASKED if kind == 2 else Role.BOUNDARY if ragged else Role.MAIN
                    tiles.append(Tile(rows, columns, begin, end, role))
        return TileGraph(self.m, self.n, self.k, self.tile, tuple(tiles))
