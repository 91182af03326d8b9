"""A model under torch.compile(backend="xyntra"): gradients of kernels, and of their definition, against PyTorch in float64."""

from __future__ import annotations

import copy
import functools
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from xyntra_ep.errors import ConfigError, UnsupportedError, XyntraError, did_you_mean
from xyntra_ep.frameworks.torch.backend import xyntra
from xyntra_ep.frameworks.torch.check.calls import CALLS, Call
from xyntra_ep.frameworks.torch.check.interpreted import interpreted_backend
from xyntra_ep.frameworks.torch.check.measures import LEAST_GRADIENT, apart, as_double, error, loss
from xyntra_ep.frameworks.torch.check.report import GradientReport, GradientRow
from xyntra_ep.frameworks.torch.record import RECORDS, reset

WHERE = "check-gradients"
FORM = "write it as module:callable, whose call returns (module, example inputs)"
MAX_ERROR = 1e-4  # of kernels: as deep as models are, rounding of float32 adds up
# Eager PyTorch rounds too. A model that amplifies rounding is not to be told wrong for what eager PyTorch does as well.
TIMES_EAGER = 4.0
MAX_INTERPRETED = 1e-5  # tensors between graphs are float32, so that eager's rounding counts here too

Gradients = dict[str, torch.Tensor | None]


def load_model(target: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    """What ``module:callable`` returns: a module and its inputs, by name or by position ("0", "1"). The working directory is
    searched first. Raises ConfigError."""
    if Path(target).suffix == ".onnx":
        raise ConfigError("an ONNX file has no gradients, which PyTorch asks for", where=target, hint=f"of a model there {FORM}")
    name, colon, attribute = target.partition(":")
    if not (name and colon and attribute):
        raise ConfigError("no model", where=target, hint=FORM)
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(name)
    except Exception as failed:
        raise ConfigError(f"{name} cannot be imported ({type(failed).__name__}: {failed})", where=target) from failed
    finally:
        sys.path.remove(str(Path.cwd()))
    make = getattr(module, attribute, None)
    if not callable(make):
        known = [n for n in vars(module) if not n.startswith("_") and callable(getattr(module, n))]
        hint = did_you_mean(attribute, known) if known else FORM
        raise ConfigError(f"{name} has no callable {attribute!r}", where=target, hint=hint)
    try:
        made = make()
    except Exception as failed:
        raise ConfigError(f"{attribute}() fails ({type(failed).__name__}: {failed})", where=target) from failed
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], torch.nn.Module)):
        raise ConfigError(f"{attribute}() returns no (module, example inputs)", where=target, hint=FORM)
    model, given = made
    return model, _named(given, target)


def _named(given: Any, where: str) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    values = [given] if isinstance(given, torch.Tensor) else given
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ConfigError("the example inputs are neither a tensor, nor a tuple, nor a dict", where=where, hint=FORM)
    return {str(i): value for i, value in enumerate(values)}


def check_model(
    model: torch.nn.Module, inputs: Mapping[str, Any], *, name: str, options: Mapping[str, Any], train: bool = False
) -> GradientReport:
    """A row for each parameter and each input of floats, by a loss in which each element of the outputs counts. ``train``: batch
    normalisation takes the statistics of the batch. Raises UnsupportedError where the model does not run."""
    model = copy.deepcopy(model).float().train(train)
    narrow = {k: v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in inputs.items()}
    with _quiet():
        exact = _gradients(copy.deepcopy(model).double(), as_double(narrow), None, name)
        eager = _gradients(copy.deepcopy(model), narrow, None, name)
        reset()
        backend = functools.partial(xyntra, options=options)
        ours = _gradients(copy.deepcopy(model), narrow, backend, name)
        records = RECORDS.all()
        note = ""
        defined: Gradients = {}
        try:
            defined = _gradients(copy.deepcopy(model), narrow, functools.partial(interpreted_backend, options), name)
        except XyntraError as failed:
            note = f"{name}: the definition of its kernels was not checked ({failed.what})"
    largest = max((g.abs().max().item() for g in exact.values() if g is not None and g.numel()), default=0.0)
    if not largest > 0:
        raise UnsupportedError("nothing in it has a gradient that is not zero", where=name)
    least = LEAST_GRADIENT * largest
    rows = []
    for tensor, wanted in exact.items():
        if wanted is None:
            continue
        eager_error = _relative(eager[tensor], wanted, least)
        rows.append(
            GradientRow(
                of=name,
                tensor=tensor,
                shape=tuple(wanted.shape),
                absolute=_absolute(ours[tensor], wanted),
                relative=_relative(ours[tensor], wanted, least),
                bound=max(MAX_ERROR, TIMES_EAGER * eager_error),
                eager=eager_error,
                interpreted=_relative(defined[tensor], wanted, least) if defined else None,
                interpreted_bound=max(MAX_INTERPRETED, TIMES_EAGER * eager_error),
                note=note,
            )
        )
    claimed, calls = sum(record.claimed for record in records), sum(len(record.calls) for record in records)
    return GradientReport(rows=tuple(rows), claimed=claimed, calls=calls)


def calls_of(names: Sequence[str]) -> Sequence[Call]:
    """Those asked for, all of nothing. Raises ConfigError."""
    known = {call.name: call for call in CALLS}
    for name in names:
        if name not in known:
            raise ConfigError(f"no function {name!r}", where=WHERE, hint=did_you_mean(name, [*known]))
    return [known[name] for name in names] or CALLS


def check_function(call: Call, *, options: Mapping[str, Any]) -> GradientReport:
    """A row for each operand of a function of PyTorch's, as of a model that has no parameters."""
    operands = {str(i): torch.randn(shape) for i, shape in enumerate(call.shapes)}
    return check_model(_Function(call.function), operands, name=call.name, options=options)


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *operands: torch.Tensor) -> Any:
        return self._function(*operands)


def _absolute(gradient: torch.Tensor | None, wanted: torch.Tensor) -> float:
    return float("inf") if gradient is None else apart(gradient, wanted)


def _relative(gradient: torch.Tensor | None, wanted: torch.Tensor, least: float) -> float:
    return float("inf") if gradient is None else error(gradient, wanted, least)


def _gradients(model: torch.nn.Module, inputs: Mapping[str, Any], backend: Callable[..., Any] | None, name: str) -> Gradients:
    """By the model's parameters and its inputs of floats; None where the loss does not depend on one."""
    leaves = {k: v.detach().clone().requires_grad_() for k, v in inputs.items() if _is_float(v)}
    given = {**inputs, **leaves}
    torch._dynamo.reset()
    called = model if backend is None else torch.compile(model, backend=backend)
    try:
        by_position = all(key.isdecimal() for key in given)
        loss(called(*given.values()) if by_position else called(**given)).backward()
    except XyntraError:
        raise
    except Exception as failed:  # of somebody's model, and of what PyTorch says of it
        how = "in PyTorch" if backend is None else "compiled"
        said = (str(failed).strip().splitlines() or [""])[0]
        raise UnsupportedError(f"the model does not run {how} ({type(failed).__name__}: {said})", where=name) from failed
    finally:
        torch._dynamo.reset()
    parameters = {key: p for key, p in model.named_parameters() if p.requires_grad}
    return {f"input {key}": leaf.grad for key, leaf in leaves.items()} | {key: p.grad for key, p in parameters.items()}


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


@contextmanager
def _quiet() -> Iterator[None]:
    """What Dynamo warns of is nothing that is asked here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
