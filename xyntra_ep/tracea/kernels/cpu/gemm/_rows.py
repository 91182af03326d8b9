"""The rows of a matrix product: divided into blocks of two adjacent sizes, each done by a tile made for exactly that size.

197 rows in tiles of at most 8 are 22 blocks of 8 and 3 of 7: no block is a small rest, which would run at the latency of its few
sums. The division follows from the number of rows alone, so it never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.given_size import sizes_are_parameters
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Function, PointerType, Rvalue, Type, Var, binary, lt, vmin


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlocks:
    """``number`` blocks; block i has ``least`` rows, one more when i < ``larger``."""

    number: Rvalue
    least: Rvalue
    larger: Rvalue

    def start(self, block: Rvalue) -> Rvalue:
        return block * self.least + vmin(block, self.larger)

    def rows(self, block: Rvalue) -> Rvalue:
        return self.least + lt(block, self.larger)


def divide_rows(kernel: KernelBuilder, rows: Size, most: int) -> RowBlocks:
    """``rows`` in as few blocks of at most ``most`` as possible, their sizes as equal as possible."""
    m = kernel.param(rows)
    number = kernel.let("blocks", (m + (most - 1)) // most)
    divisor = kernel.let("divisor", binary("max", number, 1))  # no rows, no blocks: the division must not trap
    return RowBlocks(number=number, least=kernel.let("least", m // divisor), larger=kernel.let("larger", m % divisor))


def block_sizes(rows: Size, most: int) -> list[int]:
    """The sizes that ``divide_rows`` can yield."""
    if not isinstance(rows, int):
        return list(range(1, most + 1))
    blocks = -(-rows // most)
    return sorted({rows // blocks, -(-rows // blocks)}) if blocks else [1]


@dataclass(frozen=True, slots=True)
class TileFunction:
    """A tile as a function: its own arguments, then what it captured of the kernel."""

    function: Function
    captured: tuple[Var, ...]

    def call(self, kernel: KernelBuilder, args: Sequence[Rvalue]) -> None:
        kernel.call(self.function, *args, *self.captured)


Body = Callable[[FunctionBuilder, int, list[Var]], None]
_common: dict[tuple[object, ...], TileFunction] = {}  # few: by kinds of tiles, not by shapes


class TileFamily:
    """One function per block size, chosen at run time by the number of rows.

    Out of line: each tile fills the register file, so each wants an allocation of its own.

    ``common``: all that the tiles depend on beside stem, rows and arguments, when they name no buffer of the kernel: those that
    name no parameter either are built once for all kernels of this process.
    """

    def __init__(
        self,
        kernel: KernelBuilder,
        stem: str,
        sizes: Sequence[int],
        arguments: Sequence[tuple[str, Type | PointerType]],
        body: Body,
        common: tuple[object, ...] | None = None,
    ) -> None:
        self._kernel = kernel
        self._tiles: dict[int, TileFunction] = {}
        for rows in sizes:
            key = None if common is None else (stem, rows, *arguments, *common, sizes_are_parameters())
            tile = None if key is None else _common.get(key)
            if tile is None:
                b = FunctionBuilder(f"{stem}_{rows}")
                body(b, rows, [b.argument(name, kind) for name, kind in arguments])
                captured = b.capture()
                tile = TileFunction(b.finish(), captured)
                if key is not None and not captured:  # sizes can be the kernel's parameters
                    _common[key] = tile
            kernel.function(tile.function)
            self._tiles[rows] = tile

    def call(self, rows: Rvalue, args: Sequence[Rvalue]) -> None:
        """Emit the call for ``rows`` (one of the sizes), the larger sizes first: nearly all blocks are of these."""
        self._choose(rows, sorted(self._tiles, reverse=True), args)

    def call_exactly(self, rows: int, args: Sequence[Rvalue]) -> None:
        """Emit the call for a block whose size is known."""
        self._tiles[rows].call(self._kernel, args)

    def _choose(self, rows: Rvalue, sizes: list[int], args: Sequence[Rvalue]) -> None:
        if len(sizes) == 1:
            self._tiles[sizes[0]].call(self._kernel, args)
            return
        with self._kernel.when(binary("eq", rows, sizes[0])):
            self._tiles[sizes[0]].call(self._kernel, args)
        with self._kernel.otherwise():
            self._choose(rows, sizes[1:], args)
