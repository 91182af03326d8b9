"""The product of two operands by warpgroups: one thread copies tiles into a ring of slots, the other warpgroups multiply them.

For each slot there are two mbarriers: *full* waits for the bytes of a step's tiles, *empty* for the warps that have read them.
Filling n of a slot is complete with phase n of the one, and may begin with phase n - 1 of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu._wgmma_tiles import STEP, Panels, WarpgroupTile
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, TensorMap, Var, binary, f32, index, lt
from xyntra_ep.tracea.semantic_ir.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.warpgroup_nodes import DEPTH, ROWS, SWIZZLED_ROWS, WARPS, SharedMatrix

_ALIGNMENT = SWIZZLED_ROWS * 2 * STEP  # bytes after which a swizzle repeats


@dataclass(frozen=True, slots=True)
class Source:
    """An operand: its tiles, the tensor it is copied from, and the block's place in that: the first row (or column) of the
    product, and the coordinates of the batch."""

    panels: Panels
    tensor: TensorMap
    first: Rvalue
    batch: Sequence[Rvalue]

    def coordinates(self, panel: int, k: Rvalue) -> tuple[Rvalue, ...]:
        if self.panels.across:
            return (self.first + panel * STEP, k, *self.batch)
        return (k, self.first, *self.batch)


class Ring:
    """The slots of both operands, and who waits for whom."""

    def __init__(self, b: WarpgroupBuilder, tile: WarpgroupTile, sources: tuple[Source, Source], dtype: DType) -> None:
        self._b, self._tile, self._sources, self._dtype = b, tile, sources, dtype
        self._tiles = [
            b.shared("tile", dtype, s.panels.count * s.panels.elements, tile.slots, alignment=_ALIGNMENT) for s in sources
        ]
        self._full = b.mbarriers("full", tile.slots, arrivals=1)
        self._empty = b.mbarriers("empty", tile.slots, arrivals=WARPS * tile.consumers)

    def fill(self, steps: Rvalue) -> None:
        """Copy every step's tiles, each into its slot when that is free."""
        b, slots = self._b, self._tile.slots
        with b.once(), b.loop("step", 0, steps) as step:
            slot = b.let("slot", step % slots)
            full = b.slot(self._full, slot)
            b.wait_at(b.slot(self._empty, slot), 1 - step // slots % 2)
            b.expect(full, self._tile.step_bytes)
            k = b.let("k", step * STEP)
            for array, source in zip(self._tiles, self._sources, strict=True):
                for panel in range(source.panels.count):
                    to = b.pointer("to", b.slot(array, slot), panel * source.panels.elements)
                    b.copy_tensor(to, source.tensor, source.coordinates(panel, k), full)

    def multiply(self, steps: Rvalue, group: Rvalue) -> list[Var]:
        """The sums of a thread of warpgroup ``group``: while a step is multiplied, the next one's tiles are waited for."""
        b, slots = self._b, self._tile.slots
        sums = [b.variable("sum", Const(f32(1), 0.0)) for _ in range(self._tile.columns // 2)]
        down = b.let("down", group * self._sources[0].panels.start(ROWS, 0))
        with b.loop("step", 0, steps) as step:
            slot = b.let("slot", step % slots)
            b.wait_at(b.slot(self._full, slot), step // slots % 2)
            b.fence_products()
            for k in range(0, STEP, DEPTH):
                b.warpgroup_dot(sums, self._matrix(0, slot, down, k), self._matrix(1, slot, index(0), k), self._dtype)
            b.commit_products()
            b.wait_products(1)
            with b.when(lt(0, step)):
                b.arrive(b.slot(self._empty, b.let("before", (step - 1) % slots)))
        b.wait_products(0, sums)
        return sums

    def _matrix(self, operand: int, slot: Rvalue, first: Rvalue, k: int) -> SharedMatrix:
        panels = self._sources[operand].panels
        at = binary("add", first, index(panels.start(0, k)))
        return SharedMatrix(self._b.slot(self._tiles[operand], slot), at, panels.across, panels.apart)
