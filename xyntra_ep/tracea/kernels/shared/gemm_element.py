"""One element of a matrix product: a row times a column, what needs no blocking, of any types, on any target."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Convert, Fma, Pointer, Rvalue, i32, loaded_type


def why_no_product(op: Gemm, context: BuildContext) -> str | None:
    """None where a and b are of types that can be multiplied."""
    a, b = op.inputs[:2]
    if op.product is Product.I32:
        return None
    if a.dtype.compute is DType.BOOL or a.dtype.compute is not b.dtype.compute:
        return f"no product of {a.dtype} and {b.dtype}"
    return None


def row_times_column(k: KernelBuilder, op: Gemm, a: Pointer, b: Pointer, column: Rvalue) -> Rvalue:
    """The sum over k, of integers modulo 2^32. ``a``: at the row; ``b``: at its matrix, in which ``column`` is a column's
    distance."""
    x_step, y_step = op.inputs[0].strides[-1], op.inputs[1].strides[-2]
    total = k.variable("total", Const(loaded_type(op.inputs[0].dtype, 1), 0))
    with k.loop("k", 0, k.param(op.inputs[0].shape[-1])) as step:
        x = k.load(a, step * k.param(x_step))
        y = k.load(b, step * k.param(y_step) + column)
        k.assign(total, Fma(x, y, total))
    return Convert(i32(1), total) if op.product is Product.I32 else total
