"""The columns of a matrix product: divided into panels of two adjacent widths, each done by a tile made for exactly that width.

65 columns in vectors of 16 are 5 vectors, in tiles of at most 3 of them a panel of 3 and one of 2: what is computed beyond the
end is less than a vector. As with the rows, no panel is a small rest, which the broadcasts of a would bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._left import LeftRows
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Listed, Matrix, Tile
from xyntra_ep.tracea.kernels.variant import TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var, index, lt, vmin


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessPanels:
    """The buffers of what clamped words leave out (gemm_integer/_excess.py makes it): panels of one width, ``most`` steps each,
    and the ``rows`` of a that these multiply."""

    offsets: TempBuffer
    words: TempBuffer
    most: int
    rows: LeftRows

    @property
    def buffers(self) -> tuple[TempBuffer, ...]:
        """As a kernel has them, see `ExcessCode`."""
        assert isinstance(self.rows.buffer, TempBuffer)
        return self.offsets, self.words, self.rows.buffer


class ExcessCode:
    """Of a tile whose steps are clamped words. Declares the buffers in ``kernel``."""

    def __init__(self, kernel: KernelBuilder, panels: ExcessPanels, tile: Tile) -> None:
        assert tile.words is not None
        self._kernel = kernel
        self._panels = panels
        self._offsets = kernel.buffer("offsets", DType.I32)
        self._words = kernel.buffer("excess", tile.words.right)
        self._rows: Var = kernel.buffer("halves", tile.words.left)

    def at(self, block: BlockBuilder, tile: Tile, a: Matrix, b: Matrix, at: Sequence[Rvalue]) -> Listed:
        """Of the panel and of the rows of a tile at (batch..., row, column) ``at``; its other steps are of ``a`` and ``b``."""
        panels, (*batch, row, column) = self._panels, at
        panel = block.let("panel", column // tile.columns)
        start = block.let("start", panels.rows.start(self._kernel, batch, row))
        return Listed(
            a=Matrix(
                pointer=block.pointer("half", self._rows, start), row=self._kernel.param(panels.rows.row), step=index(tile.depth)
            ),
            offsets=block.pointer("offsets", self._offsets, panel * (panels.most + 1)),
            rows=block.pointer("more", self._words, panel * (panels.most * tile.columns * tile.depth)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPanels:
    """The buffer of lists for panels of which only some steps are left, one after the other, at most ``most`` (gemm_sparse)."""

    offsets: TempBuffer
    most: int

    @property
    def buffers(self) -> tuple[TempBuffer, ...]:
        """As a kernel has them, see `ListedCode`."""
        return (self.offsets,)


class ListedCode:
    """Of a tile all of whose steps are in a list. Declares the buffer in ``kernel``."""

    def __init__(self, kernel: KernelBuilder, panels: ListedPanels) -> None:
        self._most = panels.most
        self._offsets = kernel.buffer("steps", DType.I32)

    def at(self, block: BlockBuilder, tile: Tile, a: Matrix, b: Matrix, at: Sequence[Rvalue]) -> Listed:
        """See `ExcessCode.at`."""
        panel = block.let("panel", at[-1] // tile.columns)
        return Listed(a=a, offsets=block.pointer("table", self._offsets, panel * (self._most + 1)), rows=b.pointer)


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
