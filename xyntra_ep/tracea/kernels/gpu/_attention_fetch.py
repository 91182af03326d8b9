"""Code that brings tiles of q, k and v into shared memory as they are stored, by asynchronous copies where their size allows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.gpu._attention_tiles import PACKET, Fetch, whole
from xyntra_ep.tracea.kernels.gpu._packets import is_multiple
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu_nodes import COPY_BYTES, PACKET_BYTES
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, Select, Var, f32, index, lt, vmin
from xyntra_ep.tracea.semantic_ir.swizzle import TileLayout


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
    fill the last packet are 0.
    """

    def __init__(self, b: GpuBuilder, operand: Operand, data: Pointer, fetch: Fetch, layout: TileLayout, shared: Var) -> None:
        assert isinstance(operand.shape[3], int)
        self._b, self._operand, self._data = b, operand, data
        self._fetch, self._layout, self._shared = fetch, layout, shared
        self._extent = operand.shape[3]
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
        used = whole(self._extent, max(PACKET, fetch.packet))
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
        ragged = self._extent % PACKET != 0
        if packet * dtype.bytes in COPY_BYTES:
            valid = Select(lt(column, self._extent), index(packet), index(0)) if ragged else None
            b.copy_async(self._shared, target, self._data, source, packet, valid)
            return
        assert packet == 1
        value = b.variable("x", Const(f32(1), 0.0))
        with b.when(lt(column, self._extent)) if ragged else nullcontext():
            b.assign(value, b.load(self._data, source))
        b.store(self._shared, target, value)


def store_row(b: GpuBuilder, operand: Operand, row: Pointer, first: Rvalue, values: Sequence[Rvalue], surely: bool) -> None:
    """Neighbours of a row of the result from column ``first`` on: those that it has, ``surely`` all."""
    extent, step = operand.shape[3], b.param(operand.strides[3])
    together = min(packet_of(operand), len(values))
    for i in range(0, len(values), together):
        column = b.let("e", first + i)
        with nullcontext() if surely else b.when(lt(column, b.param(extent))):
            b.store_packet(row, column * step, values[i : i + together])
