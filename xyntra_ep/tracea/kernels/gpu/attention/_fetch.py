"""Code that brings tiles of q, k and v into shared memory: by asynchronous copies where they stay as they are stored and their
size allows it, else through registers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.nodes import COPY_BYTES, PACKET_BYTES
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, PointerType, Rvalue, Select, Var, f32, index, lt, vmin


def whole(extent: int, step: int) -> int:
    """``extent`` rounded up to multiples of ``step``."""
    return -(-extent // step) * step


def padded(extent: int, grain: int) -> int:
    """The columns of a tile of rows of ``extent`` elements: a power of two, ``grain`` at least."""
    return max(grain, 1 << (extent - 1).bit_length())


@dataclass(frozen=True, slots=True)
class Fetch:
    """How ``threads`` threads bring a tile of ``rows`` x ``columns`` elements (powers of two), ``packet`` neighbours at once."""

    rows: int
    columns: int
    threads: int
    packet: int

    def lanes(self) -> LaneMap:
        """The packet that a thread moves first: rows are filled one after the other."""
        across = min(self.threads, self.columns // self.packet)
        down = min(self.threads // across, self.rows)
        spare = self.threads // across // down  # threads without work in a small tile
        return LaneMap((Digit("c", across, step=self.packet), Digit("r", down), Digit("spare", spare)))

    def rounds(self) -> list[tuple[int, int]]:
        """(row, column) that a thread adds to its place, for each packet that it moves."""
        lanes = self.lanes()
        down, across = lanes.extent("r"), lanes.extent("c") * self.packet
        return [(r, c) for r in range(0, self.rows, down) for c in range(0, self.columns, across)]

    def access(self) -> TileAccess:
        return TileAccess(self.lanes(), "r", "c", self.packet)


def packet_of(operand: Operand) -> int:
    """How many neighbours of a row every access can move at once."""
    if operand.strides[3] != 1:
        return 1
    width = PACKET_BYTES // operand.dtype.bytes
    moved: Sequence[Size] = (operand.shape[3], operand.offset, *operand.strides[:3])
    while width > 1 and not all(is_multiple(size, width) for size in moved):
        width //= 2
    return width


class TileFetcher:
    """The tiles of one operand. ``data``: of the head that the block works on.

    What lies below the operand's last row is that row once more: its scores are not counted, its weights are 0. Columns that
    fill a multiple of ``grain`` are 0.
    """

    def __init__(
        self, b: GpuBuilder, operand: Operand, data: Pointer, fetch: Fetch, layout: TileLayout, shared: Var, grain: int
    ) -> None:
        assert isinstance(operand.shape[3], int)
        self._b, self._operand, self._data = b, operand, data
        self._fetch, self._layout, self._shared = fetch, layout, shared
        kind = shared.vtype
        assert isinstance(kind, PointerType)
        self._dtype = kind.dtype
        self._extent, self._used = operand.shape[3], whole(operand.shape[3], grain)
        self._place = fetch.lanes().emit(b, b.thread)

    def fetch(self, first: Rvalue) -> None:
        """Begin to bring the rows from ``first`` on; they are there after all copies have been waited for and a barrier."""
        b, fetch = self._b, self._fetch
        lanes = fetch.lanes()
        spare = lanes.threads // (lanes.extent("c") * lanes.extent("r"))
        if spare > 1:
            with b.when(lt(self._place["spare"], 1)):
                self._rounds(first)
        else:
            self._rounds(first)

    def _rounds(self, first: Rvalue) -> None:
        b, operand, fetch = self._b, self._operand, self._fetch
        used = self._used
        for more_row, more_column in self._fetch.rounds():
            if more_column >= used:
                continue
            row, column = self._place["r"] + more_row, self._place["c"] + more_column
            source_row = first + row
            if not is_multiple(operand.shape[2], fetch.rows):
                source_row = vmin(source_row, b.param(operand.shape[2] - 1))
            source = b.let("from", source_row * b.param(operand.strides[2]) + column * b.param(operand.strides[3]))
            target = self._layout.emit(b, row, column)
            if more_column + fetch.lanes().extent("c") * fetch.packet <= used:
                self._move(target, source, column)
            else:
                with b.when(lt(column, used)):
                    self._move(target, source, column)

    def _move(self, target: Rvalue, source: Rvalue, column: Rvalue) -> None:
        b, packet, dtype = self._b, self._fetch.packet, self._operand.dtype
        inside = lt(column, self._extent) if self._extent != self._used else None
        if packet * dtype.bytes in COPY_BYTES and dtype is self._dtype:
            valid = None if inside is None else Select(inside, index(packet), index(0))
            b.copy_async(self._shared, target, self._data, source, packet, valid)
        elif inside is None:
            b.store_packet(self._shared, target, b.load_packet("x", self._data, source, packet))
        else:
            values = [b.variable("x", Const(f32(1), 0.0)) for _ in range(packet)]
            with b.when(inside):
                for value, loaded in zip(values, b.load_packet("x", self._data, source, packet), strict=True):
                    b.assign(value, loaded)
            b.store_packet(self._shared, target, values)


def store_row(b: GpuBuilder, operand: Operand, row: Pointer, first: Rvalue, values: Sequence[Rvalue], surely: bool) -> None:
    """Neighbours of a row of the result from column ``first`` on: those that it has, ``surely`` all."""
    extent, step = operand.shape[3], b.param(operand.strides[3])
    together = min(packet_of(operand), len(values))
    for i in range(0, len(values), together):
        column = b.let("e", first + i)
        with nullcontext() if surely else b.when(lt(column, b.param(extent))):
            b.store_packet(row, column * step, values[i : i + together])
