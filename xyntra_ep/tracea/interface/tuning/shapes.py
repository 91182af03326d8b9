"""Shapes that matter: of ResNet's blocks, MobileNet's, and transformers' products at some lengths. Hero tables are made of them
(`xyntra tune --heroes`), and searches are compared on them (`bench run tune`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xyntra_ep.tracea.interface.tuning.problem import Problem, named_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedShape:
    """An op of `plan_kernel` with its sizes."""

    name: str
    op: str
    sizes: Mapping[str, int]

    def problem(self) -> Problem:
        return named_problem(self.op, **dict[str, Any](self.sizes))


def _conv(c: int, h: int, m: int, k: int = 3, stride: int = 1, group: int = 1) -> NamedShape:
    kind = "depthwise" if group > 1 else f"conv{k}x{k}"
    name = f"{kind}-{c}x{h}x{h}-{m}" + (f"-s{stride}" if stride > 1 else "")
    sizes = {"n": 1, "c": c, "h": h, "w": h, "m": m, "k": k, "stride": stride, "pad": k // 2, "group": group}
    return NamedShape(name=name, op="conv", sizes=sizes)


def _gemm(m: int, n: int, k: int) -> NamedShape:
    return NamedShape(name=f"gemm-{m}x{n}x{k}", op="gemm", sizes={"m": m, "n": n, "k": k})


def _attention(s: int, heads: int) -> NamedShape:
    sizes = {"batch": 1, "heads": heads, "s": s, "t": s, "d_head": 64}
    return NamedShape(name=f"attention-{heads}x{s}x64", op="attention", sizes=sizes)


SHAPES = (
    _gemm(1, 3072, 768), _gemm(16, 768, 768), _gemm(128, 768, 768), _gemm(128, 3072, 768), _gemm(197, 192, 768),
    _attention(128, 12), _attention(197, 3),
    _conv(3, 224, 64, k=7, stride=2), _conv(64, 56, 64, k=1), _conv(64, 56, 256, k=1), _conv(256, 56, 64, k=1),
    _conv(128, 28, 128), _conv(256, 14, 256), _conv(512, 7, 512), _conv(1024, 14, 256, k=1), _conv(96, 14, 576, k=1),
    _conv(960, 7, 160, k=1), _conv(32, 112, 32, group=32), _conv(144, 56, 144, group=144), _conv(576, 14, 576, group=576),
)  # fmt: skip
