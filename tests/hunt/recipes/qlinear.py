"""Operators on bytes that ONNX Runtime's quantisers write between convolutions (QOperator), and its own QuantizeLinear."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder, Rejected, Value
from tests.hunt.recipes._quantised import (
    BYTES,
    SCALES,
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

MS = "com.microsoft"
_OF_SHARES = (1 / 256, 1 / 128, 0.0123)  # scales of what lies between 0 and 1


def _numbers(b: Builder, dtype: Any, scales: tuple[float, ...] = SCALES) -> list[Value]:
    return [b.constant(np.float32(b.pick(scales))), zero_point(b, dtype)]


def _binary(op: str, b: Builder) -> Value:
    x = some_bytes(b, least=0)
    dtype = x.dtype.type
    y = b.partner(x, dtype, fill_of(dtype))
    if b.chance(0.3):
        x, y = y, x
    return b.one(op, [x, *_numbers(b, dtype), y, *_numbers(b, dtype), *_numbers(b, dtype)], domain=MS)


def _unary(op: str, b: Builder) -> Value:
    x = some_bytes(b, least=0)
    dtype = x.dtype.type
    attrs = {"alpha": b.pick((None, 0.1, 0.5))} if op == "QLinearLeakyRelu" else {}
    to = _numbers(b, dtype, _OF_SHARES if op == "QLinearSigmoid" else SCALES)
    from_ = _numbers(b, dtype)
    zero = maybe(b, from_[1], 0.9)  # without the last one ONNX Runtime reads beyond the inputs
    return b.one(op, [x, from_[0], zero, *to], domain=MS, **attrs)


def _where(b: Builder) -> Value:
    x = some_bytes(b)
    dtype = x.dtype.type
    numbers = [_numbers(b, dtype) for _ in range(3)]
    if b.chance(0.4):
        numbers[b.pick((0, 1))] = numbers[2]
    operands = [b.partner(x, np.bool_), x, *numbers[0], b.partner(x, dtype, fill_of(dtype)), *numbers[1], *numbers[2]]
    return b.one("QLinearWhere", operands, domain=MS)


def _concat(b: Builder) -> Value:
    x = some_bytes(b)
    dtype, axis = x.dtype.type, b.whole(-x.rank, x.rank - 1)
    to = _numbers(b, dtype)
    operands: list[Value] = list(to)
    for part in range(b.pick((1, 2, 2, 3))):
        extents = x.extents
        if part:
            extents[axis] = b.extent()
        t = x if not part else b.tensor(extents, dtype, fill_of(dtype), fixed=0.3)
        if any(have != want for i, (have, want) in enumerate(zip(t.extents, x.extents, strict=True)) if i != axis % x.rank):
            raise Rejected("what does not fit is Concat's own question")
        operands += [t, *(to if b.chance(0.4) else _numbers(b, dtype))]
    return b.one("QLinearConcat", operands, domain=MS, axis=axis)


def _lying(b: Builder, x: Value) -> tuple[Value, int]:
    """An image, perhaps with its channels last."""
    if b.chance(0.6):
        return x, 0
    return b.one("Transpose", [x], perm=[0, *range(2, x.rank), 1]), 1


def _average_pool(b: Builder) -> Value:
    dtype = b.pick(BYTES)
    image = byte_image(b, dtype, b.pick((1, 3, 8)))
    kernel, attrs = window(b, image)
    x, last = _lying(b, image)
    if b.chance(0.15):
        attrs = {"auto_pad": b.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))}
    attrs |= {"ceil_mode": maybe(b, 1, 0.2), "count_include_pad": maybe(b, 1, 0.3), "channels_last": last}
    return b.one("QLinearAveragePool", [x, *_numbers(b, dtype), *_numbers(b, dtype)], domain=MS, kernel_shape=kernel, **attrs)


def _max_pool(b: Builder) -> Value:
    image = byte_image(b, b.pick(BYTES), b.pick((1, 3, 8)))
    kernel, attrs = window(b, image)
    x = b.one("Transpose", [image], perm=[0, *range(2, image.rank), 1])
    return b.one("NhwcMaxPool", [x], domain=MS, kernel_shape=kernel, ceil_mode=maybe(b, 1, 0.2), **attrs)


def _global_average_pool(b: Builder) -> Value:
    dtype = b.pick(BYTES)
    x, last = _lying(b, byte_image(b, dtype, b.pick((1, 3, 8))))
    return b.one("QLinearGlobalAveragePool", [x, *_numbers(b, dtype), *_numbers(b, dtype)], domain=MS, channels_last=last)


def _softmax(b: Builder) -> Value:
    x = some_bytes(b)
    dtype, axis = x.dtype.type, b.whole(-x.rank, x.rank - 1)
    numbers = [*_numbers(b, dtype), *_numbers(b, dtype, _OF_SHARES)]
    return b.one("QLinearSoftmax", [x, *numbers], domain=MS, opset=b.pick((11, 13, 17)), axis=maybe(b, axis, 0.7))


def _qgemm(b: Builder) -> Value:
    a = some_bytes(b, least=2, most=2)
    dtype, n = a.dtype.type, b.extent()
    turned = [b.chance(0.3), b.chance(0.4)]
    depth = a.extents[0 if turned[0] else 1]
    w = weights(b, [n, depth] if turned[1] else [depth, n], np.int8 if dtype is np.int8 else None)
    columns = n[0] if len(set(n)) == 1 and n[0] and w.constant and b.chance(0.4) else 0
    operands: list[Value | None] = [a, *_numbers(b, dtype), w, scale(b, columns), zero_point(b, w.dtype.type, columns)]
    operands.append(b.constant(b.rng.integers(-900, 900, n[0]).astype(np.int32)) if columns and b.chance(0.6) else None)
    to = _numbers(b, dtype) if b.chance(0.6) else []
    attrs = {"transA": int(turned[0]), "transB": int(turned[1]), "alpha": b.pick((None, 0.5, 2.0))}
    return b.one("QGemm", [*operands, *to], domain=MS, **attrs)


def _convolution(b: Builder) -> Value:
    dtype = b.pick((np.uint8, np.uint8, np.int8))
    group, per = b.pick(((1, 3), (1, 8), (5, 1), (2, 2)))
    image = byte_image(b, dtype, group * per)
    kernel, attrs = window(b, image)
    x, last = _lying(b, image)
    m = group * b.pick((1, 2, 4))
    w = weights(b, [(m,) * 3, (per,) * 3, *((k,) * 3 for k in kernel)], np.int8)
    each = m if b.chance(0.5) else 0
    zeros = b.constant(np.zeros(m if each else (), np.int8))
    operands = [x, *_numbers(b, dtype), w, scale(b, each), zeros, *_numbers(b, dtype)]
    return b.one("QLinearConv", operands, domain=MS, channels_last=last, group=group, **attrs)


def _quantize(b: Builder) -> Value:
    x = b.any((np.float32,), least=1)
    axis, count = channels(b, x)
    zero = zero_point(b, b.pick((*BYTES, *SHORTS)), count)
    return b.one("QuantizeLinear", [x, scale(b, count), zero], domain=MS, axis=axis)


def _dequantize(b: Builder) -> Value:
    dtype = b.pick((*BYTES, *SHORTS))
    q = b.any((dtype,), least=1, fill=fill_of(dtype))
    axis, count = channels(b, q)
    y = b.one("DequantizeLinear", [q, scale(b, count), zero_point(b, q.dtype.type, count)], domain=MS, axis=axis)
    return b.one(b.pick(("Relu", "Sigmoid", "Neg")), [y]) if b.chance(0.5) else y


def _network(b: Builder) -> None:
    """Some of them after each other, as files have them: a residual, a pool, a quotient."""
    x = _convolution(b)
    dtype = x.dtype.type
    for _ in range(b.whole(1, 3)):
        numbers = [*_numbers(b, dtype), *_numbers(b, dtype)]
        if b.chance(0.5):
            x = b.one("QLinearAdd", [x, *numbers[:2], x, *numbers[2:], *_numbers(b, dtype)], domain=MS)
        else:
            x = b.one("QLinearLeakyRelu", [x, *numbers], domain=MS)
    b.one("QLinearGlobalAveragePool", [x, *_numbers(b, dtype), *_numbers(b, dtype)], domain=MS)


ROWS = [
    *(Recipe(name=f"{MS}.{op}", build=partial(_binary, op)) for op in ("QLinearAdd", "QLinearMul")),
    *(Recipe(name=f"{MS}.{op}", build=partial(_unary, op), weight=0.7) for op in ("QLinearLeakyRelu", "QLinearSigmoid")),
    Recipe(name=f"{MS}.QLinearWhere", build=_where, weight=0.7),
    Recipe(name=f"{MS}.QLinearConcat", build=_concat),
    Recipe(name=f"{MS}.QLinearAveragePool", build=_average_pool),
    Recipe(name=f"{MS}.NhwcMaxPool", build=_max_pool, weight=0.7),
    Recipe(name=f"{MS}.QLinearGlobalAveragePool", build=_global_average_pool),
    Recipe(name=f"{MS}.QLinearSoftmax", build=_softmax),
    Recipe(name=f"{MS}.QGemm", build=_qgemm),
    Recipe(name=f"{MS}.QLinearConv", build=_convolution),
    Recipe(name=f"{MS}.QuantizeLinear", build=_quantize, weight=0.5),
    Recipe(name=f"{MS}.DequantizeLinear", build=_dequantize, weight=0.5),
    Recipe(name="chain.qoperator", build=_network),
]
