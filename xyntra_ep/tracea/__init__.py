"""Tracea, the kernel compiler: from core-IR operations to compiled kernels for the machine at hand, and a plan that runs them.

Layers, from the top: `interface`, `planning`, `doctor` and `kernels`, `emitters`, `semantic_ir`, `core_ir`; `runtime` compiles.
Read first: `core_ir/ops/core_op.py`, then `interface/context.py`.

>>> import xyntra_ep.tracea as tracea
>>> tracea.Context().plan_kernel("gemm", m=128, n=768, k=768).op
'gemm'
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xyntra_ep.tracea.interface.context import Context

__all__ = ["Context"]


def __getattr__(name: str) -> Any:
    """Imported on first use: the layers below import this package while they are being imported themselves."""
    if name == "Context":
        from xyntra_ep.tracea.interface.context import Context

        return Context
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
