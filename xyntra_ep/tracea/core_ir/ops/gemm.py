"""Gemm: products of matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops.core_op import unlike
from xyntra_ep.tracea.core_ir.ops.memory import Memory
from xyntra_ep.tracea.core_ir.ops.product import EpilogueOp, Product, as_int8, rounded, unlike_product, wrapped
from xyntra_ep.tracea.core_ir.zeros import Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm(EpilogueOp):
    """out[..., m, n] = epilogue(acc = sum_k a[..., m, k] * b[..., k, n]).

    ``inputs[0]`` is a, ``inputs[1]`` is b, both with the full batch shape of ``out`` (stride 0 where broadcast); further inputs
    feed the epilogue, which is over the domain of ``out`` (axes: batch..., m, n) and reads acc(0), an integer where a and b are.
    ``filled``: of b where it has many zeros, an estimate; a product by 0 may then be left out, whatever it multiplies.
    """

    filled: Filled = ()

    def problems(self) -> Iterator[str]:
        a, b = self.inputs[0].shape, self.inputs[1].shape
        yield from unlike("a", a[:-1], self.domain[:-1])
        yield from unlike_product(self.product, self.inputs)
        yield from unlike("b", (*b[:-2], b[-2], b[-1]), (*self.domain[:-2], a[-1], self.domain[-1]))

    def interpret(self, memory: Memory) -> None:
        a, b = memory.read(self.inputs[0]), memory.read(self.inputs[1])
        if self.product is Product.I32:
            self.finish(memory, wrapped(np.matmul(a.astype(np.float64), b.astype(np.float64))))
            return
        if self.product is Product.INT8W:
            b = as_int8(b)
        else:
            a, b = rounded(a, self.product), rounded(b, self.product)
        self.finish(memory, np.matmul(a, b))

    def flops(self) -> Size:
        return 2 * product(self.domain) * self.inputs[0].shape[-1]

    def tuned_by(self) -> tuple[Any, ...]:
        return ("filled", *self.filled) if self.filled else ()

    def images(self) -> Size | None:
        return self.domain[0] if len(self.domain) > 2 else None
