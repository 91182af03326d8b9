"""Models of one operator on bytes each, for the rows of `ort_cases.py` that are of integers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from xyntra_bench.ort_cases import IMAGE_SIZES, SQUARE_SIZES, Array, Kind, OpCase, conv, floats, matmul

PREFIX = "integers."


def _bytes(x: Array, dtype: type = np.uint8) -> Array:
    """Numbers of ``x``, from 0.25 to 1, as bytes; of weights, both signs."""
    levels = np.round((x - 0.625) * 160)
    return np.asarray(levels + (128 if dtype is np.uint8 else 0)).astype(dtype)


def _scalars(**values: object) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in values.items()}


def _product(m: int, *, constant: bool) -> Callable[[int], OpCase]:
    """MatMulInteger of the sizes of the products of floats."""

    def at(n: int) -> OpCase:
        like = matmul(m, constant=constant)(n)
        a, b = _bytes(like.feeds["a"]), _bytes({**like.feeds, **like.weights}["b"], np.int8)
        zero = _scalars(z=np.uint8(128))
        feeds, weights = ({"a": a}, {"b": b, **zero}) if constant else ({"a": a, "b": b}, zero)
        return OpCase(
            op="MatMulInteger", feeds=feeds, weights=weights, inputs=("a", "b", "z"), units=like.units, moved=like.moved / 4
        )

    return at


def _conv(of_floats: Callable[[int], OpCase]) -> Callable[[int], OpCase]:
    """QLinearConv, a scale for each output channel."""

    def at(n: int) -> OpCase:
        like = of_floats(n)
        w = _bytes(like.weights["w"], np.int8)
        outputs = len(w)
        weights = {
            **_scalars(sx=np.float32(0.02), zx=np.uint8(0), sy=np.float32(0.5), zy=np.uint8(0)),
            "w": w,
            "sw": np.full(outputs, 0.01, np.float32),
            "zw": np.zeros(outputs, np.int8),
            "b": np.zeros(outputs, np.int32),
        }
        order = ("x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b")
        feeds = {"x": _bytes(like.feeds["x"])}
        return dataclasses.replace(like, op="QLinearConv", feeds=feeds, weights=weights, inputs=order, moved=like.moved / 4)

    return at


def _quantize(n: int) -> OpCase:
    given = _scalars(s=np.float32(0.01), z=np.uint8(7))
    return OpCase(op="QuantizeLinear", feeds={"x": floats(n)}, weights=given, units=n, moved=5 * n)


def _dequantize(n: int) -> OpCase:
    given = _scalars(s=np.float32(0.01), z=np.uint8(7))
    return OpCase(op="DequantizeLinear", feeds={"x": _bytes(floats(n))}, weights=given, units=n, moved=5 * n)


def _dynamic(n: int) -> OpCase:
    return OpCase(op="DynamicQuantizeLinear", feeds={"x": floats(n)}, units=n, moved=9 * n, outputs=3)


KINDS = [
    Kind(name="QuantizeLinear", at=_quantize),
    Kind(name="DequantizeLinear", at=_dequantize),
    Kind(name="DynamicQuantizeLinear", at=_dynamic),
    Kind(name=f"{PREFIX}product.row", at=_product(1, constant=True), sizes=(4, 256, 2048)),
    Kind(name=f"{PREFIX}product.few", at=_product(8, constant=True), sizes=SQUARE_SIZES),
    Kind(name=f"{PREFIX}product.many", at=_product(128, constant=True), sizes=SQUARE_SIZES),
    Kind(name=f"{PREFIX}product.two", at=_product(128, constant=False), sizes=SQUARE_SIZES),
    Kind(name=f"{PREFIX}conv.point", at=_conv(conv(1)), sizes=IMAGE_SIZES),
    Kind(name=f"{PREFIX}conv.window", at=_conv(conv(3)), sizes=IMAGE_SIZES),
    Kind(name=f"{PREFIX}conv.stem", at=_conv(conv(7, cin=3, stride=2)), sizes=(2, 56, 224)),
    Kind(name=f"{PREFIX}conv.grouped", at=_conv(conv(3, "grouped")), sizes=IMAGE_SIZES),
    Kind(name=f"{PREFIX}conv.depthwise", at=_conv(conv(3, "depthwise")), sizes=IMAGE_SIZES),
]
