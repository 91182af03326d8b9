"""Functions of PyTorch's, each of which is a few ATen operators: what rows make of them is compared with eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``shapes``: of float operands. ``left``: ATen operators that stay with PyTorch, forward or backward."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    left: tuple[str, ...] = ()


def _positive(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: function(x.abs() + 0.5)


def _written(x: torch.Tensor) -> torch.Tensor:
    """A part of it written in place."""
    y = x * 0.5
    y[:, 1:3] = x[:, :1] * 2
    y[0] = 3.0
    return y * x


_ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu"
_X = ((3, 4, 5),)
_TWO = ((3, 4, 5), (4, 1))

CALLS = [
    *(
        Call(name=function.__name__, function=function, shapes=_X)
        for function in (
            torch.exp, torch.tanh, torch.sin, torch.cos, torch.erf, torch.sigmoid, F.silu, F.gelu, F.mish, F.softplus, F.elu,
            F.hardswish, F.leaky_relu, torch.neg, torch.square,
        )
    ),
    *(Call(name=f.__name__, function=_positive(f), shapes=_X) for f in (torch.log, torch.sqrt, torch.rsqrt, torch.log2)),
    *(Call(name=f.__name__, function=f, shapes=_TWO) for f in (torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum)),
    Call(name="div", function=lambda a, b: a / (b.abs() + 1), shapes=_TWO),
    Call(name="where", function=lambda a, b: torch.where(a > b, a * 2, b), shapes=_TWO),
    Call(name="clamp", function=lambda a: torch.clamp(a, -0.5, 0.7), shapes=_X),
    Call(name="comparisons", function=lambda a, b: (a < b).float() + (a != b) * a + (a >= 0) * b, shapes=_TWO),
    Call(name="masked_fill", function=lambda a: a.masked_fill(a > 0.3, -1.0), shapes=_X),
    Call(name="sum", function=lambda a: a.sum(1) + a.sum() + a.sum((0, 2), keepdim=True).sum(), shapes=_X),
    Call(name="mean", function=lambda a: a.mean(-1, keepdim=True) * a.mean(), shapes=_X),
    Call(name="amax", function=lambda a: a.amax(1), shapes=_X),
    Call(name="var", function=lambda a: a.var(1) + a.var((1, 2), unbiased=False).sum(), shapes=_X),
    Call(name="std_mean", function=lambda a: a.std(2) * a.mean(2), shapes=_X),
    Call(name="logsumexp", function=lambda a: torch.logsumexp(a, 1), shapes=_X),
    Call(name="softmax", function=lambda a: a.softmax(1) * a.log_softmax(-1), shapes=_X),
    Call(name="cumsum", function=lambda a: a.cumsum(1), shapes=_X),
    Call(name="permute", function=lambda a: a.permute(2, 0, 1).exp(), shapes=_X),
    Call(name="views", function=lambda a: a.reshape(4, 15).unsqueeze(1).expand(4, 3, 15).exp().squeeze(), shapes=_X),
    Call(name="slices", function=lambda a: a[:, 1:3].exp() + a[0, :2].exp(), shapes=_X),
    Call(name="cat", function=lambda a, b: torch.cat([a, b.expand(3, 4, 5), a], 1).exp(), shapes=_TWO),
    Call(name="split", function=lambda a: a.split([1, 3], 1)[1].exp() * a.chunk(2, 1)[0][:, :1].tanh(), shapes=_X),
    Call(name="stack", function=lambda a: torch.stack([a, a.exp()], 1), shapes=_X),
    Call(name="pad", function=lambda a: F.pad(a, (1, 2, 0, 1), value=0.5).exp(), shapes=_X),
    Call(name="flip", function=lambda a: a.flip(1, 2).exp(), shapes=_X),
    Call(name="repeat", function=lambda a: a.repeat(2, 1, 1, 2).exp(), shapes=_X),
    Call(name="matmul", function=torch.matmul, shapes=((2, 3, 4), (4, 5))),
    Call(name="bmm", function=torch.bmm, shapes=((2, 3, 4), (2, 4, 5))),
    Call(name="linear", function=F.linear, shapes=((2, 3, 8), (6, 8), (6,))),
    Call(name="addmm", function=lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), shapes=((5,), (3, 4), (4, 5))),
    Call(name="einsum", function=lambda a, b: torch.einsum("bij,bkj->bik", a, b), shapes=((2, 3, 4), (2, 5, 4))),
    Call(name="conv1d", function=lambda x, w, b: F.conv1d(x, w, b, 2, 1), shapes=((2, 3, 9), (4, 3, 3), (4,))),
    Call(name="conv2d", function=lambda x, w, b: F.conv2d(x, w, b, padding=1), shapes=((2, 3, 7, 8), (4, 3, 3, 3), (4,))),
    Call(name="conv2d.strided", function=lambda x, w: F.conv2d(x, w, None, 2, 1), shapes=((2, 3, 8, 9), (4, 3, 3, 3))),
    Call(name="conv2d.rest", function=lambda x, w: F.conv2d(x, w, None, 3), shapes=((2, 3, 10, 8), (4, 3, 2, 3))),
    Call(name="conv2d.dilated", function=lambda x, w: F.conv2d(x, w, None, 2, 2, 2), shapes=((2, 3, 9, 8), (4, 3, 3, 3))),
    Call(
        name="conv2d.groups",
        function=lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 4),
        shapes=((2, 4, 7, 8), (8, 1, 3, 3)),
        left=("aten.convolution_backward.default",),
    ),
    Call(
        name="conv_transpose2d",
        function=lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1),
        shapes=((2, 3, 5, 6), (3, 4, 3, 3)),
        left=("aten.convolution_backward.default",),
    ),
    Call(
        name="max_pool2d",
        function=lambda x: F.max_pool2d(x, 3, 2, 1),
        shapes=((2, 3, 9, 8),),
        left=("aten.max_pool2d_with_indices.default", "aten.max_pool2d_with_indices_backward.default"),
    ),
    Call(
        name="avg_pool2d",
        function=lambda x: F.avg_pool2d(x, 2, 2, 1, count_include_pad=False),
        shapes=((2, 3, 8, 8),),
        left=("aten.avg_pool2d_backward.default",),
    ),
    Call(name="adaptive_avg_pool2d", function=lambda x: F.adaptive_avg_pool2d(x, 1), shapes=((2, 3, 8, 8),)),
    Call(name="layer_norm", function=lambda x, w, b: F.layer_norm(x, (8,), w, b), shapes=((2, 3, 8), (8,), (8,))),
    Call(name="layer_norm.bare", function=lambda x: F.layer_norm(x, (3, 8)), shapes=((2, 3, 8),)),
    Call(name="rms_norm", function=lambda x, w: F.rms_norm(x, (8,), w), shapes=((2, 3, 8), (8,))),
    Call(name="group_norm", function=lambda x, w, b: F.group_norm(x, 2, w, b), shapes=((2, 4, 5, 3), (4,), (4,))),
    Call(
        name="batch_norm",
        function=lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        shapes=((4, 3, 5, 5), (3,), (3,)),
    ),
    Call(name="attention", function=F.scaled_dot_product_attention, shapes=((2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8))),
    Call(
        name="attention.causal",
        function=lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        shapes=((2, 2, 6, 8),) * 3,
    ),
    Call(
        name="attention.mask",
        function=lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m.detach() > -1),
        shapes=((2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), (5, 7)),
    ),
    Call(
        name="attention.added",
        function=lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m.detach(), scale=0.3),
        shapes=((2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), (2, 1, 5, 7)),
    ),
    Call(
        name="attention.groups",
        function=lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        shapes=((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)),
        left=(f"{_ATTENTION}.default", f"{_ATTENTION}_backward.default"),
    ),
    Call(
        name="embedding",
        function=lambda w: F.embedding(torch.tensor([[1, 2, 2], [0, 3, 1]]), w).exp(),
        shapes=((5, 4),),
        left=("aten.index_put.default",),
    ),
    Call(
        name="index",
        function=lambda x: x[torch.tensor([[0], [2]]), torch.tensor([1, -1, 3])].exp() * x[:, torch.tensor([2, 0, 0])][0],
        shapes=_X,
        left=("aten.index_put.default",),
    ),
    Call(name="copy", function=_written, shapes=_X),
    Call(
        name="cross_entropy",
        function=lambda x: F.cross_entropy(x, torch.tensor([1, 0, 3])),
        shapes=((3, 4),),
        left=("aten.scatter.value",),
    ),
]  # fmt: skip
