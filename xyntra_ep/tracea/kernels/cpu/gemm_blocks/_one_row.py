"""One row times a panel of packed integers: a decoder's step, which memory should bound.

Three instructions for a vector of weights. Of 4 bits: one clears all but an integer's own bits where they are in their word, so
that it counts n 16^p, one makes that a float, one multiplies it by x 16^-p and adds. All of this is exact but the last step, and
nothing is shifted.

    sum_k x (n - zero) scale = sum over blocks of scale (sum x n - zero sum x)

The scaled x and the sums of x are made for a chunk of k at a time, into arrays that stay in L1. Sums of what is not scaled yet,
and the difference of two, may be infinite or NaN where the result is not: not where these are to show as in ONNX Runtime.
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Matrix
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import GROUP, PackedWeights, Panel
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Reduce, Rvalue, Splat, Var, f32, index

PHASES = 2  # sets of sums, taken in turn: three vectors would wait for their latency
CHUNK = 1024  # steps of k: whole blocks of every size


class OneRow:
    """Code in ``b`` for the row at ``a``; ``fetch``: ask for what is used next."""

    def __init__(self, b: BlockBuilder, weights: PackedWeights, a: Matrix, panel: Panel, fetch: bool) -> None:
        self.b = b
        self.weights = weights
        self.a = a
        self.panel = panel
        self.fetch = fetch
        self.lanes = weights.tile.lanes
        self.total = [self._zero(self.lanes) for _ in range(weights.tile.vectors)]
        steps = min(CHUNK, weights.blocks * weights.op.block)
        self.x = b.array("x", DType.F32, steps)
        self.x_sums = b.array("x_sums", DType.F32, steps // weights.op.block) if weights.is_unsigned or panel.zeros else None

    def sums(self) -> list[list[Rvalue]]:
        """By vector of the panel."""
        b, depth = self.b, self.weights.depth
        powers = self._powers()
        whole, rest = divmod(depth, CHUNK)
        if whole:
            with b.loop("chunk", 0, whole) as chunk:
                self._chunk(chunk, CHUNK, powers)
        if rest:
            self._chunk(index(whole), rest, powers)
        return [list(self.total)]

    def _zero(self, lanes: int) -> Var:
        return self.b.variable("c", Const(f32(lanes), 0.0))

    # -- x

    @property
    def _width(self) -> int:
        """Lanes of the vectors in which x is prepared: of whole groups, or of parts of one."""
        return self.lanes if self.a.step == index(1) else 1

    def _powers(self) -> Var | None:
        """What the steps of a group multiply x by, one after the other."""
        if not self.weights.is_unsigned:
            return None
        powers = self.b.array("powers", DType.F32, max(GROUP, self._width))
        for i in range(max(GROUP, self._width)):
            self.b.store(powers, i, Const(f32(1), 1.0 / self.weights.power(i % GROUP)))
        return powers

    def _chunk(self, chunk: Rvalue, steps: int, powers: Var | None) -> None:
        b, block = self.b, self.weights.op.block
        blocks = -(-steps // block)
        start = b.let("start", chunk * CHUNK)
        with b.loop("block", 0, blocks) as number:
            self._prepare(start, number, steps, powers)
        first = b.let("first_block", chunk * (CHUNK // block))
        with b.loop("block", 0, blocks) as number:
            self._block(first + number, number)

    def _prepare(self, start: Rvalue, number: Rvalue, steps: int, powers: Var | None) -> None:
        """x of a block, 0 behind the last step of k."""
        b, width, block = self.b, self._width, self.weights.op.block
        at = b.let("at", number * block)
        added = self._zero(width)
        turn = max(GROUP, width)
        with b.loop("i", 0, block, turn) as i:
            for part in range(0, turn, width):
                place = b.let("place", at + i + part)
                left = None if steps % block == 0 else b.let("left", steps - place)
                x = b.let("x", self._load(start + place, left))
                b.assign(added, added + x)
                b.store(self.x, place, x if powers is None else x * b.load(powers, part, width))
        if self.x_sums is not None:
            b.store(self.x_sums, number, Reduce("add", added) if width > 1 else added)

    def _load(self, k: Rvalue, left: Rvalue | None) -> Rvalue:
        return self.b.load(self.a.pointer, k * self.a.step, self._width, left)

    # -- products

    def _block(self, number: Rvalue, of_chunk: Rvalue) -> None:
        """``number``: of the panel's blocks; ``of_chunk``: of those that x is prepared for."""
        b, weights = self.b, self.weights
        factors = weights.factors(b, self.panel.scales, self.panel.zeros, number)
        sums = [[self._zero(self.lanes) for _ in self.total] for _ in range(PHASES)]
        first = b.let("first", number * weights.groups_of_block)
        with b.loop("group", 0, weights.groups_of_block) as i:
            place = b.let("place", first + i)
            x_at = b.let("x_at", (of_chunk * weights.groups_of_block + i) * GROUP)
            for step, integers in enumerate(weights.in_place(b, self.panel.integers, place)):
                x = b.let("x", self._spread(b.load(self.x, x_at + step, 1)))
                for c, q in zip(sums[step % PHASES], integers, strict=True):
                    b.assign(c, Fma(x, q, c))
            if self.fetch:
                weights.fetch(b, self.panel.integers, place)
        less = None if self.x_sums is None else b.let("less", -b.load(self.x_sums, of_chunk, 1))
        for v, scale in enumerate(factors.scales):
            found = b.let("found", sums[0][v] + sums[1][v])
            if less is not None and weights.is_unsigned:
                found = b.let("found", Fma(self._spread(less), Const(f32(self.lanes), weights.op.middle), found))
            if less is not None and factors.zeros:
                found = b.let("found", Fma(self._spread(less), factors.zeros[v], found))
            b.assign(self.total[v], Fma(found, scale, self.total[v]))

    def _spread(self, element: Rvalue) -> Rvalue:
        return Splat(f32(self.lanes), element) if self.lanes > 1 else element
