"""The C functions of single operations by ctypes, on NumPy arrays of any strides."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.capi.library import View, tracea, view

Array = NDArray[Any]


class Execution(ctypes.Structure):
    _fields_ = (
        ("threads", ctypes.c_uint32),
        ("parallel_for", ctypes.c_void_p),
        ("parallel_for_user", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


class GemmParams(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("execution", Execution))


class ConvParams(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("execution", Execution),
        ("stride", ctypes.c_int64 * 2),
        ("padding", ctypes.c_int64 * 4),
        ("dilation", ctypes.c_int64 * 2),
        ("groups", ctypes.c_int64),
    )


class AttentionParams(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("execution", Execution),
        ("scale", ctypes.c_float),
        ("is_causal", ctypes.c_int32),
    )


PARAMS: dict[str, type[ctypes.Structure]] = {"gemm": GemmParams, "conv2d": ConvParams, "attention": AttentionParams}


def strided(array: Array, **more: Any) -> View:
    """With the array's own strides, in elements."""
    return view(array, [stride // array.itemsize for stride in array.strides], **more)


def call(name: str, *tensors: Array | View | None, execution: Execution | None = None, **params: Any) -> int:
    """The status. Of an array its view is taken; lists become what the params have."""
    views = [t if isinstance(t, View) or t is None else strided(t) for t in tensors]
    kind = PARAMS[name]
    given = kind(struct_size=params.pop("struct_size", ctypes.sizeof(kind)))
    if execution is not None:
        given.execution = execution
    for key, value in params.items():
        field = getattr(given, key)
        if isinstance(value, Sequence):
            field[:] = value
        else:
            setattr(given, key, value)
    pointers = [ctypes.byref(one) if one is not None else None for one in views]
    return int(getattr(tracea(), f"tracea_{name}")(*pointers, ctypes.byref(given)))


def convolved(x: Array, w: Array, bias: Array | None, stride: Any, padding: Any, dilation: Any, groups: int) -> Array:
    """In float64, a tap at a time."""
    top, left, bottom, right = padding
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    rows, columns = ((x.shape[i + 2] - dilation[i] * (w.shape[i + 2] - 1) - 1) // stride[i] + 1 for i in range(2))
    parts = zip(np.split(x, groups, axis=1), np.split(w.astype(np.float64), groups), strict=True)
    made = []
    for images, weights in parts:
        total = np.zeros((len(x), len(weights), rows, columns))
        for r in range(w.shape[2]):
            for s in range(w.shape[3]):
                y0, x0 = r * dilation[0], s * dilation[1]
                seen = images[:, :, y0 : y0 + stride[0] * rows : stride[0], x0 : x0 + stride[1] * columns : stride[1]]
                total += np.einsum("nchw,mc->nmhw", seen[:, :, :rows, :columns], weights[:, :, r, s])
        made.append(total)
    result = np.concatenate(made, axis=1)
    return result if bias is None else result + bias[:, None, None]


def attended(q: Array, k: Array, v: Array, scale: float | None = None, is_causal: bool = False) -> Array:
    """In float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale if scale is not None else 1 / np.sqrt(q.shape[-1]))
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ v)
