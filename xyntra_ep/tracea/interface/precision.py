"""In what products are computed: as asked for, else in the next precision that the device has, and why.

bf16 -> fp16 -> fp32        tf32 -> fp32        int8w -> fp32
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xyntra_ep.options import Precision
from xyntra_ep.tracea.core_ir.ops import Product

if TYPE_CHECKING:
    from xyntra_ep.tracea.interface.context import Context

PRODUCTS: Mapping[Precision, Product] = {
    Precision.FP32: Product.F32,
    Precision.TF32: Product.TF32,
    Precision.BF16: Product.BF16,
    Precision.FP16: Product.F16,
    Precision.INT8W: Product.INT8W,
}
_NEXT = {
    Precision.BF16: Precision.FP16,
    Precision.FP16: Precision.FP32,
    Precision.TF32: Precision.FP32,
    Precision.INT8W: Precision.FP32,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """``shortfall``: why that is not what was asked for, empty when it is."""

    precision: Precision
    shortfall: str = ""

    @property
    def product(self) -> Product:
        return PRODUCTS[self.precision]


def agree(asked: Precision, context: Context) -> Agreed:
    """The first precision from ``asked`` on that ``context``'s device, or processor, has."""
    found = asked
    while not _has(context, found):
        found = _NEXT[found]
    if found is asked:
        return Agreed(precision=found)
    return Agreed(precision=found, shortfall=f"precision={asked} {_why_not(asked, context)}: computed in {found}")


def _has(context: Context, precision: Precision) -> bool:
    product = PRODUCTS[precision]
    if product.half is not None:
        return product.half in context.halves
    if product is Product.TF32:
        return context.device is not None and context.device.gpu.multiplies_tf32
    return product is Product.F32 or context.device is None  # weights of 8 bits are for processors


def _why_not(precision: Precision, context: Context) -> str:
    if context.device is not None:
        return f"is not there with backend={context.device.backend}"
    if precision is Precision.BF16:
        return "needs AMX, or AVX512_BF16 on AMD"
    return "is for NVIDIA GPUs" if precision is Precision.TF32 else "is for GPUs"
