"""Products of a fused attention by fused multiply-adds: eight threads to a row, weights by way of shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu.attention._fetch import whole
from xyntra_ep.tracea.kernels.gpu.attention._softmax import Share
from xyntra_ep.tracea.kernels.gpu.attention._stream import AttentionStream
from xyntra_ep.tracea.kernels.gpu.attention._tiles import ACROSS, PACKET, AttentionTile
from xyntra_ep.tracea.kernels.gpu.shared.launch import gpu_of
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileLayout
from xyntra_ep.tracea.semantic_ir.math_library import math_function
from xyntra_ep.tracea.semantic_ir.nodes import CallValue, Const, Fma, Pointer, Rvalue, Var, f32, index, vmin


class BlockShare(Share):
    """Of ``tile``: a thread has every so manieth row and column. Without exchange between registers it meets the others of its
    rows in shared memory."""

    exponential = "exp_nonpositive"

    def __init__(self, b: GpuBuilder, tile: AttentionTile, exchanges: bool) -> None:
        super().__init__(b)
        self._tile = tile
        self.at = tile.lanes().emit(b, b.thread)
        self._exchange_array = None if exchanges else b.shared("x", DType.F32, tile.layout("x").elements)

    def rows(self) -> list[Rvalue]:
        return [self.at["m"] + more for more in self._tile.rows_of()]

    def columns(self) -> list[Rvalue]:
        return [self.at["x"] + more for more in self._tile.columns_of()]

    def results(self) -> list[Rvalue]:
        return [self.at["x"] * PACKET + i * (ACROSS * PACKET) for i in range(self._tile.packets)]

    def neighbours(self) -> int:
        return PACKET

    def result_columns(self) -> int:
        return ACROSS * PACKET

    def exp(self, x: Rvalue, factor: float) -> Rvalue:
        return CallValue(math_function(self.exponential, 1), (x if factor == 1 else x * factor,))

    def agreed(self, values: Sequence[Rvalue], combine: Callable[[Rvalue, Rvalue], Rvalue]) -> list[Rvalue]:
        """By exchange of registers, or else by shared memory."""
        b, array = self.b, self._exchange_array
        if array is None:
            for mask in (1, 2, 4):
                values = [b.let("both", combine(b.let("other", b.subgroup_xor(value, mask)), value)) for value in values]
            return list(values)
        layout, rows = self._tile.layout("x"), self.rows()
        for row, value in zip(rows, values, strict=True):
            b.store(array, layout.emit(b, row, self.at["x"]), value)
        b.barrier()
        found = []
        for row in rows:
            first, *others = (v for at in range(0, ACROSS, PACKET) for v in _packet(b, "x", array, layout, row, index(at)))
            for other in others:
                first = b.let("both", combine(other, first))
            found.append(first)
        return found


def _packet(b: GpuBuilder, stem: str, array: Pointer, layout: TileLayout, row: Rvalue, column: Rvalue) -> list[Rvalue]:
    return b.load_packet(stem, array, layout.emit(b, row, column), PACKET)


class BlockCode(AttentionStream):
    """See the module's docstring."""

    def __init__(self, op: Attention, tile: AttentionTile, context: BuildContext) -> None:
        super().__init__(op, tile, context, f"{tile.rows}x{tile.columns}", BlockShare.exponential)
        self.tile = tile
        self._weight_array = self.b.shared("w", DType.F32, tile.layout("w").elements)
        self.share = BlockShare(self.b, tile, exchanges=gpu_of(context).subgroup >= ACROSS)

    def _packet(self, stem: str, array: Pointer, layout: TileLayout, row: Rvalue, column: Rvalue) -> list[Rvalue]:
        return _packet(self.b, stem, array, layout, row, column)

    def begin(self) -> None:
        """q stays where it is."""

    def products(self) -> list[list[Var]]:
        b, tile, rows, columns = self.b, self.tile, self.share.rows(), self.share.columns()
        dots = [[b.variable("dot", Const(f32(1), 0.0)) for _ in columns] for _ in rows]
        with b.loop("d", 0, whole(tile.depth, PACKET), PACKET) as d:
            q = [self._packet("q", self.arrays["q"], self.layout("q"), row, d) for row in rows]
            for j, column in enumerate(columns):
                k = self._packet("k", self.arrays["k"], self.layout("k"), column, d)
                for packet, totals in zip(q, dots, strict=True):
                    for x, y in zip(packet, k, strict=True):
                        b.assign(totals[j], Fma(x, y, totals[j]))
        return dots

    def keep(self, weights: Sequence[Sequence[Rvalue]]) -> None:
        b, layout = self.b, self.tile.layout("w")
        for row, of_row in zip(self.share.rows(), weights, strict=True):
            for column, weight in zip(self.share.columns(), of_row, strict=True):
                b.store(self._weight_array, layout.emit(b, row, column), weight)

    def sum(self, sums: Sequence[Sequence[Var]]) -> None:
        b, tile = self.b, self.tile
        last = whole(tile.width, PACKET) - PACKET  # threads past it read what others read, and store nothing
        columns = [b.let("e", vmin(column, last)) for column in self.share.results()]
        with b.loop("t", 0, tile.columns, PACKET) as t:
            weights = [self._packet("w", self._weight_array, tile.layout("w"), row, t) for row in self.share.rows()]
            for i in range(PACKET):
                v = [x for column in columns for x in self._packet("v", self.arrays["v"], self.layout("v"), t + i, column)]
                for packet, totals in zip(weights, sums, strict=True):
                    for value, total in zip(v, totals, strict=True):
                        b.assign(total, Fma(packet[i], value, total))
