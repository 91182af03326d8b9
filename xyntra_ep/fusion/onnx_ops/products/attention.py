"""Attention and rotary embedding, taken apart into products, one score expression and a softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    wrapped,
)
from xyntra_ep.fusion.onnx_ops.movement.movement import concat
from xyntra_ep.fusion.onnx_ops.products.linear import as_dtype, matmul
from xyntra_ep.fusion.onnx_ops.rows.softmax import softmax
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, INDICES, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, either, eq, le, lt, select
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

_OF_ITS_BODY = 25  # from this version on ONNX Runtime (1.32) has no kernel, and computes the body of the function
RAW, SOFTCAPPED, MASKED, PROBABILITY = range(4)  # qk_matmul_output_mode


def split_heads(c: Context, t: Tensor, heads: int) -> Tensor:
    """[B, S, H * D] -> [B, H, S, D]"""
    width = t.shape[2] // heads
    c.require_equal(t.shape[2], width * heads, "the hidden size is no multiple of the number of heads")
    return t.reshape((t.shape[0], t.shape[1], heads, width)).permute((0, 2, 1, 3))


def join_heads(t: Tensor) -> Tensor:
    """[B, H, S, D] -> [B, S, H * D]"""
    return t.permute((0, 2, 1, 3)).reshape((t.shape[0], t.shape[2], t.shape[1] * t.shape[3]))


def seen_only(c: Context, seen: Expr, score: Expr) -> Expr:
    """``score`` of a key that is ``seen``, else minus infinity. A strict session adds that, as ONNX Runtime does: what other keys
    have of NaN and infinity shows then."""
    if c.graph.strict:
        return E.call("add", score, E.call("where", seen, f(0), f(-math.inf)))
    return E.call("where", seen, score, f(-math.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The score expression over [B, KV heads, group * S, T]: query heads that share a key head are rows of one product."""

    batch: Size
    heads: Size
    group: int
    queries: Size
    keys: Size

    @property
    def full(self) -> tuple[Size, ...]:
        """With every query head for itself."""
        return (self.batch, self.heads * self.group, self.queries, self.keys)

    @property
    def head(self) -> Expr:
        if self.group == 1:
            return E.axis(1)
        part = E.call("div", E.axis(2), E.size(self.queries))
        return E.call("add", E.call("mul", E.axis(1), E.const(self.group)), part)

    @property
    def query(self) -> Expr:
        return E.axis(2) if self.group == 1 else E.call("mod", E.axis(2), E.size(self.queries))

    def mask(
        self, c: Context, mask: Tensor, operand: int, value: Expr, known: Size | None = None, *, pads: bool = False
    ) -> tuple[Tensor, Expr]:
        """``value`` with a mask that broadcasts; keys beyond a shorter mask are masked out. ``known``: a width of the mask that
        is meant to be shorter. ``pads``: one of a single column is short, too, and not repeated (ONNX from version 24 on)."""
        width = mask.shape[-1] if known is None else known
        least = 0 if pads else 1
        short = known is not None or (isinstance(width, int) and isinstance(self.keys, int) and least < width < self.keys)
        wanted = [*self.full[:3], width if short else self.keys][-mask.rank :]
        for i, (have, want) in enumerate(zip(mask.shape, wanted, strict=True)):
            repeats = eq(have, 1) if not (pads and i == mask.rank - 1) else 0
            c.require(either(eq(have, want), repeats), "Attention: the mask does not broadcast")
        mask = mask.expand([have if have == 1 else want for have, want in zip(mask.shape, wanted, strict=True)])
        at = [E.axis(0), self.head, self.query, E.axis(3)][-mask.rank :]
        loaded = E.load(operand, *(E.const(0) if n == 1 else i for n, i in zip(mask.shape, at, strict=True)), dtype=mask.dtype)
        masked = seen_only(c, loaded, value) if mask.dtype is DType.BOOL else E.call("add", value, loaded)
        if short:
            masked = seen_only(c, E.call("lt", E.axis(3), E.size(width)), masked)
        return mask, masked


def _attention(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    q, k, v = (float_input(inputs, i) for i in range(3))
    mask, past_k, past_v, valid = (maybe(inputs, i) for i in range(3, 7))
    flat = q.rank == 3
    if flat:
        q_heads, kv_heads = int(node.need("q_num_heads")), int(node.need("kv_num_heads"))
        q, k, v = (split_heads(c, t, n) for t, n in ((q, q_heads), (k, kv_heads), (v, kv_heads)))
    for extent in (q.shape[0], q.shape[2]) if node.version < _OF_ITS_BODY else ():
        c.require(lt(0, extent), "batch size and sequence lengths must be greater than 0")
    for t in (k, v):
        c.require_equal(t.shape[0], q.shape[0], "queries, keys and values have different batch sizes")
    c.require_equal(k.shape[1], v.shape[1], "keys and values have different numbers of heads")
    c.require_equal(k.shape[2], v.shape[2], "keys and values have different lengths")
    offset: Expr = E.const(0)
    if past_k is not None:  # a single query behind others sees all keys in ONNX Runtime, however many are new
        past = past_k.shape[2]
        alone = eq(q.shape[2], 1) * lt(0, past)
        offset = E.size(past if c.checks.same(k.shape[2], q.shape[2]) else select(alone, past + k.shape[2] - 1, past))
    if past_k is not None and past_v is not None:
        k, v = concat(c, [past_k, k], 2), concat(c, [past_v, v], 2)
    c.require(lt(0, k.shape[2]), "KV sequence length must be greater than 0")
    q_count, kv_count = q.shape[1], k.shape[1]
    if not isinstance(q_count, int) or not isinstance(kv_count, int) or q_count % kv_count:
        raise UnsupportedError("Attention with an unknown number of heads")
    sizes = Scores(batch=q.shape[0], heads=kv_count, group=q_count // kv_count, queries=q.shape[2], keys=k.shape[2])
    c.require_equal(k.shape[3], q.shape[3], "queries and keys have different head sizes")
    rows = q.reshape((sizes.batch, kv_count, sizes.group * sizes.queries, q.shape[3]))
    raw = matmul(c, rows, k.permute((0, 1, 3, 2)))
    width = q.shape[3]
    if not isinstance(width, int):
        raise UnsupportedError("Attention with an unknown head size")
    scale, cap = float(node.attr("scale", 1 / math.sqrt(width))), float(node.attr("softcap", 0.0))
    stages = [E.call("mul", E.load(0, *(E.axis(i) for i in range(4)), dtype=raw.dtype), f(scale))]
    capped = stages[RAW]
    if cap:
        capped = E.call("mul", E.call("tanh", E.call("div", capped, f(cap))), f(cap))
    stages.append(capped)
    operands = [raw]
    value = capped
    if mask is not None:
        expanded, value = sizes.mask(c, mask, 1, value, pads=node.version >= 24)
        operands.append(expanded)
    if valid is not None:
        c.require_equal(valid.size, sizes.batch, "one number of keys for each batch is wanted")
        require_indices(c, valid, [sizes.keys + 1], "a number of keys is more than there are", backwards=False)
        operands.append(valid)
        number = E.load(len(operands) - 1, E.axis(0), dtype=valid.dtype)
        value = E.call("where", E.call("lt", E.axis(3), number), value, f(-math.inf))
        offset = E.call("sub", number, E.size(sizes.queries)) if past_k is None else offset
    if node.attr("is_causal", 0):
        visible = E.call("le", E.axis(3), E.call("add", sizes.query, offset))
        value = seen_only(c, visible, value)
    stages.append(value)
    scores = Tensor(raw.shape, DType.F32, Map(inputs=tuple(operands), body=value))
    weights = softmax(scores, [3], unseen_zero=mask is not None or valid is not None)
    out = as_dtype(matmul(c, weights, v), q.dtype).reshape((*sizes.full[:3], v.shape[3]))
    results = [join_heads(out) if flat else out, k, v]
    if wanted_outputs(node) > 3:
        mode = int(node.attr("qk_matmul_output_mode", 0))
        if mode == MASKED and (node.attr("is_causal", 0) or valid is not None or (mask is not None and mask.dtype is DType.BOOL)):
            raise UnsupportedError("masked scores as a result")  # ORT writes the lowest float in place of -inf
        shown = weights if mode == PROBABILITY else Tensor(raw.shape, DType.F32, Map(inputs=tuple(operands), body=stages[mode]))
        results.append(as_dtype(shown, q.dtype).reshape(sizes.full))
    return results


def _rotary_embedding(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """[B, H, S, D] or [B, S, H * D]"""
    x, cos, sin, positions = float_input(inputs, 0), one(inputs, 1), one(inputs, 2), maybe(inputs, 3)
    flat = x.rank == 3
    if flat:
        x = split_heads(c, x, int(node.need("num_heads")))
    require_tables(c, x, cos, sin, int(node.attr("rotary_embedding_dim", 0)))
    operands = [x, cos, sin]
    if positions is None:
        for have, want in zip(cos.shape, (x.shape[0], x.shape[2]), strict=False):
            c.require_equal(have, want, "the tables are not one row for each token")
        at = [E.axis(0), E.axis(2)]
    else:
        operands.append(positions)
        row = E.load(3, E.axis(0), E.axis(2), dtype=positions.dtype)
        require_positions(c, positions, x, cos)
        at = [clamp_index(row, cos.shape[0])]
    out = rotated(operands, at, int(node.attr("rotary_embedding_dim", 0)), interleaved=bool(node.attr("interleaved", 0)))
    return join_heads(out) if flat else out


def require_tables(c: Context, x: Tensor, cos: Tensor, sin: Tensor, width: int) -> None:
    """Of x [B, H, S, D], of which the first ``width`` elements (0: all) are turned."""
    if cos.rank != sin.rank:
        raise UnsupportedError("rotary tables of different ranks")
    for a, b in zip(cos.shape, sin.shape, strict=True):
        c.require_equal(a, b, "Inputs 'cos_cache' and 'sin_cache' are expected to have the same shape")
    c.require(le(width, x.shape[3]), "rotary_embedding_dim must be less than or equal to head_size")
    c.require_equal(cos.shape[-1] * 2, width or x.shape[3], "the tables have another width than the heads")


def require_positions(c: Context, positions: Tensor, x: Tensor, table: Tensor) -> None:
    """Of each token of x [B, H, S, D], or of the first one, in [0, rows of the table)."""
    if positions.rank == 1:
        c.require_equal(positions.size, 1, "the positions are neither one nor one for each token")
        room = table.shape[0] - x.shape[2] + 1
    else:
        room = table.shape[0]
        for have, want in zip(positions.shape, (x.shape[0], x.shape[2]), strict=True):
            c.require_equal(have, want, "the positions are neither one nor one for each token")
    require_indices(c, positions, [room], "position_ids value is out of range", backwards=False)


def rotated(operands: Sequence[Tensor], at: Sequence[Expr], width: int, *, interleaved: bool) -> Tensor:
    """Pairs among the first ``width`` elements (0: all) of x[B, H, S, D], turned by an angle that depends on the position.

    ``operands``: x, the cosines and sines, and what ``at``, their leading indices over [B, H, S, D], may load as well.
    """
    x, cos, sin = operands[:3]
    size = width or x.shape[3]
    if not isinstance(size, int):
        raise UnsupportedError("RotaryEmbedding with an unknown head size")
    half, d = size // 2, E.axis(3)
    if interleaved:
        pair, second = E.call("div", d, E.const(2)), E.call("eq", E.call("mod", d, E.const(2)), E.const(1))
        partner = E.call("where", second, E.call("sub", d, E.const(1)), E.call("add", d, E.const(1)))
    else:
        second = E.call("le", E.const(half), d)
        pair = E.call("where", second, E.call("sub", d, E.const(half)), d)
        partner = E.call("where", second, pair, E.call("add", d, E.const(half)))
    turns = E.call("lt", d, E.const(size))
    inner = E.call("where", turns, pair, E.const(0))
    here = E.load(0, *(E.axis(i) for i in range(4)), dtype=x.dtype)
    other = E.load(0, E.axis(0), E.axis(1), E.axis(2), E.call("where", turns, partner, d), dtype=x.dtype)
    turned = E.call("mul", other, E.load(2, *at, inner, dtype=sin.dtype))
    straight = E.call("mul", here, E.load(1, *at, inner, dtype=cos.dtype))
    mixed = E.call("where", second, E.call("add", straight, turned), E.call("sub", straight, turned))
    body = mixed if size == x.shape[3] else E.call("where", turns, mixed, here)
    return Tensor(x.shape, x.dtype, Map(inputs=tuple(operands), body=wrapped(x.dtype, body)))


OPS = [
    OpSpec(
        name="Attention",
        lower=_attention,
        versions=(1, 25),
        inputs=7,
        attributes=takes(
            "kv_num_heads",
            "q_num_heads",
            "scale",
            "softcap",
            is_causal=FLAG,
            left_window_size=(-1,),
            qk_matmul_output_mode=(RAW, SOFTCAPPED, MASKED, PROBABILITY),
            right_window_size=(-1,),
            softmax_precision=tuple(t.ort for t in FLOATS),
        ),
        types=(FLOATS, FLOATS, FLOATS, (*FLOATS, DType.BOOL), FLOATS, FLOATS, INDICES),
        note="softmax in f32, whatever `softmax_precision` says",
    ),
    OpSpec(
        name="RotaryEmbedding",
        lower=_rotary_embedding,
        versions=(1, 23),
        inputs=4,
        attributes=takes("num_heads", "rotary_embedding_dim", interleaved=FLAG),
        types=(FLOATS, FLOATS, FLOATS, INDICES),
    ),
]
