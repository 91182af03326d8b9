"""What GPT-2's prefill and decode share: Conv1D layers, causal mask from a bool buffer, tied LM head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from xyntra_zoo.graph_builder import GraphBuilder, Value
from xyntra_zoo.layers import dim, gelu_tanh, reshape
from xyntra_zoo.params import RESIDUAL_GAIN, Init, Params

LN_EPS = 1e-5
Norm = Callable[[GraphBuilder, Params, Value, str, int, float], Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpt2Config:
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    positions: int

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


GPT2 = Gpt2Config(layers=12, hidden=768, heads=12, vocabulary=50257, positions=1024)
TINY = Gpt2Config(layers=2, hidden=64, heads=4, vocabulary=101, positions=64)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValue:
    """The cache of one layer: [batch, heads, length, head_dim] each."""

    key: Value
    value: Value


class Gpt2:
    """One graph under construction; `norm` chooses how the exporter of that opset writes LayerNorm."""

    def __init__(self, g: GraphBuilder, params: Params, c: Gpt2Config, norm: Norm) -> None:
        self.g = g
        self.p = params
        self.c = c
        self.norm = norm

    def embed(self, input_ids: Value, past: KeyValue | None) -> Value:
        """`wte[input_ids] + wpe[arange(past, past + sequence)]`."""
        g, c = self.g, self.c
        start = g.const(0, np.int64) if past is None else dim(g, past.key, 2)
        end = g.Add(dim(g, input_ids, 1), start)
        positions = g.Unsqueeze(g.Range(start, end, g.const(1, np.int64)), g.ints(0))
        words = g.Gather(self.table("wte.weight", c.vocabulary), input_ids)
        return g.Add(words, g.Gather(self.table("wpe.weight", c.positions), positions))

    def block(self, x: Value, i: int, past: KeyValue | None) -> tuple[Value, KeyValue]:
        g, c, name = self.g, self.c, f"h.{i}"
        with g.scope(name):
            with g.scope("attn"):
                normal = self.norm(g, self.p, x, f"{name}.ln_1", c.hidden, LN_EPS)
                attended, present = self.attention(normal, f"{name}.attn", past)
                x = g.Add(attended, x)
            with g.scope("mlp"):
                y = self.norm(g, self.p, x, f"{name}.ln_2", c.hidden, LN_EPS)
                y = gelu_tanh(g, self.conv1d(y, f"{name}.mlp.c_fc", c.hidden, 4 * c.hidden))
                y = self.conv1d(y, f"{name}.mlp.c_proj", 4 * c.hidden, c.hidden, RESIDUAL_GAIN)
            return g.Add(x, y), present

    def head(self, x: Value) -> Value:
        """Final norm and logits. The head is `wte` again: one tensor, transposed in the graph."""
        g, c = self.g, self.c
        x = self.norm(g, self.p, x, "ln_f", c.hidden, LN_EPS)
        return g.MatMul(x, g.Transpose(self.table("wte.weight", c.vocabulary), perm=[1, 0]))

    def attention(self, x: Value, name: str, past: KeyValue | None) -> tuple[Value, KeyValue]:
        g, c = self.g, self.c
        qkv = self.conv1d(x, f"{name}.c_attn", c.hidden, 3 * c.hidden)
        query, key, value = (self.heads(part) for part in self.split(qkv))
        if past is not None:
            key = g.Concat(past.key, key, axis=-2)
            value = g.Concat(past.value, value, axis=-2)
        scores = g.MatMul(query, g.Transpose(key, perm=[0, 1, 3, 2]))
        scores = g.Div(scores, g.const(np.sqrt(c.head_dim)))
        lowest = g.const(np.finfo(np.float32).min)
        scores = g.Where(self.causal(query, key), scores, lowest)
        context = g.Transpose(g.MatMul(g.Softmax(scores, axis=-1), value), perm=[0, 2, 1, 3])
        context = reshape(g, context, [dim(g, context, 0), dim(g, context, 1), c.hidden])
        return self.conv1d(context, f"{name}.c_proj", c.hidden, c.hidden, RESIDUAL_GAIN), KeyValue(key=key, value=value)

    def causal(self, query: Value, key: Value) -> Value:
        """`bias[:, :, keys - queries : keys, :keys]` of the lower-triangular bool buffer."""
        g, c = self.g, self.c
        triangle = np.tril(np.ones((c.positions, c.positions), np.bool_))[None, None]
        bias = g.weight("attn.bias", triangle)
        keys = dim(g, key, 2)
        start = g.Unsqueeze(g.Sub(keys, dim(g, query, 2)), g.ints(0))
        end = g.Unsqueeze(keys, g.ints(0))
        rows = g.Slice(bias, start, end, g.ints(2), g.ints(1))
        return g.Slice(rows, g.ints(0), end, g.ints(3), g.ints(1))

    def split(self, qkv: Value) -> list[Value]:
        """`qkv.split(hidden, dim=2)`: one Split node with three outputs."""
        sizes = self.g.ints(*[self.c.hidden] * 3)
        return self.g.multi("Split", qkv, sizes, outputs=3, axis=2)

    def heads(self, x: Value) -> Value:
        g, c = self.g, self.c
        x = reshape(g, x, [dim(g, x, 0), dim(g, x, 1), c.heads, c.head_dim])
        return g.Transpose(x, perm=[0, 2, 1, 3])

    def conv1d(self, x: Value, name: str, n_in: int, n_out: int, gain: float = 1.0) -> Value:
        """`addmm(bias, x.view(-1, n_in), weight).view(batch, sequence, n_out)`: Reshape, Gemm, Reshape."""
        g = self.g
        weight = g.weight(f"{name}.weight", self.p(f"{name}.weight", (n_in, n_out), Init.CONV1D, gain))
        bias = g.weight(f"{name}.bias", self.p(f"{name}.bias", (n_out,), Init.BIAS))
        y = g.Gemm(g.Reshape(x, g.ints(-1, n_in)), weight, bias)
        return reshape(g, y, [dim(g, x, 0), dim(g, x, 1), n_out])

    def table(self, name: str, rows: int) -> Value:
        return self.g.weight(name, self.p(name, (rows, self.c.hidden), Init.EMBEDDING))
