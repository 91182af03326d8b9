"""LowRankGemm: a product of matrices and one of little depth in the same sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops.core_op import unlike
from xyntra_ep.tracea.core_ir.ops.gemm import Gemm
from xyntra_ep.tracea.core_ir.ops.memory import Memory
from xyntra_ep.tracea.core_ir.ops.product import Product


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRankGemm(Gemm):
    """out[..., m, n] = epilogue(acc = sum_k a[..., m, k] * b[..., k, n] + sum_j left[..., m, j] * right[..., j, n]).

    ``inputs``: a, b, left, right, all with the full batch shape of ``out``, then what the epilogue reads. With a low-rank factor
    before it, x A, this is x (W + A B): the rank is the extent of j. The products are in F32.
    """

    @property
    def reads_directly(self) -> int:
        return 4

    @property
    def rank(self) -> Size:
        """The depth of the second product."""
        return self.inputs[2].shape[-1]

    def problems(self) -> Iterator[str]:
        yield from Gemm.problems(self)
        left, right = self.inputs[2].shape, self.inputs[3].shape
        yield from unlike("left", left[:-1], self.domain[:-1])
        yield from unlike("right", right, (*self.domain[:-2], left[-1], self.domain[-1]))
        if self.product is not Product.F32:
            yield f"a low-rank product in {self.product}"

    def interpret(self, memory: Memory) -> None:
        a, b, left, right = (memory.read(operand) for operand in self.inputs[:4])
        self.finish(memory, np.matmul(a, b) + np.matmul(left, right))

    def flops(self) -> Size:
        return Gemm.flops(self) + 2 * product(self.domain) * self.rank

    def tuned_by(self) -> tuple[Any, ...]:
        return ("low-rank", self.rank)
