"""A block of a fused attention: tiles of k and v stream through shared memory, by an online softmax (`_softmax.py`).

With two slots of shared memory for tiles of k and v, the next tile is copied while one is computed, and threads meet once a tile.
With one, v is copied while the scores of its tile are computed, and the next k while they weigh v: that needs half the memory.

Tiles that a causal mask hides from all of the block's rows are left out. Where it puts a number there, and not minus infinity,
they may still have weight: that is known when all others have been seen, and asked then. Where the mask is added to the scores
they may be anything, as long as nothing is known of q and k: the block then looks for elements that are huge or no numbers, which
takes far less than their products.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from xyntra_ep.tracea.core_ir.dims import ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention, ReduceKind
from xyntra_ep.tracea.kernels.gpu.attention._fetch import Fetch, TileFetcher, packet_of
from xyntra_ep.tracea.kernels.gpu.attention._softmax import LOWEST, OnlineSoftmax, Share
from xyntra_ep.tracea.kernels.gpu.attention._space import blocks_of, bounds_of, causal_of, flops_of
from xyntra_ep.tracea.kernels.gpu.shared.block_reduce import block_reduced
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.loops.reduce import Accumulator
from xyntra_ep.tracea.kernels.shared.sight import Sight, chosen
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileLayout
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Convert,
    Pointer,
    Rvalue,
    Select,
    Var,
    binary,
    f32,
    i64,
    index,
    lt,
    vmin,
)

_APART = 128.0  # scores so far below the maximum have no weight


class Tile(Protocol):
    """``rows`` of q and ``columns`` of k and v at a time; ``grain``: rows in shared memory are whole multiples of so many
    elements, of ``dtype``; ``slots``: tiles of k, and of v, in shared memory at a time, 1 or 2."""

    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def grain(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def slots(self) -> int: ...

    def fetch(self, name: str, packet: int) -> Fetch:
        """Of q, k or v, in packets of so many."""

    def layout(self, name: str, packet: int) -> TileLayout:
        """Free of conflicts for that, and for all that reads it."""


class AttentionStream(ABC):
    """What all blocks do. How products are made is for subclasses to say, and for their ``share`` who has which of them.
    ``name``: of the kernel, behind its type."""

    share: Share

    def __init__(self, op: Attention, tile: Tile, context: BuildContext, name: str, exponential: str) -> None:
        self.op = op
        self._tile = tile
        self.b = b = GpuBuilder(f"xy_attention_{tile.dtype}_{name}", tile.threads)
        self._data = [b.buffer(n, o.dtype) for n, o in zip("qkv", op.inputs, strict=False)]
        out = b.buffer("out", op.output.dtype, writable=True)
        self._causal = causal_of(op, context)
        self._subgroup = gpu_of(context).subgroup
        self.softmax = OnlineSoftmax(b, op, out, tile.rows, tile.columns, exponential)
        self._sight = Sight(b, op, bounds_of(self._causal), tile.columns)
        self._rows, self._columns = self.softmax.rows, self.softmax.columns

    # -- for subclasses

    @abstractmethod
    def begin(self) -> None:
        """Before the first tile: q is under way, and k after it."""

    @abstractmethod
    def products(self) -> list[list[Var]]:
        """q times k, by the thread's rows and columns."""

    @abstractmethod
    def keep(self, weights: Sequence[Sequence[Rvalue]]) -> None:
        """Take the thread's weights: before all threads meet, where there is one slot. It is called in each branch that makes
        them."""

    @abstractmethod
    def sum(self, sums: Sequence[Sequence[Var]]) -> None:
        """Add what the weights of a tile make of v, by the thread's rows and columns of the result."""

    # -- the block

    def call(self, gflops: float) -> KernelCall:
        """The kernel's launch, of which products are made at such a rate."""
        self._emit()
        kernel, params = self.b.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(*self.softmax.buffers, *self._sight.buffers),
            params=params,
            units=blocks_of(self.op, self._tile.rows),
            cost_ns=flops_of(self.op) // max(1, int(gflops)) + LAUNCH_NS,
        )

    def _emit(self) -> None:
        b, tile = self.b, self._tile
        self._batch, self._first = self.softmax.place(b.block)
        begin, end = self.softmax.tiles_in_sight(self._sight, self._batch, self._first)
        hidden = self._hidden(begin, end)
        larger = self._larger(hidden)  # before there is anything else to keep in registers
        shared = {n: b.shared(n, tile.dtype, self.layout(n).elements, 1 if n == "q" else tile.slots) for n in "qkv"}
        self.arrays: dict[str, Pointer] = dict(shared)  # k and v: of the tile that is computed
        q, k, v = (self._fetcher(name, data, shared[name]) for name, data in zip("qkv", self._data, strict=True))
        self.softmax.begin(self.share, self._batch, self._first)
        q.fetch(self._first, index(0))
        b.commit()
        with b.when(lt(begin, end)):
            self._bring(k, v, begin, index(0))
        b.commit()
        self.begin()
        if not hidden:
            self._sweep(k, v, begin, end)
        else:
            self._sweep_all(k, v, (begin, end), hidden, larger)
        b.wait(0)
        self.softmax.store()

    def _sweep_all(
        self,
        k: TileFetcher,
        v: TileFetcher,
        seen: tuple[Rvalue, Rvalue],
        hidden: Sequence[tuple[Rvalue, Rvalue]],
        larger: Rvalue | None,
    ) -> None:
        """The tiles that are ``seen``, and where it turns out that they may weigh, those that are ``hidden``."""
        b = self.b
        begin, end = b.variable("begin", seen[0]), b.variable("end", seen[1])
        weigh = b.variable("weigh", index(0))
        with b.loop("part", 0, 1 + len(hidden)) as part:
            self._sweep(k, v, begin, end)
            with b.when(lt(part, 1)):
                b.assign(weigh, self._hidden_may_weigh(larger))
            with b.when(lt(part, len(hidden))):
                b.assign(begin, chosen(part, [first for first, _ in hidden]))
                b.assign(end, Select(weigh, chosen(part, [last for _, last in hidden]), begin))
                b.wait(0)  # of tiles that were empty, too
                b.barrier()
                with b.when(lt(begin, end)):
                    self._bring(k, v, begin, index(0))
                b.commit()

    def _sweep(self, k: TileFetcher, v: TileFetcher, begin: Rvalue, end: Rvalue) -> None:
        """The tiles of columns from ``begin`` to ``end``; what `_bring` does is under way for the first. They are counted from
        there, so that which slot has which is known whatever the block sees."""
        b, tile = self.b, self._tile
        count = b.let("count", end - begin)
        with b.loop("tile", 0, count) as at:
            b.wait(0)
            b.barrier()
            column = b.let("column", (begin + at) * tile.columns)
            following = b.let("following", at + 1)
            if tile.slots > 1:
                with b.when(lt(following, count)):
                    self._bring(k, v, begin, following)
                b.commit()
                self.arrays |= {"k": k.slot(at), "v": v.slot(at)}
                self._weigh(column)
            else:
                v.fetch(column, at)
                b.commit()
                self._weigh(column)
                b.wait(0)
                b.barrier()
                with b.when(lt(following, count)):
                    self._bring(k, v, begin, following)
                b.commit()
            self.sum(self.softmax.sums)

    def _weigh(self, column: Rvalue) -> None:
        self.softmax.weigh(self.softmax.scores(self.products(), column, self.softmax.scale), self.keep)

    def _bring(self, k: TileFetcher, v: TileFetcher, begin: Rvalue, at: Rvalue) -> None:
        """Tile number ``at`` from ``begin`` on: what is copied of it before it is computed."""
        first = (begin + at) * self._tile.columns
        k.fetch(first, at)
        if self._tile.slots > 1:
            v.fetch(first, at)

    def layout(self, name: str) -> TileLayout:
        """Of q, k or v in shared memory."""
        return self._tile.layout(name, packet_of(self.op.inputs["qkv".index(name)]))

    def _fetcher(self, name: str, data: Var, shared: Var) -> TileFetcher:
        b, operand = self.b, self.op.inputs["qkv".index(name)]
        start = b.pointer("start", data, address(b, operand, self._batch))
        fetch = self._tile.fetch(name, packet_of(operand))
        slots = 1 if name == "q" else self._tile.slots
        return TileFetcher(b, operand, start, fetch, self.layout(name), shared, self._tile.grain, slots)

    def _hidden(self, begin: Rvalue, end: Rvalue) -> list[tuple[Rvalue, Rvalue]]:
        """The tiles before and behind those that the block's rows see; none where they surely have no weight."""
        if self._causal is None or self._causal.hides_surely:
            return []
        bounds, count = self._causal.bounds, self.b.param(ceildiv(self._columns, self._tile.columns))
        return [(end, count)] * bool(bounds.ends) + [(index(0), begin)] * bool(bounds.begins)

    def _hidden_may_weigh(self, larger: Rvalue | None) -> Rvalue:
        """Whether the score of a hidden column is near enough to the maximum of any row of the block, or a row has none, or some
        thread's ``larger`` is not 0."""
        b, causal, yes, no = self.b, self._causal, Const(i64(1), 1), Const(i64(1), 0)
        assert causal is not None
        own, all_ = (Accumulator(b, ReduceKind.MAX, DType.I64, 1) for _ in range(2))
        if causal.masked != -math.inf:
            highest = causal.masked if causal.limit is None else 0.75 * causal.masked
            near = Const(f32(1), max(highest + _APART, LOWEST))
            for top in self.softmax.tops:
                own.update(Select(binary("le", top, near), yes, no))
        if larger is not None:
            own.update(Select(binary("lt", 0.0, larger), yes, no))
        return lt(0, Convert(INDEX, block_reduced(b, own, all_, self._subgroup, agreed=True).result(DType.I64)))

    def _larger(self, hidden: Sequence[tuple[Rvalue, Rvalue]]) -> Rvalue | None:
        """Where a mask is added: 1 where the thread finds an element that is not within the mask's limit, else 0, in the block's
        rows of q and in those of k in tiles that are ``hidden``."""
        if self._causal is None or self._causal.limit is None:
            return None
        b, limit = self.b, self._causal.limit
        found = b.variable("larger", Const(f32(1), 0.0))
        last = b.let("last", vmin(self._first + self._tile.rows, b.param(self._rows)))
        columns, each = b.param(self._columns), self._tile.columns
        keys = [(1, b.let("from", begin * each), b.let("to", vmin(end * each, columns))) for begin, end in hidden]
        for i, begin, end in ((0, self._first, last), *keys):
            operand = self.op.inputs[i]
            depth, packet = operand.shape[3], packet_of(operand)
            assert isinstance(depth, int)
            packets = depth // packet
            start = b.pointer("start", self._data[i], address(b, operand, self._batch))
            with b.loop("at", b.thread, (end - begin) * packets, self._tile.threads) as at:
                row, column = begin + at // packets, at % packets * packet
                place = b.let("from", row * b.param(operand.strides[2]) + column * b.param(operand.strides[3]))
                for x in b.load_packet("x", start, place, packet):
                    within = binary("and", binary("le", -limit, x), binary("le", x, limit))
                    b.assign(found, Select(within, found, Const(f32(1), 1.0)))
        return found
