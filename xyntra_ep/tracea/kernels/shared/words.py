"""Integers in vectors of 32 bits a lane, where what is computed in general takes 64: half the registers, and one instruction for
each shuffle."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.nodes import Convert, Elem, Rvalue, i32


def in_words(dtype: DType) -> bool:
    """Whether a vector of words holds what is stored as ``dtype``: floats, and integers of at most 32 bits."""
    return dtype.is_float or (dtype.compute is DType.I64 and dtype.bytes <= 4)


def as_words(value: Rvalue) -> Rvalue:
    """The low 32 bits of long integers, all that memory of shorter ones takes; anything else as it is."""
    return Convert(i32(value.type.lanes), value) if value.type.elem is Elem.I64 else value
