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
from xyntra_ep.tracea.semantic_ir.nodes import Const, Offset, Pointer, PointerType, Rvalue, Select, Var, f32, index, lt, vmin


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
    """The tiles of one operand, each in one of the ``slots`` of ``shared``. ``data``: of the head that the block works on.

    What lies below the operand's last row is that row once more: its scores are not counted, its weights are 0. Columns that
    fill a multiple of ``grain`` are 0.
    """

    def __init__(
        self,
        b: GpuBuilder,
        operand: Operand,
        data: Pointer,
        fetch: Fetch,
        layout: TileLayout,
        shared: Var,
        grain: int,
        slots: int,
    ) -> None:
        assert isinstance(operand.shape[3], int)
        self._b, self._operand, self._data = b, operand, data
        self._fetch, self._layout, self._shared, self._slots = fetch, layout, shared, slots
        kind = shared.vtype
        assert isinstance(kind, PointerType)
        self._dtype = kind.dtype
        self._extent, self._used = operand.shape[3], whole(operand.shape[3], grain)
        self._place = fetch.lanes().emit(b, b.thread)
        # Where a thread's rounds begin is found once, here: what is left to add in a loop is a number for each.
        self._is_whole = is_multiple(operand.shape[2], fetch.rows)
        columns = sorted({column for _, column in fetch.rounds() if column < self._used})
        self._targets = {c: b.let("to", layout.emit(b, self._place["r"], self._place["c"] + c)) for c in columns}
        self._sources = {c: b.let("from", self._source(self._place["r"], c)) for c in columns} if self._is_whole else {}

    def slot(self, number: Rvalue) -> Pointer:
        """Where tile ``number`` is put."""
        return self._shared if self._slots == 1 else self._b.slot(self._shared, number % self._slots)

    def fetch(self, first: Rvalue, number: Rvalue) -> None:
        """Begin to bring the rows from ``first`` on, tile ``number``; they are there after all copies have been waited for and a
        barrier."""
        b, fetch, into = self._b, self._fetch, self.slot(number)
        lanes = fetch.lanes()
        spare = lanes.threads // (lanes.extent("c") * lanes.extent("r"))
        if spare > 1:
            with b.when(lt(self._place["spare"], 1)):
                self._rounds(first, into)
        else:
            self._rounds(first, into)

    def _rounds(self, first: Rvalue, into: Pointer) -> None:
        b, operand, fetch = self._b, self._operand, self._fetch
        used = self._used
        stride = b.param(operand.strides[2])
        start = b.pointer("start", self._data, first * stride) if self._is_whole else self._data
        for more_row, more_column in self._fetch.rounds():
            if more_column >= used:
                continue
            row, column = self._place["r"] + more_row, self._place["c"] + more_column
            if self._is_whole:
                source, source_at = Offset(start, self._sources[more_column]), index(more_row) * stride
            else:
                below = vmin(first + row, b.param(operand.shape[2] - 1))
                source, source_at = Offset(start, self._source(below, more_column)), index(0)
            if more_row % self._layout.period:
                target, target_at = Offset(into, self._layout.emit(b, row, column)), index(0)
            else:
                target, target_at = Offset(into, self._targets[more_column]), index(more_row * self._layout.columns)
            if more_column + fetch.lanes().extent("c") * fetch.packet <= used:
                self._move(target, target_at, source, source_at, column)
            else:
                with b.when(lt(column, used)):
                    self._move(target, target_at, source, source_at, column)

    def _source(self, row: Rvalue, more_column: int) -> Rvalue:
        b, strides = self._b, self._operand.strides
        return row * b.param(strides[2]) + (self._place["c"] + more_column) * b.param(strides[3])

    def _move(self, target: Pointer, target_at: Rvalue, source: Pointer, source_at: Rvalue, column: Rvalue) -> None:
        b, packet, dtype = self._b, self._fetch.packet, self._operand.dtype
        inside = lt(column, self._extent) if self._extent != self._used else None
        if packet * dtype.bytes in COPY_BYTES and dtype is self._dtype:
            valid = None if inside is None else Select(inside, index(packet), index(0))
            b.copy_async(target, target_at, source, source_at, packet, valid)
        elif inside is None:
            b.store_packet(target, target_at, b.load_packet("x", source, source_at, packet))
        else:
            values = [b.variable("x", Const(f32(1), 0.0)) for _ in range(packet)]
            with b.when(inside):
                for value, loaded in zip(values, b.load_packet("x", source, source_at, packet), strict=True):
                    b.assign(value, loaded)
            b.store_packet(target, target_at, values)


def store_row(b: GpuBuilder, operand: Operand, row: Pointer, first: Rvalue, values: Sequence[Rvalue], surely: bool) -> None:
    """Neighbours of a row of the result from column ``first`` on: those that it has, ``surely`` all."""
    extent, step = operand.shape[3], b.param(operand.strides[3])
    together = min(packet_of(operand), len(values))
    for i in range(0, len(values), together):
        column = b.let("e", first + i)
        with nullcontext() if surely else b.when(lt(column, b.param(extent))):
            b.store_packet(row, column * step, values[i : i + together])
