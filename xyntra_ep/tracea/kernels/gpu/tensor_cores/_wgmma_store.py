"""Results of products by warpgroups, from registers to memory.

A thread has two neighbours of a row in every 8 columns. Stored so, a warp would write 8 rows in pieces of a few bytes at a time.
Threads of a row exchange what they have first: of every 16 or 32 columns each gets neighbours for a packet of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from xyntra_ep.tracea.kernels.gpu.shared.packet_end import PacketEnd
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import End
from xyntra_ep.tracea.kernels.gpu.tensor_cores._wgmma_tiles import WarpgroupTile
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.semantic_ir.gpu.nodes import PACKET_BYTES
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import ROWS, WARPGROUP
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Select, Var, lt

_PAIR = 2  # neighbours that a thread has
_CHUNK = 8  # columns of which it has them


class Store:
    """``shape`` in tiles of ``tile``, by the threads of a warpgroup."""

    def __init__(self, k: WarpgroupBuilder, shape: GemmShape, tile: WarpgroupTile) -> None:
        self._k, self._shape, self._tile = k, shape, tile
        self._lane = k.let("lane", k.thread % 32)
        self._row = k.let("row", k.thread % WARPGROUP // 32 * 16 + self._lane // 4)  # of the first sum, in 64

    def put(self, end: End, at: Sequence[Rvalue], sums: Sequence[Sequence[Var]]) -> None:
        """Sums of every 64 rows, as a product leaves them, by ``end``. ``at``: batch, row and column of the first one."""
        k, shape, tile = self._k, self._shape, self._tile
        *batch, row, column = at
        stored = self._end(end)
        whole_rows, whole_columns = is_multiple(shape.m, tile.group_rows), is_multiple(shape.n, tile.columns)
        chunks = stored.width // _PAIR or 1  # that as many threads share
        mine = self._lane % chunks * _CHUNK + self._lane % 4 // chunks * (chunks * _PAIR)
        left = k.let("left", column + mine)
        odd = [k.let("odd", self._lane // mask % 2) for mask in (1, 2) if mask < chunks]
        for piece, totals in enumerate(sums):
            for half in range(2):
                m = k.let("m", row + (ROWS * piece + 8 * half) + self._row)
                for first in range(0, tile.columns // _CHUNK, chunks):
                    pairs = [totals[4 * i + 2 * half : 4 * i + 2 * half + _PAIR] for i in range(first, first + chunks)]
                    values = self._exchanged(pairs, odd)
                    for n, part in enumerate(values[i : i + stored.width] for i in range(0, len(values), stored.width)):
                        place = k.let("n", left + (_CHUNK * first + n))
                        with (
                            nullcontext() if whole_rows else k.when(lt(m, k.param(shape.m))),
                            nullcontext() if whole_columns else k.when(lt(place, k.param(shape.n))),
                        ):
                            stored.put(stored.here(), [[*batch, m, place + i] for i in range(stored.width)], part)

    def _end(self, end: End) -> PacketEnd:
        """With packets as wide as they can be."""
        output = end.op.output
        packet = min(_CHUNK, max(_PAIR, PACKET_BYTES // output.dtype.bytes))
        while True:
            made = PacketEnd(self._k, end.epilogue, output, end.target, self._shape.n, packet)
            if made.width == packet or packet == _PAIR:
                return made
            packet //= 2

    def _exchanged(self, chunks: Sequence[Sequence[Rvalue]], bits: Sequence[Rvalue]) -> Sequence[Rvalue]:
        """Of chunks of columns that as many threads have pairs of, the neighbours of one: thread t has chunk t % their number, of
        which these are the ``bits``."""
        k = self._k
        for bit, odd in enumerate(bits):
            found = []
            for even_one, odd_one in zip(chunks[::2], chunks[1::2], strict=True):
                given = [k.let("given", Select(odd, a, b)) for a, b in zip(even_one, odd_one, strict=True)]
                taken = [k.let("taken", k.subgroup_xor(value, 1 << bit)) for value in given]
                low = [k.let("low", Select(odd, t, a)) for t, a in zip(taken, even_one, strict=True)]
                high = [k.let("high", Select(odd, b, t)) for t, b in zip(taken, odd_one, strict=True)]
                found.append([*low, *high])
            chunks = found
        return chunks[0]
