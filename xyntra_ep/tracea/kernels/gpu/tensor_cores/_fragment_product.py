"""The product of two tiles by matrix units: a ring of slots in shared memory that copies fill while others are
multiplied, one barrier a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.shared.tf32 import as_tf32
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_tiles import WARP_ROWS, Copy, FragmentTile
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Bitcast, Const, Rvalue, Var, f32, i32, index, lt


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
        k, copy = self.k, self.copy
        slot = k.slot(self.shared, step % copy.tile.slots)

        def place(more_o: int, more_k: int) -> Rvalue:
            o, k_at = self.rows["o"] + first + more_o, self.rows["k"] + at + more_k
            return self.layout.emit(k, *((o, k_at) if copy.along_k else (k_at, o)))

        if copy.one_by_one:
            return [Bitcast(i32(1), k.load(slot, place(*more))) for more in copy.matrices]
        # a is wanted with its rows along m, b with its rows along n.
        return k.load_fragments("part", slot, place(0, 0), transposed=not copy.along_k)


def multiply(k: GpuBuilder, tile: FragmentTile, a: Copier, b: Copier, count: Rvalue) -> dict[tuple[int, int], list[Var]]:
    """The sums of a thread's warp over ``count`` steps, by 16 rows and 8 columns.

    Where two sets of fragments are held, the next are loaded before those that are there are multiplied, across the border of
    steps as well: the barrier that a step needs is then before the last products of the one before it.
    """
    blocks = [(i, j) for i in range(WARP_ROWS // 16) for j in range(tile.warp_columns // 8)]
    sums = {block: [k.variable("sum", Const(f32(1), 0.0)) for _ in range(4)] for block in blocks}
    place, ahead = tile.warps().emit(k, k.thread), tile.slots - 1
    held = [_Held(k, a, b, tile, place) for _ in range(tile.held)]
    places = range(0, tile.depth, tile.fragment_depth)
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
                held[(number + 1) % 2].load(step, at + tile.fragment_depth)
            else:
                begin(k.let("next", step + 1))
            if number == 0:
                fetch(k.let("ahead", step + ahead))
            rows, columns = now.operands()
            for i, j in blocks:
                k.fragment_dot(sums[i, j], rows[i], columns[j], a.dtype)
    k.wait(0)
    return sums


class _Held:
    """A warp's fragments, as deep as they are, in registers."""

    def __init__(self, k: GpuBuilder, a: Copier, b: Copier, tile: FragmentTile, place: Mapping[str, Rvalue]) -> None:
        def four() -> list[Var]:
            return [k.variable("part", Const(i32(1), 0)) for _ in range(4)]

        self._k, self._a, self._b, self._place = k, a, b, place
        self._rows = [four() for _ in range(WARP_ROWS // 16)]
        self._pairs = [four() for _ in range(tile.warp_columns // 16)]

    def operands(self) -> tuple[list[list[Rvalue]], list[list[Rvalue]]]:
        """By 16 rows, and by 8 columns; rounded here, where they are used: what is loaded ahead would be waited for."""
        rows, pairs = ([[self._element(part) for part in four] for four in parts] for parts in (self._rows, self._pairs))
        return rows, [four[i : i + 2] for four in pairs for i in (0, 2)]

    def _element(self, part: Var) -> Rvalue:
        return as_tf32(self._k, part) if self._a.dtype is DType.F32 else part

    def load(self, step: Rvalue, at: int) -> None:
        for side, axis, parts in ((self._a, "m", self._rows), (self._b, "n", self._pairs)):
            for i, four in enumerate(parts):
                for part, value in zip(four, side.load(step, self._place[axis] + 16 * i, index(at)), strict=True):
                    self._k.assign(part, value)
