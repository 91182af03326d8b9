"""GPT-2, one new token, or any number of them, against the keys and values of the past. Opset 14: decomposed LayerNorm."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx

from xyntra_zoo._gpt2 import GPT2, TINY, Gpt2, Gpt2Config, KeyValue
from xyntra_zoo.gpt2_prefill import CHECKPOINT, prompt
from xyntra_zoo.graph_builder import Dims, GraphBuilder
from xyntra_zoo.layers import layer_norm_decomposed
from xyntra_zoo.model import Family, Feeds, Size, ZooModel
from xyntra_zoo.params import Params


def gpt2_decode(params: Params, c: Gpt2Config, tokens: int | str = 1) -> onnx.ModelProto:
    g = GraphBuilder("gpt2_decode", opset=14)
    net = Gpt2(g, params, c, layer_norm_decomposed)
    input_ids = g.input("input_ids", np.int64, ["batch", tokens])
    cache: Dims = ["batch", c.heads, "past", c.head_dim]
    pasts = [
        KeyValue(
            key=g.input(f"past_key_{i}", np.float32, cache),
            value=g.input(f"past_value_{i}", np.float32, cache),
        )
        for i in range(c.layers)
    ]
    x = net.embed(input_ids, pasts[0])
    presents = []
    for i, past in enumerate(pasts):
        x, present = net.block(x, i, past)
        presents.append(present)
    g.output("logits", net.head(x), ["batch", tokens, c.vocabulary])
    longer: Dims = ["batch", c.heads, f"past + {tokens}", c.head_dim]
    for i, present in enumerate(presents):
        g.output(f"present_key_{i}", present.key, longer)
        g.output(f"present_value_{i}", present.value, longer)
    return g.model()


def step(batch: int, seq: int, seed: int, *, c: Gpt2Config) -> Feeds:
    """One token and `seq` cached positions, of unit variance as projections of a LayerNorm have."""
    rng = np.random.default_rng(seed)
    feeds = prompt(batch, 1, seed, c=c)
    for i in range(c.layers):
        for part in ("key", "value"):
            shape = (batch, c.heads, seq, c.head_dim)
            feeds[f"past_{part}_{i}"] = rng.standard_normal(shape, dtype=np.float32)
    return feeds


def beginning(batch: int, seq: int, seed: int, *, c: Gpt2Config) -> Feeds:
    """A prompt of `seq` tokens, and a past of none."""
    return {**step(batch, 0, seed, c=c), **prompt(batch, seq, seed, c=c)}


MODELS = [
    ZooModel(
        name="gpt2-decode",
        family=Family.GPT2,
        build=partial(gpt2_decode, c=GPT2),
        feeds=partial(step, c=GPT2),
        seqs=(128,),
        served=(Size(batch=8, seq=128),),
        checkpoint=CHECKPOINT,
    ),
    ZooModel(
        name="gpt2-decode-tiny",
        family=Family.GPT2,
        build=partial(gpt2_decode, c=TINY),
        feeds=partial(step, c=TINY),
        seqs=(16, 33),
        tiny=True,
    ),
    ZooModel(
        name="gpt2-generate",
        family=Family.GPT2,
        build=partial(gpt2_decode, c=GPT2, tokens="sequence"),
        feeds=partial(beginning, c=GPT2),
        seqs=(128,),
        generates=True,
        checkpoint=CHECKPOINT,
    ),
    ZooModel(
        name="gpt2-generate-tiny",
        family=Family.GPT2,
        build=partial(gpt2_decode, c=TINY, tokens="sequence"),
        feeds=partial(beginning, c=TINY),
        seqs=(16, 33),
        generates=True,
        tiny=True,
    ),
]
