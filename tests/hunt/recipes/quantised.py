"""Integers that stand for floats, and products of them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder, Rejected, Value
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._quantised import (
    BYTES,
    SHORTS,
    byte_image,
    channels,
    fill_of,
    scale,
    some_bytes,
    weights,
    window,
    zero_point,
)
from tests.hunt.recipes._row import Recipe, maybe


def _levels(b: Builder) -> tuple[Any, ...]:
    """Types of levels in a file of this opset."""
    return (*BYTES, *SHORTS) if b.opset >= 21 else BYTES


def _quantize(b: Builder) -> Value:
    x = b.any((np.float32,), least=1)
    dtype = b.pick(_levels(b))
    if b.opset >= 21 and b.chance(0.3):
        return _quantize_blocks(b, x, dtype)
    axis, count = channels(b, x)
    zero = maybe(b, zero_point(b, dtype, count), 0.8)
    return b.one("QuantizeLinear", [x, scale(b, count), zero], axis=axis)


def _quantize_blocks(b: Builder, x: Value, dtype: Any) -> Value:
    axis, block = b.whole(0, x.rank - 1), b.pick((1, 2, 3, 8, 16))
    extents = [tuple(-(-n // block) for n in e) if i == axis else e for i, e in enumerate(x.extents)]
    zero = maybe(b, b.tensor(extents, dtype, fill_of(dtype)), 0.7)
    scales = b.tensor(extents, fill=Fill(Kind.POSITIVE))
    return b.one("QuantizeLinear", [x, scales, zero], axis=b.pick((axis, axis - x.rank)), block_size=block)


def _dequantize(b: Builder) -> None:
    dtype = b.pick((*_levels(b), np.int32))
    q = b.any((dtype,), least=1, fill=fill_of(dtype))
    axis, count = channels(b, q)
    zero = None if dtype is np.int32 else maybe(b, zero_point(b, dtype, count), 0.8)
    y = b.one("DequantizeLinear", [q, scale(b, count), zero], axis=axis)
    if b.chance(0.5):
        b.one(b.pick(("Relu", "Sigmoid", "Neg")), [y])


def _dynamic(b: Builder) -> list[Value]:
    return b.node("DynamicQuantizeLinear", [b.any((np.float32,))], outputs=3)


def _matmul_integer(b: Builder) -> None:
    a = _dynamic(b)[0] if b.chance(0.3) else some_bytes(b)
    if not a.rank:
        a = some_bytes(b)
    n = b.extent()
    w = weights(b, [a.extents[-1], n])
    zero_a = maybe(b, zero_point(b, a.dtype.type), 0.6)
    columns = n[0] if len(set(n)) == 1 and n[0] and w.constant and b.chance(0.3) else 0
    zero_w = maybe(b, zero_point(b, w.dtype.type, columns), 0.5) if zero_a is not None else None
    y = b.one("MatMulInteger", [a, w, zero_a, zero_w])
    if b.chance(0.6):
        b.one("Mul", [b.one("Cast", [y], to=1), scale(b)])


def _qlinear_matmul(b: Builder) -> None:
    a = some_bytes(b, least=2)
    w = weights(b, [a.extents[-1], b.extent()])
    kinds = [(a, a.dtype.type), (w, w.dtype.type)]
    operands: list[Value] = []
    for value, dtype in kinds:
        operands += [value, scale(b), zero_point(b, dtype)]
    b.one("QLinearMatMul", [*operands, scale(b), zero_point(b, a.dtype.type)])


def _scaled_product(is_dynamic: bool, b: Builder) -> None:
    """What ONNX Runtime's optimiser makes of a dynamically quantised product, with and without the quantising."""
    a = b.any((np.float32,), least=1) if is_dynamic else some_bytes(b)
    n = b.extent()
    w = weights(b, [a.extents[-1], n])
    if not w.constant:
        raise Rejected("a run may have sums of nothing")
    columns = n[0] if len(set(n)) == 1 and n[0] and b.chance(0.4) else 0
    bias = b.constant(b.rng.uniform(-1, 1, n[0]).astype(np.float32)) if columns and b.chance(0.6) else None
    operands: list[Value | None] = [scale(b, columns)]
    if not is_dynamic:
        operands = [scale(b), *operands, maybe(b, zero_point(b, a.dtype.type), 0.8)]
    zero = maybe(b, zero_point(b, w.dtype.type, columns), 0.6)
    name = "DynamicQuantizeMatMul" if is_dynamic else "MatMulIntegerToFloat"
    b.one(name, [a, w, *operands, zero, bias], domain="com.microsoft")


def _conv_parts(b: Builder, dtype: Any) -> tuple[Value, Value, int, dict[str, Any]]:
    group, per = b.pick(((1, 3), (1, 4), (1, 8), (5, 1), (2, 2)))
    x = byte_image(b, dtype, group * per)
    kernel, attrs = window(b, x)
    m = group * b.pick((1, 2, 4))
    w = weights(b, [(m,) * 3, (per,) * 3, *((k,) * 3 for k in kernel)], np.int8 if dtype is np.int8 else None)
    return x, w, m, {**attrs, "group": group if group > 1 else None}


def _conv_integer(b: Builder) -> None:
    x, w, _, attrs = _conv_parts(b, np.uint8)
    zero = maybe(b, zero_point(b, np.uint8), 0.6)
    y = b.one("ConvInteger", [x, w, zero], **attrs)
    if b.chance(0.5):
        b.one("Mul", [b.one("Cast", [y], to=1), scale(b)])


def _qlinear_conv(b: Builder) -> None:
    dtype = b.pick((np.uint8, np.uint8, np.int8))
    x, w, m, attrs = _conv_parts(b, dtype)
    each = m if b.chance(0.5) and w.dtype == np.int8 else 0
    zero_w = b.constant(np.zeros(m if each else (), w.dtype))
    bias = maybe(b, b.constant(np.asarray(b.rng.integers(-900, 900, m), np.int32)))
    b.one(
        "QLinearConv",
        [x, scale(b), zero_point(b, dtype), w, scale(b, each), zero_w, scale(b), zero_point(b, dtype), bias],
        **attrs,
    )


def _pair(b: Builder, x: Value, dtype: Any, s: Value, zero: Value) -> Value:
    q = b.one("QuantizeLinear", [x, s, zero])
    return b.one("DequantizeLinear", [q, s, zero])


def _qdq(b: Builder) -> None:
    """A product or a convolution between pairs, as ONNX Runtime's static quantisation writes it."""
    x = b.any((np.float32,), least=2)
    dtype = b.pick((np.uint8, np.uint8, np.int8, *(SHORTS if b.opset >= 21 else ())))
    x = _pair(b, x, dtype, scale(b), zero_point(b, dtype))
    columns = b.pick((1, 3, 8, 17))
    each = columns if b.chance(0.5) and b.opset >= 13 else 0
    w = b.constant(fill_of(np.int8, narrow=True).draw(b.rng, (x.shape[-1], columns), np.dtype(np.int8)))
    axis = 1 if each else None
    v = b.one("DequantizeLinear", [w, scale(b, each), b.constant(np.zeros(each or (), np.int8))], axis=axis)
    y = b.one("MatMul", [x, v])
    if b.chance(0.5):
        y = b.one("Add", [y, b.partner(y)])
    if b.chance(0.4):
        y = b.one("Relu", [y])
    _pair(b, y, dtype, b.constant(np.float32(4.0)), zero_point(b, dtype))


ROWS = [
    Recipe(name="QuantizeLinear", build=_quantize, since=10),
    Recipe(name="DequantizeLinear", build=_dequantize, since=10),
    Recipe(name="DynamicQuantizeLinear", build=_dynamic, since=11),
    Recipe(name="MatMulInteger", build=_matmul_integer, since=11, weight=1.5),
    Recipe(name="QLinearMatMul", build=_qlinear_matmul, since=10),
    Recipe(name="com.microsoft.MatMulIntegerToFloat", build=partial(_scaled_product, False)),
    Recipe(name="com.microsoft.DynamicQuantizeMatMul", build=partial(_scaled_product, True)),
    Recipe(name="ConvInteger", build=_conv_integer, since=10, weight=1.5),
    Recipe(name="QLinearConv", build=_qlinear_conv, since=10, weight=1.5),
    Recipe(name="chain.qdq", build=_qdq, since=13, weight=1.5),
]
