"""GPT-2 over a whole prompt, logits for every position. Opset 17: LayerNormalization nodes."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx

from xyntra_zoo._gpt2 import GPT2, TINY, Gpt2, Gpt2Config
from xyntra_zoo.graph_builder import GraphBuilder
from xyntra_zoo.layers import layer_norm
from xyntra_zoo.model import Checkpoint, Family, Feeds, Size, ZooModel
from xyntra_zoo.params import Params

CHECKPOINT = Checkpoint(hub_id="openai-community/gpt2", prefixes=("transformer.",))


def gpt2_prefill(params: Params, c: Gpt2Config) -> onnx.ModelProto:
    g = GraphBuilder("gpt2_prefill", opset=17)
    net = Gpt2(g, params, c, layer_norm)
    x = net.embed(g.input("input_ids", np.int64, ["batch", "sequence"]), past=None)
    for i in range(c.layers):
        x, _ = net.block(x, i, past=None)
    g.output("logits", net.head(x), ["batch", "sequence", c.vocabulary])
    return g.model()


def prompt(batch: int, seq: int, seed: int, *, c: Gpt2Config) -> Feeds:
    rng = np.random.default_rng(seed)
    return {"input_ids": rng.integers(0, c.vocabulary, (batch, seq), dtype=np.int64)}


MODELS = [
    ZooModel(
        name="gpt2-prefill",
        family=Family.GPT2,
        build=partial(gpt2_prefill, c=GPT2),
        feeds=partial(prompt, c=GPT2),
        seqs=(128,),
        served=(Size(seq=16), Size(seq=512), Size(seq=1024)),
        checkpoint=CHECKPOINT,
    ),
    ZooModel(
        name="gpt2-prefill-tiny",
        family=Family.GPT2,
        build=partial(gpt2_prefill, c=TINY),
        feeds=partial(prompt, c=TINY),
        seqs=(16, 33),
        tiny=True,
    ),
]
