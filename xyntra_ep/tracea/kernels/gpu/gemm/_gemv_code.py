"""What a block of a product of few rows does: reads its columns of b once, multiplies, adds up what threads have, stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.gemm._fetch import Side
from xyntra_ep.tracea.kernels.gpu.gemm._gemv_tiles import GemvTile, widest
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import End
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Pointer, Rvalue, binary, f32, lt, vmin


class GemvCode:
    """The block whose results begin ``at`` (batch, row, column); ``starts``: the matrices a and b of its batch."""

    def __init__(
        self,
        k: GpuBuilder,
        shape: GemmShape,
        tile: GemvTile,
        sides: tuple[Side, Side],
        starts: tuple[Pointer, Pointer],
        at: Sequence[Rvalue],
    ) -> None:
        self._k, self._shape, self._tile, self._sides = k, shape, tile, sides
        *self._batch, row, column = at
        self._row, self._column = row, column
        place = tile.lanes().emit(k, k.thread)
        self._o, self._at = place["o"], place["k"]
        self._first = k.let("first", column + self._o * tile.wide)
        a, b = sides
        # Rows and columns that are not there are read as the last one, and not stored.
        rows = [row + r for r in range(tile.rows)]
        if not is_multiple(shape.m, tile.rows):
            rows = [vmin(m, k.param(shape.m) - 1) for m in rows]
        self._rows = [k.pointer("a_row", starts[0], m * k.param(a.across_stride)) for m in rows]
        if tile.along_k:
            columns = [self._first + i for i in range(tile.wide)]
            if not self._columns_fit:
                columns = [vmin(n, k.param(shape.n) - 1) for n in columns]
            self._columns = [k.pointer("b_column", starts[1], n * k.param(b.across_stride)) for n in columns]
        else:
            self._columns = [k.pointer("b_column", starts[1], self._first * k.param(b.across_stride))]
        self._parts = k.shared("part", DType.F32, tile.meeting * tile.pitch)
        zero = Const(f32(1), 0.0)
        self._sums = [[k.variable("sum", zero) for _ in range(tile.wide)] for _ in range(tile.rows)]

    @property
    def _columns_fit(self) -> bool:
        return is_multiple(self._shape.n, self._tile.columns)

    def multiply(self, begin: Rvalue, end: Rvalue) -> None:
        """Sum over k from ``begin``, which is a multiple of a patch's depth, to ``end``."""
        k, tile = self._k, self._tile
        ragged = not is_multiple(self._shape.depth, tile.deep)
        with self._there():
            last = end - (tile.deep - 1) if tile.deep > 1 else end
            with k.loop("at", begin + self._at * tile.deep, last, tile.depth) as at:
                self._patch(at, tile.deep)
            if ragged:
                rest = k.let("rest", end - (end - begin) % tile.deep)
                with k.loop("at", rest + self._at, end, tile.depth // tile.deep) as at:
                    self._patch(at, 1)

    @contextmanager
    def _there(self) -> Iterator[None]:
        """Along the columns, a packet is there as a whole or not at all."""
        if self._tile.along_k or self._columns_fit:
            yield
        else:
            with self._k.when(lt(self._first, self._k.param(self._shape.n))):
                yield

    def _patch(self, at: Rvalue, deep: int) -> None:
        """``deep`` by ``wide`` elements of b, all read before the first is used."""
        k, b = self._k, self._sides[1]
        if self._tile.along_k:
            columns = [k.load_packet("y", column, at * k.param(b.depth_stride), deep) for column in self._columns]
            patch = [[column[i] for column in columns] for i in range(deep)]
        else:
            [column] = self._columns
            steps = [(at + i) * k.param(b.depth_stride) for i in range(deep)]
            patch = [k.load_packet("y", column, step, self._tile.wide) for step in steps]
        for row, sums in zip(self._rows, self._sums, strict=True):
            for x, ys in zip(self._of_row(row, at, deep), patch, strict=True):
                for y, total in zip(ys, sums, strict=True):
                    k.assign(total, Fma(x, y, total))

    def _of_row(self, row: Pointer, at: Rvalue, count: int) -> list[Rvalue]:
        """``count`` values of a from ``at`` on, in packets where they are aligned."""
        k, a = self._k, self._sides[0]
        packet = min(count, widest(a.operand.dtype))
        aligned = [a.across_stride, a.operand.offset, *a.others]
        if a.depth_stride != 1:
            packet = 1
        while not all(is_multiple(s, packet) for s in aligned):
            packet //= 2
        steps = [(at + i) * k.param(a.depth_stride) for i in range(0, count, packet)]
        return [value for step in steps for value in k.load_packet("x", row, step, packet)]

    def meet(self) -> None:
        """The sums of all threads in shared memory, after those that exchange registers have added theirs up."""
        k, tile = self._k, self._tile
        masks = tile.exchanges()
        for mask in masks:
            for total in (total for sums in self._sums for total in sums):
                k.assign(total, total + k.subgroup_xor(total, mask))
        first = binary("eq", self._at % (1 << len(masks)), 0)
        with k.when(first):
            base = k.let("base", self._at // (1 << len(masks)) * tile.pitch + self._o * tile.run)
            for r, sums in enumerate(self._sums):
                for i in range(0, tile.wide, tile.run):
                    at = base + (r * tile.columns + i // tile.run * (tile.columns // tile.wide * tile.run))
                    if tile.pitch % 4:
                        for j, total in enumerate(sums[i : i + tile.run]):
                            k.store(self._parts, at + j, total)
                    else:
                        k.store_packet(self._parts, at, sums[i : i + tile.run])
        k.barrier()

    def store(self, end: End) -> None:
        """Put the block's results: each is one thread's, who adds up what has met."""
        k, tile, shape = self._k, self._tile, self._shape
        with k.loop("result", k.thread, tile.rows * tile.columns, k.threads) as result:
            place = k.let("place", result % tile.columns)
            across = tile.columns // tile.wide * tile.run
            o = place % across // tile.run
            n = k.let("n", self._column + o * tile.wide + place // across * tile.run + place % tile.run)
            m = k.let("m", self._row + result // tile.columns)
            with k.when(binary("and", lt(m, k.param(shape.m)), lt(n, k.param(shape.n)))):
                total = k.variable("total", Const(f32(1), 0.0))
                with k.loop("part", 0, tile.meeting) as part:
                    k.assign(total, total + k.load(self._parts, part * tile.pitch + result))
                end.put(end.here(), [*self._batch, m, n], total)
