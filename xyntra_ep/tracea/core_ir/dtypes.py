"""Element types, with their number in ORT's ABI and what a kernel computes them in."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class DType(StrEnum):
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    U16 = "u16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def bytes(self) -> int:
        return _BYTES[self]

    @property
    def is_float(self) -> bool:
        return self in (DType.F32, DType.F16, DType.BF16)

    @property
    def largest(self) -> float:
        """The largest finite number of a float type."""
        return _LARGEST[self]

    @property
    def compute(self) -> DType:
        """The type arithmetic is done in: f32 for all floats, i64 for integers, bool for bool."""
        if self.is_float:
            return DType.F32
        return DType.BOOL if self is DType.BOOL else DType.I64

    @property
    def ort(self) -> int:
        """ONNXTensorElementDataType."""
        return _ORT[self]

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type with this layout; bfloat16 has none and is carried as uint16."""
        return np.dtype(_NUMPY[self])


_BYTES = {
    DType.F32: 4, DType.F16: 2, DType.BF16: 2, DType.I64: 8, DType.I32: 4, DType.I16: 2, DType.U16: 2,
    DType.I8: 1, DType.U8: 1, DType.BOOL: 1,
}  # fmt: skip
_ORT = {
    DType.F32: 1, DType.U8: 2, DType.I8: 3, DType.U16: 4, DType.I16: 5, DType.I32: 6, DType.I64: 7, DType.BOOL: 9,
    DType.F16: 10, DType.BF16: 16,
}  # fmt: skip
_NUMPY = {
    DType.F32: "<f4", DType.F16: "<f2", DType.BF16: "<u2", DType.I64: "<i8", DType.I32: "<i4", DType.I16: "<i2",
    DType.U16: "<u2", DType.I8: "i1", DType.U8: "u1", DType.BOOL: "?",
}  # fmt: skip
_LARGEST = {DType.F32: 2.0**128 - 2.0**104, DType.F16: 65504.0, DType.BF16: 2.0**128 - 2.0**120}
BYTES = frozenset({DType.I8, DType.U8})
LEVELS = (DType.U8, DType.I8, DType.U16, DType.I16)  # what stands for a float by its distance from a zero point
FOUR_BITS = {21: DType.U8, 22: DType.I8}  # by ONNXTensorElementDataType: what elements of half a byte become in a kernel
_FROM_ORT = {number: dtype for dtype, number in _ORT.items()}


def from_ort(elem_type: int) -> DType | None:
    """The DType of an ORT element type, None for one we do not handle."""
    return _FROM_ORT.get(elem_type)


def pack_nibbles(elements: NDArray[Any]) -> NDArray[Any]:
    """Integers of 4 bits as ONNX stores them: two in a byte, the first in its low half."""
    flat = elements.reshape(-1).astype(np.int8).view(np.uint8) & 15
    pairs = np.append(flat, np.zeros(flat.size % 2, np.uint8)).reshape(-1, 2)
    return np.asarray(pairs[:, 0] | pairs[:, 1] << 4)


def unpack_nibbles(stored: NDArray[Any], count: int, dtype: DType) -> NDArray[Any]:
    """``count`` integers of 4 bits, one in a byte."""
    flat = np.stack([stored & 15, stored >> 4], axis=1).reshape(-1)[:count]
    return flat.astype(np.uint8) if dtype is DType.U8 else np.asarray((flat.astype(np.int8) ^ 8) - 8)


def to_float64(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Widen stored elements to the interpreter's types: float64, int64 or bool."""
    if dtype is DType.BF16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype.is_float:
        return array.astype(np.float64)
    return array.astype(np.bool_ if dtype is DType.BOOL else np.int64)


def from_float64(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    """Round the interpreter's result to the stored type (nearest even)."""
    if dtype is DType.BF16:
        bits = array.astype(np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x40
        return np.where(np.isnan(array), quiet, rounded).astype(np.uint16)
    return array.astype(dtype.numpy)
