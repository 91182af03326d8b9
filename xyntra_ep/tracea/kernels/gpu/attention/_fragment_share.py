"""What a thread has of scores and results that matrix units leave behind, and the weights it makes of them.

Of every 16 rows it has two, 8 apart, and two neighbours of every 8 columns: of 16 x 8 scores as of a part of the result. Weights
go into the next product as 16-bit floats, two in a register (`weight_pair`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.attention._fetch import whole
from xyntra_ep.tracea.kernels.gpu.attention._softmax import Share
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import SIDE
from xyntra_ep.tracea.semantic_ir.math_library import math_function
from xyntra_ep.tracea.semantic_ir.nodes import (
    Bitcast,
    CallValue,
    Const,
    Fma,
    Function,
    Rvalue,
    Unary,
    Var,
    binary,
    f32,
    i32,
    lt,
    vmax,
)

_LOG2E = 1.4426950408889634
_FAR = 2.0**20  # of what is rounded: below it, that takes away less than a sixteenth, which the exponential makes a factor


class FragmentShare(Share):
    """The thread's first row (``m``) and pair of columns (``n``) of what a product gives; tiles of so many ``columns``, results
    of ``width``, which are whole multiples of ``grain`` in registers."""

    exponential = "exp2_weight_bf16"

    def __init__(self, b: GpuBuilder, m: Rvalue, n: Rvalue, columns: int, width: int, grain: int) -> None:
        super().__init__(b)
        self._m, self._n, self._columns, self._width, self._grain = m, n, columns, width, grain

    def rows(self) -> list[Rvalue]:
        return [self._m + more for more in (0, 8)]

    def columns(self) -> list[Rvalue]:
        return [self._n + (8 * j + i) for j in range(self._columns // 8) for i in range(2)]

    def results(self) -> list[Rvalue]:
        return [self._n + 8 * j for j in range(whole(self._width, self._grain) // SIDE)]

    def neighbours(self) -> int:
        return 2

    def result_columns(self) -> int:
        return self._grain

    def exp(self, x: Rvalue, factor: float) -> Rvalue:
        """To a twentieth of what rounding to bfloat16 takes away, a fifth of float16's and tf32's."""
        return self._exp2(x * (factor * _LOG2E))

    def larger(self, x: Rvalue, y: Rvalue) -> Rvalue:
        return CallValue(self.b.function(larger_number()), (x, y))

    def weigh(
        self,
        scores: Sequence[Sequence[Rvalue]],
        tops: Sequence[Rvalue],
        factor: float,
        then: Callable[[list[list[Rvalue]]], None],
    ) -> None:
        """In one multiply-add each. What rounding ``tops`` * log2(e) takes away it takes from all weights of the row alike.

        All that follows from weights is in the same branch: while some are made, others are summed."""
        b, factor2 = self.b, factor * _LOG2E
        sizes: list[Rvalue] = [Unary("abs", top) for top in tops]
        with b.when(lt(reduce(vmax, sizes), Const(f32(1), _FAR / factor2))):
            below = [b.let("below", top * -factor2) for top in tops]
            then(
                [
                    [b.let("weight", self._exp2(Fma(score, Const(f32(1), factor2), less))) for score in of]
                    for of, less in zip(scores, below, strict=True)
                ]
            )
        with b.otherwise():
            super().weigh(scores, tops, factor, then)

    def new_pairs(self) -> list[Var]:
        """For the weights of a tile, in 16 bits."""
        return [self.b.variable("pair", Const(i32(1), 0)) for _ in range(self._columns // 4)]

    def pack(self, pairs: Sequence[Var], weights: Sequence[Sequence[Rvalue]], dtype: DType) -> None:
        """As a product takes its left matrix: of every 16 columns (rows 0 to 7, columns 0 to 7), (8 to 15, 0 to 7), (0 to 7, 8 to
        15), (8 to 15, 8 to 15)."""
        pair = self.b.function(weight_pair(dtype))
        for i, both in enumerate(pairs):
            at = i // 2 * 2
            self.b.assign(both, CallValue(pair, tuple(weights[i % 2][at : at + 2])))

    def _exp2(self, x: Rvalue) -> Rvalue:
        return CallValue(math_function(self.exponential, 1), (x,))

    def agreed(self, values: Sequence[Rvalue], combine: Callable[[Rvalue, Rvalue], Rvalue]) -> list[Rvalue]:
        """Four threads have a row."""
        b = self.b
        for mask in (1, 2):
            values = [b.let("both", combine(b.let("other", b.subgroup_xor(value, mask)), value)) for value in values]
        return list(values)


@cache
def larger_number() -> Function:
    """Of two values, the second one a number."""
    f = FunctionBuilder("xm_larger_number", f32(1), inline=True)
    x, y = (f.argument(name, f32(1)) for name in "xy")
    f.result(vmax(x, y))
    return f.finish()


@cache
def weight_pair(dtype: DType) -> Function:
    """Two weights, 0 to 1, rounded to the nearest 16-bit float, one above the other. A NaN may get lost: the sum of weights has
    it."""
    f = FunctionBuilder(f"xm_weight_pair_{dtype}", i32(1), inline=True)
    low, high = (f.argument(name, f32(1)) for name in ("low", "high"))
    if dtype is DType.BF16:
        below, above = (binary("add", Bitcast(i32(1), w), 0x8000) for w in (low, high))
        f.result(binary("or", binary("and", binary("shr", below, 16), 0xFFFF), binary("and", above, -0x10000)))
        return f.finish()
    # At a 2^112th of it an f32 has the exponent of a float16, below 2^-14 as its subnormals.
    below, above = (binary("add", Bitcast(i32(1), w * 2.0**-112), 0x1000) for w in (low, high))
    f.result(binary("or", binary("and", binary("shr", below, 13), 0xFFFF), binary("shl", binary("shr", above, 13), 16)))
    return f.finish()
