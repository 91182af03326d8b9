"""Where the elements of a resized axis come from, as ORT computes it: in float32, so that ties fall on the same side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import UnsupportedError

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis to resize; ``start`` and ``end`` are its region of interest (tf_crop_and_resize)."""

    extent: int
    result: int
    scale: np.float32
    start: float = 0.0
    end: float = 1.0


def coordinates(axis: Axis, mode: str) -> Floats:
    """The position in the input of each element of the result."""
    x = np.arange(axis.result, dtype=np.float32)
    one, half = np.float32(1), np.float32(0.5)
    n_in, n_out, scale = np.float32(axis.extent), np.float32(axis.result), axis.scale
    if scale == 1 and mode != "tf_crop_and_resize":
        return x
    half_pixel: Floats = (x + half) / scale - half
    match mode:
        case "asymmetric":
            return x / scale
        case "half_pixel":
            return half_pixel
        case "pytorch_half_pixel":
            return half_pixel if axis.result > 1 else np.zeros_like(x)
        case "align_corners":
            return np.zeros_like(x) if axis.result == 1 else x * (n_in - one) / (n_out - one)
        case "tf_half_pixel_for_nn":
            return (x + half) / scale
        case "half_pixel_symmetric":
            adjustment = n_out / (scale * n_in)
            centre = n_in / np.float32(2)
            return centre * (one - adjustment) + half_pixel
        case "tf_crop_and_resize":
            start, end = np.float32(axis.start), np.float32(axis.end)
            if axis.result == 1:
                return np.full_like(x, half * (start + end) * (n_in - one))
            return start * (n_in - one) + x * (end - start) * (n_in - one) / (n_out - one)
        case _:
            raise UnsupportedError(f"coordinates {mode}")


def nearest(x: Floats, extent: int, mode: str, shrinks: bool) -> Ints:
    """The nearest element to each position."""
    fraction: Floats = x - np.floor(x)
    rounded: NDArray[Any]
    match mode:
        case "round_prefer_floor":
            rounded = np.where(fraction == 0.5, np.floor(x), np.floor(x + np.float32(0.5)))
        case "round_prefer_ceil":
            rounded = np.floor(x + np.float32(0.5))
        case "floor":
            rounded = np.floor(x)
        case "ceil":
            rounded = np.ceil(x)
        case "simple":  # before opset 11
            rounded = np.ceil(x) if shrinks else np.trunc(x)
        case _:
            raise UnsupportedError(f"nearest mode {mode}")
    return np.clip(rounded.astype(np.int64), 0, extent - 1)


def linear(x: Floats, extent: int) -> tuple[Ints, Ints, Floats]:
    """(lower neighbour, upper neighbour, weight of the upper one). Of the last element, which is both, half of each, as in ONNX
    Runtime: a weight of 0 would make NaN of infinity."""
    inside = np.clip(x, 0, np.float32(extent - 1))
    low = np.minimum(inside.astype(np.int64), extent - 1)
    high = np.minimum(low + 1, extent - 1)
    return low, high, np.where(low == high, 0.5, inside - low.astype(np.float32)).astype(np.float32)


def cubic(x: Floats, extent: int, a: float, exclude_outside: bool) -> list[tuple[Ints, Floats]]:
    """(neighbour, weight) four times: Keys' kernel with parameter ``a``."""
    low = np.floor(x)
    t = (x - low).astype(np.float32)
    k = np.float32(a)
    weights = [
        ((k * (t + 1) - 5 * k) * (t + 1) + 8 * k) * (t + 1) - 4 * k,
        ((k + 2) * t - (k + 3)) * t * t + 1,
        ((k + 2) * (1 - t) - (k + 3)) * (1 - t) * (1 - t) + 1,
        ((k * (2 - t) - 5 * k) * (2 - t) + 8 * k) * (2 - t) - 4 * k,
    ]
    places = [low.astype(np.int64) + i for i in range(-1, 3)]
    if exclude_outside:
        weights = [np.where((p >= 0) & (p < extent), w, np.float32(0)) for p, w in zip(places, weights, strict=True)]
        whole = sum(weights, start=np.zeros_like(x))
        weights = [w / whole for w in weights]
    return [(np.clip(p, 0, extent - 1), w.astype(np.float32)) for p, w in zip(places, weights, strict=True)]
