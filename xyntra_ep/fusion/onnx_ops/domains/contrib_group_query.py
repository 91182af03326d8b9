"""com.microsoft.GroupQueryAttention: a decoder's attention with its cache of keys and values, as exporters write it.

Each batch has its own number of keys, ``seqlens_k`` + 1, of which the last S are new. They follow what was there before:

    present[b, n, t] = past[b, n, t]             t < before[b] = seqlens_k[b] + 1 - S, 0 where all keys are new
                       new[b, n, t - before[b]]  the S after those
                       0                         behind them, where the cache is longer

Query s sees the keys up to before[b] + s; with causal = 0 all up to before[b] + S - 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import (
    Inputs,
    clamp_index,
    f,
    float_input,
    maybe,
    one,
    require_indices,
    wanted_outputs,
    within,
)
from xyntra_ep.fusion.onnx_ops.movement.movement import concat, part
from xyntra_ep.fusion.onnx_ops.products.attention import Scores, join_heads, rotated, split_heads
from xyntra_ep.fusion.onnx_ops.products.linear import as_dtype, matmul
from xyntra_ep.fusion.onnx_ops.rows.softmax import softmax
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, INDICES, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, either, eq, le, smax
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

_PAST_K, _PAST_V, _ENDS, _TOTAL, _COS, _SIN, _POSITIONS, _BIAS = range(3, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cache:
    """``before``: keys of a batch that are not new, the same in all batches, or None when ``ends`` says it for each. ``new``: how
    many are; ``total``: of keys, in the longest batch."""

    ends: Tensor
    before: Size | None
    new: Size
    total: Size

    def keys_before(self, operand: int) -> Expr:
        """At the batch of axis 0, where ``ends`` is that operand."""
        if self.before is not None:
            return E.size(self.before)
        last = E.load(operand, E.axis(0), dtype=self.ends.dtype)
        number = E.call("add", last, E.size(1 - self.new))
        return E.call("mul", number, E.size(1 - eq(self.new, self.total)))

    def present(self, c: Context, past: Tensor | None, new: Tensor) -> Tensor:
        """The cache after this step."""
        if past is None:
            return new
        if self.before is not None:
            return concat(c, [past, new], 2)
        length = smax(past.shape[2], self.total)
        b, n, t, h = (E.axis(i) for i in range(4))
        before = self.keys_before(2)
        at = E.call("sub", t, before)
        kept = E.load(0, b, n, clamp_index(t, past.shape[2]), h, dtype=past.dtype)
        added = E.load(1, b, n, clamp_index(at, self.new), h, dtype=new.dtype)
        behind = E.call("where", within(at, self.new), added, f(0))
        body = E.call("where", E.call("lt", t, before), kept, behind)
        shape = (*past.shape[:2], length, past.shape[3])
        return Tensor(shape, new.dtype, Map(inputs=(past, new, self.ends), body=body))


def _cache(c: Context, inputs: Inputs, new: Size) -> _Cache:
    ends, past = one(inputs, _ENDS), maybe(inputs, _PAST_K)
    ends = ends.reshape((ends.shape[0],)) if ends.rank == 1 else ends.reshape((ends.shape[0] * ends.shape[1],))
    [total] = one(inputs, _TOTAL).ints("the total length of GroupQueryAttention")
    require_indices(c, ends, [total], "seqlens_k is out of range", backwards=False)
    if past is not None:
        kept = past.shape[2]
        c.require(
            either(eq(total, kept + new), le(total, kept)), "total_sequence_length fits neither a growing nor a fixed cache"
        )
    before: Size | None = None
    if past is None:
        c.require(eq(new, total), "GroupQueryAttention: more keys than there are, without a past")
        before = 0
    elif c.checks.assume(eq(past.shape[2] + new, total)) and (past.shape[2] == 0 or c.checks.assume(eq(past.shape[0], 1))):
        before = past.shape[2]  # a single batch, whose cache is full
    return _Cache(ends=ends, before=before, new=new, total=total)


def _heads(c: Context, node: Node, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """q[B, N, S, H], k and v[B, M, S, H], from a tensor each or from one that has all."""
    q, k, v = float_input(inputs, 0), maybe(inputs, 1), maybe(inputs, 2)
    heads, kv_heads = int(node.need("num_heads")), int(node.need("kv_num_heads"))
    if k is None or v is None:
        width = q.shape[2]
        if not isinstance(width, int):
            raise UnsupportedError("GroupQueryAttention with an unknown hidden size")
        size = width // (heads + 2 * kv_heads)
        starts = (0, heads * size, (heads + kv_heads) * size, width)
        q, k, v = (part(q, 2, start, end - start) for start, end in pairwise(starts))
    return split_heads(c, q, heads), split_heads(c, k, kv_heads), split_heads(c, v, kv_heads)


def _turned(node: Node, inputs: Inputs, x: Tensor, cache: _Cache) -> Tensor:
    """Rotary embedding, at the positions given or those of new tokens. Where all keys are new, only the first of those given
    counts (so the operator's specification): the others follow it."""
    cos, sin, positions = one(inputs, _COS), one(inputs, _SIN), maybe(inputs, _POSITIONS)
    half = cos.shape[1]
    if not isinstance(half, int):
        raise UnsupportedError("GroupQueryAttention with an unknown rotary width")
    if positions is None:
        where, at = cache.ends, E.call("add", cache.keys_before(3), E.axis(2))
    else:
        is_prompt = eq(cache.new, cache.total)
        own, follows = E.size(1 - is_prompt), E.size(is_prompt)
        given = E.load(3, E.call("mul", E.axis(0), own), E.call("mul", E.axis(2), own), dtype=positions.dtype)
        where, at = positions, E.call("add", given, E.call("mul", E.axis(2), follows))
    interleaved = bool(node.attr("rotary_interleaved", 0))
    return rotated([x, cos, sin, where], [clamp_index(at, cos.shape[0])], 2 * half, interleaved=interleaved)


def _group_query_attention(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    if wanted_outputs(node) > 3:
        raise UnsupportedError("GroupQueryAttention with scores as a result")
    q, k, v = _heads(c, node, inputs)
    width, group = q.shape[3], int(node.need("num_heads")) // int(node.need("kv_num_heads"))
    if not isinstance(width, int):
        raise UnsupportedError("GroupQueryAttention with an unknown head size")
    cache = _cache(c, inputs, q.shape[2])
    if node.attr("do_rotary", 0):
        rows = one(inputs, _COS).shape[0]
        c.require(le(cache.total, rows), "GroupQueryAttention: more keys than the rotary table has positions")
        q, k = _turned(node, inputs, q, cache), _turned(node, inputs, k, cache)
    pasts = (maybe(inputs, _PAST_K), maybe(inputs, _PAST_V))
    for past, new in zip(pasts, (k, v), strict=True):
        if past is not None:
            wanted = (q.shape[0], k.shape[1], one(inputs, _PAST_K).shape[2], new.shape[3])
            for have, want in zip(past.shape, wanted, strict=True):
                c.require_equal(have, want, "past_key and past_value have another shape than keys and values")
    k, v = cache.present(c, pasts[0], k), cache.present(c, pasts[1], v)
    sizes = Scores(batch=q.shape[0], heads=k.shape[1], group=group, queries=q.shape[2], keys=k.shape[2])
    raw = matmul(c, q.reshape((sizes.batch, sizes.heads, group * sizes.queries, width)), k.permute((0, 1, 3, 2)))
    operands = [raw, cache.ends]
    scale, cap = float(node.attr("scale", 0.0)) or 1 / math.sqrt(width), float(node.attr("softcap", 0.0))
    value = E.call("mul", E.load(0, *(E.axis(i) for i in range(4)), dtype=raw.dtype), f(scale))
    if cap > 0:
        value = E.call("mul", E.call("tanh", E.call("div", value, f(cap))), f(cap))
    if (bias := maybe(inputs, _BIAS)) is not None:
        known = None if c.checks.same(cache.total, sizes.keys) else cache.total  # a cache with room to spare
        expanded, value = sizes.mask(c, bias, 2, value, known)
        operands.append(expanded)
    query = sizes.query if node.attr("causal", 1) else E.size(sizes.queries - 1)
    last = E.call("add", query, cache.keys_before(1))
    value = E.call("where", E.call("le", E.axis(3), last), value, f(-math.inf))
    window = int(node.attr("local_window_size", -1))
    if window > 0:
        value = E.call("where", E.call("lt", E.call("sub", last, E.const(window)), E.axis(3)), value, f(-math.inf))
    weights = softmax(Tensor(raw.shape, DType.F32, Map(inputs=tuple(operands), body=value)), [3])
    out = as_dtype(matmul(c, weights, v), q.dtype).reshape((*sizes.full[:3], width))
    return [join_heads(out), k, v][: max(1, wanted_outputs(node))]


OPS = [
    OpSpec(
        name="com.microsoft.GroupQueryAttention",
        lower=_group_query_attention,
        inputs=_BIAS + 1,
        attributes=takes(
            "num_heads",
            "kv_num_heads",
            "scale",
            "softcap",
            "local_window_size",
            "qk_norm_epsilon",  # of weights that are inputs beyond those read, like the next two
            "q_norm_epsilon",
            "k_norm_epsilon",
            causal=FLAG,
            do_rotary=FLAG,
            rotary_interleaved=FLAG,
            smooth_softmax=(0, -1),
            qk_output=(0, -1),
            sliding_window_cache=(0, -1),
            kv_cache_bit_width=(0, -1),
            k_quant_type=("NONE",),
            v_quant_type=("NONE",),
        ),
        types=(FLOATS, FLOATS, FLOATS, FLOATS, FLOATS, INDICES, INDICES, FLOATS, FLOATS, INDICES, FLOATS),
        note="without a sink or scales, and without scores as a result",
    )
]
