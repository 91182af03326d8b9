"""Integers with a scale for each block of an axis: what they stand for, and products by constants of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.onnx_ops.quantised._integers import dequantise, quantise
from xyntra_ep.fusion.onnx_ops.quantised._made_of import mark, quantised
from xyntra_ep.fusion.tensor import BlockGemmNode, Map, Quantised, Tensor, View, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import ceildiv, eq
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType
from xyntra_ep.tracea.core_ir.expr import Expr

BLOCKS = (16, 32, 64, 128, 256)  # that kernels for products have


def dequantised_blocks(c: Context, made_of: Quantised) -> Tensor:
    """The floats that ``made_of`` says, which scales and zero points are checked to fit."""
    q, scale, zero, axis = made_of.q, made_of.scale, made_of.zero, made_of.axis
    assert axis is not None
    body = dequantise(*_elements(c, q, scale, zero, axis, made_of.block))
    return mark(Tensor(q.shape, scale.dtype, Map(inputs=(q, scale, *([] if zero is None else [zero])), body=body)), made_of)


def quantised_blocks(c: Context, x: Tensor, scale: Tensor, zero: Tensor | None, axis: int, block: int, dtype: DType) -> Tensor:
    """Integers of ``dtype`` that stand for ``x``, with a scale for each ``block`` elements of ``axis``."""
    body = quantise(*_elements(c, x, scale, zero, axis, block), dtype)
    return Tensor(x.shape, dtype, Map(inputs=(x, scale, *([] if zero is None else [zero])), body=body))


def _elements(c: Context, t: Tensor, scale: Tensor, zero: Tensor | None, axis: int, block: int) -> tuple[Expr, Expr, Expr | None]:
    """An element of ``t``, and the scale and zero point of its block, which are checked to fit."""
    if block < 0:
        raise UnsupportedError(f"block_size = {block}")
    here = [E.axis(i) for i in range(t.rank)]
    of_block = [E.call("div", at, E.const(block)) if i == axis else at for i, at in enumerate(here)]
    loads = [E.load(0, *here, dtype=t.dtype)]
    for given in (scale, *([] if zero is None else [zero])):
        if given.rank != t.rank:
            raise UnsupportedError(f"a scale or zero point of rank {given.rank} for blocks of rank {t.rank}")
        for i, (have, extent) in enumerate(zip(given.shape, t.shape, strict=True)):
            wanted = ceildiv(extent, block) if i == axis else extent
            c.require(eq(have, wanted), "blocks are not as many as scales or zero points")
        loads.append(E.load(len(loads), *of_block, dtype=given.dtype))
    return loads[0], loads[1], loads[2] if len(loads) > 2 else None


def product_of_blocks(c: Context, a: Tensor, b: Tensor) -> Tensor | None:
    """a @ b as f32 where b [K, N] stands for constants that are scaled in blocks along K; else None. They stay as small as the
    file has them, in the order that kernels read them in."""
    found = quantised(b)
    if found is None or found.block not in BLOCKS or b.rank != 2 or found.axis != 0 or found.q.dtype not in BYTES:
        return None
    given = [t for t in (found.q, found.scale, found.zero) if t is not None]
    depth, columns = b.shape
    if not all(map(_is_known, given)) or not isinstance(depth, int) or not isinstance(columns, int) or not depth * columns:
        return None
    c.require_equal(a.shape[-1], depth, "inner dimensions differ")
    a = c.checks.fit(a, (*a.shape[:-1], depth))
    blocks = -(-depth // found.block)
    above = 1 << (found.bits - 1) if found.q.dtype is DType.I8 else 0  # kernels have unsigned integers
    zeros: tuple[Tensor, ...] = ()
    if found.zero is not None:
        level = E.call("to_f", E.call("add", E.load(0, E.axis(1), E.axis(0), dtype=found.zero.dtype), E.const(above)))
        zeros = (Tensor((columns, blocks), DType.F32, Map(inputs=(found.zero,), body=level)),)
    elif not above:
        zeros = (literal(np.zeros((columns, blocks), np.float32), DType.F32),)

    def element(k: Expr) -> Expr:  # behind the last one nothing is multiplied
        inside = E.load(0, E.call("min", k, E.const(depth - 1)), E.axis(0), dtype=found.q.dtype)
        return E.call("add", inside, E.const(above))

    body = element(E.axis(1)) if found.bits == 8 else _pair(element)
    stored = Tensor((columns, blocks * found.block * found.bits // 8), DType.U8, Map(inputs=(found.q,), body=body))
    node = BlockGemmNode(a=a, q=stored, scales=found.scale.permute((1, 0)), zeros=zeros, bits=found.bits, block=found.block)
    return Tensor((*a.shape[:-1], columns), DType.F32, node)


def _pair(element: Callable[[Expr], Expr]) -> Expr:
    """Two integers of 4 bits in a byte, the first in its low half."""
    first = E.call("mul", E.axis(1), E.const(2))
    return E.call("add", element(first), E.call("mul", element(E.call("add", first, E.const(1))), E.const(16)))


def _is_known(t: Tensor) -> bool:
    """Whether ``t`` is made of constants."""
    if isinstance(t.node, View):
        return _is_known(t.node.base)
    return t.is_const or (isinstance(t.node, Map) and all(map(_is_known, t.node.inputs)))
