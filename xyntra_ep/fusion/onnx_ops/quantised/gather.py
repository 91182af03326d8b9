"""GatherBlockQuantized: rows of a table of few bits, the embeddings of language models."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, clamp_index, f, from_end, maybe, normal_axis, one, within
from xyntra_ep.fusion.op_spec import INDICES, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor
from xyntra_ep.fusion.trace import Context, nibble
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, eq
from xyntra_ep.tracea.core_ir.dtypes import FOUR_BITS, DType
from xyntra_ep.tracea.core_ir.expr import Expr

_BYTES = (DType.U8, DType.I8)
_FLOATS = (DType.F32, DType.F16)


def _gather_block_quantized(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """An index that names no row is no error: ONNX Runtime gives zeros there."""
    data, indices, scales, zeros = one(inputs, 0), one(inputs, 1), one(inputs, 2), maybe(inputs, 3)
    bits, block = int(node.attr("bits", 4)), int(node.attr("block_size", 128))
    axis, along = (
        normal_axis(int(node.attr(name, default)), data.rank) for name, default in (("gather_axis", 0), ("quantize_axis", 1))
    )
    is_packed = c.graph.values[node.inputs[0]].elem_type not in FOUR_BITS
    per_byte = 8 // bits if is_packed else 1
    if is_packed and (data.dtype is not DType.U8 or axis != 0 or along != data.rank - 1 or data.rank < 2):
        raise UnsupportedError("bytes that are gathered along another axis than the first, or scaled along another than the last")
    if not is_packed and bits != 4:
        raise UnsupportedError(f"bits = {bits} of integers of 4 bits")
    values = (*data.shape[:-1], data.shape[-1] * per_byte)
    blocks = tuple(ceildiv(extent, block) if i == along else extent for i, extent in enumerate(values))
    _require_shape(c, scales, blocks)
    if zeros is not None:
        _require_shape(c, zeros, (*blocks[:-1], ceildiv(blocks[-1], per_byte)))
    rank = indices.rank
    place = E.load(1, *(E.axis(axis + i) for i in range(rank)), dtype=indices.dtype)
    row = from_end(place, data.shape[axis])
    at = [clamp_index(row, data.shape[axis]) if i == axis else E.axis(i if i < axis else i + rank - 1) for i in range(data.rank)]
    of_block = [E.call("div", e, E.const(block)) if i == along else e for i, e in enumerate(at)]
    zero: Expr = E.const(1 << (bits - 1) if is_packed else 0)
    if zeros is not None:
        zero = _element(3, of_block, zeros.dtype, bits, per_byte)
    table, element = data, _element(0, at, data.dtype, bits, per_byte)
    if not is_packed and not data.is_const:  # a large one: only what is asked for is taken out of its bytes
        table, whole = c.packed(node.inputs[0])
        element = nibble(0, at, whole, data.dtype)
    level = E.call("to_f", E.call("sub", element, zero))
    value = E.call("mul", level, E.load(2, *of_block, dtype=scales.dtype))
    body = E.call("where", within(row, data.shape[axis]), value, f(0))
    shape = (*values[:axis], *indices.shape, *values[axis + 1 :])
    return Tensor(shape, scales.dtype, Map(inputs=(table, indices, scales, *([] if zeros is None else [zeros])), body=body))


def _require_shape(c: Context, t: Tensor, shape: Sequence[Size]) -> None:
    if t.rank != len(shape):
        raise UnsupportedError(f"scales or zero points of rank {t.rank} for data of rank {len(shape)}")
    for have, want in zip(t.shape, shape, strict=True):
        c.require(eq(have, want), "data and scales do not match shapes.")


def _element(operand: int, at: Sequence[Expr], dtype: DType, bits: int, per_byte: int) -> Expr:
    """The integer at ``at``, ``per_byte`` of which lie in one byte along the last axis, the first in its low bits."""
    if per_byte == 1:
        return E.load(operand, *at, dtype=dtype)
    byte = E.load(operand, *at[:-1], E.call("div", at[-1], E.const(per_byte)), dtype=dtype)
    slot = E.call("mod", at[-1], E.const(per_byte))
    found = byte
    for i in range(per_byte):
        here = E.call("bitand", E.call("div", byte, E.const(1 << (bits * i))), E.const((1 << bits) - 1))
        found = here if i == 0 else E.call("where", E.call("eq", slot, E.const(i)), here, found)
    return found


OPS = [
    OpSpec(
        name="com.microsoft.GatherBlockQuantized",
        lower=_gather_block_quantized,
        inputs=4,
        attributes=takes("block_size", "gather_axis", "quantize_axis", bits=(2, 4, 8)),
        types=(_BYTES, INDICES, _FLOATS, _BYTES),
        note="integers of 4 bits are constants",
    )
]
