"""BlockGemm: products of matrices with weights in a few bits, scaled block by block along k."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops.core_op import unlike
from xyntra_ep.tracea.core_ir.ops.memory import Array, Memory
from xyntra_ep.tracea.core_ir.ops.operand import Operand
from xyntra_ep.tracea.core_ir.ops.product import EpilogueOp, Product, in_int8, rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGemm(EpilogueOp):
    """out[..., m, n] = epilogue(acc = sum_k a[..., m, k] * (q[n, k] - zero[n, g]) * scale[n, g]), with g = k / block.

    ``inputs``: a; the integers q in bytes, [n, blocks * block * bits / 8], the first of a byte in its low bits; the scales
    [n, blocks]; with ``has_zeros`` the zero points, floats [n, blocks] or integers that lie in bytes as those of q do. Without
    them zero is the middle of the range, 2^(bits - 1). The last block may be longer than k. Further inputs feed the epilogue.
    ``allows``: the narrowest that the model allows to multiply in: F32, BF16 (a and the scaled weights) or INT8 (a alone).
    """

    bits: int
    block: int
    has_zeros: bool
    allows: Product = Product.F32

    @property
    def reads_directly(self) -> int:
        return 4 if self.has_zeros else 3

    @property
    def depth(self) -> Size:
        return self.inputs[0].shape[-1]

    @property
    def blocks(self) -> Size:
        """Along k."""
        return ceildiv(self.depth, self.block)

    @property
    def middle(self) -> int:
        """The usual zero point."""
        return 1 << (self.bits - 1)

    @property
    def zeros(self) -> Operand | None:
        return self.inputs[3] if self.has_zeros else None

    def problems(self) -> Iterator[str]:
        a, q, scales = self.inputs[:3]
        n = self.domain[-1]
        yield from unlike("a", a.shape[:-1], self.domain[:-1])
        yield from unlike("q", q.shape, (n, self.blocks * (self.block * self.bits // 8)))
        yield from unlike("the scales", scales.shape, (n, self.blocks))
        if self.zeros is not None:
            per_row = ceildiv(self.blocks * self.bits, 8) if self.zeros.dtype is DType.U8 else self.blocks
            yield from unlike("the zero points", self.zeros.shape, (n, per_row))

    def interpret(self, memory: Memory) -> None:
        a, q, scales = (memory.read(operand) for operand in self.inputs[:3])
        zero: Array = np.array(self.middle)
        if self.zeros is not None:
            zero = memory.read(self.zeros)
            zero = unpacked(zero, self.bits)[:, : scales.shape[1]] if self.zeros.dtype is DType.U8 else zero
            zero = np.repeat(zero, self.block, axis=1)
        weights = (unpacked(q, self.bits) - zero) * np.repeat(scales, self.block, axis=1)
        weights = rounded(weights[:, : a.shape[-1]], self.product)
        a = in_int8(a, self.block) if self.product is Product.INT8 else rounded(a, self.product)
        self.finish(memory, np.matmul(a, weights.T))

    def flops(self) -> Size:
        return 2 * product(self.domain) * self.depth

    def tuned_by(self) -> tuple[Any, ...]:
        return self.bits, self.block


def unpacked(packed: Array, bits: int) -> Array:
    """The integers of each row of bytes, the first of a byte in its low bits."""
    each = packed[..., None] >> np.arange(0, 8, bits) & ((1 << bits) - 1)
    return each.reshape(len(packed), -1)
