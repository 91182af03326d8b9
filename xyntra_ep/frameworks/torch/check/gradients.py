"""`check_gradients`: of operations, or of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from xyntra_ep.errors import ConfigError
from xyntra_ep.frameworks.torch.backend import settings
from xyntra_ep.frameworks.torch.check.models import WHERE, calls_of, check_function, check_model, load_model
from xyntra_ep.frameworks.torch.check.operations import cases_of, check_operation
from xyntra_ep.frameworks.torch.check.report import GradientReport


def check_gradients(
    model: str = "",
    *,
    operations: Sequence[str] = (),
    functions: Sequence[str] | None = None,
    train: bool = False,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> GradientReport:
    """Are gradients right, by PyTorch in float64?

    Of a ``model``, "module:callable", whose call returns a torch module and its example inputs (a tensor, a tuple, or a dict by
    name): those by its parameters and inputs under torch.compile, with provider ``options``; ``train`` says in which mode. Of
    ``functions`` of PyTorch's, compiled, which between them need each row of the backend and the rules of fusion that make
    kernels of it; of an empty list all. Of nothing: those of the ``operations`` of `tracea.ops`, of all unless named. ``seed``:
    of random tensors, and of what the callable draws. Modules and tensors of floats are taken in float32.

    Raises ConfigError where there is no such model, operation, function or option, and UnsupportedError where the model does
    not run.
    """
    if sum((bool(model), bool(operations), functions is not None)) > 1:
        raise ConfigError("more than one of a model, --operation and --function", where=WHERE, hint="give one of them")
    torch.manual_seed(seed)
    if model:
        settings(None, options)
        module, inputs = load_model(model)
        return check_model(module, inputs, name=model.partition(":")[2], options=options or {}, train=train)
    if functions is not None:
        settings(None, options)
        reports = [check_function(call, options=options or {}) for call in calls_of(functions)]
        return GradientReport(
            rows=tuple(row for report in reports for row in report.rows),
            claimed=sum(report.claimed or 0 for report in reports),
            calls=sum(report.calls or 0 for report in reports),
        )
    for given, what in ((options, "-O"), (train, "--train")):
        if given:
            raise ConfigError(f"{what} says nothing of operations", where=WHERE, hint="it is for a model, module:callable")
    return GradientReport(rows=tuple(row for case in cases_of(operations) for row in check_operation(case)))
