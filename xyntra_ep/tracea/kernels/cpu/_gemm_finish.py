"""Epilogues that are long to compile: the sums of a tile go through memory to one function, which all tiles of a width share.

GELU in the registers of a tile of 8 rows and 3 vectors is printed 24 times, and a kernel has a tile for every number of rows:
most of what such a kernel takes to compile. A loop over the rows prints it 3 times. What that costs at run time is a store and
a load for each vector, beside a function of some 20 instructions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.cpu._epilogue import Epilogue
from xyntra_ep.tracea.kernels.cpu._gemm_rows import TileFunction
from xyntra_ep.tracea.kernels.cpu._gemm_tile import Tile
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.math_library import has_math_function
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, PointerType, Rvalue, Var, index


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
        self, block: FunctionBuilder, tile: Tile, sums: Sequence[Sequence[Rvalue]], at: Sequence[Var], left: Rvalue | None
    ) -> None:
        """Finish the ``sums`` of a tile at (batch..., row, column) ``at``; ``left``: only so many columns exist."""
        scratch = block.array("sums", DType.F32, tile.rows * tile.columns)
        for i, row in enumerate(sums):
            for j, c in enumerate(row):
                block.store(scratch, i * tile.columns + j * tile.lanes, c)
        name = f"finish_{tile.columns}{'' if left is None else '_left'}"
        if name not in self._functions:
            self._functions[name] = self._function(name, tile, [v.name for v in at], left is not None)
        found = self._functions[name]
        block.call(found.function, scratch, index(tile.rows), *at, *([] if left is None else [left]), *found.captured)

    def _function(self, name: str, tile: Tile, position: Sequence[str], is_short: bool) -> TileFunction:
        b = FunctionBuilder(name)
        sums, rows = b.argument("sums", PointerType(DType.F32)), b.argument("rows", INDEX)
        *batch, first, column = [b.argument(stem, INDEX) for stem in position]
        left = b.argument("left", INDEX) if is_short else None
        with b.loop("i", 0, rows) as i:
            here = self._epilogue.at(b)
            row = b.let("at", first + i)
            for j in range(tile.vectors):
                count = None if left is None else b.let("count", left - j * tile.lanes)
                point = [*batch, row, column + j * tile.lanes]
                value = here.value(point, b.load(sums, i * tile.columns + j * tile.lanes, tile.lanes), tile.lanes, count)
                here.store(self._output, self._out, point, value, count)
        captured = b.capture()
        return TileFunction(self._kernel.function(b.finish()), captured)
