"""PyTorch's element types as ours."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dtypes import DType

OURS: dict[torch.dtype, DType] = {
    torch.float32: DType.F32,
    torch.float16: DType.F16,
    torch.bfloat16: DType.BF16,
    torch.int64: DType.I64,
    torch.int32: DType.I32,
    torch.int16: DType.I16,
    torch.int8: DType.I8,
    torch.uint8: DType.U8,
    torch.bool: DType.BOOL,
}
THEIRS = {ours: theirs for theirs, ours in OURS.items()}


def array_of(tensor: torch.Tensor) -> NDArray[Any]:
    """The tensor's memory as numpy sees it, contiguous; bfloat16 as uint16."""
    tensor = tensor.detach().contiguous()
    found: NDArray[Any] = (tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor).numpy()
    return found
