"""Integers that stand for floats: what quantising and its inverse are, and products of such integers.

    x ~ (q - zero) * scale          q = saturate(round(x / scale) + zero), half to even

A product of integers has unsigned bytes to the left and signed ones to the right, as processors multiply them. Bytes of the other
sign are moved by 128, and so is their zero point:

    sum over k of (a - za) * (b - zb)  =  sum a * b  -  za * sum b  -  zb * sum a  +  K * za * zb

The sums of a constant b are made once; where its zero point is known to be 0, nothing of a is summed up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.checks import broadcast_shapes
from xyntra_ep.fusion.onnx_ops._operands import f
from xyntra_ep.fusion.onnx_ops.quantised._made_of import mark
from xyntra_ep.fusion.onnx_ops.rows.reduction import per_row, rows
from xyntra_ep.fusion.tensor import GemmNode, Quantised, Tensor, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, either, eq
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage

MOVE = 128  # from signed bytes to unsigned ones


def quantise(x: Expr, scale: Expr, zero: Expr | None, dtype: DType) -> Expr:
    """An element of ``dtype`` that stands for the float ``x``; NaN is the lowest one, as ONNX Runtime has it on x86."""
    limits = np.iinfo(dtype.numpy)
    offset = f(0) if zero is None else E.call("to_f", zero)
    return E.call("to_i", E.call("quantise", x, scale, offset, f(limits.min), f(limits.max)))


def rounded(x: Expr, zero: Expr, dtype: DType) -> Expr:
    """``x`` levels above ``zero``, which some kernels of ONNX Runtime add before they round: a tie then falls to the even sum."""
    return quantise(E.call("round_f32", E.call("add", x, E.call("to_f", zero))), f(1), None, dtype)


def dequantise(q: Expr, scale: Expr, zero: Expr | None) -> Expr:
    """The float that the element ``q`` stands for."""
    level = q if zero is None else E.call("wrap_i32", E.call("sub", q, zero))
    return E.call("mul", E.call("to_f", level), scale)


def named_after(c: Context, t: Tensor, axis: int, others: Sequence[Tensor | None], message: str) -> Tensor:
    """``t`` with ``axis`` called as those of ``others`` call their last axis that have a number for each of its indices: where a
    constant says how many there are, that is a number."""
    for other in others:
        if other is None or other.size == 1 or other.rank == 0:
            continue
        c.require_equal(other.shape[-1], t.shape[axis], message)
        if not isinstance(other.shape[-1], Dim):
            t = t.named([other.shape[-1] if i == axis % t.rank else s for i, s in enumerate(t.shape)])
    return t


def dequantised(c: Context, q: Tensor, parameters: Sequence[Tensor], dtype: DType, axis: int | None) -> Tensor:
    """The floats that ``q`` stands for. ``parameters``: the scale and the zero point, if there is one, as they broadcast to q."""
    result = c.map([q, *parameters], lambda v, s, *z: dequantise(v, s, z[0] if z else None), dtype).named(q.shape)
    scale, zero = (*parameters, None)[:2]
    return mark(result, Quantised(q=q, scale=scale, zero=zero, axis=axis)) if scale is not None else result


def scalar_or_axis(c: Context, t: Tensor, x: Tensor, axis: int, what: str) -> Tensor:
    """``t``, one value or one for each index of an axis of ``x``, shaped so that it broadcasts to ``x``."""
    if t.size == 1:
        return t.reshape(())
    if t.rank != 1:
        raise UnsupportedError(f"{what} of rank {t.rank}")
    c.require(either(eq(t.shape[0], 1), eq(t.shape[0], x.shape[axis])), f"{what} does not fit the axis that it is for")
    return t.reshape([t.shape[0] if i == axis else 1 for i in range(x.rank)])


def one_number(t: Tensor, what: str) -> Tensor:
    """``t`` without axes."""
    if t.size != 1:
        raise UnsupportedError(f"{what} is not one number")
    return t.reshape(())


def integer_product(
    c: Context, a: Tensor, a_zero: Tensor | None, b: Tensor, b_zero: Tensor | None, of_columns: Sequence[Tensor] = ()
) -> Tensor:
    """The i32 sums over k of (a[..., m, k] - a_zero) * (b[..., k, n] - b_zero), modulo 2^32. Zero points broadcast to [..., m, 1]
    and to [..., 1, n]; None is 0. ``of_columns``: what the caller has one of for each column."""
    c.require_equal(a.shape[-1], b.shape[-2], "inner dimensions differ")
    b = named_after(c, b, -1, [b_zero, *of_columns], "the columns of a product differ")
    a, a_zero = moved_bytes(c, a, a_zero, DType.U8)
    b, b_zero = moved_bytes(c, b, b_zero, DType.I8)
    batch = broadcast_shapes(c.checks, a.shape[:-2], b.shape[:-2])
    depth = c.checks.root(a.shape[-1])
    sums_of_a = None if b_zero is None else sums_along(a, [a.rank - 1])
    sums_of_b = None if a_zero is None else sums_along(b, [b.rank - 2])
    wide_a = c.checks.fit(a, (*batch, a.shape[-2], depth))
    wide_b = c.checks.fit(b, (*batch, depth, b.shape[-1]))
    shape = (*batch, a.shape[-2], b.shape[-1])
    products = Tensor(shape, DType.I32, GemmNode(a=wide_a, b=wide_b))
    operands, terms = [products], []

    def also(t: Tensor) -> int:
        operands.append(t)
        return len(operands) - 1

    if a_zero is not None and sums_of_b is not None:
        terms.append(("sub", also(a_zero), also(sums_of_b)))
    if b_zero is not None and sums_of_a is not None:
        terms.append(("sub", also(b_zero), also(sums_of_a)))
        if a_zero is not None and sums_of_b is not None:
            terms.append(("add", also(a_zero), also(b_zero)))

    def body(total: Expr, *others: Expr) -> Expr:
        values = (total, *others)
        for sign, x, y in terms:
            term = E.call("mul", values[x], values[y])
            total = E.call(sign, total, E.call("mul", term, E.size(depth)) if sign == "add" else term)
        return E.call("wrap_i32", total)

    return c.map(operands, body, DType.I32).named(shape) if terms else products


def sums_along(t: Tensor, axes: Sequence[int]) -> Tensor:
    """The i32 sums along ``axes``, which stay with extent 1."""
    _, _, _, x = rows(t, axes)
    return per_row(t, axes, [Stage(kind=ReduceKind.SUM, body=x, dtype=DType.I64)], E.acc_int(0), True, DType.I32)


def moved_bytes(c: Context, t: Tensor, zero: Tensor | None, wanted: DType) -> tuple[Tensor, Tensor | None]:
    """Bytes of the ``wanted`` sign, with their zero point as an i32; None where that is known to be 0."""
    if t.dtype not in BYTES:
        raise UnsupportedError(f"dtype {t.dtype}")
    by = 0 if t.dtype is wanted else MOVE if wanted is DType.U8 else -MOVE

    def move(v: Expr) -> Expr:
        return E.call("wrap_i32", E.call("add", v, E.const(by))) if by else v

    moved = c.map([t], move, wanted) if by else t
    if zero is None or zero.is_const:
        known = (
            np.zeros((), np.int64) if zero is None else c.constant(zero, "a zero point").astype(np.int64).reshape(_numbers(zero))
        )
        return moved, literal(known + by, DType.I32) if (known + by).any() else None
    return moved, c.map([zero], move, DType.I32)


def _numbers(t: Tensor) -> list[int]:
    """The shape of a constant."""
    return [int(s) for s in t.shape if not isinstance(s, Dim)]
