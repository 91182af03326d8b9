"""Reading a node's operands and attributes, with the declines that go with it."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr


def one(inputs: Sequence[Tensor | None], i: int) -> Tensor:
    """Input ``i``, which must be there."""
    if i >= len(inputs) or inputs[i] is None:
        raise UnsupportedError(f"input {i} is missing")
    found = inputs[i]
    assert found is not None
    return found


def maybe(inputs: Sequence[Tensor | None], i: int) -> Tensor | None:
    """Input ``i`` or None."""
    return inputs[i] if i < len(inputs) else None


def all_of(inputs: Sequence[Tensor | None]) -> list[Tensor]:
    return [one(inputs, i) for i in range(len(inputs))]


def float_input(inputs: Sequence[Tensor | None], i: int) -> Tensor:
    t = one(inputs, i)
    if not t.dtype.is_float:
        raise UnsupportedError(f"dtype {t.dtype}")
    return t


def normal_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise UnsupportedError(f"axis {axis} of a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def same_float_rounding(dtype: DType, value: Expr) -> Expr:
    """ORT rounds after every node of a half-precision graph; so do we where the result stays inside a fused chain."""
    if value.dtype is not DType.F32 or dtype is DType.F32:
        return _wrap(dtype, value)
    return E.call("round_f16" if dtype is DType.F16 else "round_bf16", value)


def _wrap(dtype: DType, value: Expr) -> Expr:
    names = {DType.I32: "wrap_i32", DType.I8: "wrap_i8", DType.U8: "wrap_u8"}
    return E.call(names[dtype], value) if dtype in names and value.dtype is DType.I64 else value
