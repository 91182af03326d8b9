"""Values and the views of them that ops read and write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType


class ValueKind(StrEnum):
    INPUT = "input"  # index = position among the island's inputs
    OUTPUT = "output"  # index = position among the island's outputs; may be read after it was written
    CONST = "const"  # index = position in Program.constants
    LITERAL = "literal"  # bytes in the plan
    TEMP = "temp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A buffer: ``shape`` elements of ``dtype``, contiguous row-major in ``shape`` (operands may view it otherwise)."""

    kind: ValueKind
    dtype: DType
    shape: tuple[Size, ...]
    index: int = 0
    literal: bytes = b""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A view of ``Program.values[value]``: element (i, j, ...) is at offset + i*strides[0] + j*strides[1] ... (in elements)."""

    value: int
    dtype: DType
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size = 0


def contiguous_strides(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Row-major strides in elements."""
    return tuple(product(shape[i + 1 :]) for i in range(len(shape)))
