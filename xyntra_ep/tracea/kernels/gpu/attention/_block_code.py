"""Products of a fused attention by fused multiply-adds: eight threads to a row, weights by way of shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu.attention._fetch import whole
from xyntra_ep.tracea.kernels.gpu.attention._stream import AttentionStream
from xyntra_ep.tracea.kernels.gpu.attention._tiles import ACROSS, PACKET, AttentionTile
from xyntra_ep.tracea.kernels.gpu.shared.launch import gpu_of
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileLayout
from xyntra_ep.tracea.semantic_ir.math_library import math_function
from xyntra_ep.tracea.semantic_ir.nodes import CallValue, Const, Fma, Pointer, Rvalue, Var, f32, index, vmin

_EXP = "exp_nonpositive"


class BlockCode(AttentionStream):
    """See the module's docstring."""

    def __init__(self, op: Attention, tile: AttentionTile, context: BuildContext) -> None:
        super().__init__(op, tile, context, f"{tile.rows}x{tile.columns}", [_EXP])
        self.tile = tile
        self._exchanges = gpu_of(context).subgroup >= ACROSS
        self._at = tile.lanes().emit(self.b, self.b.thread)
        self._weight_array = self.b.shared("w", DType.F32, tile.layout("w").elements)
        if not self._exchanges:
            self._exchange_array = self.b.shared("x", DType.F32, tile.layout("x").elements)

    def rows(self) -> list[Rvalue]:
        return [self._at["m"] + more for more in self.tile.rows_of()]

    def columns(self) -> list[Rvalue]:
        return [self._at["x"] + more for more in self.tile.columns_of()]

    def results(self) -> list[Rvalue]:
        return [self._at["x"] * PACKET + i * (ACROSS * PACKET) for i in range(self.tile.packets)]

    def neighbours(self) -> int:
        return PACKET

    def result_columns(self) -> int:
        return ACROSS * PACKET

    def exp(self, x: Rvalue) -> Rvalue:
        return CallValue(math_function(_EXP, 1), (x,))

    def _packet(self, stem: str, array: Pointer, layout: TileLayout, row: Rvalue, column: Rvalue) -> list[Rvalue]:
        return self.b.load_packet(stem, array, layout.emit(self.b, row, column), PACKET)

    def begin(self) -> None:
        """q stays where it is."""

    def products(self) -> list[list[Var]]:
        b, tile, rows, columns = self.b, self.tile, self.rows(), self.columns()
        dots = [[b.variable("dot", Const(f32(1), 0.0)) for _ in columns] for _ in rows]
        with b.loop("d", 0, whole(tile.depth, PACKET), PACKET) as d:
            q = [self._packet("q", self.arrays["q"], self.layout("q"), row, d) for row in rows]
            for j, column in enumerate(columns):
                k = self._packet("k", self.arrays["k"], self.layout("k"), column, d)
                for packet, totals in zip(q, dots, strict=True):
                    for x, y in zip(packet, k, strict=True):
                        b.assign(totals[j], Fma(x, y, totals[j]))
        return dots

    def agreed(self, values: Sequence[Rvalue], combine: Callable[[Rvalue, Rvalue], Rvalue]) -> list[Rvalue]:
        """By exchange of registers, or else by shared memory."""
        b, tile = self.b, self.tile
        if self._exchanges:
            for mask in (1, 2, 4):
                values = [b.let("both", combine(b.let("other", b.subgroup_xor(value, mask)), value)) for value in values]
            return list(values)
        array, layout, rows = self._exchange_array, tile.layout("x"), self.rows()
        for row, value in zip(rows, values, strict=True):
            b.store(array, layout.emit(b, row, self._at["x"]), value)
        b.barrier()
        found = []
        for row in rows:
            first, *others = (v for at in range(0, ACROSS, PACKET) for v in self._packet("x", array, layout, row, index(at)))
            for other in others:
                first = b.let("both", combine(other, first))
            found.append(first)
        return found

    def keep(self, weights: Sequence[Sequence[Rvalue]]) -> None:
        b, layout = self.b, self.tile.layout("w")
        for row, of_row in zip(self.rows(), weights, strict=True):
            for column, weight in zip(self.columns(), of_row, strict=True):
                b.store(self._weight_array, layout.emit(b, row, column), weight)

    def sum(self, sums: Sequence[Sequence[Var]]) -> None:
        b, tile = self.b, self.tile
        last = whole(tile.width, PACKET) - PACKET  # threads past it read what others read, and store nothing
        columns = [b.let("e", vmin(column, last)) for column in self.results()]
        with b.loop("t", 0, tile.columns, PACKET) as t:
            weights = [self._packet("w", self._weight_array, tile.layout("w"), row, t) for row in self.rows()]
            for i in range(PACKET):
                v = [x for column in columns for x in self._packet("v", self.arrays["v"], self.layout("v"), t + i, column)]
                for packet, totals in zip(weights, sums, strict=True):
                    for value, total in zip(v, totals, strict=True):
                        b.assign(total, Fma(packet[i], value, total))
