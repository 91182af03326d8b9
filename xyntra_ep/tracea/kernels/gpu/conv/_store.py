"""The end of a convolution's block: what its threads have summed goes through the epilogue and is stored once, in packets of
columns where all of those are whole and aligned, one element at a time, each on its condition, where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct
from xyntra_ep.tracea.kernels.gpu.gemm._tiles import PACKET, GemmTile
from xyntra_ep.tracea.kernels.gpu.shared.packet_end import PacketEnd
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, Here
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Var, lt


class Results:
    """A block's results, of the channels of a ``group``, and of an ``image`` where each is a product of its own. They go to
    ``output``, which is at ``target``: the op's own, or where its sums wait for others."""

    def __init__(
        self,
        b: GpuBuilder,
        product: ConvProduct,
        epilogue: Epilogue,
        output: Operand,
        target: Pointer,
        image: Rvalue | None,
        group: Rvalue,
    ) -> None:
        self._b, self._product = b, product
        self._images = [] if image is None else [image]
        self._before = b.let("before", group * product.channels)
        self._columns = product.channels if product.channels_last else product.pixels
        self._rows = product.pixels if product.channels_last else product.channels
        # Each group's channels begin at a multiple of their number, which is one of whole packets.
        self._end = PacketEnd(b, epilogue, output, target, self._columns, PACKET)
        self.width = self._end.width

    def store(self, tile: GemmTile, sums: Sequence[Sequence[Var]], pixel: Rvalue, channel: Rvalue) -> None:
        """``sums`` by row and column of a thread's own; the tile begins at ``pixel`` and at ``channel`` of the group."""
        b, place = self._b, tile.lanes().emit(self._b, self._b.thread)
        row, column = (pixel, channel) if self._product.channels_last else (channel, pixel)
        columns_fit = is_multiple(self._columns, tile.columns)
        for i, totals in enumerate(sums):
            m = b.let("m", row + place["m"] + tile.packets(tile.rows)[i // PACKET] + i % PACKET)
            with self.row_exists(m, tile.rows):
                here = self.here()
                for j in range(0, tile.side, self.width):
                    n = b.let("n", column + place["n"] + tile.packets(tile.columns)[j // PACKET] + j % PACKET)
                    with self.column_exists(n, tile.columns):
                        self.put(here if columns_fit else self.here(), m, n, totals[j : j + self.width])

    def here(self) -> Here:
        """A place to compute from, under conditions of its own."""
        return self._end.here()

    def row_exists(self, at: Rvalue, of_tile: int) -> AbstractContextManager[None]:
        return self._exists(at, self._rows, of_tile)

    def column_exists(self, at: Rvalue, of_tile: int) -> AbstractContextManager[None]:
        return self._exists(at, self._columns, of_tile)

    def _exists(self, at: Rvalue, extent: Size, of_tile: int) -> AbstractContextManager[None]:
        return nullcontext() if is_multiple(extent, of_tile) else self._b.when(lt(at, self._b.param(extent)))

    def put(self, here: Here, row: Rvalue, column: Rvalue, totals: Sequence[Rvalue]) -> None:
        """Neighbours of a row: one, or a packet of no more than ``width``."""
        self._end.put(here, [self._at(row, column + i) for i in range(len(totals))], totals)

    def _at(self, row: Rvalue, column: Rvalue) -> list[Rvalue]:
        if self._product.channels_last:
            return [*self._images, row, self._before + column]
        return [*self._images, self._before + row, column]
