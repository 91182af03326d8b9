"""MatMulNBits, ONNX Runtime's product with weights in few bits: what language models of 4 bits are made of.

With ``g_idx`` the columns of A and the integers of B are put into the order of blocks, B once. ONNX Runtime 1.32 takes 8 for
packed zero points there, whatever they are; here they count, as the operator says.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, float_input, maybe, one
from xyntra_ep.fusion.onnx_ops.products.linear import as_dtype
from xyntra_ep.fusion.onnx_ops.quantised._blocks import BLOCKS
from xyntra_ep.fusion.op_spec import OpSpec, takes
from xyntra_ep.fusion.tensor import BlockGemmNode, Map, Tensor, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
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
    c.require_equal(a.shape[-1], depth, "MatMulNBits: the last axis of A is not K")
    a = c.checks.fit(a, (*a.shape[:-1], depth))
    if (groups := maybe(inputs, 4)) is not None and (order := _order(c, groups, depth, block)) is not None:
        a, q = _picked(a, order[:depth]), _picked(q, order, bits)
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


def _order(c: Context, groups: Tensor, depth: int, block: int) -> NDArray[np.int64] | None:
    """In which order each k stands beside the others of its block, padding last; None: as it is. ``groups`` (``g_idx``) names the
    block of each k, whose scale and zero point it has; where it is made by quantising the largest columns first, all are full."""
    if not groups.is_const:
        raise UnsupportedError("g_idx that is not constant")
    blocks = -(-depth // block)
    given = c.constant(groups, "g_idx").reshape(-1).astype(np.int64)
    if given.size not in (depth, blocks * block):
        raise UnsupportedError(f"g_idx of {given.size} elements, not {depth}")
    usual = np.arange(depth) // block
    if np.array_equal(given[:depth], usual):
        return None
    order = np.argsort(given[:depth], kind="stable")
    if not np.array_equal(given[order], usual):
        raise UnsupportedError("g_idx whose blocks do not have block_size elements each")
    return np.concatenate([order, np.arange(depth, blocks * block)])


def _picked(t: Tensor, order: NDArray[np.int64], bits: int = 0) -> Tensor:
    """``t`` with the elements of its last axis in another order; of 4 ``bits``, two lie in a byte, the first in its low half."""
    *rows, last = (E.axis(i) for i in range(t.rank))

    def place(k: Expr) -> Expr:
        return E.load(1, k, dtype=DType.I32)

    def half(k: Expr) -> Expr:
        byte = E.load(0, *rows, E.call("div", place(k), E.const(2)), dtype=t.dtype)
        is_low = E.call("eq", E.call("mod", place(k), E.const(2)), E.const(0))
        return E.call("where", is_low, E.call("bitand", byte, E.const(15)), E.call("div", byte, E.const(16)))

    if bits == 4:
        first = E.call("mul", last, E.const(2))
        body = E.call("add", half(first), E.call("mul", half(E.call("add", first, E.const(1))), E.const(16)))
    else:
        body = E.load(0, *rows, place(last), dtype=t.dtype)
    return Tensor(t.shape, t.dtype, Map(inputs=(t, literal(order.astype(np.int32), DType.I32)), body=body))


OPS = [
    OpSpec(
        name="com.microsoft.MatMulNBits",
        lower=_matmul_nbits,
        inputs=6,
        attributes=takes("K", "N", "accuracy_level", bits=BITS, block_size=BLOCKS, weight_prepacked=(0,)),
        types=(_FLOATS, (DType.U8,), _FLOATS, (DType.U8, *_FLOATS), (DType.I32,), _FLOATS),
        note="in fp32; where the processor has fast products of it, in int8 if accuracy_level is 4, in bf16 if it is 2 to 4; "
        "weights are constants, and blocks by g_idx are full",
    )
]
