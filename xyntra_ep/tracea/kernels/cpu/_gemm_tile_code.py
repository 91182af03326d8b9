"""The functions of a matrix product's tiles: sums of a block of rows and a panel; the epilogue in registers, or in a loop that
all share; the only store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu._epilogue import Epilogue
from xyntra_ep.tracea.kernels.cpu._gemm_columns import PanelLayout
from xyntra_ep.tracea.kernels.cpu._gemm_finish import SharedFinish
from xyntra_ep.tracea.kernels.cpu._gemm_parts import Partial, Parts
from xyntra_ep.tracea.kernels.cpu._gemm_rows import TileFamily
from xyntra_ep.tracea.kernels.cpu._gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.cpu._gemm_tile import (
    Ahead,
    Matrix,
    Tile,
    accumulate,
    elements_of_a_line,
    fetch_itself,
    lines_of_a_turn,
)
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Isa
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, PointerType, Rvalue, Type, Var, index, le, lt

SHARES = 3  # a tile fetches at most this part of a panel while it uses one: more gets in the way of its own loads


@dataclass(frozen=True, slots=True, kw_only=True)
class TileCode:
    """``a_row``: from one row of a to the next, where it is read; ``steps`` of k, perhaps in ``parts``; ``fetch``: a tile also
    fetches panels. ``shared_finish``: what to leave the epilogue to."""

    kernel: KernelBuilder
    shape: GemmShape
    layout: PanelLayout
    a_row: Size
    steps: Size
    parts: Parts | None
    fetch: bool
    isa: Isa
    out: Var
    epilogue: Epilogue
    shared_finish: SharedFinish | None

    def family(self, wide: Tile, sizes: Sequence[int], among_others: bool) -> TileFamily:
        """f(a, w, [following, pace], [partial, first, last], batch..., row, column), for each of the ``sizes``.

        ``among_others``: the tiles of several blocks of rows, which together fetch what follows, ``pace`` elements for each step
        of k. With parts: a and w from the step ``first`` on.
        """
        shares = self.fetch and among_others
        a = DType.BF16 if wide.pairs else self.shape.op.inputs[0].dtype
        arguments: list[tuple[str, Type | PointerType]] = [("a", PointerType(a)), ("w", PointerType(self.layout.dtype))]
        if shares:
            arguments += [("following", PointerType(self.layout.dtype)), ("pace", INDEX)]
        if self.parts is not None:
            arguments += [("partial", PointerType(DType.F32, writable=True)), ("first", INDEX), ("last", INDEX)]
        own = len(arguments)

        def body(block: FunctionBuilder, rows: int, args: list[Var]) -> None:
            tile = replace(wide, rows=rows)
            ahead = None
            if shares:
                lines = max(1, lines_of_a_turn(tile, elements_of_a_line(args[1])) // SHARES)
                ahead = Ahead(pointer=args[2], lines=lines, step=args[3])
            elif self.fetch:
                ahead = fetch_itself(tile, args[1])
            partial = None if self.parts is None else Partial(scratch=args[own - 3], first=args[own - 2], last=args[own - 1])
            self._tile(block, tile, args[:2], ahead, partial, args[own:])

        position = [(name, INDEX) for name in (*(f"batch{i}" for i in range(len(self.shape.batch))), "row", "column")]
        stem = f"{'tile' if among_others else 'alone'}_{wide.columns}"
        return TileFamily(self.kernel, stem, sizes, [*arguments, *position], body)

    def row_of_panel(self, tile: Tile) -> int:
        """Elements of a row of a packed panel."""
        return tile.columns * (2 if tile.pairs else 1)

    def row_of_b(self, tile: Tile) -> Rvalue:
        row = self.layout.row
        return index(self.row_of_panel(tile)) if row is None else self.kernel.param(row)

    def step_of_a(self, tile: Tile) -> Rvalue:
        return index(2) if tile.pairs else self.kernel.param(self.shape.a_k)

    def _tile(
        self, block: FunctionBuilder, tile: Tile, data: list[Var], ahead: Ahead | None, partial: Partial | None, at: list[Var]
    ) -> None:
        param, layout = self.kernel.param, self.layout
        a = Matrix(pointer=data[0], row=param(self.a_row), step=self.step_of_a(tile))
        b = Matrix(pointer=data[1], row=self.row_of_b(tile), step=index(1))

        def whole(count: Rvalue | None) -> None:
            in_loop = None if layout.padded else count
            steps = param(self.steps) if partial is None else block.let("steps", partial.last - partial.first)
            sums = accumulate(block, tile, a, b, steps, count=in_loop, ahead=ahead)
            if partial is None:
                self._finish(block, tile, sums, at, count)
                return
            with block.when(lt(partial.last, param(self.steps))):
                partial.keep(block, sums)
            with block.otherwise():
                self._finish(block, tile, partial.added(block, sums), at, count)

        if layout.panels.is_inside(tile.vectors, self.shape.n):
            whole(None)
            return
        left = block.let("left", param(self.shape.n) - at[-1])
        if self._masks_are_free():
            whole(left)
            return
        with block.when(le(tile.columns, left)):
            whole(None)
        with block.otherwise():
            whole(left)

    def _masks_are_free(self) -> bool:
        stored = {self.shape.op.output.dtype, *(() if self.layout.padded else (self.layout.dtype,))}
        return self.isa is Isa.AVX512 and stored <= {DType.F32, DType.BF16}

    def _finish(self, block: FunctionBuilder, tile: Tile, sums: list[list[Rvalue]], at: list[Var], left: Rvalue | None) -> None:
        if self.shared_finish is not None:
            self.shared_finish.emit(block, tile, sums, at, left)
            return
        here = self.epilogue.at(block)
        *batch, first_row, first_column = at
        rows = [first_row + i for i in range(tile.rows)]
        # Column by column: what depends on the column alone (a bias) is loaded once and needs one register.
        for j in range(tile.vectors):
            column = first_column + j * tile.lanes
            count = None if left is None else block.let("count", left - j * tile.lanes)
            for i, row in enumerate(rows):
                point = [*batch, row, column]
                value = here.value(point, sums[i][j], tile.lanes, count)
                here.store(self.shape.op.output, self.out, point, value, count)
