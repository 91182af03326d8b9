"""Products of two operands by warpgroups, tile after tile: one thread copies tiles into a ring of slots, the other warpgroups
multiply them.

For each slot there are two mbarriers: *full* waits for the bytes of a step's tiles, *empty* for the warps that have read them.
The steps of all tiles of a block are counted through: number n is in slot n % slots, and is that slot's filling n / slots. That
is there with the phase of the same number of the one mbarrier, and may begin with the phase before it of the other. So copies run
ahead into the next tile's steps, while the last ones are multiplied and results are stored.

Warpgroups that have tiles in turns hand on the turn when the last step of a tile is there: at an mbarrier of its own each one
waits for that. A phase is told from the one before it by its parity alone, so who waits for a slot must know of its filling
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.tensor_cores._wgmma_tiles import CONSUMERS, STEP, Panels, WarpgroupTile
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import DEPTH, ROWS, SWIZZLED_ROWS, WARPS, SharedMatrix
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, TensorMap, Var, binary, f32, index, lt

_ALIGNMENT = SWIZZLED_ROWS * 2 * STEP  # bytes after which a swizzle repeats


@dataclass(frozen=True, slots=True)
class Source:
    """An operand: its tiles, and the tensor it is copied from. ``share``: the block's of each panel, where blocks share them."""

    panels: Panels
    tensor: TensorMap
    share: Rvalue

    def coordinates(self, panel: int, first: Rvalue, k: Rvalue, batch: Sequence[Rvalue]) -> tuple[Rvalue, ...]:
        """Of a panel, where the tile begins at row (or column) ``first`` of the product, and at ``k``."""
        rows = self.share * self.panels.box[1]
        return (first + panel * STEP, k + rows, *batch) if self.panels.across else (k, first + rows, *batch)

    def place(self, panel: int) -> Rvalue:
        """Where that is put in the slot."""
        row, rows = self.panels.box
        return self.share * (row * rows) + panel * self.panels.elements


@dataclass(frozen=True, slots=True)
class Corner:
    """Where an operand's tiles begin: the first row (or column), and the coordinates of its batch."""

    first: Rvalue
    batch: Sequence[Rvalue]


class Ring:
    """The slots of both operands, and who waits for whom. ``steps``: of each tile."""

    def __init__(
        self, b: WarpgroupBuilder, tile: WarpgroupTile, sources: tuple[Source, Source], dtype: DType, steps: Rvalue
    ) -> None:
        self._b, self._tile, self._sources, self._dtype, self._steps = b, tile, sources, dtype, steps
        self._tiles = [
            b.shared("tile", dtype, s.panels.count * s.panels.elements, tile.slots, alignment=_ALIGNMENT) for s in sources
        ]
        self._full = b.mbarriers("full", tile.slots, arrivals=1)
        self._empty = b.mbarriers("empty", tile.slots, arrivals=WARPS * CONSUMERS // tile.turns * tile.cluster)
        self._mine = b.mbarriers("mine", CONSUMERS, arrivals=WARPS) if tile.turns > 1 else None

    def fill(self, turn: Rvalue, corners: tuple[Corner, Corner], begin: Rvalue) -> None:
        """Copy every step of the block's tile number ``turn``, from ``begin`` of k on, each into its slot when that is free."""
        b, slots = self._b, self._tile.slots
        before = b.let("before", turn * self._steps)
        with b.loop("step", 0, self._steps) as step:
            number = b.let("number", before + step)
            slot = b.let("slot", number % slots)
            full = b.slot(self._full, slot)
            b.wait_at(b.slot(self._empty, slot), 1 - number // slots % 2)
            b.expect(full, self._tile.step_bytes)
            k = b.let("k", begin + step * STEP)
            for array, source, corner in zip(self._tiles, self._sources, corners, strict=True):
                for panel in range(source.panels.count):
                    to = b.pointer("to", b.slot(array, slot), source.place(panel))
                    at = source.coordinates(panel, corner.first, k, corner.batch)
                    b.copy_tensor(to, source.tensor, at, full, everywhere=source.panels.shares > 1)

    def multiply(self, turn: Rvalue, first: Rvalue) -> list[list[Var]]:
        """The sums of a thread for tile number ``turn``, for every 64 rows of a part that begins at row ``first`` of the tile.
        While a step is multiplied, the next one's tiles are waited for."""
        b, slots = self._b, self._tile.slots
        pieces = self._tile.part_rows // ROWS
        sums = [[b.variable("sum", Const(f32(1), 0.0)) for _ in range(self._tile.columns // 2)] for _ in range(pieces)]
        row = self._sources[0].panels.start(ROWS, 0)  # how far it is from 64 rows to the next
        down = b.let("down", first // ROWS * row)
        before = b.let("before", turn * self._steps)
        if self._mine is not None:
            rounds, group = turn // CONSUMERS, b.let("group", turn % CONSUMERS)
            b.wait_at(b.slot(self._mine, group), (rounds + 1 - group) % 2)  # the first one begins
        with b.loop("step", 0, self._steps) as step:
            number = b.let("number", before + step)
            slot = b.let("slot", number % slots)
            b.wait_at(b.slot(self._full, slot), number // slots % 2)
            b.fence_products()
            for k in range(0, STEP, DEPTH):
                for piece, totals in enumerate(sums):
                    b.warpgroup_dot(
                        totals,
                        self._matrix(0, slot, down + piece * row, k),
                        self._matrix(1, slot, index(0), k),
                        self._dtype,
                    )
            b.commit_products()
            b.wait_products(1)
            with b.when(lt(0, step)):
                self._free(number - 1)
        if self._mine is not None:
            b.arrive(b.slot(self._mine, b.let("other", (turn + 1) % CONSUMERS)))
        b.wait_products(0, [v for totals in sums for v in totals])
        with b.when(lt(0, self._steps)):
            self._free(before + (self._steps - 1))
        return sums

    def _free(self, number: Rvalue) -> None:
        slot = self._b.slot(self._empty, self._b.let("read", number % self._tile.slots))
        self._b.arrive(slot, everywhere=self._tile.cluster > 1)

    def _matrix(self, operand: int, slot: Rvalue, first: Rvalue, k: int) -> SharedMatrix:
        panels = self._sources[operand].panels
        at = binary("add", first, index(panels.start(0, k)))
        return SharedMatrix(self._b.slot(self._tiles[operand], slot), at, panels.across, panels.apart)
