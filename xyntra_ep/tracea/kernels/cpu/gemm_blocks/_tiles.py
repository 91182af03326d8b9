"""A block of rows times a panel of packed integers: each weight is widened and scaled in registers, once for all rows.

Where sums leave no registers for that, the weights of a few steps are widened into memory that stays in L1 before they are used:
compilers would rather keep sums in memory.
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Matrix, Tile
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import GROUP, PackedWeights, Panel, Widening
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Rvalue, Splat, f32, index

_OF_VECTOR = 3  # registers for each vector of a step, beside sums: its words, its scales, its weights


class FewRows:
    """Code in ``b`` for the rows of ``tile`` at ``a``; ``fetch``: ask for what is used next; ``registers``: that vectors have."""

    def __init__(
        self, b: BlockBuilder, weights: PackedWeights, tile: Tile, a: Matrix, panel: Panel, *, fetch: bool, registers: int
    ) -> None:
        self.b = b
        self.weights = weights
        self.a = a
        self.panel = panel
        self.fetch = fetch
        self.lanes = tile.lanes
        wanted = (tile.rows + _OF_VECTOR) * tile.vectors + 1
        self.widened = b.array("widened", DType.F32, GROUP * tile.columns) if wanted > registers else None
        zero = Const(f32(tile.lanes), 0.0)
        self.total = [[b.variable("c", zero) for _ in range(tile.vectors)] for _ in range(tile.rows)]

    def sums(self) -> list[list[Rvalue]]:
        """By row and vector."""
        b, block = self.b, self.weights.op.block
        whole, rest = divmod(self.weights.depth, block)
        if whole:
            with b.loop("block", 0, whole) as number:
                self._block(number, block)
        if rest:
            self._block(index(whole), rest)
        return [list(row) for row in self.total]

    def _block(self, number: Rvalue, steps: int) -> None:
        b, weights = self.b, self.weights
        widening = Widening.of(b, weights.factors(b, self.panel.scales, self.panel.zeros, number))
        first = b.let("first", number * weights.groups_of_block)
        whole, rest = divmod(steps, GROUP)
        if whole:
            with b.loop("group", 0, whole) as i:
                self._group(b.let("place", first + i), GROUP, widening)
        if rest:
            self._group(b.let("place", first + whole), rest, widening)

    def _group(self, place: Rvalue, steps: int, widening: Widening) -> None:
        b, weights, lanes = self.b, self.weights, self.lanes
        groups = (widening.weights(b, integers) for integers in weights.steps(b, self.panel.integers, place, steps))
        if self.widened is not None:
            width = len(self.total[0])
            for i, w in enumerate(w for columns in groups for w in columns):
                b.store(self.widened, i * lanes, w)
            rows = [[b.load(self.widened, (step * width + v) * lanes, lanes) for v in range(width)] for step in range(steps)]
            groups = ([b.let("w", w) for w in row] for row in rows)
        for step, columns in enumerate(groups):
            for row, sums in enumerate(self.total):
                element = b.load(self.a.pointer, index(row) * self.a.row + (place * GROUP + step) * self.a.step, 1)
                x = b.let("x", Splat(f32(lanes), element) if lanes > 1 else element)
                for c, w in zip(sums, columns, strict=True):
                    b.assign(c, Fma(x, w, c))
        if self.fetch:
            weights.fetch(b, self.panel.integers, place)
