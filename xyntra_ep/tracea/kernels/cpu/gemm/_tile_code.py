"""The functions of a matrix product's tiles: sums of a block of rows and a panel; the epilogue in registers, or in a loop that
all share; the only store. Where the depth is in parts a tile leaves its sums in memory and knows nothing of the epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._columns import ExcessCode, ListedCode, PanelLayout
from xyntra_ep.tracea.kernels.cpu.gemm._finish import SharedFinish
from xyntra_ep.tracea.kernels.cpu.gemm._parts import Partial, Parts
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFamily
from xyntra_ep.tracea.kernels.cpu.gemm._tile import (
    Ahead,
    Matrix,
    Tile,
    accumulate,
    fetch_itself,
    lines_of_iteration,
)
from xyntra_ep.tracea.kernels.cpu.shared.streams import LINE_BYTES
from xyntra_ep.tracea.kernels.shared.epilogue import Column, Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa, Prefetching
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Pointer, PointerType, Rvalue, Type, Var, index, le

MOST_FREE_ROWS = 8  # of a tile whose rows of a may lie any number of elements apart, see ``_takes_row_of_a``
SHARES = 3  # a tile fetches at most this part of a panel while it uses one: more gets in the way of its own loads

_MASKED = frozenset({DType.F32, DType.BF16})  # what AVX-512 loads and stores under a mask at no cost


@dataclass(frozen=True, slots=True, kw_only=True)
class TileCode:
    """``a_row``: from one row of a to the next, where it is read; ``steps`` of k, perhaps in ``parts``; ``fetch``: a tile also
    fetches panels. ``shared_finish``: what to leave the epilogue to, with parts always. ``listed``: where
    there are steps in lists, too, or these alone."""

    kernel: KernelBuilder
    shape: GemmShape
    layout: PanelLayout
    a_row: Size
    steps: Size
    parts: Parts | None
    fetch: bool
    caps: Capabilities
    out: Var
    epilogue: Epilogue
    shared_finish: SharedFinish | None
    listed: ExcessCode | ListedCode | None = None

    def family(self, wide: Tile, sizes: Sequence[int], among_others: bool, name: str = "") -> TileFamily:
        """f(a, w, [following, pace], batch..., row, column), for each of the ``sizes``. With parts: f(a, w, [following, pace],
        partial, steps, [column], [a_row]), which names nothing of the kernel, so that kernels of many products have it in common.

        ``among_others``: the tiles of several blocks of rows, which together fetch what follows, ``pace`` elements of each stream
        for each step of k. ``name``: of the functions, where a kernel has others that would be called the same.
        """
        shares = self.fetch and among_others
        a = self.shape.op.inputs[0].dtype if wide.words is None else wide.words.left
        arguments: list[tuple[str, Type | PointerType]] = [("a", PointerType(a)), ("w", PointerType(self.layout.dtype))]
        if shares:
            arguments += [("following", PointerType(self.layout.dtype)), ("pace", INDEX)]
        if self.parts is not None:
            arguments += [("partial", PointerType(DType.F32, writable=True)), ("steps", INDEX)]
        own = len(arguments)

        def body(block: FunctionBuilder, rows: int, args: list[Var]) -> None:
            tile = replace(wide, rows=rows)
            ahead = None
            if shares:
                ahead = self._ahead_of_blocks(wide, args[2], args[3])
            elif self.fetch:
                steps = self.kernel.param(self.steps) if self.parts is None else args[own - 1]
                ahead = fetch_itself(block, tile, args[1], steps, self.caps)
            partial = None if self.parts is None else Partial(scratch=args[own - 2], steps=args[own - 1])
            at: list[Rvalue] = [*args[own:]]
            row_of_a = at.pop() if self._takes_row_of_a(wide) else self.kernel.param(self.a_row)
            self._tile(block, tile, args[:2], row_of_a, ahead, partial, at)

        names = [*(f"batch{i}" for i in range(len(self.shape.batch))), "row", "column"]
        position = [(names[i], INDEX) for i in self._told()]
        if self._takes_row_of_a(wide):
            position.append(("a_row", INDEX))
        stem = f"{name or ('tile' if among_others else 'alone')}_{wide.columns}"
        return TileFamily(self.kernel, stem, sizes, [*arguments, *position], body, self._common(wide))

    def _ahead_of_blocks(self, wide: Tile, following: Var, pace: Var) -> Ahead:
        if self.caps.prefetching is not Prefetching.FAR:
            line = LINE_BYTES // self.layout.dtype.bytes
            lines, locality = lines_of_iteration(wide, line), self._locality(wide)
            return Ahead(pointer=following, lines=lines, step=pace, apart=index(line), locality=locality)
        streams = self.streams(wide)
        part = self.kernel.param(self.steps) if self.parts is None else index(self.parts.length)
        return Ahead(pointer=following, lines=streams, step=pace, apart=part * (self.row_of_panel(wide) // streams))

    def _locality(self, wide: Tile) -> int:
        """Of what blocks of rows fetch. With a few of them it comes long before its use, and beside what is in use there is no
        room for it in L1 (Zen 4, 8, 12, 16 rows x 4096 x 4096: AVX2 2.5, 3.7, 5.0 ms, into L1 4.7, 5.2, 6.2; AVX-512, 9 rows:
        2.8, 4.8). With many it comes line by line (64 rows: 1 % faster)."""
        if self.caps.prefetching is not Prefetching.NEAR:
            return 2
        blocks = ceildiv(self.shape.m, wide.rows)
        return 3 if isinstance(blocks, int) and blocks >= lines_of_iteration(wide, LINE_BYTES // self.layout.dtype.bytes) else 2

    def _common(self, wide: Tile) -> tuple[object, ...] | None:
        """What the tiles depend on when they name nothing of the kernel."""
        a_k = self.shape.a_k
        if self.parts is None or not self._takes_row_of_a(wide) or not self.layout.padded or not isinstance(a_k, int):
            return None
        fetch = self.fetch, self.caps.prefetching, self._locality(wide)
        return wide, *fetch, self.parts.length, self.parts.whole_iterations, a_k

    def position(self, wide: Tile, at: Sequence[Rvalue]) -> list[Rvalue]:
        """What tiles as ``wide`` are told of the place ``at`` (batch..., row, column) of their sums, and ``a_row``."""
        row_of_a = [self.kernel.param(self.a_row)] if self._takes_row_of_a(wide) else []
        return [*(at[i] for i in self._told()), *row_of_a]

    def _takes_row_of_a(self, wide: Tile) -> bool:
        """So that products of all depths have the tile in common. With more rows there are no registers for where each begins
        (measured: 18 % slower with 16, 1 % with 12; nothing with 8)."""
        return self.parts is not None and wide.rows <= MOST_FREE_ROWS

    def _told(self) -> range:
        coordinates = len(self.shape.batch) + 2
        if self.parts is None:
            return range(coordinates)
        return range(coordinates - (0 if self.layout.padded else 1), coordinates)

    def streams(self, wide: Tile) -> int:
        """Parts of what follows that blocks of rows fetch side by side, a line of each in an iteration (see `fetch_itself`); 1
        without far streams."""
        if self.caps.prefetching is not Prefetching.FAR:
            return 1
        lines = max(1, lines_of_iteration(wide, LINE_BYTES // self.layout.dtype.bytes) // SHARES)
        return 1 << (lines.bit_length() - 1)

    def row_of_panel(self, tile: Tile) -> int:
        """Elements of a row of a packed panel."""
        return tile.columns * tile.depth

    def row_of_b(self, tile: Tile) -> Rvalue:
        row = self.layout.row
        return index(self.row_of_panel(tile)) if row is None else self.kernel.param(row)

    def step_of_a(self, tile: Tile) -> Rvalue:
        return self.kernel.param(self.shape.a_k) if tile.words is None else index(tile.depth)

    def _tile(
        self,
        block: FunctionBuilder,
        tile: Tile,
        data: list[Var],
        row_of_a: Rvalue,
        ahead: Ahead | None,
        partial: Partial | None,
        at: list[Rvalue],
    ) -> None:
        param, layout = self.kernel.param, self.layout
        a = Matrix(pointer=data[0], row=row_of_a, step=self.step_of_a(tile))
        b = Matrix(pointer=data[1], row=self.row_of_b(tile), step=index(1))

        def whole(count: Rvalue | None) -> None:
            in_loop = None if layout.padded else count
            if partial is None:
                listed = None if self.listed is None else self.listed.at(block, tile, a, b, at)
                sums = accumulate(block, tile, a, b, param(self.steps), count=in_loop, ahead=ahead, listed=listed)
                self._finish(block, tile, sums, at, count)
                return
            assert self.parts is not None
            alike = self.parts.whole_iterations
            sums = accumulate(block, tile, a, b, partial.steps, count=in_loop, ahead=ahead, whole_iterations=alike)
            partial.keep(block, sums)

        if partial is not None and layout.padded:
            whole(None)
        else:
            self._in_columns(block, tile, at[-1], self._masks_are_free(), whole)

    def finish(self, tile: Tile, sums: Pointer, rows: Rvalue, at: Sequence[Rvalue]) -> None:
        """In the kernel: the epilogue of ``sums`` of all parts, of so many ``rows`` at (batch..., row, column) ``at``."""
        finish = self.shared_finish
        assert finish is not None

        def some(left: Rvalue | None) -> None:
            finish.call(self.kernel, tile, sums, rows, at, left)

        free = self.caps.isa is Isa.AVX512 and self.shape.op.output.dtype in _MASKED
        self._in_columns(self.kernel, tile, at[-1], free, some)

    def _in_columns(
        self, block: BlockBuilder, tile: Tile, column: Rvalue, masks_are_free: bool, body: Callable[[Rvalue | None], None]
    ) -> None:
        """Emit ``body`` for as many columns as there are from ``column`` on: None where these are all of the tile's."""
        if self.layout.panels.is_inside(tile.vectors, self.shape.n):
            body(None)
            return
        left = block.let("left", self.kernel.param(self.shape.n) - column)
        if masks_are_free:
            body(left)
            return
        with block.when(le(tile.columns, left)):
            body(None)
        with block.otherwise():
            body(left)

    def _masks_are_free(self) -> bool:
        stored = {self.shape.op.output.dtype, *(() if self.layout.padded else (self.layout.dtype,))}
        return self.caps.isa is Isa.AVX512 and stored <= _MASKED

    def _finish(
        self, block: FunctionBuilder, tile: Tile, sums: list[list[Rvalue]], at: list[Rvalue], left: Rvalue | None
    ) -> None:
        if self.shared_finish is not None:
            self.shared_finish.emit(block, tile, sums, at, left)
            return
        *batch, first_row, first_column = at
        rows = [first_row + i for i in range(tile.rows)]
        columns = [
            Column(
                points=[[*batch, row, first_column + j * tile.lanes] for row in rows],
                accs=[of_row[j] for of_row in sums],
                count=None if left is None else block.let("count", left - j * tile.lanes),
            )
            for j in range(tile.vectors)
        ]
        self.epilogue.at(block).finish(self.shape.op.output, self.out, tile.lanes, columns)
