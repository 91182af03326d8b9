"""The columns of a matrix product: divided into panels of two adjacent widths, each done by a tile made for exactly that width.

65 columns in vectors of 16 are 5 vectors, in tiles of at most 3 of them a panel of 3 and one of 2: what is computed beyond the
end is less than a vector. As with the rows, no panel is a small rest, which the broadcasts of a would bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.variant import TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, lt, vmin


@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """``number`` panels; panel p has ``least`` vectors of ``lanes`` columns, one more when p < ``larger``."""

    number: Size
    least: int
    larger: int
    lanes: int

    @property
    def columns(self) -> Size:
        """Of all panels."""
        return (self.number * self.least + self.larger) * self.lanes

    def start(self, panel: Rvalue) -> Rvalue:
        """The first column of ``panel``."""
        column = panel * (self.least * self.lanes)
        return column + vmin(panel, self.larger) * self.lanes if self.larger else column

    def is_inside(self, vectors: int, columns: Size) -> bool:
        """Whether no panel of that width reaches beyond the end of ``columns``: only the last one may."""
        return vectors > self.least or self.columns == columns

    def for_each_width(self, kernel: KernelBuilder, panel: Rvalue, body: Callable[[int], None]) -> None:
        """Emit ``body(vectors)`` for the width that ``panel`` has."""
        if not self.larger:
            body(self.least)
            return
        with kernel.when(lt(panel, self.larger)):
            body(self.least + 1)
        with kernel.otherwise():
            body(self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLayout:
    """Where the panel of columns from c on starts: offset + batch . batch_strides + c * column; rows of b follow ``row`` apart,
    those of a packed panel (None) one after the other.

    ``padded``: a panel is readable to its last column, beyond the end of b. ``fetch``: it may come from memory, so the one
    before fetches it. ``copied``: a unit packs a part of its panel before it uses it.
    """

    panels: Panels
    buffer: ValueBuffer | TempBuffer
    dtype: DType
    offset: Size
    batch_strides: tuple[Size, ...]
    column: Size
    row: Size | None
    padded: bool
    fetch: bool
    copied: bool = False


def even_panels(columns: Size, tile: Tile) -> Panels:
    """As few panels of at most the tile's width as possible, their widths as equal as possible."""
    if not isinstance(columns, int) or not columns:
        return uniform_panels(columns, tile)
    vectors = -(-columns // tile.lanes)
    number = -(-vectors // tile.vectors)
    return Panels(number=number, least=vectors // number, larger=vectors % number, lanes=tile.lanes)


def uniform_panels(columns: Size, tile: Tile) -> Panels:
    """Panels of the tile's width, the last one filled up."""
    return Panels(number=ceildiv(columns, tile.columns), least=tile.vectors, larger=0, lanes=tile.lanes)
