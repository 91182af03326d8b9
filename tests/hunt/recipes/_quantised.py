"""What recipes of quantised operators want: bytes of all values, scales and zero points.

Weights have 7 bits: with 8, ONNX Runtime's kernels for AVX2 saturate sums of two products, and differ from the definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder, Extent, Rejected, Value
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._row import maybe

BYTES = (np.uint8, np.int8)
SHORTS = (np.uint16, np.int16)
SCALES = (0.03125, 0.0123, 0.1, 1.0)
ONE: Extent = (1, 1, 1)


def fill_of(dtype: Any, narrow: bool = False) -> Fill:
    if narrow:
        return Fill(Kind.INDEX, *((-64, 64) if dtype is np.int8 else (0, 128)))
    limits = np.iinfo(np.uint8 if dtype is np.int32 else dtype)
    return Fill(Kind.INDEX, int(limits.min), int(limits.max) + 1)


def scale(b: Builder, count: int = 0) -> Value:
    """One number, or ``count`` of them."""
    data = [b.pick(SCALES) for _ in range(count)] if count else b.pick(SCALES)
    return b.constant(np.asarray(data, np.float32))


def zero_point(b: Builder, dtype: Any, count: int = 0) -> Value:
    """0 more often than not; any byte else."""
    limits = np.iinfo(dtype)

    def one() -> int:
        return 0 if b.chance(0.4) else b.pick((int(limits.min), int(limits.max), b.whole(int(limits.min), int(limits.max))))

    return b.constant(np.asarray([one() for _ in range(count)] if count else one(), dtype))


def channels(b: Builder, x: Value) -> tuple[int | None, int]:
    """(axis, how many parameters it has): those of the whole tensor are one, without an axis."""
    axes = [i for i, extent in enumerate(x.extents) if len(set(extent)) == 1 and extent[0]]
    if not axes or b.chance(0.6) or b.opset < 13:
        return None, 0
    axis = b.pick(axes)
    return axis, x.extents[axis][0]


def some_bytes(b: Builder, *, least: int = 1, most: int = 4) -> Value:
    dtype = b.pick(BYTES)
    return b.any((dtype,), least=least, most=most, fill=fill_of(dtype))


def weights(b: Builder, extents: list[Extent], dtype: Any = None) -> Value:
    """With elements in all worlds and runs: ONNX Runtime leaves unwritten what is a sum of nothing."""
    dtype = dtype or b.pick((np.int8, np.int8, np.uint8))
    w = b.tensor(extents, dtype, fill_of(dtype, narrow=True), fixed=0.85)
    if not all(all(e) for e in w.extents):
        raise Rejected("sums of nothing")
    for given in b.inputs:
        if given.name == w.name:
            b.least |= {size: 1 for size in given.sizes if isinstance(size, str)}
    return w


def byte_image(b: Builder, dtype: Any, channels: int) -> Value:
    sizes = [tuple(min(s, 12) for s in b.extent()) for _ in range(b.pick((2, 2, 1)))]
    return b.input([b.pick([(1, 1, 1), (2, 1, 3)]), (channels,) * 3, *sizes], dtype, fill_of(dtype))


def window(b: Builder, x: Value) -> tuple[list[int], dict[str, Any]]:
    kernel = [b.pick((1, 2, 3, 3)) for _ in range(x.rank - 2)]
    pads = [b.whole(0, max(0, k - 1)) for _ in range(2) for k in kernel]
    strides = [b.pick((1, 1, 2)) for _ in kernel]
    return kernel, {"strides": maybe(b, strides), "pads": maybe(b, pads, 0.6)}
