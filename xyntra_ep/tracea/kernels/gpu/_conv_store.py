"""The end of a convolution's block: what its threads have summed goes through the epilogue and is stored once, in packets of
columns where all of those are whole and aligned, one element at a time, each on its condition, where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.gpu._conv_product import ConvProduct
from xyntra_ep.tracea.kernels.gpu._gemm_tiles import PACKET, GemmTile
from xyntra_ep.tracea.kernels.gpu._packets import is_multiple
from xyntra_ep.tracea.kernels.shared.affine import CONSTANT, Affine, add_affine, affine
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, Here
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Var, lt


class Results:
    """A block's results, of the channels of a ``group``, and of an ``image`` where each is a product of its own."""

    def __init__(
        self,
        b: GpuBuilder,
        product: ConvProduct,
        epilogue: Epilogue,
        target: Var,
        image: Rvalue | None,
        group: Rvalue,
    ) -> None:
        self._b, self._product, self._epilogue, self._target = b, product, epilogue, target
        self._images = [] if image is None else [image]
        self._before = b.let("before", group * product.channels)
        self._column_group = len(product.groups()) - (1 if product.channels_last else 2)
        self._columns = product.channels if product.channels_last else product.pixels
        self._rows = product.pixels if product.channels_last else product.channels
        self.width = PACKET if is_multiple(self._columns, PACKET) and self._in_packets(output_form(product.op.output)) else 1

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
        return self._epilogue.at(self._b)

    def row_exists(self, at: Rvalue, of_tile: int) -> AbstractContextManager[None]:
        return self._exists(at, self._rows, of_tile)

    def column_exists(self, at: Rvalue, of_tile: int) -> AbstractContextManager[None]:
        return self._exists(at, self._columns, of_tile)

    def _exists(self, at: Rvalue, extent: Size, of_tile: int) -> AbstractContextManager[None]:
        return nullcontext() if is_multiple(extent, of_tile) else self._b.when(lt(at, self._b.param(extent)))

    def put(self, here: Here, row: Rvalue, column: Rvalue, totals: Sequence[Rvalue]) -> None:
        """Neighbours of a row: one, or a packet of no more than ``width``."""
        out, places = self._product.op.output, [self._at(row, column + i) for i in range(len(totals))]
        if len(places) > 1:
            self._read_packets(here, places)
        values = [here.value(place, total, 1) for place, total in zip(places, totals, strict=True)]
        if len(places) == 1:
            here.store(out, self._target, places[0], values[0])
        else:
            self._b.store_packet(self._target, self._address(output_form(out), places[0]), values)

    def _at(self, row: Rvalue, column: Rvalue) -> list[Rvalue]:
        pixel, channel = (row, column) if self._product.channels_last else (column, row)
        return [*self._images, pixel, self._before + channel]

    def _read_packets(self, here: Here, places: Sequence[Sequence[Rvalue]]) -> None:
        """What the epilogue loads at neighbouring points, together where it lies so."""
        for e in walk(self._epilogue.root):
            form = self._form(self._epilogue.inputs[e.attr], [affine(a) for a in e.args]) if e.kind == "load" else None
            if form is not None and self._epilogue.is_inside(e) and self._in_packets(form):
                pointer: Pointer = self._epilogue.pointers[e.attr]
                values = self._b.load_packet("x", pointer, self._address(form, places[0]), len(places))
                for place, value in zip(places, values, strict=True):
                    here.know(e, place, value)

    def _form(self, operand: Operand, arguments: Sequence[Affine | None]) -> Affine | None:
        form: Affine = {CONSTANT: operand.offset}
        for part, stride in zip(arguments, operand.strides, strict=True):
            if part is None:
                return None
            add_affine(form, part, stride)
        return form

    def _in_packets(self, form: Affine) -> bool:
        """Whether an address steps by one from column to column, and by whole packets wherever else it steps."""
        steps = [group.merged(form) for group in self._product.groups()]
        others = [s for i, s in enumerate(steps) if i != self._column_group]
        if steps[self._column_group] != 1 or any(s is None for s in others):
            return False
        # Each group's channels begin at a multiple of their number, which is one of whole packets.
        return all(is_multiple(s, PACKET) for s in (form.get(CONSTANT, 0), *others) if s is not None)

    def _address(self, form: Affine, place: Sequence[Rvalue]) -> Rvalue:
        b, address = self._b, self._b.param(form.get(CONSTANT, 0))
        for group, at in zip(self._product.groups(), place, strict=True):
            step = group.merged(form)
            assert step is not None, "in packets"
            address = address + at * b.param(step)
        return b.let("from", address)


def output_form(output: Operand) -> Affine:
    """Where the output's elements are, by the axes of its domain."""
    return {CONSTANT: output.offset, **dict(enumerate(output.strides))}
