"""MatMulNBits, ONNX Runtime's product with weights in few bits: what language models of 4 bits are made of."""

from __future__ import annotations

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, float_input, maybe, one
from xyntra_ep.fusion.onnx_ops.products.linear import as_dtype
from xyntra_ep.fusion.onnx_ops.quantised._blocks import BLOCKS
from xyntra_ep.fusion.op_spec import OpSpec, takes
from xyntra_ep.fusion.tensor import BlockGemmNode, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Product

BITS = (4, 8)
_FLOATS = (DType.F32, DType.F16)
_ALLOWED = {2: Product.BF16, 3: Product.BF16, 4: Product.INT8}  # by accuracy_level: 1 fp32, 2 fp16, 3 bf16, 4 int8


def _matmul_nbits(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """``accuracy_level`` allows to round a, to 16 bits from 2 on, to 8 at 4, and demands nothing."""
    a, bias = float_input(inputs, 0), maybe(inputs, 5)
    bits, block = int(node.attr("bits", 4)), int(node.need("block_size"))
    n, depth = int(node.need("N")), int(node.need("K"))
    if a.rank < 2 or min(n, depth) < 1:
        raise UnsupportedError(f"MatMulNBits of rank {a.rank} with N = {n}, K = {depth}")
    blocks = -(-depth // block)
    q = _rows(one(inputs, 1), n, blocks * block * bits // 8, "B")
    scales = _rows(_as(a, one(inputs, 2), "scales"), n, blocks, "scales")
    zeros = () if (given := maybe(inputs, 3)) is None else (_zero_points(a, given, n, blocks, bits),)
    if (order := maybe(inputs, 4)) is not None:
        _require_usual_order(c, order, depth, block)
    c.require_equal(a.shape[-1], depth, "MatMulNBits: the last axis of A is not K")
    a = c.checks.fit(a, (*a.shape[:-1], depth))
    allows = _ALLOWED.get(int(node.attr("accuracy_level", 0)), Product.F32)
    node_ = BlockGemmNode(a=a, q=q, scales=scales, zeros=zeros, bits=bits, block=block, allows=allows)
    out = Tensor((*a.shape[:-1], n), DType.F32, node_)
    if bias is not None:
        if bias.shape != (n,):
            raise UnsupportedError(f"a bias of shape {bias.shape}, not {(n,)}")
        out = c.map([out, _as(a, bias, "the bias")], lambda v, w: E.call("add", v, w), DType.F32)
    return as_dtype(out, a.dtype)


def _as(a: Tensor, t: Tensor, what: str) -> Tensor:
    """``t``, which must be of the type of ``a``."""
    if t.dtype is not a.dtype:
        raise UnsupportedError(f"{what} in {t.dtype} beside {a.dtype}")
    return t


def _rows(t: Tensor, n: int, width: int, what: str) -> Tensor:
    """A constant as [n, width], however its axes are divided."""
    if not t.is_const:
        raise UnsupportedError(f"{what} is not constant")
    if t.size != n * width or (t.rank > 1 and t.shape[0] != n):
        raise UnsupportedError(f"{what} has shape {t.shape}, not {(n, width)}")
    return t.reshape((n, width))


def _zero_points(a: Tensor, t: Tensor, n: int, blocks: int, bits: int) -> Tensor:
    packed = t.dtype is DType.U8
    return _rows(t if packed else _as(a, t, "zero points"), n, -(-blocks * bits // 8) if packed else blocks, "zero_points")


def _require_usual_order(c: Context, order: Tensor, depth: int, block: int) -> None:
    """``g_idx`` names the block of each k; only that of its place is computed."""
    if not order.is_const or not np.array_equal(c.constant(order, "g_idx").reshape(-1), np.arange(depth) // block):
        raise UnsupportedError("g_idx that puts k in another order")


OPS = [
    OpSpec(
        name="com.microsoft.MatMulNBits",
        lower=_matmul_nbits,
        inputs=6,
        attributes=takes("K", "N", "accuracy_level", bits=BITS, block_size=BLOCKS, weight_prepacked=(0,)),
        types=(_FLOATS, (DType.U8,), _FLOATS, (DType.U8, *_FLOATS), (DType.I32,), _FLOATS),
        note="in fp32; where the processor has fast products of it, in int8 if accuracy_level is 4, in bf16 if it is 2 to 4; "
        "weights are constants",
    )
]
