"""The product of two tiles of 16-bit elements by matrix units: a ring of slots in shared memory that copies fill while others are
multiplied, one barrier a step."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu._fragment_tiles import WARP_COLUMNS, WARP_ROWS, Copy, FragmentTile
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Var, f32, lt


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
    """The sums of a thread's warp over ``count`` steps, by 16 rows and 8 columns."""
    blocks = [(i, j) for i in range(WARP_ROWS // 16) for j in range(WARP_COLUMNS // 8)]
    sums = {block: [k.variable("sum", Const(f32(1), 0.0)) for _ in range(4)] for block in blocks}
    here, ahead = tile.warps().emit(k, k.thread), tile.slots - 1

    def fetch(step: Rvalue) -> None:
        with k.when(lt(step, count)):
            a.fetch(step)
            b.fetch(step)
        k.commit()

    with k.loop("ahead", 0, ahead) as early:
        fetch(early)
    with k.loop("step", 0, count) as step:
        k.wait(ahead - 1)
        k.barrier()
        fetch(k.let("next", step + ahead))
        with k.loop("k", 0, tile.depth, 16) as at:
            rows = [a.load(step, here["m"] + 16 * i, at) for i in range(WARP_ROWS // 16)]
            columns = [b.load(step, here["n"] + 16 * j, at) for j in range(WARP_COLUMNS // 16)]
            for i, j in blocks:
                pair = columns[j // 2][2 * (j % 2) : 2 * (j % 2) + 2]
                k.fragment_dot(sums[i, j], rows[i], pair, a.dtype)
    k.wait(0)
    return sums
