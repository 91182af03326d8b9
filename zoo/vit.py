"""Vision transformer with a class token (timm's `vit_tiny_patch16_224`), exported at opset 17.

LayerNorm is one node, queries, keys and values come from one projection, attention is decomposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx

from xyntra_zoo._convnet import image_feeds
from xyntra_zoo.graph_builder import GraphBuilder, Value
from xyntra_zoo.layers import dim, gelu_erf, layer_norm, linear, linear_2d, reshape, shape_of
from xyntra_zoo.model import Checkpoint, Family, Size, ZooModel
from xyntra_zoo.params import RESIDUAL_GAIN, Init, Params

LN_EPS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class VitConfig:
    layers: int
    hidden: int
    heads: int
    image: int
    patch: int
    classes: int

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads

    @property
    def tokens(self) -> int:
        return (self.image // self.patch) ** 2 + 1


def vit(params: Params, c: VitConfig) -> onnx.ModelProto:
    g = GraphBuilder("vit", opset=17)
    pixels = g.input("pixel_values", np.float32, ["batch", 3, c.image, c.image])
    x = _patches(g, params, c, pixels)
    x = _class_token(g, params, c, x)
    x = g.Add(x, g.weight("pos_embed", params("pos_embed", (1, c.tokens, c.hidden), Init.EMBEDDING, 4.0)))
    for i in range(c.layers):
        with g.scope(f"blocks.{i}"):
            x = _block(g, params, c, x, f"blocks.{i}")
    x = layer_norm(g, params, x, "norm", c.hidden, LN_EPS)
    first = g.Gather(x, g.const(0, np.int64), axis=1)
    g.output("logits", linear_2d(g, params, first, "head", c.hidden, c.classes), ["batch", c.classes])
    return g.model()


def _patches(g: GraphBuilder, p: Params, c: VitConfig, pixels: Value) -> Value:
    """A convolution as large as its stride, then `flatten(2).transpose(1, 2)`."""
    with g.scope("patch_embed"):
        name = "patch_embed.proj"
        weight = g.weight(f"{name}.weight", p(f"{name}.weight", (c.hidden, 3, c.patch, c.patch), Init.LINEAR))
        bias = g.weight(f"{name}.bias", p(f"{name}.bias", (c.hidden,), Init.BIAS))
        kernel = [c.patch, c.patch]
        x = g.Conv(pixels, weight, bias, dilations=[1, 1], group=1, kernel_shape=kernel, pads=[0] * 4, strides=kernel)
        kept = g.Slice(g.Shape(x), g.ints(0), g.ints(2), g.ints(0))
        x = g.Reshape(x, g.Concat(kept, g.ints(-1), axis=0))
        return g.Transpose(x, perm=[0, 2, 1])


def _class_token(g: GraphBuilder, p: Params, c: VitConfig, x: Value) -> Value:
    """`cat((cls_token.expand(batch, -1, -1), x), dim=1)` with the exporter's rewriting of -1 in `expand`."""
    token = g.weight("cls_token", p("cls_token", (1, 1, c.hidden), Init.EMBEDDING, 4.0))
    wanted = g.Reshape(shape_of(g, [dim(g, x, 0), -1, -1]), g.ints(-1))
    ones = g.ConstantOfShape(g.Shape(wanted), value=onnx.helper.make_tensor("one", onnx.TensorProto.INT64, [1], [1]))
    keep = g.Equal(wanted, g.Mul(ones, g.const(-1, np.int64)))
    return g.Concat(g.Expand(token, g.Where(keep, ones, wanted)), x, axis=1)


def _block(g: GraphBuilder, p: Params, c: VitConfig, x: Value, name: str) -> Value:
    attended = _attention(g, p, c, layer_norm(g, p, x, f"{name}.norm1", c.hidden, LN_EPS), f"{name}.attn")
    x = g.Add(x, attended)
    with g.scope("mlp"):
        y = layer_norm(g, p, x, f"{name}.norm2", c.hidden, LN_EPS)
        y = gelu_erf(g, linear(g, p, y, f"{name}.mlp.fc1", c.hidden, 4 * c.hidden))
        y = linear(g, p, y, f"{name}.mlp.fc2", 4 * c.hidden, c.hidden, RESIDUAL_GAIN)
    return g.Add(x, y)


def _attention(g: GraphBuilder, p: Params, c: VitConfig, x: Value, name: str) -> Value:
    with g.scope("attn"):
        batch, tokens = dim(g, x, 0), dim(g, x, 1)
        qkv = linear(g, p, x, f"{name}.qkv", c.hidden, 3 * c.hidden)
        qkv = reshape(g, qkv, [batch, tokens, 3, c.heads, c.head_dim])
        qkv = g.Transpose(qkv, perm=[2, 0, 3, 1, 4])
        query, key, value = (g.Gather(qkv, g.const(i, np.int64), axis=0) for i in range(3))
        scores = g.MatMul(g.Mul(query, g.const(c.head_dim**-0.5)), g.Transpose(key, perm=[0, 1, 3, 2]))
        context = g.Transpose(g.MatMul(g.Softmax(scores, axis=-1), value), perm=[0, 2, 1, 3])
        context = reshape(g, context, [batch, tokens, c.hidden])
        return linear(g, p, context, f"{name}.proj", c.hidden, c.hidden, RESIDUAL_GAIN)


VIT_TINY = VitConfig(layers=12, hidden=192, heads=3, image=224, patch=16, classes=1000)
TINY = VitConfig(layers=2, hidden=48, heads=3, image=32, patch=8, classes=10)

MODELS = [
    ZooModel(
        name="vit-tiny16",
        family=Family.VIT,
        build=partial(vit, c=VIT_TINY),
        feeds=partial(image_feeds, image=VIT_TINY.image),
        served=(Size(batch=8),),
        checkpoint=Checkpoint(hub_id="timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k"),
    ),
    ZooModel(
        name="vit-tiny16-tiny",
        family=Family.VIT,
        build=partial(vit, c=TINY),
        feeds=partial(image_feeds, image=TINY.image),
        tiny=True,
    ),
]
