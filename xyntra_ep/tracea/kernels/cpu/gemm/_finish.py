"""The epilogue as one function that all tiles of a width share, for sums that lie in memory.

They do where the depth is in parts, and where the epilogue is long to compile: GELU in the registers of a tile of 8 rows and 3
vectors is printed 24 times, and a kernel has a tile for every number of rows, so it was most of what it took to compile. A loop
over the rows prints it 3 times. What that costs at run time is a store and a load for each vector, beside a function of some 20
instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFunction
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.shared.epilogue import Column, Epilogue
from xyntra_ep.tracea.kernels.shared.words import as_words
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.math_library import has_math_function
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Pointer, PointerType, Rvalue, Var, index


def is_long(epilogue: Epilogue) -> bool:
    """Whether it calls a function of our own."""
    return any(e.kind == "call" and has_math_function(e.attr) for e in walk(epilogue.root))


class SharedFinish:
    """``epilogue`` of sums in memory, stored to ``output`` at ``out``."""

    def __init__(self, kernel: KernelBuilder, epilogue: Epilogue, output: Operand, out: Var) -> None:
        self._kernel = kernel
        self._epilogue = epilogue
        self._output = output
        self._out = out
        self._functions: dict[str, TileFunction] = {}

    def emit(
        self, block: FunctionBuilder, tile: Tile, sums: Sequence[Sequence[Rvalue]], at: Sequence[Rvalue], left: Rvalue | None
    ) -> None:
        """Finish the ``sums`` of a tile at (batch..., row, column) ``at``; ``left``: only so many columns exist."""
        scratch = block.array("sums", tile.sums, tile.rows * tile.columns)
        for i, row in enumerate(sums):
            for j, c in enumerate(row):
                block.store(scratch, i * tile.columns + j * tile.lanes, c)
        self.call(block, tile, scratch, index(tile.rows), at, left)

    def call(
        self, block: BlockBuilder, tile: Tile, sums: Pointer, rows: Rvalue, at: Sequence[Rvalue], left: Rvalue | None
    ) -> None:
        """As ``emit``, for sums of so many ``rows`` that are in memory, one row of the tile after the other."""
        name = f"finish_{tile.columns}{'' if left is None else '_left'}"
        if name not in self._functions:
            self._functions[name] = self._function(name, tile, len(at) - 2, left is not None)
        found = self._functions[name]
        block.call(found.function, sums, rows, *at, *([] if left is None else [left]), *found.captured)

    def _function(self, name: str, tile: Tile, batch_axes: int, is_short: bool) -> TileFunction:
        b = FunctionBuilder(name)
        sums, rows = b.argument("sums", PointerType(tile.sums)), b.argument("rows", INDEX)
        batch = [b.argument(f"batch{i}", INDEX) for i in range(batch_axes)]
        first, column = b.argument("row", INDEX), b.argument("column", INDEX)
        left = b.argument("left", INDEX) if is_short else None
        with b.loop("i", 0, rows) as i:
            row = b.let("at", first + i)
            columns = [
                Column(
                    points=[[*batch, row, column + j * tile.lanes]],
                    accs=[as_words(b.load(sums, i * tile.columns + j * tile.lanes, tile.lanes))],
                    count=None if left is None else b.let("count", left - j * tile.lanes),
                )
                for j in range(tile.vectors)
            ]
            self._epilogue.at(b).finish(self._output, self._out, tile.lanes, columns)
        captured = b.capture()
        return TileFunction(self._kernel.function(b.finish()), captured)
