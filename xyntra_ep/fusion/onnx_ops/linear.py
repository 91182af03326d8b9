"""MatMul and Gemm: a sum of products, everything around it as epilogue."""

from __future__ import annotations

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node, OpKind
from xyntra_ep.fusion.onnx_ops._operands import maybe, one, same_float_rounding
from xyntra_ep.fusion.tensor import GemmNode, Tensor, broadcast_shapes
from xyntra_ep.fusion.trace import Context, OpSpec
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType


def matmul(c: Context, a: Tensor, b: Tensor) -> Tensor:
    """NumPy's matmul for operands of rank >= 2, f32 out for float operands."""
    if not a.dtype.is_float or not b.dtype.is_float:
        raise UnsupportedError(f"dtype {a.dtype}")
    c.require_equal(a.shape[-1], b.shape[-2], "MatMul: inner dimensions differ")
    batch = broadcast_shapes(c.checks, a.shape[:-2], b.shape[:-2])
    a = c.checks.fit(a, (*batch, *a.shape[-2:]))
    b = c.checks.fit(b, (*batch, a.shape[-1], b.shape[-1]))
    return Tensor((*batch, a.shape[-2], b.shape[-1]), DType.F32, GemmNode(a=a, b=b))


def round_to(c: Context, t: Tensor, dtype: DType) -> Tensor:
    """``t`` (f32) as ``dtype``."""
    return t if dtype is DType.F32 else c.map([t], lambda v: same_float_rounding(dtype, v), dtype)


def _matmul(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    a, b = one(inputs, 0), one(inputs, 1)
    if a.rank == 0 or b.rank == 0:
        raise UnsupportedError("MatMul of a scalar")
    a2 = a.reshape((1, *a.shape)) if a.rank == 1 else a
    b2 = b.reshape((*b.shape, 1)) if b.rank == 1 else b
    out = round_to(c, matmul(c, a2, b2), a.dtype)
    shape = list(out.shape)
    if a.rank == 1:
        del shape[-2]
    if b.rank == 1:
        del shape[-1]
    return out.reshape(shape)


def _gemm(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    a, b, bias = one(inputs, 0), one(inputs, 1), maybe(inputs, 2)
    a = a.permute((1, 0)) if node.attr("transA", 0) else a
    b = b.permute((1, 0)) if node.attr("transB", 0) else b
    alpha, beta = float(node.attr("alpha", 1.0)), float(node.attr("beta", 1.0))
    out = matmul(c, a, b)
    if alpha != 1.0:
        out = c.map([out], lambda v: E.call("mul", v, E.const(alpha)), DType.F32)
    if bias is not None and beta != 0.0:
        out = c.map([out, bias], lambda v, w: E.call("add", v, E.call("mul", w, E.const(beta))), DType.F32)
        if out.rank != 2:
            raise UnsupportedError("bias of rank above 2")
    return round_to(c, out, a.dtype)


OPS = [
    OpSpec(name="MatMul", lower=_matmul, kind=OpKind.HEAVY),
    OpSpec(name="Gemm", lower=_gemm, kind=OpKind.HEAVY, versions=(7, 10**6)),
]
