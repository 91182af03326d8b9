"""Attributes that name an activation: of LSTM, GRU and RNN, with alpha and beta in lists, and of fused convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import f
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.expr import Expr

Activation = Callable[[Expr], Expr]


def _below(v: Expr, negative: Expr) -> Expr:
    return E.call("where", E.call("lt", v, f(0)), negative, v)


def _affine(v: Expr, alpha: float, beta: float) -> Expr:
    return E.call("add", E.call("mul", v, f(alpha)), f(beta))


# By ONNX's names in small letters: the defaults of the parameters that it takes (alpha, then beta), and the function. None: there
# is no default that all agree on.
_KNOWN: dict[str, tuple[tuple[float | None, ...], Callable[..., Expr]]] = {
    "relu": ((), lambda v: E.call("relu", v)),
    "tanh": ((), lambda v: E.call("tanh", v)),
    "sigmoid": ((), lambda v: E.call("logistic", v)),
    "softsign": ((), lambda v: E.call("div", v, E.call("add", f(1), E.call("abs", v)))),
    "softplus": ((), lambda v: E.call("softplus", v)),
    "affine": ((None, None), _affine),
    "leakyrelu": ((0.01,), lambda v, a: _below(v, E.call("mul", v, f(a)))),
    "thresholdedrelu": ((None,), lambda v, a: E.call("where", E.call("lt", f(a), v), v, f(0))),
    "scaledtanh": ((None, None), lambda v, a, b: E.call("mul", E.call("tanh", E.call("mul", v, f(b))), f(a))),
    "hardsigmoid": ((0.2, 0.5), lambda v, a, b: E.call("max", E.call("min", _affine(v, a, b), f(1)), f(0))),
    "elu": ((1.0,), lambda v, a: _below(v, E.call("mul", E.call("sub", E.call("exp", v), f(1)), f(a)))),
}


def activations_of(node: Node, usual: Sequence[str], directions: int) -> list[Activation]:
    """What the node names, or the ``usual`` ones of its operator; the same for each direction. Each name takes as many of the
    alphas and betas as it has parameters, in the order of the names."""
    wanted = len(usual) * directions
    names = [_text(name) for name in node.attr("activations", ())] or [*usual] * directions
    if len(names) < wanted:
        raise UnsupportedError(f"{len(names)} of {wanted} activations")
    alphas, betas = (list(node.attr(f"activation_{name}", ())) for name in ("alpha", "beta"))
    found: list[tuple[str, tuple[float | None, ...]]] = []
    for name in names[:wanted]:  # RNN's default is of two directions
        known = _KNOWN.get(name.lower())
        if known is None:
            raise UnsupportedError(f"activation {name}")
        given = [float(values.pop(0)) if values else default for values, default in zip((alphas, betas), known[0], strict=False)]
        if any(value is None for value in given):
            raise UnsupportedError(f"activation {name} without its parameters")
        found.append((name.lower(), tuple(given)))
    own = found[: len(usual)]
    if found != own * directions:
        raise UnsupportedError("directions with activations of their own")
    return [_function(name, values) for name, values in own]


def activation_of(name: str, parameters: Sequence[float]) -> Activation:
    """By name, with all of its parameters."""
    known = _KNOWN.get(name.lower())
    if known is None or len(known[0]) != len(parameters):
        raise UnsupportedError(f"activation {name} with {len(parameters)} parameters")
    return _function(name.lower(), tuple(parameters))


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _function(name: str, values: tuple[float | None, ...]) -> Activation:
    return lambda v: _KNOWN[name][1](v, *values)
