"""The product of two tiles in shared memory, step by step of k: while one step is multiplied, registers take in the next."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Protocol

from xyntra_ep.tracea.kernels.gpu.gemm._tiles import PACKET, GemmTile
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Slot
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileLayout
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Rvalue, Var, f32, lt


class Feed(Protocol):
    """One operand's tiles: rows of the tile are k, columns its rows (or columns) of the product."""

    @property
    def shared(self) -> Var:
        """Two slots of shared memory."""
        ...

    @property
    def layout(self) -> TileLayout:
        """Of each slot."""
        ...

    def load(self, step: Rvalue | int) -> None:
        """Tile ``step`` of k into registers; what is outside of the operand is 0."""
        ...

    def store(self, slot: Slot) -> None:
        """What the registers hold into a slot of shared memory."""
        ...


def multiply(k: GpuBuilder, tile: GemmTile, a: Feed, b: Feed, count: Rvalue) -> list[list[Var]]:
    """The sums of a thread over ``count`` steps, by row and column of its own."""
    zero = Const(f32(1), 0.0)
    sums = [[k.variable("sum", zero) for _ in range(tile.side)] for _ in range(tile.side)]
    place = tile.lanes().emit(k, k.thread)
    with nullcontext() if isinstance(count, Const) and count.value else k.when(lt(0, count)):  # there may be nothing to read
        for side in (a, b):
            side.load(0)
    for side in (a, b):
        side.store(k.slot(side.shared, 0))
    k.barrier()
    with k.loop("step", 0, count) as step:
        ahead = k.let("ahead", step + 1)
        with k.when(lt(ahead, count)):
            for side in (a, b):
                side.load(ahead)
        with k.loop("k", 0, tile.depth) as at:
            parts = []
            for side, axis, extent in ((a, "m", tile.rows), (b, "n", tile.columns)):
                slot = k.slot(side.shared, step % 2)
                packets = [
                    k.load_packet(axis, slot, side.layout.emit(k, at, place[axis] + more), PACKET)
                    for more in tile.packets(extent)
                ]
                parts.append([value for packet in packets for value in packet])
            for x, row in zip(parts[0], sums, strict=True):
                for y, total in zip(parts[1], row, strict=True):
                    k.assign(total, Fma(x, y, total))
        with k.when(lt(ahead, count)):
            for side in (a, b):
                side.store(k.slot(side.shared, ahead % 2))
        k.barrier()
    return sums
