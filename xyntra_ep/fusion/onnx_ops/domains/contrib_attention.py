"""What ONNX Runtime's transformer optimizer writes in place of an attention layer.

Masks are those of the CPU provider: a padded key's score is lowered by ``mask_filter_value`` and no more, a key after the query
is never seen, except by the last query, which sees all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.checks import Checks
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import (
    Inputs,
    clamp_index,
    f,
    float_input,
    maybe,
    one,
    wanted_outputs,
)
from xyntra_ep.fusion.onnx_ops.movement.movement import concat, part
from xyntra_ep.fusion.onnx_ops.products.attention import (
    join_heads,
    require_positions,
    require_tables,
    rotated,
    seen_only,
    split_heads,
)
from xyntra_ep.fusion.onnx_ops.products.linear import as_dtype, matmul
from xyntra_ep.fusion.onnx_ops.rows.softmax import softmax
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, INDICES, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, both, either, eq, le
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

_FILTER = -10000.0  # the default of mask_filter_value
_OF_ONE_INPUT = ("Attention", "QAttention")  # queries, keys and values are made of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heads:
    """q[B, N, S, H], k[B, N, T, H], v[B, N, T, Hv]; ``past``: how many of the keys were there before."""

    q: Tensor
    k: Tensor
    v: Tensor
    past: Size

    @property
    def scores(self) -> tuple[Size, ...]:
        return (*self.q.shape[:3], self.k.shape[2])


def _attend(c: Context, node: Node, heads: _Heads, mask: Tensor | None, bias: Tensor | None) -> Tensor:
    """[B, S, N * Hv]"""
    width = heads.q.shape[3]
    if not isinstance(width, int):
        raise UnsupportedError(f"{node.op_type} with an unknown head size")
    raw = matmul(c, heads.q, heads.k.permute((0, 1, 3, 2)))
    scale = float(node.attr("scale", 0.0)) or 1 / math.sqrt(width)
    here = [E.axis(i) for i in range(4)]
    operands, value = [raw], E.call("mul", E.load(0, *here, dtype=raw.dtype), f(scale))
    if bias is not None:
        for i, (have, want) in enumerate(zip(bias.shape, heads.scores, strict=True)):
            fits = eq(have, want) if i >= 2 else either(eq(have, want), eq(have, 1))
            c.require(fits, f"{node.op_type}: the attention bias does not broadcast")
        operands.append(bias.expand([h if h == 1 else w for h, w in zip(bias.shape, heads.scores, strict=True)]))
        at = [E.const(0) if n == 1 else i for n, i in zip(bias.shape, here, strict=True)]
        value = E.call("add", value, E.load(1, *at, dtype=bias.dtype))
    if mask is not None:
        if mask.rank == 1 and node.op_type in _OF_ONE_INPUT:  # not MultiHeadAttention's
            ends = part(mask, 0, 0, heads.scores[0])
            c.require_data(ends, lambda v, _: E.call("lt", v, E.const(0)), "mask_index value is negative")
        padded = _padded(c.checks, node, mask, heads.scores, len(operands))
        if padded is not None:
            value = E.call("add", value, E.call("where", padded, f(float(node.attr("mask_filter_value", _FILTER))), f(0)))
            operands.append(mask)
    if node.attr("unidirectional", 0):
        queries, keys = heads.scores[2:]
        seen = E.call("le", here[3], E.call("add", here[2], E.size(heads.past)))
        if not c.checks.same(keys, heads.past + queries):  # ORT masks nothing for the last query, whose keys are all there are
            seen = E.call("or", seen, E.call("eq", here[2], E.size(queries - 1)))
        value = seen_only(c, seen, value)
    weights = softmax(Tensor(raw.shape, DType.F32, Map(inputs=tuple(operands), body=value)), [3])
    return join_heads(as_dtype(matmul(c, weights, heads.v), heads.q.dtype))


def _padded(checks: Checks, node: Node, mask: Tensor, scores: Sequence[Size], operand: int) -> Expr | None:
    """Whether a key is padding; None: none is. ``mask``: flags [B, T] or [B, S, T], ends [B] or
    [3B + 2], or ends and then starts [2B]."""
    batch, key = E.axis(0), E.axis(3)
    if mask.rank == 2 and node.op_type in _OF_ONE_INPUT:
        return _flagged(checks, node, mask, scores, operand)
    if mask.rank in (2, 3):
        wanted = (scores[0], scores[3]) if mask.rank == 2 else (scores[0], *scores[2:])
        for have, want in zip(mask.shape, wanted, strict=True):
            checks.require_equal(have, want, f"{node.op_type}: the mask's shape does not fit")
        at = [batch, key] if mask.rank == 2 else [batch, E.axis(2), key]
        return E.call("le", E.load(operand, *at, dtype=mask.dtype), E.const(0))
    if mask.rank != 1:
        raise UnsupportedError(f"{node.op_type} with a mask of rank {mask.rank}")
    count, ends = mask.shape[0], E.call("le", E.load(operand, batch, dtype=mask.dtype), key)
    only_ends = either(
        eq(count, scores[0]), eq(count, 3 * scores[0] + 2)
    )  # the latter is for kernels that pack tokens: more follows
    if checks.same(count, scores[0]):
        return ends
    if node.op_type not in _OF_ONE_INPUT:
        checks.require(only_ends, "'key_padding_mask' shape is not expected")
        return ends
    has_starts = eq(count, 2 * scores[0])  # which of them it is may show only at run time
    checks.require(either(only_ends, has_starts), f"{node.op_type}: the mask's shape does not fit")
    start = E.load(operand, E.call("add", batch, E.size(has_starts * scores[0])), dtype=mask.dtype)
    return E.call("or", ends, E.call("lt", key, E.call("mul", start, E.size(has_starts))))


def _flagged(checks: Checks, node: Node, mask: Tensor, scores: Sequence[Size], operand: int) -> Expr | None:
    """Of flags [B, T]. One flag for all keys, [B, 1] or [1, 1], masks none: all scores would move alike. Which of the two it is
    may show only at run time."""
    (rows, width), batch, keys = mask.shape, scores[0], scores[3]
    usual = both(*(1 if checks.same(have, want) else eq(have, want) for have, want in ((rows, batch), (width, keys))))
    message = f"{node.op_type}: the mask's shape does not fit"
    if usual != 0 and checks.assume(usual):
        for have, want in ((rows, batch), (width, keys)):
            checks.require_equal(have, want, message)
        return E.call("le", E.load(operand, E.axis(0), E.axis(3), dtype=mask.dtype), E.const(0))
    of_all = both(eq(width, 1), either(eq(rows, 1), eq(rows, batch)))
    checks.require(either(usual, of_all), message)
    if usual == 0:
        return None
    flag = E.load(operand, clamp_index(E.axis(0), rows), clamp_index(E.axis(3), width), dtype=mask.dtype)
    return E.call("and", E.call("eq", E.size(usual), E.const(1)), E.call("le", flag, E.const(0)))


def _multi_head_attention(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    q, k, v = (float_input(inputs, i) for i in range(3))
    bias, mask, score_bias, past_k, past_v = (maybe(inputs, i) for i in range(3, 8))
    if wanted_outputs(node) > 3:
        raise UnsupportedError("MultiHeadAttention with scores as a result")
    heads = int(node.need("num_heads"))
    for t in (k, v):
        c.require_equal(t.shape[0], q.shape[0], "'query', 'key' and 'value' shall have same dim 0 (batch_size)")
    if q.rank != 3 or k.rank not in (3, 4) or v.rank != k.rank:
        raise UnsupportedError("MultiHeadAttention with packed keys and values")
    if bias is not None:
        if k.rank != 3:
            raise UnsupportedError("MultiHeadAttention with a bias and transposed keys")
        q, k, v = _biased(c, [q, k, v], bias)
    q = split_heads(c, q, heads)
    if k.rank == 3:
        k, v = split_heads(c, k, heads), split_heads(c, v, heads)
    for t in (k, v):
        c.require_equal(t.shape[1], heads, "keys and values have another number of heads than queries")
    for past_t in (past_k, past_v):
        for have, want in zip(() if past_t is None else past_t.shape[:2], (q.shape[0], heads), strict=False):
            c.require_equal(have, want, "past keys and values have another batch or number of heads than queries")
    past: Size = 0
    if past_k is not None and past_v is not None:
        past = past_k.shape[2]
        k, v = concat(c, [past_k, k], 2), concat(c, [past_v, v], 2)
    out = _attend(c, node, _Heads(q=q, k=k, v=v, past=past), mask, score_bias)
    return [out, k, v][: max(1, wanted_outputs(node))]


def _biased(c: Context, parts: Sequence[Tensor], bias: Tensor) -> list[Tensor]:
    """Each part plus its share of ``bias``, which has them one after the other."""
    c.require_equal(
        bias.size, sum((t.shape[-1] for t in parts), start=0), "the bias has another size than queries, keys and values"
    )
    found, start = [], 0
    for t in parts:
        width = t.shape[-1]
        if not isinstance(width, int):
            raise UnsupportedError("a bias over an unknown hidden size")
        found.append(c.map([t, part(bias, 0, start, width)], lambda x, b: E.call("add", x, b), t.dtype))
        start += width
    return found


def _attention(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    x, weights = float_input(inputs, 0), float_input(inputs, 1)
    bias, mask, past, score_bias = (maybe(inputs, i) for i in range(2, 6))
    total = weights.shape[1]
    joined = matmul(c, x, weights)
    if bias is not None:
        c.require_equal(bias.size, total, "'bias' should have same length as dimension 1 of 'weights'")
        joined = c.map([joined, bias], lambda t, b: E.call("add", t, b), DType.F32)
    return attention_of(c, node, as_dtype(joined, x.dtype), mask, past, score_bias)


def attention_of(
    c: Context, node: Node, joined: Tensor, mask: Tensor | None, past: Tensor | None, score_bias: Tensor | None = None
) -> Sequence[Tensor]:
    """``joined``: queries, keys and values [B, S, N * (H + H + Hv)], one after the other."""
    heads, total = int(node.need("num_heads")), joined.shape[2]
    if not isinstance(total, int):
        raise UnsupportedError(f"com.microsoft.{node.op_type} with weights of unknown width")
    widths = [int(w) for w in node.attr("qkv_hidden_sizes") or [total // 3] * 3]
    starts = (0, widths[0], widths[0] + widths[1])
    q, k, v = (split_heads(c, part(joined, 2, s, w), heads) for s, w in zip(starts, widths, strict=True))
    before: Size = 0
    if past is not None:  # [2, B, N, P, H]
        for have, want in zip((*past.shape[:3], past.shape[4]), (2, joined.shape[0], heads, k.shape[3]), strict=True):
            c.require_equal(have, want, "'past' has another shape than keys and values")
        before = past.shape[3]
        kept = [part(past, 0, i, 1).reshape(past.shape[1:]) for i in range(2)]
        k, v = concat(c, [kept[0], k], 2), concat(c, [kept[1], v], 2)
    out = _attend(c, node, _Heads(q=q, k=k, v=v, past=before), mask, score_bias)
    if wanted_outputs(node) < 2:
        return [out]
    return [out, concat(c, [t.reshape((1, *t.shape)) for t in (k, v)], 0)]


def _rotary_embedding(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """As ONNX's own, with the positions before the tables: one for each token, or [1], the first token's."""
    x, positions, cos, sin = float_input(inputs, 0), one(inputs, 1), one(inputs, 2), one(inputs, 3)
    flat, width = x.rank == 3, int(node.attr("rotary_embedding_dim", 0))
    if flat:
        heads, hidden, half = int(node.attr("num_heads", 0)), x.shape[2], cos.shape[1]
        if not isinstance(hidden, int) or not isinstance(half, int):
            raise UnsupportedError("com.microsoft.RotaryEmbedding with an unknown head size")
        x = split_heads(c, x, heads or hidden // (2 * half))
    require_tables(c, x, cos, sin, width)
    if not width:  # ONNX Runtime would leave the last element of each head as its memory was
        c.require(eq(x.shape[3], 2 * (x.shape[3] // 2)), "an odd head size")
    c.require(le(x.shape[2], cos.shape[0]), "more tokens than the tables have rows")
    require_positions(c, positions, x, cos)
    if positions.rank == 1:
        row = E.call("add", E.load(3, E.const(0), dtype=positions.dtype), E.axis(2))
    else:
        row = E.load(3, E.axis(0), E.axis(2), dtype=positions.dtype)
    at = [clamp_index(row, cos.shape[0])]
    out = rotated([x, cos, sin, positions], at, width, interleaved=bool(node.attr("interleaved", 0)))
    return join_heads(out) if flat else out


OPS = [
    OpSpec(
        name="com.microsoft.Attention",
        lower=_attention,
        inputs=6,
        attributes=takes(
            "mask_filter_value",
            "num_heads",
            "qkv_hidden_sizes",
            "rotary_embedding_dim",
            "scale",
            do_rotary=(0,),
            past_present_share_buffer=(0,),
            unidirectional=FLAG,
        ),
        types=(FLOATS, FLOATS, FLOATS, INDICES, FLOATS, FLOATS),
    ),
    OpSpec(
        name="com.microsoft.MultiHeadAttention",
        lower=_multi_head_attention,
        inputs=8,
        attributes=takes("mask_filter_value", "num_heads", "scale", unidirectional=FLAG),
        types=(FLOATS, FLOATS, FLOATS, FLOATS, INDICES, FLOATS, FLOATS, FLOATS),
        note="without packed keys and values",
    ),
    OpSpec(
        name="com.microsoft.RotaryEmbedding",
        lower=_rotary_embedding,
        inputs=4,
        attributes=takes("num_heads", "rotary_embedding_dim", interleaved=FLAG, is_packed_batching=(0,), scale=(1.0,)),
        types=(FLOATS, INDICES, FLOATS, FLOATS),
    ),
]
