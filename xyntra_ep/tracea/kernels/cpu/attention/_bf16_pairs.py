"""The products of attention in bfloat16 by pairs in vector lanes: register tiles of 12 rows and two panels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.attention._bf16_pack import LANES, depth_of, padded, width_of
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFamily, block_sizes
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import PairDot
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Offset,
    Pointer,
    PointerType,
    Rvalue,
    Type,
    Var,
    f32,
    index,
    splat,
)

ROWS = 12
_UNROLL = 4  # pairs in one iteration of the loop


class PairProducts:
    def __init__(self, kernel: KernelBuilder, shape: AttentionShape) -> None:
        self.k = kernel
        self.shape = shape
        depth, stride, width = depth_of(shape), shape.score_stride, width_of(shape)
        self._panel = kernel.param(padded(shape.columns) * LANES)
        self._scores = self._family("scores", 2, depth, stride, running=False)
        wide = [min(2, (width - e) // LANES) for e in range(0, width, 2 * LANES)]
        self._sums = {n: self._family(f"sums_{n}", n, stride, width, running=True) for n in dict.fromkeys(wide)}
        self._strips = list(zip(range(0, width, 2 * LANES), wide, strict=True))

    @contextmanager
    def around(self) -> Iterator[None]:
        yield

    def scores(self, rows: Rvalue, query: Var, keys: Pointer, columns: Rvalue, scores: Var) -> None:
        """See `TileProducts`."""
        depth = depth_of(self.shape)
        with self.k.loop("t", 0, columns, 2 * LANES) as t:
            args = [query, Offset(keys, t * depth), index(LANES * depth), index(depth // 2), Offset(scores, t)]
            self._scores.call(rows, args)

    def sums(self, rows: Rvalue, weights: Var, values: Pointer, columns: Rvalue, first: Rvalue, sums: Var) -> None:
        for e, wide in self._strips:
            panel = Offset(values, self._panel * (e // LANES))
            self._sums[wide].call(rows, [weights, panel, self._panel, columns // 2, Offset(sums, index(e)), first])

    def _family(self, stem: str, wide: int, left: int, out: int, *, running: bool) -> TileFamily:
        """out (+)= left . right; rows of the left factor and of the result are ``left`` and ``out`` elements apart."""

        def body(b: FunctionBuilder, rows: int, args: list[Var]) -> None:
            factor, panel, next_panel, pairs, result, *first = args
            sums = [[b.variable("c", Const(f32(LANES), 0.0)) for _ in range(wide)] for _ in range(rows)]
            for flag in first:
                with b.when(_is_zero(flag)):
                    for i, row in enumerate(sums):
                        for j, c in enumerate(row):
                            b.assign(c, b.load(result, i * out + j * LANES, LANES))
            with b.loop("k", 0, pairs, _UNROLL) as k:
                for u in range(_UNROLL):
                    right = [b.let("w", b.load_words(panel, next_panel * j + (k + u) * (2 * LANES), LANES)) for j in range(wide)]
                    for i, row in enumerate(sums):
                        x = b.let("x", splat(b.let("p", b.load_words(factor, i * left + (k + u) * 2)), LANES))
                        for c, w in zip(row, right, strict=True):
                            b.assign(c, PairDot(x, w, c))
            for i, row in enumerate(sums):
                for j, c in enumerate(row):
                    b.store(result, i * out + j * LANES, c)

        arguments: list[tuple[str, Type | PointerType]] = [
            ("factor", PointerType(DType.BF16)),
            ("panel", PointerType(DType.BF16)),
            ("next_panel", INDEX),
            ("pairs", INDEX),
            ("result", PointerType(DType.F32, writable=True)),
        ]
        if running:
            arguments.append(("first", INDEX))
        return TileFamily(self.k, stem, block_sizes(self.shape.rows, ROWS), arguments, body)


def _is_zero(flag: Rvalue) -> Rvalue:
    return Const(INDEX, 1) - flag
