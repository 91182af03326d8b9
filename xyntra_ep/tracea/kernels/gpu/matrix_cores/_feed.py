"""One operand of a product by matrix units: from memory to registers, to shared memory, to the lanes of each warp."""

from __future__ import annotations

from xyntra_ep.tracea.kernels.gpu.gemm._fetch import Side
from xyntra_ep.tracea.kernels.gpu.matrix_cores._tiles import SLOTS, Fetch
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.tf32 import as_tf32
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Slot
from xyntra_ep.tracea.semantic_ir.nodes import Bitcast, Const, Offset, Pointer, Rvalue, Var, binary, f32, index, lt


def own(array: Var, at: int) -> Pointer:
    """A thread's own array from a place on."""
    return Offset(array, index(at)) if at else array


class Feed:
    """``data``: at the first element of the block's rows (or columns), of which ``first`` is the number; ``depth``: what there is
    of k from there."""

    def __init__(self, k: GpuBuilder, side: Side, fetch: Fetch, data: Pointer, first: Rvalue, depth: Rvalue) -> None:
        self._k, self._side, self._fetch, self._data, self._depth = k, side, fetch, data, depth
        tile = fetch.tile
        self._layout = fetch.layout()
        self.shared = k.shared("tile", tile.shape.dtype, self._layout.elements, slots=SLOTS)
        place = fetch.lanes().emit(k, k.thread)
        self._o, self._at = place["o"], place["k"]
        lane = fetch.reading().emit(k, k.let("lane", k.thread % tile.shape.lanes))
        self._lane_o, self._lane_k = lane["o"], lane.get("k", index(0))
        self._held = [k.array("held", side.operand.dtype, fetch.packet) for _ in fetch.rounds()]
        self._left = None if is_multiple(side.across, fetch.extent) else k.let("left", k.param(side.across) - first)

    def load(self, step: Rvalue | int) -> None:
        """Tile ``step`` of k into registers; what is outside of the matrix is 0."""
        k, side, fetch = self._k, self._side, self._fetch
        begin = k.let("begin", step * index(fetch.tile.depth))
        end = None if is_multiple(side.depth, fetch.tile.depth) else k.let("end", self._depth - begin)
        for held, (more_o, more_k) in zip(self._held, fetch.rounds(), strict=True):
            o, at_k = self._o + more_o, self._at + more_k
            at = k.let("from", o * k.param(side.across_stride) + (begin + at_k) * k.param(side.depth_stride))
            inside = None if self._left is None else lt(o, self._left)
            if end is not None:
                inside = lt(at_k, end) if inside is None else binary("and", inside, lt(at_k, end))
            if inside is None:
                self._take(held, at)
                continue
            for i in range(fetch.packet):
                k.store(held, i, Const(f32(1), 0.0))
            with k.when(inside):
                self._take(held, at)

    def _take(self, held: Var, at: Rvalue) -> None:
        if self._fetch.packet > 1:
            self._k.take_packet(held, self._data, at, self._fetch.packet)
        else:
            self._k.store(held, 0, self._k.load(self._data, at))

    def store(self, slot: Slot) -> None:
        """What the registers hold into a slot of shared memory, in the type that is multiplied."""
        k, fetch = self._k, self._fetch
        for held, (more_o, more_k) in zip(self._held, fetch.rounds(), strict=True):
            o, at = self._o + more_o, self._at + more_k
            rounded = [self._rounded(k.load(held, i)) for i in range(fetch.packet)]
            if fetch.along_k is not fetch.rows_are_k:
                k.store_packet(slot, k.let("to", self._layout.emit(k, *fetch.place(o, at))), rounded)
                continue
            for i, value in enumerate(rounded):
                where = fetch.place(o, at + i) if fetch.along_k else fetch.place(o + i, at)
                k.store(slot, self._layout.emit(k, *where), value)

    def _rounded(self, value: Rvalue) -> Rvalue:
        shape = self._fetch.tile.shape
        return Bitcast(f32(1), as_tf32(self._k, value)) if shape.rounded else value

    def parts(self, count: int) -> list[Var]:
        """Arrays of a thread's own for that many blocks of the product."""
        tile = self._fetch.tile
        return [self._k.array("part", tile.shape.dtype, tile.read) for _ in range(count)]

    def give(self, slot: Slot, first: Rvalue, at: int, part: Var) -> None:
        """To each lane what it has of the block of the product at row (or column) ``first`` and at k ``at``."""
        k, tile = self._k, self._fetch.tile
        for more in range(0, tile.read, tile.packet):
            o, at_k = self._lane_o + first, self._lane_k + at
            where = self._fetch.place(o + more, at_k) if self._fetch.rows_are_k else self._fetch.place(o, at_k + more)
            place = self._layout.emit(k, *where)
            k.take_packet(own(part, more), slot, place, tile.packet)
