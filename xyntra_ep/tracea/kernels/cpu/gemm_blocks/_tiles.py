"""The tiles over packed integers: sums of a block of rows and a panel, widened in registers.

    one row     sums of integers for each block, which its scale multiplies: three instructions for a vector of weights
    several     a weight is widened and scaled once for all rows

With zero points one row also sums what it multiplies: sum x (q - zero) = sum x q - zero sum x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xyntra_ep.tracea.kernels.cpu.gemm._tile import NEAR, Matrix, Tile
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import GROUP, PackedWeights, Widening
from xyntra_ep.tracea.kernels.cpu.shared.streams import elements_of_a_line
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Pointer, Rvalue, Splat, Var, f32, index

PHASES = 2  # sets of sums of one row, taken in turn: few of them would wait for their latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Where a panel's integers, scales and zero points are."""

    integers: Pointer
    scales: Pointer
    zeros: Pointer | None


def multiply_widened(
    b: BlockBuilder, weights: PackedWeights, tile: Tile, a: Matrix, panel: Panel, fetch: bool
) -> list[list[Rvalue]]:
    """The sums by row and vector of ``tile``. ``fetch``: ask for what is used next."""
    return _Widened(b, weights, tile, a, panel, fetch).sums()


Block = Callable[[Rvalue, int], None]  # (which one, its steps)


class _Widened:
    def __init__(self, b: BlockBuilder, weights: PackedWeights, tile: Tile, a: Matrix, panel: Panel, fetch: bool) -> None:
        self.b = b
        self.weights = weights
        self.tile = tile
        self.a = a
        self.panel = panel
        self.fetch = fetch
        self.total = [[self._zero() for _ in range(tile.vectors)] for _ in range(tile.rows)]

    def sums(self) -> list[list[Rvalue]]:
        b, block = self.b, self.weights.op.block
        of_block = self._of_one_row if self.tile.rows == 1 else self._of_rows
        whole, rest = divmod(self.weights.depth, block)
        with b.loop("block", 0, whole) as number:
            of_block(number, block)
        if rest:
            of_block(index(whole), rest)
        return [list(row) for row in self.total]

    def _zero(self) -> Var:
        return self.b.variable("c", Const(f32(self.tile.lanes), 0.0))

    def _groups(self, number: Rvalue, steps: int, body: Callable[[int, list[Rvalue], Rvalue], None]) -> None:
        """``body`` (which step of its group, its integers, k) for each of the first ``steps`` of a block."""
        b, weights = self.b, self.weights
        first = b.let("first", number * weights.groups_of_block)
        whole, rest = divmod(steps, GROUP)

        def group(place: Rvalue, used: int) -> None:
            for i, integers in enumerate(weights.steps(b, self.panel.integers, place, used)):
                body(i, integers, place * GROUP + i)
            if self.fetch:
                line = elements_of_a_line(self.panel.integers)
                ahead = place * weights.of_group + NEAR * self.tile.lanes * line
                for i in range(weights.lines_of_group):
                    b.prefetch(self.panel.integers, ahead + i * line)

        with b.loop("group", 0, whole) as i:
            group(b.let("place", first + i), GROUP)
        if rest:
            group(b.let("place", first + whole), rest)

    def _of_rows(self, number: Rvalue, steps: int) -> None:
        b = self.b
        factors = self.weights.factors(b, self.panel.scales, self.panel.zeros, number)
        widening = Widening.of(b, factors)

        def step(_: int, integers: list[Rvalue], k: Rvalue) -> None:
            columns = widening.weights(b, integers)
            for i, sums in enumerate(self.total):
                self._add(sums, self._x(i, k), columns)

        self._groups(number, steps, step)

    def _of_one_row(self, number: Rvalue, steps: int) -> None:
        b, tile = self.b, self.tile
        sums = [[self._zero() for _ in range(tile.vectors)] for _ in range(PHASES)]
        factors = self.weights.factors(b, self.panel.scales, self.panel.zeros, number)
        added = [b.variable("x_sum", Const(f32(1), 0.0)) for _ in range(PHASES)] if factors.zeros else []

        def step(i: int, integers: list[Rvalue], k: Rvalue) -> None:
            x = self._x(0, k)
            self._add(sums[i % PHASES], x, integers)
            if added:
                here = added[i % PHASES]
                b.assign(here, here + b.load(self.a.pointer, k * self.a.step, 1))

        self._groups(number, steps, step)
        of_x = b.let("of_x", -(added[0] + added[1])) if added else None
        for v, scale in enumerate(factors.scales):
            found = b.let("found", sums[0][v] + sums[1][v])
            if of_x is not None:
                found = b.let("found", Fma(factors.zeros[v], self._spread(of_x), found))
            b.assign(self.total[0][v], Fma(found, scale, self.total[0][v]))

    def _x(self, row: int, k: Rvalue) -> Rvalue:
        element = self.b.load(self.a.pointer, index(row) * self.a.row + k * self.a.step, 1)
        return self.b.let("x", self._spread(element))

    def _spread(self, element: Rvalue) -> Rvalue:
        lanes = self.tile.lanes
        return Splat(f32(lanes), element) if lanes > 1 else element

    def _add(self, sums: list[Var], x: Rvalue, columns: list[Rvalue]) -> None:
        for c, w in zip(sums, columns, strict=True):
            self.b.assign(c, Fma(x, w, c))
