"""BERT encoder with pooler as `torch.onnx.export` writes it at opset 14.

LayerNorm is decomposed, GELU is the erf form, the mask is additive.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from xyntra_zoo.graph_builder import GraphBuilder, Value
from xyntra_zoo.layers import dim, gelu_erf, layer_norm_decomposed, linear, linear_2d, reshape
from xyntra_zoo.model import Checkpoint, Family, Feeds, Size, ZooModel
from xyntra_zoo.params import RESIDUAL_GAIN, Init, Params

LN_EPS = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class BertConfig:
    layers: int
    hidden: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


def bert(params: Params, c: BertConfig) -> onnx.ModelProto:
    g = GraphBuilder("bert", opset=14)
    input_ids = g.input("input_ids", np.int64, ["batch", "sequence"])
    attention_mask = g.input("attention_mask", np.int64, ["batch", "sequence"])
    token_type_ids = g.input("token_type_ids", np.int64, ["batch", "sequence"])

    mask = _additive_mask(g, attention_mask)
    x = _embeddings(g, params, c, input_ids, token_type_ids)
    for i in range(c.layers):
        with g.scope(f"encoder/layer.{i}"):
            x = _layer(g, params, c, x, mask, f"encoder.layer.{i}")
    with g.scope("pooler"):
        first = g.Gather(x, g.const(0, np.int64), axis=1)
        pooled = g.Tanh(linear_2d(g, params, first, "pooler.dense", c.hidden, c.hidden))

    g.output("last_hidden_state", x, ["batch", "sequence", c.hidden])
    g.output("pooler_output", pooled, ["batch", c.hidden])
    return g.model()


def _additive_mask(g: GraphBuilder, attention_mask: Value) -> Value:
    """`(1 - mask) * finfo.min`, broadcast over heads and queries: [batch, 1, 1, sequence]."""
    wide = g.Unsqueeze(g.Unsqueeze(attention_mask, g.ints(1)), g.ints(2))
    inverted = g.Sub(g.const(1.0), g.Cast(wide, to=onnx.TensorProto.FLOAT))
    return g.Mul(inverted, g.const(np.finfo(np.float32).min))


def _embeddings(g: GraphBuilder, p: Params, c: BertConfig, input_ids: Value, token_type_ids: Value) -> Value:
    def table(name: str, rows: int) -> Value:
        path = f"embeddings.{name}.weight"
        return g.weight(path, p(path, (rows, c.hidden), Init.EMBEDDING))

    with g.scope("embeddings"):
        position_ids = g.weight("embeddings.position_ids", np.arange(c.positions, dtype=np.int64)[None])
        sequence = g.Unsqueeze(dim(g, input_ids, 1), g.ints(0))
        positions = g.Slice(position_ids, g.ints(0), sequence, g.ints(1), g.ints(1))
        words = g.Gather(table("word_embeddings", c.vocabulary), input_ids)
        types = g.Gather(table("token_type_embeddings", 2), token_type_ids)
        x = g.Add(words, types)
        x = g.Add(x, g.Gather(table("position_embeddings", c.positions), positions))
        return layer_norm_decomposed(g, p, x, "embeddings.LayerNorm", c.hidden, LN_EPS)


def _layer(g: GraphBuilder, p: Params, c: BertConfig, x: Value, mask: Value, name: str) -> Value:
    with g.scope("attention"):
        context = _self_attention(g, p, c, x, mask, f"{name}.attention.self")
        projected = linear(g, p, context, f"{name}.attention.output.dense", c.hidden, c.hidden, RESIDUAL_GAIN)
        x = g.Add(projected, x)
        x = layer_norm_decomposed(g, p, x, f"{name}.attention.output.LayerNorm", c.hidden, LN_EPS)
    inner = gelu_erf(g, linear(g, p, x, f"{name}.intermediate.dense", c.hidden, c.feed_forward))
    outer = linear(g, p, inner, f"{name}.output.dense", c.feed_forward, c.hidden, RESIDUAL_GAIN)
    return layer_norm_decomposed(g, p, g.Add(outer, x), f"{name}.output.LayerNorm", c.hidden, LN_EPS)


def _self_attention(g: GraphBuilder, p: Params, c: BertConfig, x: Value, mask: Value, name: str) -> Value:
    def heads(part: str, perm: list[int]) -> Value:
        y = linear(g, p, x, f"{name}.{part}", c.hidden, c.hidden)
        y = reshape(g, y, [dim(g, y, 0), dim(g, y, 1), c.heads, c.head_dim])
        return g.Transpose(y, perm=perm)

    query = heads("query", [0, 2, 1, 3])
    key_t = heads("key", [0, 2, 3, 1])
    value = heads("value", [0, 2, 1, 3])
    scores = g.Div(g.MatMul(query, key_t), g.const(np.sqrt(c.head_dim)))
    weights = g.Softmax(g.Add(scores, mask), axis=-1)
    context = g.Transpose(g.MatMul(weights, value), perm=[0, 2, 1, 3])
    return reshape(g, context, [dim(g, context, 0), dim(g, context, 1), c.hidden])


def bert_feeds(batch: int, seq: int, seed: int, *, vocabulary: int) -> Feeds:
    """Random tokens in two segments. Row i ends with (i % 4 + 1) / 8 of padding, so the mask matters."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(seq - (np.arange(batch) % 4 + 1) * seq // 8, 1)
    position = np.arange(seq)[None]
    mask = (position < lengths[:, None]).astype(np.int64)
    ids = rng.integers(1, vocabulary, (batch, seq), dtype=np.int64) * mask
    segments = (position >= lengths[:, None] // 2).astype(np.int64) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


BASE = BertConfig(layers=12, hidden=768, heads=12, feed_forward=3072, vocabulary=30522, positions=512)
TINY = BertConfig(layers=2, hidden=64, heads=4, feed_forward=128, vocabulary=101, positions=64)

MODELS = [
    ZooModel(
        name="bert-base",
        family=Family.BERT,
        build=partial(bert, c=BASE),
        feeds=partial(bert_feeds, vocabulary=BASE.vocabulary),
        seqs=(128, 384),
        served=(Size(seq=16), Size(seq=128), Size(seq=512), Size(batch=8, seq=128)),
        checkpoint=Checkpoint(
            hub_id="google-bert/bert-base-uncased",
            prefixes=("bert.",),
            suffixes={".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"},
        ),
    ),
    ZooModel(
        name="bert-base-tiny",
        family=Family.BERT,
        build=partial(bert, c=TINY),
        feeds=partial(bert_feeds, vocabulary=TINY.vocabulary),
        seqs=(16, 33),
        tiny=True,
    ),
]
