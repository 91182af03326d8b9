"""A model compiled by us beside the same one in eager PyTorch, both against eager PyTorch in float64."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from xyntra_ep.frameworks.torch.check.measures import LEAST_GRADIENT, as_double, error, loss, tensors
from xyntra_ep.frameworks.torch.record import RECORDS, Direction, reset

BACKEND = "xyntra"


@contextmanager
def fresh() -> Iterator[None]:
    """Nothing was compiled yet; what Dynamo warns of is not ours."""
    torch._dynamo.reset()
    reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch._dynamo.reset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """max |a - b| / max |b| of the worst tensor."""

    inference: float
    forward: float
    gradient: float
    eager_gradient: float  # of eager float32, for who wonders
    worst: str

    def __str__(self) -> str:
        return (
            f"inference {self.inference:.1e}, forward {self.forward:.1e}, "
            f"gradient {self.gradient:.1e} ({self.worst}; eager float32 has {self.eager_gradient:.1e})"
        )


def errors(model: torch.nn.Module, arguments: Mapping[str, Any], *, train: bool = False, **options: Any) -> Errors:
    """Of inference, of a run with gradients and of these. ``train``: batch normalisation takes the statistics of the batch."""
    exact, eager = copy.deepcopy(model).double(), copy.deepcopy(model)
    model.eval(), exact.eval()
    compiled = torch.compile(model, backend=BACKEND, **options)
    wide = as_double(arguments)
    with torch.no_grad():
        inference = max(map(error, tensors(compiled(**arguments)), tensors(exact(**wide))))
    for module in (model, exact, eager):
        module.train(train)
    ours, theirs = compiled(**arguments), exact(**wide)
    forward = max(map(error, tensors(ours), tensors(theirs)))
    loss(ours).backward()
    loss(theirs).backward()
    loss(eager(**arguments)).backward()
    gradient, worst = _gradients(model, exact)
    return Errors(
        inference=inference, forward=forward, gradient=gradient, worst=worst, eager_gradient=_gradients(eager, exact)[0]
    )


def _gradients(model: torch.nn.Module, exact: torch.nn.Module) -> tuple[float, str]:
    found = dict(exact.named_parameters())
    largest = max(p.grad.abs().max().item() for p in found.values() if p.grad is not None)
    assert largest > 1e-6, "gradients that are alive"
    rows = []
    for name, parameter in model.named_parameters():
        if found[name].grad is None:
            assert parameter.grad is None, name
        else:
            assert parameter.grad is not None, name
            rows.append((error(parameter.grad, found[name].grad, LEAST_GRADIENT * largest), name))
    return max(rows)


def share(direction: Direction) -> float:
    """Of the calls of all graphs since `fresh`, how many are ours."""
    records = [record for record in RECORDS.all() if record.direction is direction]
    return sum(record.claimed for record in records) / max(1, sum(len(record.calls) for record in records))
