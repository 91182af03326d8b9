"""Integers that stand for floats, and products of them.

Weights have 7 bits: with 8, ONNX Runtime's kernels for AVX2 saturate sums of two products, and differ from the definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder, Extent, Rejected, Value
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._row import Recipe, maybe

BYTES = (np.uint8, np.int8)
SCALES = (0.03125, 0.0123, 0.1, 1.0)
ONE: Extent = (1, 1, 1)


def _fill(dtype: Any, narrow: bool = False) -> Fill:
    if narrow:
        return Fill(Kind.INDEX, *((-64, 64) if dtype is np.int8 else (0, 128)))
    return Fill(Kind.INDEX, *((-128, 128) if dtype is np.int8 else (0, 256)))


def _scale(b: Builder, count: int = 0) -> Value:
    """One number, or ``count`` of them."""
    data = [b.pick(SCALES) for _ in range(count)] if count else b.pick(SCALES)
    return b.constant(np.asarray(data, np.float32))


def _zero(b: Builder, dtype: Any, count: int = 0) -> Value:
    """0 more often than not; any byte else."""
    limits = np.iinfo(dtype)

    def one() -> int:
        return 0 if b.chance(0.4) else b.pick((int(limits.min), int(limits.max), b.whole(int(limits.min), int(limits.max))))

    return b.constant(np.asarray([one() for _ in range(count)] if count else one(), dtype))


def _channels(b: Builder, x: Value) -> tuple[int | None, int]:
    """(axis, how many parameters it has): those of the whole tensor are one, without an axis."""
    axes = [i for i, extent in enumerate(x.extents) if len(set(extent)) == 1 and extent[0]]
    if not axes or b.chance(0.6) or b.opset < 13:
        return None, 0
    axis = b.pick(axes)
    return axis, x.extents[axis][0]


def _quantize(b: Builder) -> Value:
    x = b.any((np.float32,), least=1)
    axis, count = _channels(b, x)
    dtype = b.pick(BYTES)
    zero = maybe(b, _zero(b, dtype, count), 0.8)
    return b.one("QuantizeLinear", [x, _scale(b, count), zero], axis=axis)


def _dequantize(b: Builder) -> None:
    dtype = b.pick((*BYTES, np.int32))
    q = b.any((dtype,), least=1, fill=_fill(dtype))
    axis, count = _channels(b, q)
    zero = None if dtype is np.int32 else maybe(b, _zero(b, dtype, count), 0.8)
    y = b.one("DequantizeLinear", [q, _scale(b, count), zero], axis=axis)
    if b.chance(0.5):
        b.one(b.pick(("Relu", "Sigmoid", "Neg")), [y])


def _dynamic(b: Builder) -> list[Value]:
    return b.node("DynamicQuantizeLinear", [b.any((np.float32,))], outputs=3)


def _bytes(b: Builder, *, least: int = 1, most: int = 4) -> Value:
    dtype = b.pick(BYTES)
    return b.any((dtype,), least=least, most=most, fill=_fill(dtype))


def _weights(b: Builder, extents: list[Extent], dtype: Any = None) -> Value:
    """With elements in all worlds: ONNX Runtime leaves unwritten what is a sum of nothing."""
    dtype = dtype or b.pick((np.int8, np.int8, np.uint8))
    w = b.tensor(extents, dtype, _fill(dtype, narrow=True), fixed=0.85)
    if not all(all(e) for e in w.extents):
        raise Rejected("sums of nothing")
    return w


def _matmul_integer(b: Builder) -> None:
    a = _dynamic(b)[0] if b.chance(0.3) else _bytes(b)
    if not a.rank:
        a = _bytes(b)
    n = b.extent()
    w = _weights(b, [a.extents[-1], n])
    zero_a = maybe(b, _zero(b, a.dtype.type), 0.6)
    columns = n[0] if len(set(n)) == 1 and n[0] and w.constant and b.chance(0.3) else 0
    zero_w = maybe(b, _zero(b, w.dtype.type, columns), 0.5) if zero_a is not None else None
    y = b.one("MatMulInteger", [a, w, zero_a, zero_w])
    if b.chance(0.6):
        b.one("Mul", [b.one("Cast", [y], to=1), _scale(b)])


def _qlinear_matmul(b: Builder) -> None:
    a = _bytes(b, least=2)
    w = _weights(b, [a.extents[-1], b.extent()])
    kinds = [(a, a.dtype.type), (w, w.dtype.type)]
    operands: list[Value] = []
    for value, dtype in kinds:
        operands += [value, _scale(b), _zero(b, dtype)]
    b.one("QLinearMatMul", [*operands, _scale(b), _zero(b, a.dtype.type)])


def _image(b: Builder, dtype: Any, channels: int) -> Value:
    sizes = [tuple(min(s, 12) for s in b.extent()) for _ in range(b.pick((2, 2, 1)))]
    return b.input([b.pick([(1, 1, 1), (2, 1, 3)]), (channels,) * 3, *sizes], dtype, _fill(dtype))


def _window(b: Builder, x: Value) -> tuple[list[int], dict[str, Any]]:
    kernel = [b.pick((1, 2, 3, 3)) for _ in range(x.rank - 2)]
    pads = [b.whole(0, max(0, k - 1)) for _ in range(2) for k in kernel]
    strides = [b.pick((1, 1, 2)) for _ in kernel]
    return kernel, {"strides": maybe(b, strides), "pads": maybe(b, pads, 0.6)}


def _conv_parts(b: Builder, dtype: Any) -> tuple[Value, Value, int, dict[str, Any]]:
    group, per = b.pick(((1, 3), (1, 4), (1, 8), (5, 1), (2, 2)))
    x = _image(b, dtype, group * per)
    kernel, attrs = _window(b, x)
    m = group * b.pick((1, 2, 4))
    w = _weights(b, [(m,) * 3, (per,) * 3, *((k,) * 3 for k in kernel)], np.int8 if dtype is np.int8 else None)
    return x, w, m, {**attrs, "group": group if group > 1 else None}


def _conv_integer(b: Builder) -> None:
    x, w, _, attrs = _conv_parts(b, np.uint8)
    zero = maybe(b, _zero(b, np.uint8), 0.6)
    y = b.one("ConvInteger", [x, w, zero], **attrs)
    if b.chance(0.5):
        b.one("Mul", [b.one("Cast", [y], to=1), _scale(b)])


def _qlinear_conv(b: Builder) -> None:
    dtype = b.pick((np.uint8, np.uint8, np.int8))
    x, w, m, attrs = _conv_parts(b, dtype)
    each = m if b.chance(0.5) and w.dtype == np.int8 else 0
    zero_w = b.constant(np.zeros(m if each else (), w.dtype))
    bias = maybe(b, b.constant(np.asarray(b.rng.integers(-900, 900, m), np.int32)))
    b.one(
        "QLinearConv",
        [x, _scale(b), _zero(b, dtype), w, _scale(b, each), zero_w, _scale(b), _zero(b, dtype), bias],
        **attrs,
    )


def _pair(b: Builder, x: Value, dtype: Any, scale: Value, zero: Value) -> Value:
    q = b.one("QuantizeLinear", [x, scale, zero])
    return b.one("DequantizeLinear", [q, scale, zero])


def _qdq(b: Builder) -> None:
    """A product or a convolution between pairs, as ONNX Runtime's static quantisation writes it."""
    x = b.any((np.float32,), least=2)
    dtype = b.pick((np.uint8, np.uint8, np.int8))
    x = _pair(b, x, dtype, _scale(b), _zero(b, dtype))
    columns = b.pick((1, 3, 8, 17))
    each = columns if b.chance(0.5) and b.opset >= 13 else 0
    w = b.constant(_fill(np.int8, narrow=True).draw(b.rng, (x.shape[-1], columns), np.dtype(np.int8)))
    axis = 1 if each else None
    weights = b.one("DequantizeLinear", [w, _scale(b, each), b.constant(np.zeros(each or (), np.int8))], axis=axis)
    y = b.one("MatMul", [x, weights])
    if b.chance(0.5):
        y = b.one("Add", [y, b.partner(y)])
    if b.chance(0.4):
        y = b.one("Relu", [y])
    _pair(b, y, dtype, b.constant(np.float32(4.0)), _zero(b, dtype))


ROWS = [
    Recipe(name="QuantizeLinear", build=_quantize, since=10),
    Recipe(name="DequantizeLinear", build=_dequantize, since=10),
    Recipe(name="DynamicQuantizeLinear", build=_dynamic, since=11),
    Recipe(name="MatMulInteger", build=_matmul_integer, since=11, weight=1.5),
    Recipe(name="QLinearMatMul", build=_qlinear_matmul, since=10),
    Recipe(name="ConvInteger", build=_conv_integer, since=10, weight=1.5),
    Recipe(name="QLinearConv", build=_qlinear_conv, since=10, weight=1.5),
    Recipe(name="chain.qdq", build=_qdq, since=13, weight=1.5),
]
