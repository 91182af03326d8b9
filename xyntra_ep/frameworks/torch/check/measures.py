"""Distances between tensors, and a loss that has a gradient by all that a model returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

# Of a parameter whose gradient is nothing beside the others', rounding is all there is.
LEAST_GRADIENT = 1e-3


def tensors(found: Any) -> list[torch.Tensor]:
    """Those with floats, of what a model returns: a tensor, a sequence, or a mapping."""
    if isinstance(found, torch.Tensor):
        return [found]
    values = found.values() if hasattr(found, "values") else found
    return [t for t in values if isinstance(t, torch.Tensor) and t.is_floating_point()]


def loss(found: Any) -> torch.Tensor:
    """In which each element counts differently."""
    parts = [(t * torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).view(t.shape)).pow(2).mean() for t in tensors(found)]
    return torch.stack(parts).sum()


def apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest difference of two elements; not a number where one is none."""
    return (ours.double() - theirs.double()).abs().max().item() if theirs.numel() else 0.0


def error(ours: torch.Tensor, theirs: torch.Tensor, least: float = 0.0) -> float:
    """The same over the largest element of ``theirs``, or ``least`` where that is more."""
    found = apart(ours, theirs)
    return found / max(theirs.abs().max().item(), least, 1e-30) if found else 0.0


def as_double(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in arguments.items()}


def differences(
    function: Callable[..., torch.Tensor],
    operands: Sequence[torch.Tensor],
    at: int,
    gradient: torch.Tensor,
    weight: torch.Tensor,
    step: float,
) -> float:
    """How far the derivative of ``(function * weight).sum()`` along a random direction of operand ``at`` is from its central
    difference over ``step``, beside the gradient's norm plus 1."""
    direction = torch.randn_like(operands[at])
    direction /= direction.norm()
    ends = []
    for sign in (1, -1):
        moved = [t.detach() + sign * step * direction if i == at else t.detach() for i, t in enumerate(operands)]
        ends.append((function(*moved).double() * weight).sum())
    difference = (ends[0] - ends[1]) / (2 * step)
    return float(abs((difference - (gradient * direction).sum()).item()) / (gradient.norm().item() + 1))
