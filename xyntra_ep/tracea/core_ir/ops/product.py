"""What products of matrices have in common: what they multiply in, what they do with the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops.core_op import Body, CoreOp
from xyntra_ep.tracea.core_ir.ops.memory import Array, Memory, evaluate_expr
from xyntra_ep.tracea.core_ir.ops.operand import Operand


class Product(StrEnum):
    """In what the operands of a matrix product are multiplied; the sums are f32, of integers i32.

    A request for speed, not a promise of loss: a variant that keeps more digits than asked for is as legal. I32 is no request but
    what products of integers are: exact, but for sums that wrap.
    """

    F32 = "f32"
    BF16 = "bf16"  # both operands rounded to bfloat16 (nearest even)
    F16 = "f16"  # the same to float16
    TF32 = "tf32"  # both rounded to 10 bits behind the leading one (nearest, ties away from zero), with the exponents of f32
    I32 = "i32"  # integers of 8 bits; acc(0) is their sum modulo 2^32, from -2^31 on
    INT8 = "int8"  # a rounded to 8 bits, symmetric, with one f32 scale for each row and block of a BlockGemm (`in_int8`)
    INT8W = "int8w"  # b rounded to 8 bits, symmetric, with one f32 scale for each column (max |b[:, n]| / 127)

    @property
    def half(self) -> DType | None:
        """The 16-bit float that both operands are rounded to."""
        return _HALF_OF.get(self)

    @property
    def matrix(self) -> DType | None:
        """What matrix units are given of both operands, None where they are not meant; as tf32, the upper bits of an f32."""
        return DType.F32 if self is Product.TF32 else self.half


_WEIGHT_BYTES = {Product.BF16: 2, Product.F16: 2, Product.INT8W: 1}
_HALF_OF = {Product.BF16: DType.BF16, Product.F16: DType.F16}
PRODUCT_OF = {half: product for product, half in _HALF_OF.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductOp(CoreOp):
    """An op that multiplies the inputs that it reads directly, in ``product``, and has one output."""

    output: Operand
    product: Product = Product.F32

    is_heavy: ClassVar[bool] = True
    naming_rank: ClassVar[int] = 2

    @property
    def written(self) -> tuple[Operand, ...]:
        return (self.output,)

    def with_operands(self, inputs: tuple[Operand, ...], written: Sequence[Operand]) -> Self:
        return replace(self, inputs=inputs, output=written[0])

    def images(self) -> Size | None:
        return self.output.shape[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpilogueOp(ProductOp):
    """A sum acc(0) of products for each element of ``output``; ``epilogue`` makes the result of it. ``inputs[1]`` are weights."""

    epilogue: Expr

    is_one_node: ClassVar[bool] = True

    @property
    def domain(self) -> tuple[Size, ...]:
        return self.output.shape

    @property
    def reads_directly(self) -> int:
        return 2

    def expressions(self) -> list[Body]:
        return [Body(self.epilogue, len(self.domain), 1)]

    def finish(self, memory: Memory, acc: Array) -> None:
        """Write the result of the sums ``acc``."""
        domain = memory.shape(self.domain)
        acc = np.broadcast_to(acc, domain)
        memory.write(self.output, evaluate_expr(self.epilogue, memory, self.inputs, domain, {0: acc}))

    def known_bytes(self, position: int) -> int:
        stored = self.inputs[position].dtype.bytes
        return min(stored, _WEIGHT_BYTES.get(self.product, stored)) if position == 1 else stored


def rounded(x: Array, product: Product) -> Array:
    """``x`` (float64) as it is multiplied: rounded to a narrower float (through f32, as it is stored before), or as it is."""
    if product is Product.TF32:
        return _as_tf32(x.astype(np.float32)).astype(np.float64)
    half = product.half
    return x if half is None else to_float64(from_float64(x.astype(np.float32), half), half)


def _as_tf32(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """To the nearest with 10 bits behind the leading one, of two the larger (PTX ISA, cvt.rna.tf32.f32)."""
    bits = x.view(np.uint32)
    rounded: NDArray[np.float32] = ((bits + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, rounded)


def wrapped(sums: Array) -> Array:
    """Sums of products of bytes modulo 2^32. A float64 holds those of fewer than 2^37 of them."""
    found: Array = sums.astype(np.int64).astype(np.int32).astype(np.int64)
    return found


def unlike_product(product: Product, inputs: Sequence[Operand]) -> Iterator[str]:
    """The problem that the types of what is multiplied are not those of a product, if they are not. INT8 needs blocks."""
    types = [o.dtype for o in inputs[:2]]
    if product is Product.INT8 or (product is Product.I32) != all(t in BYTES for t in types):
        yield f"a product in {product} of {types[0]} and {types[1]}"


INT8_LARGEST = 127.0  # of what is rounded to 8 bits
INT8_LEAST = 2.0**-100  # a block has no smaller largest magnitude: its reciprocal would be no float


def in_int8(a: Array, block: int) -> Array:
    """``a`` [..., k] after quantisation to 8 bits with a scale for each ``block`` along k, in f32: max |a| / 127; NaN where the
    block has an infinity or a NaN."""
    depth = a.shape[-1]
    number = -(-depth // block)
    padded = np.zeros((*a.shape[:-1], number * block), np.float32)
    padded[..., :depth] = a
    blocks = padded.reshape(*a.shape[:-1], number, block)
    with np.errstate(invalid="ignore"):
        strange = (blocks - blocks).sum(-1, keepdims=True)
        largest = np.maximum(np.nan_to_num(np.abs(blocks), nan=0.0).max(-1, keepdims=True), np.float32(INT8_LEAST))
        level = np.rint(blocks * (np.float32(INT8_LARGEST) / largest))
        found = level.astype(np.float64) * (largest * np.float32(1 / INT8_LARGEST) + strange)
    result: Array = found.reshape(padded.shape)[..., :depth]
    return result


def as_int8(b: Array) -> Array:
    """``b`` [..., k, n] after quantisation to 8 bits with a scale for each column."""
    scale = np.max(np.abs(b), axis=-2, keepdims=True, initial=0.0) / 127.0
    quantised: Array = np.rint(b / np.where(scale > 0, scale, 1.0)) * scale
    return quantised
