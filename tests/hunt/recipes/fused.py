"""The fused operators of domain ai.xyntra, whose bodies travel with the model."""

from __future__ import annotations

import numpy as np

from tests.hunt.generation.builder import Builder, Extent
from tests.hunt.recipes._row import Recipe, maybe

OURS = "ai.xyntra"
SINCE = 20  # of the bodies


def _attention(b: Builder) -> None:
    batch, heads, s, t = b.pick([(1, 2, 1), (2, 1, 3)]), (2, 2, 2), b.extent(), b.extent()
    d, e = b.pick([(4, 4, 4), (8, 8, 8)]), b.pick([(4, 4, 4), (3, 3, 3)])
    q, k, v = (b.tensor([batch, heads, n, w], fixed=0.05) for n, w in ((s, d), (t, d), (t, e)))
    mask = b.tensor([batch, (1, 1, 1), b.pick([(1, 1, 1), s]), t] if b.chance(0.7) else [t], fixed=0.1)
    b.one("Attention", [q, k, v, mask], domain=OURS, scale=0.5)


def _gemm(op: str, b: Builder) -> None:
    x = b.any((np.float32,), least=2, most=3)
    n = b.extent()
    w, bias = b.tensor([x.extents[-1], n], fixed=0.9), b.tensor([n], fixed=0.9)
    residual = [b.tensor([*x.extents[:-1], n])] if op == "GemmBiasResidual" else []
    b.one(op, [x, w, bias, *residual], domain=OURS)


def _conv(op: str, b: Builder) -> None:
    c, m = b.pick((1, 2, 4)), b.pick((1, 2, 4))
    spatial: list[Extent] = [tuple(min(n, 10) for n in b.extent()) for _ in range(2)]
    x = b.input([(1, 2, 1), (c, c, c), *spatial])
    w, bias = b.tensor([(m, m, m), (c, c, c), (3, 3, 3), (3, 3, 3)], fixed=0.95), b.tensor([(m, m, m)], fixed=0.9)
    residual = [b.tensor([(1, 2, 1), (m, m, m), *spatial])] if "Residual" in op else []
    b.one(op, [x, w, bias, *residual], domain=OURS, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], group=1)


def _norms(op: str, b: Builder) -> None:
    x = b.any((np.float32,), least=2)
    scale = b.tensor([x.extents[-1]])
    if op == "RmsNorm":
        b.one(op, [x, scale], domain=OURS, epsilon=maybe(b, 0.1))
    else:
        b.node(op, [x, b.tensor(x.extents), scale, b.tensor([x.extents[-1]])], outputs=2, domain=OURS, epsilon=maybe(b, 0.1))


ROWS = [
    Recipe(name=f"{OURS}.Attention", build=_attention, since=SINCE),
    Recipe(name=f"{OURS}.GemmBiasGelu", build=lambda b: _gemm("GemmBiasGelu", b), since=SINCE),
    Recipe(name=f"{OURS}.GemmBiasResidual", build=lambda b: _gemm("GemmBiasResidual", b), since=SINCE),
    Recipe(name=f"{OURS}.ConvBiasRelu", build=lambda b: _conv("ConvBiasRelu", b), since=SINCE),
    Recipe(name=f"{OURS}.ConvBiasResidualRelu", build=lambda b: _conv("ConvBiasResidualRelu", b), since=SINCE),
    Recipe(name=f"{OURS}.LayerNormResidual", build=lambda b: _norms("LayerNormResidual", b), since=SINCE),
    Recipe(name=f"{OURS}.RmsNorm", build=lambda b: _norms("RmsNorm", b), since=SINCE),
    Recipe(name=f"{OURS}.GeluTanh", build=lambda b: b.one("GeluTanh", [b.any((np.float32,))], domain=OURS), since=SINCE),
    Recipe(name=f"{OURS}.Silu", build=lambda b: b.one("Silu", [b.any((np.float32,))], domain=OURS), since=SINCE),
]
