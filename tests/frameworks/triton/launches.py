"""Launches of the kernels in `kernels.py`: by Triton, or by what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import triton

from tests.frameworks.triton import kernels

Launcher = Callable[[Any], Any]
Tensors = tuple[torch.Tensor, ...]
N = 1000


def _normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def vector_add(of: Launcher, n: int = N) -> Tensors:
    x, y, out = _normal(n), _normal(n, seed=1), torch.zeros(n)
    if n > 3:
        x[:3] = torch.tensor([float("inf"), float("-inf"), float("nan")])
    of(kernels.vector_add)[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=128)
    return (out,)


def bias_gelu(of: Launcher, dtype: torch.dtype = torch.float32) -> Tensors:
    x, bias = _normal(7, 33, dtype=dtype), _normal(33, seed=1)
    out = torch.zeros_like(x)
    of(kernels.bias_gelu)[(4,)](x, bias, out, x.numel(), 33, BLOCK=64)
    return (out,)


def softmax(of: Launcher, columns: int = 100) -> Tensors:
    x, out = _normal(9, columns + 3)[:, :columns] * 5, torch.zeros(9, columns)
    x = x.as_strided(x.shape, x.stride())
    x[2, : columns // 2] = float("-inf")
    x[3] = float("-inf")
    x[4, 1] = float("nan")
    block = triton.next_power_of_2(columns)
    of(kernels.softmax)[(9,)](out, x, x.stride(0), out.stride(0), columns, BLOCK=block)
    return (out,)


def layer_norm(of: Launcher, columns: int = 100) -> Tensors:
    x, w, b = _normal(9, columns), _normal(columns, seed=1), _normal(columns, seed=2)
    out, mean, rstd = torch.zeros_like(x), torch.zeros(9), torch.zeros(9)
    of(kernels.layer_norm)[(9,)](x, out, w, b, mean, rstd, x.stride(0), columns, 1e-5, BLOCK_SIZE=32)
    return (out, mean, rstd)


def rms_norm(of: Launcher) -> Tensors:
    x, w, out = _normal(9, 100), _normal(100, seed=1), torch.zeros(9, 100)
    of(kernels.rms_norm)[(9,)](x, w, out, 100, 1e-5, BLOCK=128)
    return (out,)


def matmul(of: Launcher, dtype: torch.dtype = torch.float32, activation: str = "leaky_relu") -> Tensors:
    a, b = _normal(70, 90, dtype=dtype), _normal(50, 90, seed=1, dtype=dtype).T
    c = torch.zeros(70, 50, dtype=dtype)

    def grid(meta: Mapping[str, int]) -> tuple[int]:
        return (triton.cdiv(70, meta["BLOCK_M"]) * triton.cdiv(50, meta["BLOCK_N"]),)

    strides = (*a.stride(), *b.stride(), *c.stride())
    of(kernels.matmul)[grid](
        a, b, c, 70, 50, 90, *strides, BLOCK_M=16, BLOCK_N=32, BLOCK_K=32, GROUP=3, ACTIVATION=activation
    )  # fmt: skip
    return (c,)


def linear(of: Launcher, m: int = 20) -> Tensors:
    x, w, bias, out = _normal(m, 50), _normal(30, 50, seed=1), _normal(30, seed=2), torch.zeros(m, 30)
    of(kernels.linear)[(triton.cdiv(m, 16), 2)](x, w, bias, out, m, 30, 50, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16)
    return (out,)


def column_maxima(of: Launcher) -> Tensors:
    x, out = _normal(45, 33), torch.zeros(33)
    of(kernels.column_maxima)[(3,)](x, out, 45, 33, BLOCK_R=16, BLOCK_C=16)
    return (out,)


def transposed(of: Launcher) -> Tensors:
    x, out = _normal(45, 33), torch.zeros(33, 45)
    of(kernels.transposed)[(3, 3)](x, out, 45, 33, BLOCK=16)
    return (out,)


def scaled_in_place(of: Launcher) -> Tensors:
    x = _normal(50)
    of(kernels.scaled_in_place)[(2,)](x, 3.0, 5, 20, BLOCK=16)
    return (x,)


def gram(of: Launcher) -> Tensors:
    x, out = _normal(16, 24), torch.full((16, 16), 7.0)
    of(kernels.gram)[(1,)](x, out, 16, 24, BLOCK=16)
    return (out,)


def remainders(of: Launcher) -> Tensors:
    out = torch.zeros(32, dtype=torch.int32)
    of(kernels.remainders)[(1,)](out, 7, BLOCK=32)
    return (out.float(),)


def running_sum(of: Launcher) -> Tensors:
    x, start, out = _normal(6, 40), _normal(16, seed=1), torch.zeros(6, 16)
    of(kernels.chunk_sums)[(6,)](x, start, out, 40, BLOCK=16)
    return (out,)


def overlapping(of: Launcher) -> Tensors:
    """What is stored lies where something else is read, as two parameters."""
    x = _normal(9, 64)
    of(kernels.softmax)[(9,)](x, x, 64, 64, 64, BLOCK=64)
    return (x,)


def of_one_row(kernel: Any, of: Launcher, programs: int, n: int, block: int = 16) -> Tensors:
    x, out = _normal(n * programs), torch.zeros(n * programs)
    of(kernel)[(programs,)](x, out, n, BLOCK=block)
    return (out,)


def symmetric(of: Launcher) -> Tensors:
    x, out = _normal(16, 16), torch.zeros(16)
    of(kernels.symmetric)[(1,)](x, out, BLOCK=16)
    return (out,)


LAUNCHES: Mapping[str, Callable[[Launcher], Tensors]] = {
    "vector_add": vector_add,
    "vector_add of one": lambda of: vector_add(of, 1),
    "vector_add of a block": lambda of: vector_add(of, 128),
    "bias_gelu": bias_gelu,
    "bias_gelu f16": lambda of: bias_gelu(of, torch.float16),
    "bias_gelu bf16": lambda of: bias_gelu(of, torch.bfloat16),
    "softmax": softmax,
    "softmax of a block": lambda of: softmax(of, 128),
    "layer_norm": layer_norm,
    "layer_norm of whole blocks": lambda of: layer_norm(of, 64),
    "rms_norm": rms_norm,
    "matmul": matmul,
    "matmul f16": lambda of: matmul(of, torch.float16, ""),
    "linear": linear,
    "linear of one row": lambda of: linear(of, 1),
    "column_maxima": column_maxima,
    "transposed": transposed,
    "scaled_in_place": scaled_in_place,
    "gram": gram,
    "remainders": remainders,
    "chunk_sums": running_sum,
    "softmax in place": overlapping,
    "chunked_log_softmax": lambda of: of_one_row(kernels.chunked_log_softmax, of, 7, 50),
    "moving_pointers": lambda of: of_one_row(kernels.moving_pointers, of, 1, 100),
    "smoothed": lambda of: of_one_row(kernels.smoothed, of, 7, 100),
    "gathered": lambda of: of_one_row(kernels.gathered, of, 7, 100),
    "counted": lambda of: of_one_row(kernels.counted, of, 1, 13),
    "symmetric": symmetric,
    "standardised": lambda of: of_one_row(kernels.standardised, of, 7, 50),
    "sum_and_least": lambda of: of_one_row(kernels.sum_and_least, of, 1, 9),
}
