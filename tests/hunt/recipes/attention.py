"""Attention in its many forms, rotary embeddings, and ONNX Runtime's own operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder, Extent, Value
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._quantised import fill_of, scale, zero_point
from tests.hunt.recipes._row import Build, Recipe, maybe

MS = "com.microsoft"


def _small(b: Builder, most: int = 6) -> Extent:
    return tuple(min(n, most) for n in b.extent())


def _fixed(n: int) -> Extent:
    return (n, n, n)


def _sum(*parts: Extent) -> Extent:
    return tuple(sum(p) for p in zip(*parts, strict=True))


def _ends(batch: Extent) -> Extent:
    """Of a mask for kernels that pack tokens: the ends of keys come first."""
    return tuple(3 * n + 2 for n in batch)


def _mask(b: Builder, shape: list[Extent], *, cut: int = 0) -> Value:
    """Added or bool; of fewer axes, with ones."""
    wanted = [_fixed(1) if b.chance(0.25) else e for e in shape[b.whole(0, cut) if cut else 0 :]]
    return b.tensor(wanted, b.pick((np.float32, np.bool_)), fixed=0.2)


def _attention(b: Builder) -> None:
    batch, queries, keys = b.pick([(1, 2, 1), (2, 1, 3), (1, 1, 1)]), _small(b), _small(b)
    kv, group, width = b.pick((1, 2)), b.pick((1, 1, 2)), b.pick((2, 4, 8))
    flat = b.chance(0.4)
    past = _small(b, 4) if b.chance(0.25) else None

    def operand(heads: int, length: Extent) -> Value:
        shape = [batch, length, _fixed(heads * width)] if flat else [batch, _fixed(heads), length, _fixed(width)]
        return b.tensor(shape, fixed=0.05)

    q, k, v = operand(kv * group, queries), operand(kv, keys), operand(kv, keys)
    total = keys if past is None else _sum(past, keys)
    mask = maybe(b, _mask(b, [batch, _fixed(kv * group), queries, total], cut=2))
    cache = [None, None] if past is None else [b.tensor([batch, _fixed(kv), past, _fixed(width)], fixed=0.05) for _ in range(2)]
    attrs: dict[str, Any] = {
        "is_causal": b.pick((None, 0, 1)), "scale": maybe(b, 0.3, 0.3), "softcap": maybe(b, b.pick((0.0, 2.0)), 0.3),
        "q_num_heads": kv * group if flat else None, "kv_num_heads": kv if flat else None,
    }  # fmt: skip
    outputs, skip = (3, ()) if past is not None else (1, ())
    if b.chance(0.15):
        attrs["qk_matmul_output_mode"] = b.pick((0, 1, 2, 3))
        outputs, skip = 4, () if past is not None else (1, 2)  # type: ignore[assignment]  # of another length
    valid = None
    if b.opset >= 24 and past is None and b.chance(0.2):
        valid = b.tensor([batch], np.int64, Fill(Kind.INDEX, 1, max(2, min(keys) + 1)), fixed=0.1)
    b.node("Attention", [q, k, v, mask, *cache, valid], outputs=outputs, skip=skip, **attrs)


def _rotary(b: Builder) -> None:
    heads, width = b.pick((1, 2)), b.pick((4, 8))
    batch, length = b.pick([(1, 2, 1), (2, 1, 3)]), _small(b)
    flat = b.chance(0.5)
    x = b.tensor([batch, length, _fixed(heads * width)] if flat else [batch, _fixed(heads), length, _fixed(width)], fixed=0.05)
    part = b.pick((0, 0, 4))
    half = _fixed((part or width) // 2)
    rows = b.pick((6, 8))
    positions = maybe(b, b.tensor([batch, length], np.int64, Fill(Kind.INDEX, 0, rows), fixed=0.1), 0.6)
    shape = [batch, length, half] if positions is None else [_fixed(rows), half]
    cos, sin = (b.tensor(shape, fixed=0.6) for _ in range(2))
    attrs = {"interleaved": b.pick((None, 0, 1)), "rotary_embedding_dim": part or None, "num_heads": heads if flat else None}
    b.one("RotaryEmbedding", [x, cos, sin, positions], **attrs)


def _ms_rotary(b: Builder) -> None:
    heads, width, rows = b.pick((1, 2)), b.pick((4, 8)), b.pick((6, 8))
    batch, length = b.pick([(1, 2, 1), (2, 1, 3)]), _small(b)
    flat = b.chance(0.5)
    extents = [batch, length, _fixed(heads * width)] if flat else [batch, _fixed(heads), length, _fixed(width)]
    x = b.input(extents, least=[*(0 for _ in extents[1:]), None])  # of odd heads ONNX Runtime leaves the last element unwritten
    positions = b.tensor([batch, length] if b.chance(0.6) else [_fixed(1)], np.int64, Fill(Kind.INDEX, 0, 2), fixed=0.2)
    cos, sin = (b.tensor([_fixed(rows), _fixed(width // 2)]) for _ in range(2))
    attrs = {"interleaved": b.pick((None, 0, 1)), "num_heads": maybe(b, heads)}
    b.one("RotaryEmbedding", [x, positions, cos, sin], domain=MS, **attrs)


def _ms_attention(b: Builder) -> None:
    heads, width = b.pick((1, 2)), b.pick((2, 4))
    hidden = heads * width
    batch, length, inside = b.pick([(1, 2, 1), (2, 1, 3)]), _small(b), b.pick((4, 6))
    x = b.tensor([batch, length, _fixed(inside)], fixed=0.05)
    w, bias = b.tensor([_fixed(inside), _fixed(3 * hidden)], fixed=0.9), b.tensor([_fixed(3 * hidden)], fixed=0.9)
    past = b.tensor([_fixed(2), batch, _fixed(heads), _small(b, 3), _fixed(width)], fixed=0) if b.chance(0.2) else None
    total = length if past is None else _sum(past.extents[3], length)
    shapes: list[list[Extent]] = [[batch, total], [batch], [batch, length, total], [tuple(2 * n for n in batch)]]
    mask = maybe(b, b.tensor(b.pick(shapes), np.int32, Fill(Kind.INDEX, 0, 2), fixed=0.1))
    bias4 = maybe(b, b.tensor([batch, _fixed(heads), length, total], fixed=0), 0.2)
    b.node("Attention", [x, w, maybe(b, bias, 0.8), mask, past, bias4], domain=MS, num_heads=heads,
           outputs=1 if past is None else 2, unidirectional=b.pick((None, 0, 1)))  # fmt: skip


def _qattention(b: Builder) -> None:
    """Weights have 7 bits, as in quantised.py."""
    heads, width, inside = b.pick((1, 2)), b.pick((2, 4)), b.pick((4, 6))
    hidden = heads * width
    batch, length = b.pick([(1, 2, 1), (2, 1, 3)]), _small(b)
    x = b.tensor([batch, length, _fixed(inside)], np.uint8, fill_of(np.uint8), fixed=0.05)
    w = b.tensor([_fixed(inside), _fixed(3 * hidden)], np.int8, fill_of(np.int8, narrow=True), fixed=0.9)
    each = 3 * hidden if b.chance(0.4) else 0
    past = b.tensor([_fixed(2), batch, _fixed(heads), _small(b, 3), _fixed(width)], fixed=0) if b.chance(0.2) else None
    total = length if past is None else _sum(past.extents[3], length)
    shapes: list[list[Extent]] = [[batch, total], [batch], [tuple(2 * n for n in batch)], [_ends(batch)], [_fixed(1), _fixed(1)]]
    mask = maybe(b, b.tensor(b.pick(shapes), np.int32, Fill(Kind.INDEX, 0, 2), fixed=0.1))
    scales = [b.constant(np.asarray(v, np.float32)) for v in (0.02, [0.01] * each if each else 0.01)]
    zeros = [zero_point(b, np.uint8), zero_point(b, np.int8, each)]
    operands = [x, w, b.constant(b.rng.uniform(-1, 1, 3 * hidden).astype(np.float32)), *scales, mask, *zeros, past]
    b.node("QAttention", operands, domain=MS, num_heads=heads, outputs=1 if past is None else 2,
           unidirectional=b.pick((None, 0, 1)))  # fmt: skip


def _multi_head(b: Builder) -> None:
    heads, width = b.pick((1, 2)), b.pick((2, 4))
    batch, queries, keys, hidden = b.pick([(1, 2, 1), (2, 1, 3)]), _small(b), _small(b), _fixed(heads * width)
    if b.chance(0.4):
        keys = queries
    q, k, v = (b.tensor([batch, n, hidden], fixed=0.05) for n in (queries, keys, keys))
    bias = maybe(b, b.tensor([tuple(3 * n for n in hidden)], fixed=0.8), 0.4)
    past = _small(b, 3) if b.chance(0.25) else None
    total = keys if past is None else _sum(past, keys)
    cache = [None, None] if past is None else [b.tensor([batch, _fixed(heads), past, _fixed(width)], fixed=0) for _ in range(2)]
    shapes: list[list[Extent]] = [[batch, total], [batch], [_ends(batch)], [batch, queries, total]]
    mask = maybe(b, b.tensor(b.pick(shapes), np.int32, Fill(Kind.INDEX, 0, 2), fixed=0.1), 0.4)
    score = maybe(b, b.tensor([b.pick((batch, _fixed(1))), b.pick((_fixed(heads), _fixed(1))), queries, total], fixed=0), 0.3)
    b.node("MultiHeadAttention", [q, k, v, bias, mask, score, *cache], domain=MS, num_heads=heads,
           outputs=1 if past is None else 3, unidirectional=b.pick((None, 0, 1)), scale=maybe(b, 0.4, 0.3))  # fmt: skip


def _group_query(b: Builder) -> None:
    kv, group, width = b.pick((1, 2)), b.pick((1, 2)), b.pick((8, 16))
    batch, new = b.pick([(1, 1, 1), (2, 1, 3), (1, 2, 1)]), b.pick([(1, 1, 1), (3, 1, 2), (1, 4, 2)])
    past = b.pick([(0, 0, 0), (2, 3, 1), (4, 2, 5)])
    first = max(past) == 0
    q = b.tensor([batch, new, _fixed(kv * group * width)], fixed=0)
    k, v = (b.tensor([batch, new, _fixed(kv * width)], fixed=0) for _ in range(2))
    cache = [None, None] if first else [b.tensor([batch, _fixed(kv), past, _fixed(width)], fixed=0) for _ in range(2)]
    totals = _sum(past, new)
    ends = b.by_world([np.full(n, t - 1, np.int32) for n, t in zip(batch, totals, strict=True)], low=0, high=max(totals))
    total = b.by_world([np.asarray(t, np.int32) for t in totals], low=0, high=max(totals) + 1)
    rotary: list[Value | None] = [None, None]
    attrs: dict[str, Any] = {"local_window_size": maybe(b, 2, 0.2), "scale": maybe(b, 0.4, 0.2), "softcap": maybe(b, 2.0, 0.2)}
    if b.chance(0.4):
        rotary = [b.tensor([_fixed(16), _fixed(width // 2)]) for _ in range(2)]
        attrs |= {"do_rotary": 1, "rotary_interleaved": b.pick((None, 0, 1))}
    b.node("GroupQueryAttention", [q, k, v, *cache, ends, total, *rotary], outputs=3, domain=MS, num_heads=kv * group,
           kv_num_heads=kv, **attrs)  # fmt: skip


def _embed(b: Builder) -> None:
    batch, length, width = b.pick([(1, 2, 1), (2, 1, 3)]), _small(b), b.pick((4, 8))
    rows = {"words": 10, "places": 8, "kinds": 2}
    words, places, kinds = (b.tensor([_fixed(n), _fixed(width)], fixed=0.9) for n in rows.values())
    tokens = b.tensor([batch, length], np.int32, Fill(Kind.INDEX, 0, 10), fixed=0)
    segments = b.tensor([batch, length], np.int32, Fill(Kind.INDEX, 0, 2), fixed=0) if b.chance(0.7) else None
    gamma, beta = (b.tensor([_fixed(width)], fixed=0.9) for _ in range(2))
    mask = maybe(b, b.tensor([batch, length], np.int32, Fill(Kind.INDEX, 0, 2), fixed=0))
    at = maybe(b, b.tensor([b.pick((batch, _fixed(1))), length], np.int32, Fill(Kind.INDEX, 0, 8), fixed=0.1), 0.3)
    inputs = [tokens, segments, words, places, None if segments is None else kinds, gamma, beta, mask, at]
    b.node("EmbedLayerNormalization", inputs, outputs=b.pick((2, 3)), domain=MS, epsilon=b.pick((None, 1e-3)))


def _q_embed(b: Builder) -> None:
    batch, length, width = b.pick([(1, 2, 1), (2, 1, 3)]), _small(b), b.pick((4, 8))
    dtype = b.pick((np.uint8, np.int8))
    tokens = b.tensor([batch, length], np.int32, Fill(Kind.INDEX, 0, 10), fixed=0)
    segments = maybe(b, b.tensor([batch, length], np.int32, Fill(Kind.INDEX, 0, 2), fixed=0), 0.7)
    shapes = [(10, width), (8, width), (2, width), (width,), (width,)]
    given = [i != 2 or segments is not None for i in range(5)]  # segments have a table, or there are none
    tables = [
        b.tensor(list(map(_fixed, s)), dtype, fill_of(dtype), fixed=0.9) if g else None
        for s, g in zip(shapes, given, strict=True)
    ]
    scales = [scale(b) if g else None for g in given]
    zeros = [zero_point(b, dtype) if g else None for g in given]
    mask = maybe(b, b.tensor([batch, length], np.int32, Fill(Kind.INDEX, 0, 2), fixed=0))
    b.node("QEmbedLayerNormalization", [tokens, segments, *tables, mask, *scales, *zeros], outputs=2, domain=MS,
           epsilon=b.pick((None, 1e-3)))  # fmt: skip


def _skip_norm(op: str) -> Build:
    def build(b: Builder) -> None:
        x = b.any((np.float32,), least=2, most=3)
        skip = b.tensor(x.extents, x.dtype) if b.chance(0.8) else b.tensor(x.extents[x.rank - 2 :])
        last = [x.extents[-1]]
        params = [b.tensor(last) for _ in range(2 if op == "SkipLayerNormalization" else 1)]
        bias = maybe(b, b.tensor(last), 0.4)
        outputs, unnamed = b.pick(((1, ()), (4, (1, 2))))
        b.node(op, [x, skip, *params, bias], domain=MS, outputs=outputs, skip=unnamed, epsilon=b.pick((1e-3, 0.1)))

    return build


def _gelu(op: str) -> Build:
    def build(b: Builder) -> None:
        x = b.any((np.float32,), least=1)
        bias = None if op in ("Gelu", "QuickGelu") else b.tensor([x.extents[-1]])
        if op == "FastGelu" and b.chance(0.4):
            bias = None
        b.one(op, [x, bias], domain=MS, alpha=maybe(b, 0.9) if op == "QuickGelu" else None)

    return build


def _swiglu(b: Builder) -> None:
    x = b.any((np.float32, np.float16), least=1)
    b.one("SwiGLU", [x, b.tensor(x.extents, x.dtype)], alpha=maybe(b, 1.5))


ROWS = [
    Recipe(name="Attention", build=_attention, since=23, weight=3),
    Recipe(name="RotaryEmbedding", build=_rotary, since=23, weight=2),
    Recipe(name="SwiGLU", build=_swiglu, since=27),
    Recipe(name="com.microsoft.RotaryEmbedding", build=_ms_rotary),
    Recipe(name="com.microsoft.Attention", build=_ms_attention, weight=1.5),
    Recipe(name="com.microsoft.QAttention", build=_qattention),
    Recipe(name="com.microsoft.MultiHeadAttention", build=_multi_head, weight=1.5),
    Recipe(name="com.microsoft.GroupQueryAttention", build=_group_query, weight=1.5),
    Recipe(name="com.microsoft.EmbedLayerNormalization", build=_embed),
    Recipe(name="com.microsoft.QEmbedLayerNormalization", build=_q_embed),
    *(Recipe(name=f"{MS}.{op}", build=_skip_norm(op)) for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")),
    *(Recipe(name=f"{MS}.{op}", build=_gelu(op)) for op in ("Gelu", "BiasGelu", "FastGelu", "QuickGelu")),
]
