"""`fused`: a formula on arrays as one kernel."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xyntra_ep.errors import ConfigError, did_you_mean
from xyntra_ep.frameworks.graph_draft import GraphDraft
from xyntra_ep.frameworks.ops.functions import Call
from xyntra_ep.tracea.core_ir.dtypes import DType

WHERE = "ops.fused"
_BINARY: Mapping[type[ast.operator], tuple[str, str]] = {  # of ONNX, of PyTorch
    ast.Add: ("Add", "add"), ast.Sub: ("Sub", "sub"), ast.Mult: ("Mul", "mul"), ast.Div: ("Div", "div"), ast.Pow: ("Pow", "pow"),
}  # fmt: skip
_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("Less", "lt"), ast.LtE: ("LessOrEqual", "le"), ast.Gt: ("Greater", "gt"), ast.GtE: ("GreaterOrEqual", "ge"),
    ast.Eq: ("Equal", "eq"),
}  # fmt: skip
FUNCTIONS: Mapping[str, tuple[str, int]] = {  # of ONNX, and how many arguments it has; PyTorch's have the same names as ours
    "relu": ("Relu", 1), "exp": ("Exp", 1), "log": ("Log", 1), "sqrt": ("Sqrt", 1), "tanh": ("Tanh", 1),
    "sigmoid": ("Sigmoid", 1),
    "erf": ("Erf", 1), "abs": ("Abs", 1), "sin": ("Sin", 1), "cos": ("Cos", 1), "floor": ("Floor", 1), "ceil": ("Ceil", 1),
    "reciprocal": ("Reciprocal", 1), "gelu": ("Gelu", 1), "silu": ("Swish", 1), "softplus": ("Softplus", 1),
    "maximum": ("Max", 2), "minimum": ("Min", 2), "where": ("Where", 3),
}  # fmt: skip


def fused(expr: str, /, *, out: Any = None, **operands: Any) -> Any:
    """The value of a formula, elementwise with broadcasting, computed in one pass.

    >>> import numpy as np
    >>> x = np.array([-1.0, 2.0], np.float32)
    >>> fused("relu(x) * scale + 1", x=x, scale=np.float32(3)).tolist()
    [1.0, 7.0]
    """
    formula = _parsed(expr)
    unknown = [name for name in formula.names if name not in operands]
    if unknown:
        raise ConfigError(f"{expr!r} wants {unknown[0]!r}", where=WHERE, hint=did_you_mean(unknown[0], [*operands, *FUNCTIONS]))
    unused = [name for name in operands if name not in formula.names]
    if unused or not formula.names:
        what = f"does not name {unused[0]!r}" if unused else "names no operand"
        raise ConfigError(f"{expr!r} {what}", where=WHERE)
    call = Call("fused", [operands[name] for name in formula.names])
    shape: tuple[int, ...] = ()
    for i in range(len(formula.names)):
        shape = call.broadcast(shape, call.shape(i))

    def build(d: GraphDraft, names: Sequence[str | None]) -> str:
        values = dict(zip(formula.names, call.promoted(d, names), strict=True))
        return _Nodes(d, values).of(formula.tree)

    return call.run(
        build,
        shape,
        out,
        fixed=[()] * len(formula.names),
        settings=(expr,),
        reference=lambda torch: lambda *t: _in_torch(torch, formula.tree, dict(zip(formula.names, t, strict=True))),
    )


@dataclass(frozen=True, slots=True)
class _Formula:
    tree: ast.expr
    names: tuple[str, ...]


@functools.lru_cache(256)
def _parsed(text: str) -> _Formula:
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ConfigError(f"{text!r} is no formula ({error.msg})", where=WHERE) from None
    names: dict[str, None] = {}
    _check(tree, names)
    if isinstance(tree, ast.Compare):
        raise ConfigError(f"{text!r} is true or false", where=WHERE, hint="choose by it: where(condition, a, b)")
    return _Formula(tree, tuple(names))


def _check(tree: ast.expr, names: dict[str, None]) -> None:
    """Whether there is nothing in it that we do not know; ``names`` collects its operands."""
    match tree:
        case ast.Name(id=name):
            names[name] = None
        case ast.Constant(value=int() | float()):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            _check(inner, names)
        case ast.BinOp(left=a, op=operator, right=b) if type(operator) in _BINARY:
            _check(a, names)
            _check(b, names)
        case ast.Compare(left=a, ops=[operator], comparators=[b]) if type(operator) in _COMPARISONS:
            _check(a, names)
            _check(b, names)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            if name not in FUNCTIONS:
                raise ConfigError(f"no function {name!r}", where=WHERE, hint=did_you_mean(name, [*FUNCTIONS]))
            if len(args) != FUNCTIONS[name][1]:
                raise ConfigError(f"{name} takes {FUNCTIONS[name][1]} arguments, not {len(args)}", where=WHERE)
            for argument in args:
                _check(argument, names)
        case _:
            raise ConfigError(f"{ast.unparse(tree)!r} is not part of formulas", where=WHERE)


class _Nodes:
    """A formula as nodes of a draft."""

    def __init__(self, draft: GraphDraft, values: Mapping[str, str]) -> None:
        self._draft, self._values = draft, values
        self._dtype = draft.dtype(next(iter(values.values())))

    def of(self, tree: ast.expr) -> str:
        d = self._draft
        match tree:
            case ast.Name(id=name):
                return self._values[name]
            case ast.Constant(value=int() | float() as number):
                return d.constant(number, self._dtype)
            case ast.UnaryOp(operand=inner):
                return d.node("Neg", self.of(inner))
            case ast.BinOp(left=a, op=ast.Pow(), right=ast.Constant(value=2)):
                base = self.of(a)
                return d.node("Mul", base, base)
            case ast.BinOp(left=a, op=operator, right=b):
                return d.node(_BINARY[type(operator)][0], self.of(a), self.of(b))
            case ast.Compare(left=a, ops=[operator], comparators=[b]):
                return d.node(_COMPARISONS[type(operator)][0], self.of(a), self.of(b), dtype=DType.BOOL)
            case ast.Call(func=ast.Name(id=name), args=args):
                values = [self.of(argument) for argument in args]
                if name == "where" and d.dtype(values[0]) is not DType.BOOL:
                    values[0] = d.node("Cast", values[0], dtype=DType.BOOL, to=DType.BOOL.ort)
                return d.node(FUNCTIONS[name][0], *values, dtype=self._dtype)
        raise AssertionError("formulas are checked")


def _in_torch(torch: Any, tree: ast.expr, values: Mapping[str, Any]) -> Any:
    """The same by PyTorch's functions, which know their gradients."""

    def of(tree: ast.expr) -> Any:
        match tree:
            case ast.Name(id=name):
                return values[name]
            case ast.Constant(value=number):
                return torch.as_tensor(number, dtype=next(iter(values.values())).dtype)
            case ast.UnaryOp(operand=inner):
                return -of(inner)
            case ast.BinOp(left=a, op=operator, right=b):
                return getattr(torch, _BINARY[type(operator)][1])(of(a), of(b))
            case ast.Compare(left=a, ops=[operator], comparators=[b]):
                return getattr(torch, _COMPARISONS[type(operator)][1])(of(a), of(b))
            case ast.Call(func=ast.Name(id=name), args=args):
                found = [of(argument) for argument in args]
                if name == "where":
                    found[0] = found[0].bool()
                function: Callable[..., Any] = getattr(torch, name, None) or getattr(torch.nn.functional, name)
                return function(*found)
        raise AssertionError("formulas are checked")

    return of(tree)
