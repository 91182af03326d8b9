"""Products of a fused attention by matrix units: a warp for 16 rows, fragments of q and of the result in its registers.

Warps of 32 rows, which read half as much of k and v from shared memory, were no faster on an H200 (d = 64: 988 us for 950 us of
16 rows, 2048 tokens): what is waited for are a warp's own results.

Scores come out of a product as the thread's part of a 16 x 8 matrix, and go into the next as its part of a 16 x 16 one, which are
the same places: weights are rounded and paired where they are, and never leave the registers. In a product of tf32 a thread has
columns t and t + 4 of a matrix of eight where its scores are of 2 t and the next: the rows of v are exchanged in the same way, as
the order of a sum is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu.attention._fetch import Fetch, padded, whole
from xyntra_ep.tracea.kernels.gpu.attention._fragment_share import FragmentShare
from xyntra_ep.tracea.kernels.gpu.attention._stream import AttentionStream
from xyntra_ep.tracea.kernels.gpu.shared.tf32 import as_tf32
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.gpu.banks import BANKS
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import ROW_BYTES, SIDE, depth_of
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout, choose
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Offset,
    Rvalue,
    Var,
    f32,
    index,
)

WARP_ROWS = 16
_HELD = 32  # registers for q at most
_OTHERS = 64  # registers for what is neither q, nor scores, nor results
_EXP = "exp2_weight_bf16"
_LOG2E = 1.4426950408889634
_FAR = 2.0**126  # below it, log2(e) times a score is finite


@dataclass(frozen=True, slots=True)
class FragmentTile:
    """A configuration, of heads of ``depth`` (q and k) and ``width`` (v) elements, which are ``dtype`` when
    they are multiplied, f32 as tf32. ``slots``: tiles of k, and of v, in shared memory at a time."""

    rows: int
    columns: int
    depth: int
    width: int
    dtype: DType
    slots: int

    @property
    def warps(self) -> int:
        return self.rows // WARP_ROWS

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def registers(self) -> int:
        """About what a thread needs: fragments of q, scores, results, and others."""
        sums = (self.columns + self.width) // 2
        return (self._q_registers if self.holds_q else 0) + sums + _OTHERS

    @property
    def _q_registers(self) -> int:
        return self.depth * self.dtype.bytes // 8

    @property
    def holds_q(self) -> bool:
        """Else its fragments are read from shared memory for every tile of k."""
        return self._q_registers <= _HELD

    @property
    def grain(self) -> int:
        """Of a head, in one product of fragments."""
        return depth_of(self.dtype)

    @property
    def shared_bytes(self) -> int:
        q, k, v = (self.dtype.bytes * fetch.rows * fetch.columns for fetch in (self.fetch(name, 1) for name in "qkv"))
        return q + self.slots * (k + v)

    def fetch(self, name: str, packet: int) -> Fetch:
        """Of q, k or v."""
        if name == "v":
            # Every second row of f32 is read at once: shorter ones would be in the same banks.
            return Fetch(self.columns, padded(self.width, BANKS if self.dtype is DType.F32 else self.grain), self.threads, packet)
        return Fetch(self.rows if name == "q" else self.columns, padded(self.depth, self.grain), self.threads, packet)

    def fragments(self, name: str) -> LaneMap:
        """The row of 16 bytes that a thread points to, in the tile's rows (r) and columns (c): for q the second of the four
        matrices is below the first, for k beside it; v, whose rows go into the sum, is turned round while it is loaded. Of f32,
        which cannot be, the thread's own element, that of an even row."""
        warps = Digit("r", self.warps, step=WARP_ROWS) if name == "q" else Digit("warp", self.warps)
        if name == "v" and self.dtype is DType.F32:
            return LaneMap((Digit("r", 4, step=2), Digit("c", SIDE), warps))
        axes = {"r": Digit("r", 2, step=SIDE), "c": Digit("c", 2, step=ROW_BYTES // self.dtype.bytes)}
        near, far = "cr" if name == "k" else "rc"
        return LaneMap((Digit("r", SIDE), axes[near], axes[far], warps))

    def result(self) -> LaneMap:
        """The thread's first row (m) and pair of columns (n) of what a product gives."""
        return LaneMap((Digit("n", 4, step=2), Digit("m", 8), Digit("m", self.warps, step=WARP_ROWS)))

    def accesses(self, name: str, packet: int) -> list[TileAccess]:
        """All that happens to a tile that is copied in packets of so many elements."""
        read = 1 if name == "v" and self.dtype is DType.F32 else ROW_BYTES // self.dtype.bytes
        return [self.fetch(name, packet).access(), TileAccess(self.fragments(name), "r", "c", read)]

    def layout(self, name: str, packet: int) -> TileLayout:
        """Free of conflicts for copying and for fragments."""
        return _layout(self, name, packet)


@cache
def _layout(tile: FragmentTile, name: str, packet: int) -> TileLayout:
    fetch = tile.fetch(name, packet)
    found = choose(fetch.rows, fetch.columns, tile.dtype.bytes, tile.accesses(name, packet))
    assert found is not None, f"{name} of {tile} has conflicts"
    return found


class FragmentCode(AttentionStream):
    """See the module's docstring."""

    def __init__(self, op: Attention, tile: FragmentTile, context: BuildContext) -> None:
        super().__init__(op, tile, context, f"fragments_{tile.rows}x{tile.columns}", FragmentShare.exponential)
        self.tile = tile
        at = tile.result().emit(self.b, self.b.thread)
        self.share: FragmentShare = FragmentShare(self.b, at["m"], at["n"], tile.columns, tile.width, tile.grain)
        self._places = {name: tile.fragments(name).emit(self.b, self.b.thread) for name in "qkv"}
        self._q: list[list[Rvalue]] = []
        self._lanes: dict[tuple[str, int], Rvalue] = {}
        self._weights: Sequence[Var] = ()  # of a tile: pairs in 16 bits, else one after the other by rows

    def _fragments(self, name: str, row: int, column: int) -> list[Rvalue]:
        b, layout = self.b, self.layout(name)
        assert row % layout.period == 0, "a thread's place is found once for all rows"
        from_ = Offset(self.arrays[name], self._lanes[name, column])
        loaded = b.load_fragments(name, from_, index(row * layout.columns), transposed=name == "v")
        return [as_tf32(b, part) for part in loaded] if self.tile.dtype is DType.F32 else loaded

    def _lane(self, name: str, column: int) -> Rvalue:
        """Where the thread's fragments of columns from there on begin."""
        place = self._places[name]
        return self.b.let("lane", self.layout(name).emit(self.b, place["r"], place["c"] + column))

    @property
    def _steps(self) -> range:
        """Through a head."""
        return range(0, whole(self.tile.depth, self.tile.grain), self.tile.grain)

    def begin(self) -> None:
        """All of the warp's rows of q."""
        b = self.b
        columns = {"q": self._steps, "k": self._steps, "v": range(0, SIDE * len(self.share.results()), 2 * SIDE)}
        if self.tile.dtype is DType.F32:  # v's are read one by one
            del columns["v"]
        self._lanes = {(name, c): self._lane(name, c) for name, of in columns.items() for c in of}
        b.wait(1)
        b.barrier()
        if self.tile.holds_q:
            self._q = [self._fragments("q", 0, d) for d in self._steps]

    def products(self) -> list[list[Var]]:
        b, blocks = self.b, self.tile.columns // 8
        dots = [[b.variable("dot", Const(f32(1), 0.0)) for _ in range(4)] for _ in range(blocks)]
        for step, d in enumerate(self._steps):
            q = self._q[step] if self.tile.holds_q else self._fragments("q", 0, d)
            for j in range(0, blocks, 2):
                k = self._fragments("k", 8 * j, d)
                for i in range(2):
                    b.fragment_dot(dots[j + i], q, k[2 * i : 2 * i + 2], self.tile.dtype)
        tf32 = self.tile.dtype is DType.F32
        self._weights = [b.variable("weight", Const(f32(1), 0.0)) for _ in range(4 * blocks)] if tf32 else self.share.new_pairs()
        return [[dots[j][2 * row + i] for j in range(blocks) for i in range(2)] for row in range(2)]

    def keep(self, weights: Sequence[Sequence[Rvalue]]) -> None:
        if self.tile.dtype is DType.F32:
            for kept, weight in zip(self._weights, chain(*weights), strict=True):
                self.b.assign(kept, weight)
        else:
            self.share.pack(self._weights, weights, self.tile.dtype)

    def sum(self, sums: Sequence[Sequence[Var]]) -> None:
        if self.tile.dtype is DType.F32:
            self._sum_tf32(sums)
        else:
            self._sum_pairs(sums)

    def _sum_pairs(self, sums: Sequence[Sequence[Var]]) -> None:
        b, step_columns = self.b, self.tile.grain
        for step in range(self.tile.columns // step_columns):
            p = self._weights[4 * step : 4 * step + 4]
            for j in range(0, len(self.share.results()), 2):
                v = self._fragments("v", step_columns * step, 8 * j)
                for i in range(j, j + 2):
                    b.fragment_dot(_of_block(sums, i), p, v[2 * (i - j) : 2 * (i - j) + 2], self.tile.dtype)

    def _sum_tf32(self, sums: Sequence[Sequence[Var]]) -> None:
        b, array, layout, place = self.b, self.arrays["v"], self.layout("v"), self._places["v"]
        for step in range(self.tile.columns // self.tile.grain):
            p = [as_tf32(b, self._weights[row * len(self._weights) // 2 + 2 * step + i]) for i in range(2) for row in range(2)]
            for j in range(len(self.share.results())):
                rows = [place["r"] + (self.tile.grain * step + i) for i in range(2)]
                v = [as_tf32(b, b.load(array, layout.emit(b, row, place["c"] + SIDE * j))) for row in rows]
                b.fragment_dot(_of_block(sums, j), p, v, self.tile.dtype)


def _of_block(sums: Sequence[Sequence[Var]], block: int) -> list[Var]:
    """The thread's part of 8 columns of the result."""
    return [sums[row][2 * block + n] for row in range(2) for n in range(2)]
