"""Activations with attributes or parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, Lower, f, float_input, one, wrapped
from xyntra_ep.fusion.op_spec import FLOATS, OpSpec, Values, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.expr import Expr

# The defaults of ONNX's schema.
SELU_ALPHA = 1.67326319217681884765625
SELU_GAMMA = 1.05070102214813232421875


def activation(formula: Callable[[Expr, Node], Expr]) -> Lower:
    """A float activation with scalar attributes."""

    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        x = float_input(inputs, 0)
        return c.map([x], lambda v: wrapped(x.dtype, formula(v, node)), x.dtype)

    return lower


def _negative_part(v: Expr, negative: Expr) -> Expr:
    """``negative`` below zero, the identity elsewhere (NaN stays)."""
    return E.call("where", E.call("lt", v, f(0)), negative, v)


def _gelu(v: Expr, node: Node) -> Expr:
    return E.call("gelu_tanh" if node.attr("approximate", "none") == "tanh" else "gelu_erf", v)


def _leaky_relu(v: Expr, node: Node) -> Expr:
    return _negative_part(v, E.call("mul", v, f(node.attr("alpha", 0.01))))


def _clip01(v: Expr) -> Expr:
    return E.call("max", E.call("min", v, f(1)), f(0))


def _hard_sigmoid(v: Expr, node: Node) -> Expr:
    return _clip01(E.call("add", E.call("mul", v, f(node.attr("alpha", 0.2))), f(node.attr("beta", 0.5))))


def _hard_swish(v: Expr, node: Node) -> Expr:
    return E.call("mul", v, _clip01(E.call("add", E.call("mul", v, f(1 / 6)), f(0.5))))


def _exponential(v: Expr, alpha: float) -> Expr:
    """alpha * (exp(v) - 1)"""
    return E.call("mul", E.call("sub", E.call("exp", v), f(1)), f(alpha))


def _elu(v: Expr, node: Node) -> Expr:
    return _negative_part(v, _exponential(v, node.attr("alpha", 1.0)))


def _selu(v: Expr, node: Node) -> Expr:
    gamma = f(node.attr("gamma", SELU_GAMMA))
    return E.call("mul", _negative_part(v, _exponential(v, node.attr("alpha", SELU_ALPHA))), gamma)


def _celu(v: Expr, node: Node) -> Expr:
    alpha = float(node.attr("alpha", 1.0))
    return _negative_part(v, _exponential(E.call("div", v, f(alpha)), alpha))


def _shrink(v: Expr, node: Node) -> Expr:
    bias, limit = float(node.attr("bias", 0.0)), float(node.attr("lambd", 0.5))
    above = E.call("where", E.call("lt", f(limit), v), E.call("sub", v, f(bias)), f(0))
    return E.call("where", E.call("lt", v, f(-limit)), E.call("add", v, f(bias)), above)


def swish(v: Expr, alpha: float) -> Expr:
    """v * sigmoid(alpha * v)"""
    return E.call("silu", v) if alpha == 1.0 else E.call("mul", v, E.call("sigmoid", E.call("mul", v, f(alpha))))


def _thresholded_relu(v: Expr, node: Node) -> Expr:
    return E.call("where", E.call("lt", f(node.attr("alpha", 1.0)), v), v, f(0))


def _prelu(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, slope = float_input(inputs, 0), one(inputs, 1)
    return c.map([x, slope], lambda v, s: wrapped(x.dtype, _negative_part(v, E.call("mul", v, s))), x.dtype)


_FORMULAS: dict[str, Callable[[Expr, Node], Expr]] = {
    "Reciprocal": lambda v, node: E.call("div", f(1), v),
    "Gelu": _gelu,
    "LeakyRelu": _leaky_relu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Elu": _elu,
    "Selu": _selu,
    "Celu": _celu,
    "Shrink": _shrink,
    "Swish": lambda v, node: swish(v, float(node.attr("alpha", 1.0))),
    "Softsign": lambda v, node: E.call("div", v, E.call("add", f(1), E.call("abs", v))),
    "ThresholdedRelu": _thresholded_relu,
    "Mish": lambda v, node: E.call("mul", v, E.call("tanh", E.call("softplus", v))),
}

_ATTRIBUTES: dict[str, Mapping[str, Values]] = {
    "Gelu": {"approximate": ("none", "tanh")},
    "HardSigmoid": takes("alpha", "beta"),
    "Selu": takes("alpha", "gamma"),
    "Shrink": takes("bias", "lambd"),
    **dict.fromkeys(("LeakyRelu", "Elu", "Celu", "Swish", "ThresholdedRelu"), takes("alpha")),
}
_NEWEST = {
    "Reciprocal": 13, "Gelu": 20, "LeakyRelu": 16, "HardSigmoid": 22, "HardSwish": 22, "Elu": 22, "Selu": 22, "Celu": 28,
    "Shrink": 9, "Swish": 24, "Softsign": 22, "ThresholdedRelu": 22, "Mish": 22,
}  # fmt: skip

OPS = [
    *(
        OpSpec(
            name=name,
            lower=activation(formula),
            versions=(1, _NEWEST[name]),
            attributes=_ATTRIBUTES.get(name, {}),
            types=(FLOATS,),
        )
        for name, formula in _FORMULAS.items()
    ),
    OpSpec(name="PRelu", lower=_prelu, versions=(7, 16), inputs=2, types=(FLOATS,)),
]
