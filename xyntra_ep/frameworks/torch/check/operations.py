"""The differentiable operations of `tracea.ops`: gradcheck in float64 on the interpreter, float32 kernels against eager PyTorch
in float64, and against finite differences of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd.gradcheck import GradcheckError

from xyntra_ep.errors import ConfigError, did_you_mean
from xyntra_ep.frameworks import ops as package
from xyntra_ep.frameworks.torch.check.measures import apart, differences, error
from xyntra_ep.frameworks.torch.check.report import GradientRow

ops: Any = package  # called with operands that a list holds
MAX_ERROR = 1e-5
STEP, MAX_DIFFERENCE = 1e-2, 5e-3  # of differences in float32: the step's third power beside rounding divided by it

Function = Callable[..., torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCase:
    """``ours`` and ``theirs`` take float operands, whose names and shapes are ``operands``."""

    name: str
    ours: Function
    theirs: Function
    operands: Mapping[str, tuple[int, ...]]


_QKV = {"query": (2, 2, 4, 8), "key": (2, 2, 4, 8), "value": (2, 2, 4, 8)}
_LINEAR = {"input": (2, 3, 8), "weight": (4, 8), "bias": (4,)}
_IMAGE = {"input": (2, 3, 5, 6), "weight": (4, 3, 3, 3), "bias": (4,)}
_GROUPS = {"query": (1, 4, 3, 8), "key": (1, 2, 5, 8), "value": (1, 2, 5, 8)}
_NORM = {"input": (2, 3, 8), "weight": (8,), "bias": (8,)}
_ONE = {"input": (2, 3, 4)}


def _attention(**settings: Any) -> dict[str, Function]:
    return {
        "ours": lambda *t: ops.attention(*t, **settings),
        "theirs": lambda *t: F.scaled_dot_product_attention(*t, **settings),
    }


CASES = (
    OperationCase(name="matmul", ours=ops.matmul, theirs=torch.matmul, operands={"x1": (2, 3, 4), "x2": (4, 5)}),
    OperationCase(name="linear", ours=ops.linear, theirs=F.linear, operands=_LINEAR),
    OperationCase(
        name="conv2d",
        ours=lambda *t: ops.conv2d(*t, stride=2, padding=1),
        theirs=lambda *t: F.conv2d(*t, stride=2, padding=1),
        operands=_IMAGE,
    ),
    OperationCase(name="attention", **_attention(), operands=_QKV),
    OperationCase(name="attention.causal", **_attention(is_causal=True), operands=_QKV),
    OperationCase(name="attention.groups", **_attention(enable_gqa=True), operands=_GROUPS),
    OperationCase(
        name="layer_norm",
        ours=lambda x, *t: ops.layer_norm(x, (8,), *t),
        theirs=lambda x, *t: F.layer_norm(x, (8,), *t),
        operands=_NORM,
    ),
    OperationCase(
        name="rms_norm",
        ours=lambda x, *t: ops.rms_norm(x, (8,), *t),
        theirs=lambda x, *t: F.rms_norm(x, (8,), *t),
        operands={"input": (2, 3, 8), "weight": (8,)},
    ),
    OperationCase(name="softmax", ours=lambda x: ops.softmax(x, 1), theirs=lambda x: torch.softmax(x, 1), operands=_ONE),
    OperationCase(name="gelu", ours=ops.gelu, theirs=F.gelu, operands=_ONE),
    OperationCase(
        name="gelu.tanh",
        ours=lambda x: ops.gelu(x, approximate="tanh"),
        theirs=lambda x: F.gelu(x, approximate="tanh"),
        operands=_ONE,
    ),
    OperationCase(
        name="fused",
        ours=lambda a, b: ops.fused("silu(a) * b + where(a < 0, b**2, exp(-a))", a=a, b=b),
        theirs=lambda a, b: F.silu(a) * b + torch.where(a < 0, b**2, torch.exp(-a)),
        operands={"a": (2, 3, 4), "b": (4,)},
    ),
)


def cases_of(names: Sequence[str]) -> tuple[OperationCase, ...]:
    """Those asked for, all of nothing. Raises ConfigError."""
    known = {case.name: case for case in CASES}
    for name in names:
        if name not in known:
            raise ConfigError(f"no operation {name!r}", where="check-gradients", hint=did_you_mean(name, [*known]))
    return tuple(known[name] for name in names) or CASES


def check_operation(case: OperationCase) -> Iterator[GradientRow]:
    """A row for each operand."""
    operands = [torch.randn(shape, requires_grad=True) for shape in case.operands.values()]
    wide = [t.detach().double().requires_grad_() for t in operands]
    result, exact, eager = case.ours(*operands), case.theirs(*wide), case.theirs(*operands)
    weight = torch.randn_like(result)
    found = torch.autograd.grad(result, operands, weight)
    wanted = torch.autograd.grad(exact, wide, weight.double())
    plain = torch.autograd.grad(eager, operands, weight)
    agrees, note = _agrees(case, wide)
    for i, (name, gradient) in enumerate(zip(case.operands, found, strict=True)):
        yield GradientRow(
            of=case.name,
            tensor=name,
            shape=case.operands[name],
            absolute=apart(gradient, wanted[i]),
            relative=error(gradient, wanted[i]),
            bound=MAX_ERROR,
            eager=error(plain[i], wanted[i]),
            gradcheck=agrees,
            differences=differences(case.ours, operands, i, gradient, weight, STEP),
            differences_bound=MAX_DIFFERENCE,
            note=note,
        )


def _agrees(case: OperationCase, wide: Sequence[torch.Tensor]) -> tuple[bool, str]:
    """Whether the gradient is that of the operation's definition, and what gradcheck says where it is not."""
    with ops.interpreted():
        try:
            return bool(torch.autograd.gradcheck(case.ours, [*wide])), ""
        except GradcheckError as error:
            return False, f"{case.name}: {' '.join(str(error).split())[:200]}"
