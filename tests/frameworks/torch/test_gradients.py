"""Each differentiable operation of tracea.ops: gradcheck in float64 on the interpreter, and float32 kernels against eager PyTorch
and against finite differences of themselves."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.native, pytest.mark.slow]

MAX_ERROR = 1e-5
STEP, MAX_DIFFERENCE = 1e-2, 5e-3  # of differences in float32: the step's third power beside rounding divided by it

Case = tuple[Callable[..., Any], str, Sequence[tuple[int, ...]]]


def _cases() -> dict[str, Case]:
    ops: Any = importlib.import_module("xyntra_ep.frameworks.ops")  # called with operands that a list holds
    pair = ((2, 2, 4, 8),) * 3
    return {
        "matmul": (ops.matmul, "torch.matmul", ((2, 3, 4), (4, 5))),
        "linear": (ops.linear, "F.linear", ((2, 3, 8), (4, 8), (4,))),
        "conv2d": (lambda *t: ops.conv2d(*t, stride=2, padding=1), "lambda *t: F.conv2d(*t, stride=2, padding=1)",
                   ((2, 3, 5, 6), (4, 3, 3, 3), (4,))),
        "attention": (ops.attention, "F.scaled_dot_product_attention", pair),
        "attention.causal": (lambda *t: ops.attention(*t, is_causal=True),
                             "lambda *t: F.scaled_dot_product_attention(*t, is_causal=True)", pair),
        "attention.groups": (lambda *t: ops.attention(*t, enable_gqa=True),
                             "lambda *t: F.scaled_dot_product_attention(*t, enable_gqa=True)",
                             ((1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8))),
        "layer_norm": (lambda x, *t: ops.layer_norm(x, (8,), *t), "lambda x, *t: F.layer_norm(x, (8,), *t)",
                       ((2, 3, 8), (8,), (8,))),
        "rms_norm": (lambda x, *t: ops.rms_norm(x, (8,), *t), "lambda x, *t: F.rms_norm(x, (8,), *t)", ((2, 3, 8), (8,))),
        "softmax": (lambda x: ops.softmax(x, 1), "lambda x: torch.softmax(x, 1)", ((2, 3, 4),)),
        "gelu": (ops.gelu, "F.gelu", ((2, 3, 4),)),
        "gelu.tanh": (lambda x: ops.gelu(x, approximate="tanh"), "lambda x: F.gelu(x, approximate='tanh')", ((2, 3, 4),)),
        "fused": (lambda a, b: ops.fused("silu(a) * b + where(a < 0, b**2, exp(-a))", a=a, b=b),
                  "lambda a, b: F.silu(a) * b + torch.where(a < 0, b**2, torch.exp(-a))", ((2, 3, 4), (4,))),
    }  # fmt: skip


_NAMES = (
    "matmul", "linear", "conv2d", "attention", "attention.causal", "attention.groups", "layer_norm", "rms_norm", "softmax",
    "gelu", "gelu.tanh", "fused",
)  # fmt: skip


@pytest.mark.parametrize("name", _NAMES)
def test_gradients(name: str) -> None:
    import torch

    from tests.frameworks.torch.compare import error
    from xyntra_ep.tracea import ops

    torch.manual_seed(0)
    ours, text, shapes = _cases()[name]
    theirs = eval(text, {"torch": torch, "F": torch.nn.functional})
    operands = [torch.randn(shape, requires_grad=True) for shape in shapes]
    result, wanted = ours(*operands), theirs(*operands)
    assert error(result, wanted) <= MAX_ERROR
    weight = torch.randn_like(result)
    gradients = torch.autograd.grad(result, operands, weight)
    for mine, eager in zip(gradients, torch.autograd.grad(wanted, operands, weight), strict=True):
        assert error(mine, eager) <= MAX_ERROR
    for i, (operand, gradient) in enumerate(zip(operands, gradients, strict=True)):  # along one direction of each operand
        direction = torch.randn_like(operand)
        direction /= direction.norm()
        ends = []
        for sign in (1, -1):
            moved = [t.detach() + sign * STEP * direction if j == i else t.detach() for j, t in enumerate(operands)]
            ends.append((ours(*moved).double() * weight).sum())
        difference = (ends[0] - ends[1]) / (2 * STEP)
        scale = gradient.norm().item() + 1
        assert abs((difference - (gradient * direction).sum()).item()) <= MAX_DIFFERENCE * scale, f"operand {i}"
    with ops.interpreted():
        assert torch.autograd.gradcheck(ours, [t.detach().double().requires_grad_() for t in operands])


def test_out_and_gradients_exclude_each_other() -> None:
    import torch

    from xyntra_ep.tracea import ops

    x = torch.randn(3, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        ops.gelu(x, out=torch.empty(3, 4))


def test_tensors_are_read_and_written_in_place() -> None:
    import torch

    from xyntra_ep.tracea import ops

    x, out = torch.randn(3, 4).to(torch.bfloat16), torch.empty(3, 4, dtype=torch.bfloat16)
    assert ops.gelu(x, out=out) is out
    assert (out.float() - torch.nn.functional.gelu(x).float()).abs().max() <= 2e-2
    turned = torch.randn(4, 3).t()
    assert torch.allclose(ops.softmax(turned), turned.softmax(-1), atol=1e-6)
    with pytest.raises(RuntimeError, match="must have one type"):
        ops.matmul(torch.randn(2, 2), torch.randn(2, 2).half())
