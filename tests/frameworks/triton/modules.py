# mypy: ignore-errors
"""The kernels in `kernels.py` as operators of PyTorch, and models with them."""

import torch
import triton
from torch.library import triton_op, wrap_triton

from tests.frameworks.triton import kernels


@triton_op("xyntra_tests::added", mutates_args={})
def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = out.numel()
    wrap_triton(kernels.vector_add)[(triton.cdiv(n, 64),)](x, y, out, n, BLOCK=64)
    return out


@triton_op("xyntra_tests::bias_gelu", mutates_args={})
def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = out.numel()
    wrap_triton(kernels.bias_gelu)[(triton.cdiv(n, 64),)](x, bias, out, n, x.shape[-1], BLOCK=64)
    return out


@triton_op("xyntra_tests::rms_norm", mutates_args={})
def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    rows, columns = x.shape
    wrap_triton(kernels.rms_norm)[(rows,)](x, weight, out, columns, 1e-5, BLOCK=triton.next_power_of_2(columns))
    return out


@triton_op("xyntra_tests::softsign", mutates_args={})
def softsign(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    wrap_triton(kernels.softsign)[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
    return out


@triton_op("xyntra_tests::double_", mutates_args={"x"})
def double_(x: torch.Tensor) -> None:
    n = x.numel()
    wrap_triton(kernels.scaled_in_place)[(triton.cdiv(n, 64),)](x, 2.0, 0, n, BLOCK=64)


@triton_op("xyntra_tests::count", mutates_args={})
def count(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    wrap_triton(kernels.count)[(1,)](x, out, x.numel(), BLOCK=64)
    return out


class Mlp(torch.nn.Module):
    """A layer, a Triton kernel for bias and GELU, a layer."""

    def __init__(self, activation):
        super().__init__()
        self.up, self.down = torch.nn.Linear(24, 40), torch.nn.Linear(40, 8)
        self.bias = torch.nn.Parameter(torch.randn(40))
        self.activation = activation

    def forward(self, x):
        return self.down(self.activation(self.up(x), self.bias))


class RmsNorm(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return rms_norm(x, self.weight)
