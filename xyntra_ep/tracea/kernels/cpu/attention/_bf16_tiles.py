"""The products of attention in bfloat16 on matrix tiles: 32 rows of q against 32 columns of k, 32 rows of weights against v.

Four tiles hold sums, two the rows and two the panels: each loaded tile serves two products, which hides the loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from xyntra_ep.tracea.kernels.cpu.attention._bf16_pack import DEPTH, LANES, depth_of, padded, width_of
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import TILE_ROW_BYTES, TILE_ROWS, TileDot, TileZero
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Var, lt

ROWS = 2 * TILE_ROWS
_SUMS, _LEFT, _RIGHT = 0, 4, 6  # first registers


@dataclass(frozen=True, slots=True)
class TileProducts:
    k: KernelBuilder
    shape: AttentionShape

    @contextmanager
    def around(self) -> Iterator[None]:
        with self.k.tiles([(TILE_ROWS, TILE_ROW_BYTES)] * 8):
            yield

    def scores(self, rows: Rvalue, query: Var, keys: Pointer, columns: Rvalue, scores: Var) -> None:
        """scores = query . keys for ``columns`` columns, whole panels; rows past the end hold anything."""
        k, depth, stride = self.k, depth_of(self.shape), self.shape.score_stride

        def emit(high: int) -> None:
            with k.loop("t", 0, columns, DEPTH) as t:
                for i in range(2 * high):
                    k.emit(TileZero(_SUMS + i))
                for d in range(0, depth, DEPTH):
                    for i in range(high):
                        k.tile_load(_LEFT + i, query, i * TILE_ROWS * depth + d, depth)
                    for j in range(2):
                        k.tile_load(_RIGHT + j, keys, (t + j * LANES) * depth + d * LANES, 2 * LANES)
                    self._multiply(high, 2)
                for i in range(high):
                    for j in range(2):
                        k.tile_store(_SUMS + 2 * i + j, scores, t + (i * TILE_ROWS * stride + j * LANES), stride)

        self._by_rows(rows, emit)

    def sums(self, rows: Rvalue, weights: Var, values: Pointer, columns: Rvalue, first: Rvalue, sums: Var) -> None:
        """sums += weights . values over ``columns`` columns; the first pass starts from zero."""
        k, stride, width = self.k, self.shape.score_stride, width_of(self.shape)
        panel = k.param(padded(self.shape.columns) * LANES)

        def emit(high: int) -> None:
            for e in range(0, width, 2 * LANES):
                wide = min(2, (width - e) // LANES)
                places = [(_SUMS + 2 * i + j, i * TILE_ROWS * width + e + j * LANES) for i in range(high) for j in range(wide)]
                with k.when(first):
                    for tile, _ in places:
                        k.emit(TileZero(tile))
                with k.otherwise():
                    for tile, at in places:
                        k.tile_load(tile, sums, at, width)
                with k.loop("t", 0, columns, DEPTH) as t:
                    for i in range(high):
                        k.tile_load(_LEFT + i, weights, t + i * TILE_ROWS * stride, stride)
                    for j in range(wide):
                        k.tile_load(_RIGHT + j, values, panel * (e // LANES + j) + t * LANES, 2 * LANES)
                    self._multiply(high, wide)
                for tile, at in places:
                    k.tile_store(tile, sums, at, width)

        self._by_rows(rows, emit)

    def _multiply(self, high: int, wide: int) -> None:
        for i in range(high):
            for j in range(wide):
                self.k.emit(TileDot(_SUMS + 2 * i + j, _LEFT + i, _RIGHT + j))

    def _by_rows(self, rows: Rvalue, emit: Callable[[int], None]) -> None:
        """``emit`` for one tile of rows or for two."""
        with self.k.when(lt(TILE_ROWS, rows)):
            emit(2)
        with self.k.otherwise():
            emit(1)
