"""How a part of a panel is kept for many rows, and multiplied by them: as floats, or as pairs of bfloat16.

The integers are widened and scaled once, into a scratch that stays in L2; what follows is the tile of f32 or bf16 weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._left import left_rows, rows_in_place
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Matrix, Tile, Words, accumulate
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import GROUP, PackedWeights, Panel, Widening
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import PackPairs
from xyntra_ep.tracea.semantic_ir.nodes import Offset, Pointer, PointerType, Rvalue, Var, index

Sums = list[list[Rvalue]]  # by row and vector


class Panels(ABC):
    """``dtype``: of the scratch. ``arguments``: what a tile is given of the rows and the weights, beside the scratch. ``calls``:
    what is done to the rows before, and ``buffers`` what that fills, in the order in which the kernel has them behind a."""

    tile: Tile
    dtype: DType
    arguments: Sequence[tuple[str, PointerType]]
    calls: Sequence[KernelCall]
    buffers: Sequence[ValueBuffer | TempBuffer]

    @abstractmethod
    def widen(self, panel: Panel, scratch: Var, first: Rvalue, blocks: int) -> None:
        """``blocks`` of a panel from number ``first`` on, into the scratch."""

    @abstractmethod
    def data(self, panel: Panel, batch: Sequence[Rvalue], row: Rvalue, first: Rvalue) -> list[Rvalue]:
        """The ``arguments`` for rows from ``row`` on and steps from ``first`` on, the first one of a block."""

    @abstractmethod
    def sums(
        self, block: FunctionBuilder, tile: Tile, data: Sequence[Var], scratch: Var, depth: int, start: Matrix | None
    ) -> Sums:
        """Those of ``depth`` steps, and of what is at ``start``."""


class FloatPanels(Panels):
    """As floats, or as ``words``, pairs of bfloat16."""

    def __init__(
        self, k: KernelBuilder, shape: GemmShape, weights: PackedWeights, a: Pointer, words: Words | None, context: BuildContext
    ):
        self._k, self._shape, self._weights = k, shape, weights
        self.tile = replace(weights.tile, words=words)
        self.dtype = DType.F32 if words is None else words.right
        self._words = words
        self._left, self._rows = a, rows_in_place(shape)
        self.calls, self.buffers = [], []
        if words is not None:
            self._rows, self.calls = left_rows(shape, -(-weights.depth // words.depth) * words.depth, context)
            self._left = k.buffer("rows", words.left)
            self.buffers = [self._rows.buffer]
        self.arguments = [("a", PointerType(shape.op.inputs[0].dtype if words is None else words.left))]

    def widen(self, panel: Panel, scratch: Var, first: Rvalue, blocks: int) -> None:
        k, weights, tile = self._k, self._weights, self.tile
        with k.loop("block", 0, blocks) as block:
            number = k.let("number", first + block)
            widening = Widening.of(k, weights.factors(k, panel.scales, panel.zeros, number))
            with k.loop("group", 0, weights.groups_of_block) as i:
                to = k.let("to", (block * weights.groups_of_block + i) * (GROUP * tile.columns))
                steps = weights.steps(k, panel.integers, number * weights.groups_of_block + i)
                for pair in range(GROUP // 2):
                    low, high = (widening.weights(k, next(steps)) for _ in range(2))
                    at = to + 2 * pair * tile.columns
                    for v, (w, w_next) in enumerate(zip(low, high, strict=True)):
                        if self._words is not None:
                            k.store_words(scratch, at + 2 * v * tile.lanes, PackPairs(w, w_next))
                        else:
                            k.store(scratch, at + v * tile.lanes, w)
                            k.store(scratch, at + (tile.columns + v * tile.lanes), w_next)

    def data(self, panel: Panel, batch: Sequence[Rvalue], row: Rvalue, first: Rvalue) -> list[Rvalue]:
        k = self._k
        step = index(1) if self._words is not None else k.param(self._shape.a_k)
        return [Offset(self._left, self._rows.start(k, batch, row) + first * step)]

    def sums(
        self, block: FunctionBuilder, tile: Tile, data: Sequence[Var], scratch: Var, depth: int, start: Matrix | None
    ) -> Sums:
        k, [a] = self._k, data
        step = k.param(self._shape.a_k) if self._words is None else index(tile.depth)
        rows = Matrix(pointer=a, row=k.param(self._rows.row), step=step)
        panel = Matrix(pointer=scratch, row=index(tile.depth * tile.columns), step=index(1))
        return accumulate(block, tile, rows, panel, index(-(-depth // tile.depth)), start=start)
