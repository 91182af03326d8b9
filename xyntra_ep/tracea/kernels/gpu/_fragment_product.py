"""The product of two tiles of 16-bit elements by matrix units: a ring of slots in shared memory that copies fill while others are
multiplied, one barrier a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu._fragment_tiles import WARP_ROWS, Copy, FragmentTile
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Var, f32, i32, index, lt


class Copier(ABC):
    """One operand's tiles in shared memory; how they get there is the subclass's."""

    def __init__(self, k: GpuBuilder, dtype: DType, copy: Copy) -> None:
        self.k, self.dtype, self.copy = k, dtype, copy
        self.layout = copy.layout()
        self.shared = k.shared("tile", dtype, self.layout.elements, copy.tile.slots)
        self.place = copy.lanes().emit(k, k.thread)
        self.rows = copy.fragments().emit(k, k.let("lane", k.thread % 32))

    @abstractmethod
    def fetch(self, step: Rvalue) -> None:
        """Begin to copy tile ``step`` of k into its slot."""

    def load(self, step: Rvalue, first: Rvalue, at: Rvalue) -> list[Rvalue]:
        """Four matrices, the first at row or column ``first`` of the product and at k ``at`` of the tile."""
        o, k_at = self.rows["o"] + first, self.rows["k"] + at
        row, column = (o, k_at) if self.copy.along_k else (k_at, o)
        slot = self.k.slot(self.shared, step % self.copy.tile.slots)
        # a is wanted with its rows along m, b with its rows along n.
        return self.k.load_fragments("part", slot, self.layout.emit(self.k, row, column), transposed=not self.copy.along_k)


def multiply(k: GpuBuilder, tile: FragmentTile, a: Copier, b: Copier, count: Rvalue) -> dict[tuple[int, int], list[Var]]:
    """The sums of a thread's warp over ``count`` steps, by 16 rows and 8 columns.

    Where two sets of fragments are held, the next are loaded before those that are there are multiplied, across the border of
    steps as well: the barrier that a step needs is then before the last products of the one before it.
    """
    blocks = [(i, j) for i in range(WARP_ROWS // 16) for j in range(tile.warp_columns // 8)]
    sums = {block: [k.variable("sum", Const(f32(1), 0.0)) for _ in range(4)] for block in blocks}
    place, ahead = tile.warps().emit(k, k.thread), tile.slots - 1
    held = [_Held(k, a, b, tile, place) for _ in range(tile.held)]
    places = range(0, tile.depth, 16)
    assert len(places) % tile.held == 0, "a step begins with the first of those that are held"

    def fetch(step: Rvalue) -> None:
        with k.when(lt(step, count)):
            a.fetch(step)
            b.fetch(step)
        k.commit()

    def begin(step: Rvalue) -> None:
        """All copies but the latest have landed, and nobody reads the slot before them any more."""
        k.wait(ahead - 1)
        k.barrier()
        if tile.held > 1:
            with k.when(lt(step, count)):
                held[0].load(step, 0)

    with k.loop("ahead", 0, ahead) as early:
        fetch(early)
    if tile.held > 1:
        begin(index(0))
    with k.loop("step", 0, count) as step:
        if tile.held == 1:
            begin(step)
        for number, at in enumerate(places):
            now = held[number % tile.held]
            if tile.held == 1:
                now.load(step, at)
            elif at != places[-1]:
                held[(number + 1) % 2].load(step, at + 16)
            else:
                begin(k.let("next", step + 1))
            if number == 0:
                fetch(k.let("ahead", step + ahead))
            for i, j in blocks:
                k.fragment_dot(sums[i, j], now.rows[i], now.columns[j], a.dtype)
    k.wait(0)
    return sums


class _Held:
    """A warp's fragments of 16 of k, in registers."""

    def __init__(self, k: GpuBuilder, a: Copier, b: Copier, tile: FragmentTile, place: Mapping[str, Rvalue]) -> None:
        def four() -> list[Var]:
            return [k.variable("part", Const(i32(1), 0)) for _ in range(4)]

        self._k, self._a, self._b, self._place = k, a, b, place
        self.rows = [four() for _ in range(WARP_ROWS // 16)]
        self._pairs = [four() for _ in range(tile.warp_columns // 16)]

    @property
    def columns(self) -> list[list[Var]]:
        """By 8 columns."""
        return [four[i : i + 2] for four in self._pairs for i in (0, 2)]

    def load(self, step: Rvalue, at: int) -> None:
        for side, axis, parts in ((self._a, "m", self.rows), (self._b, "n", self._pairs)):
            for i, four in enumerate(parts):
                for part, value in zip(four, side.load(step, self._place[axis] + 16 * i, index(at)), strict=True):
                    self._k.assign(part, value)
