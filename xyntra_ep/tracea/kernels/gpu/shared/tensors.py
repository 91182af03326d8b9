"""Operands as tensors that are copied in boxes: what `cuTensorMapEncodeTiled` takes, and the coordinates of a box."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, eq, known_nonnegative, ne, select
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.variant import TensorView
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue

_ANY_STRIDE = 16  # bytes, of an axis with one place


def moving(strides: Sequence[Size]) -> list[int]:
    """The axes along which an operand changes."""
    return [i for i, stride in enumerate(strides) if stride != 0]


def is_tensor(operand: Operand) -> bool:
    """Whether the driver takes its strides, as far as they are known (CUDA Driver API, cuTensorMapEncodeTiled: unsigned; of 0 it
    does not speak). Nothing is copied of an empty tensor."""
    repeats = 0 in operand.strides[-2:] and 0 not in operand.shape
    return not repeats and all(known_nonnegative(stride) for stride in operand.strides)


def tensor_view(
    operand: Operand, place: int, inner: Size, rows: Size, apart: Size, others: Sequence[tuple[Size, Size]]
) -> TensorView:
    """The operand, in the call's buffer number ``place``: ``inner`` contiguous elements in each of ``rows``, which are ``apart``
    elements from each other, and the extents and strides of ``others``. An axis that repeats is one place."""
    size = operand.dtype.bytes
    return TensorView(
        buffer=place,
        offset_bytes=operand.offset * size,
        extents=(inner, rows, *(select(eq(stride, 0), 1, extent) for extent, stride in others)),
        strides_bytes=(apart * size, *(select(eq(stride, 0), _ANY_STRIDE, stride * size) for _, stride in others)),
    )


def coordinate(k: WarpgroupBuilder, at: Rvalue, stride: Size) -> Rvalue:
    """``at`` along an axis of `moving`, which may turn out to be one that the operand does not have."""
    return at if isinstance(stride, int) else at * k.param(ne(stride, 0))
