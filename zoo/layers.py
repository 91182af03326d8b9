"""Layers in the forms PyTorch's exporters write: decomposed, with shape arithmetic for dynamic dims."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xyntra_zoo.graph_builder import GraphBuilder, Value
from xyntra_zoo.params import Init, Params


def dim(g: GraphBuilder, x: Value, axis: int) -> Value:
    """`x.shape[axis]` as an int64 scalar: Shape -> Gather."""
    return g.Gather(g.Shape(x), g.const(axis, np.int64), axis=0)


def reshape(g: GraphBuilder, x: Value, dims: Sequence[int | Value]) -> Value:
    """`x.view(dims)`: scalars are unsqueezed and concatenated with the constants to the target shape."""
    return g.Reshape(x, shape_of(g, dims))


def shape_of(g: GraphBuilder, dims: Sequence[int | Value]) -> Value:
    if all(isinstance(d, int) for d in dims):
        return g.const(list(dims), np.int64)
    parts = [g.ints(d) if isinstance(d, int) else g.Unsqueeze(d, g.ints(0)) for d in dims]
    return g.Concat(*parts, axis=0)


def linear(g: GraphBuilder, p: Params, x: Value, name: str, n_in: int, n_out: int, gain: float = 1.0) -> Value:
    """`nn.Linear` on a 3-D input: MatMul with the transposed weight folded in, then Add(bias, product)."""
    weight = g.weight(f"{name}.weight_T", p(f"{name}.weight", (n_out, n_in), Init.LINEAR, gain).T)
    bias = g.weight(f"{name}.bias", p(f"{name}.bias", (n_out,), Init.BIAS))
    return g.Add(bias, g.MatMul(x, weight))


def linear_2d(g: GraphBuilder, p: Params, x: Value, name: str, n_in: int, n_out: int) -> Value:
    """`nn.Linear` on a 2-D input: one Gemm."""
    weight = g.weight(f"{name}.weight", p(f"{name}.weight", (n_out, n_in), Init.LINEAR))
    bias = g.weight(f"{name}.bias", p(f"{name}.bias", (n_out,), Init.BIAS))
    return g.Gemm(x, weight, bias, transB=1)


def layer_norm(g: GraphBuilder, p: Params, x: Value, name: str, n: int, eps: float) -> Value:
    """`nn.LayerNorm` at opset 17 and later: one node."""
    gain, bias = _norm_weights(g, p, name, n)
    return g.LayerNormalization(x, gain, bias, axis=-1, epsilon=eps)


def layer_norm_decomposed(g: GraphBuilder, p: Params, x: Value, name: str, n: int, eps: float) -> Value:
    """`nn.LayerNorm` before opset 17: nine nodes."""
    gain, bias = _norm_weights(g, p, name, n)
    centred = g.Sub(x, g.ReduceMean(x, axes=[-1]))
    variance = g.ReduceMean(g.Pow(centred, g.const(2.0)), axes=[-1])
    normal = g.Div(centred, g.Sqrt(g.Add(variance, g.const(eps))))
    return g.Add(g.Mul(normal, gain), bias)


def _norm_weights(g: GraphBuilder, p: Params, name: str, n: int) -> tuple[Value, Value]:
    gain = g.weight(f"{name}.weight", p(f"{name}.weight", (n,), Init.GAIN))
    bias = g.weight(f"{name}.bias", p(f"{name}.bias", (n,), Init.BIAS))
    return gain, bias


def gelu_erf(g: GraphBuilder, x: Value) -> Value:
    """`x * (1 + erf(x / sqrt(2))) * 0.5`."""
    erf = g.Erf(g.Div(x, g.const(math.sqrt(2.0))))
    return g.Mul(g.Mul(x, g.Add(erf, g.const(1.0))), g.const(0.5))


def gelu_tanh(g: GraphBuilder, x: Value) -> Value:
    """`0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`, GPT-2's activation."""
    half = g.Mul(x, g.const(0.5))
    cubic = g.Add(x, g.Mul(g.Pow(x, g.const(3.0)), g.const(0.044715)))
    tanh = g.Tanh(g.Mul(cubic, g.const(math.sqrt(2.0 / math.pi))))
    return g.Mul(half, g.Add(tanh, g.const(1.0)))
