"""Index expressions as numbers: their linear part in the loop axes, and the interval they provably stay in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative, span
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, rewrite, size, walk


@dataclass(frozen=True, slots=True)
class Affine:
    """sum(coefficients[a] * axis(a)) + rest. An axis that ``rest`` uses too is not affine."""

    coefficients: Mapping[int, Size]
    rest: Expr


def affine(e: Expr) -> Affine:
    """Take the linear part in the axes out of an i64 expression.

    >>> from xyntra_ep.tracea.core_ir.expr import axis, call, const
    >>> affine(call("add", call("mul", axis(0), const(3)), call("mod", axis(1), const(2))))
    Affine(coefficients={0: 3}, rest=mod(i1, 2))
    """
    if e.kind == "axis":
        return Affine({e.attr: 1}, const(0))
    if e.kind != "call" or e.dtype is not DType.I64:
        return Affine({}, e)
    if e.attr in ("add", "sub"):
        a, b = affine(e.args[0]), affine(e.args[1])
        sign = 1 if e.attr == "add" else -1
        merged = dict(a.coefficients)
        for i, c in b.coefficients.items():
            merged[i] = merged.get(i, 0) + c * sign
        return Affine(merged, call(e.attr, a.rest, b.rest))
    if e.attr == "neg":
        a = affine(e.args[0])
        return Affine({i: c * -1 for i, c in a.coefficients.items()}, call("sub", const(0), a.rest))
    if e.attr == "mul":
        for x, y in (e.args, e.args[::-1]):
            if y.kind in ("const", "size"):
                a = affine(x)
                return Affine({i: c * y.attr for i, c in a.coefficients.items()}, call("mul", a.rest, y))
    return Affine({}, e)


def without_axis(e: Expr, number: int) -> Expr:
    """``e`` at axis(number) = 0."""
    target = axis(number)
    return rewrite(e, lambda x: const(0) if x is target else None)


def scaled(e: Expr, factor: Size) -> Expr:
    return call("mul", e, size(factor))


def clamped(e: Expr, extent: Size) -> Expr:
    """``e`` moved into [0, extent); 0 when the extent is 0."""
    return call("max", call("min", e, size(extent - 1)), const(0))


Interval = tuple[Size | None, Size | None]
_ANY: Interval = (None, None)


def stays_inside(e: Expr, extent: Size, domain: Sequence[Size]) -> bool:
    """Whether 0 <= e < extent holds at every point of a non-empty ``domain`` (false when not provable)."""
    low, high = _interval(e, domain)
    return low is not None and high is not None and known_nonnegative(low) and known_nonnegative(extent - 1 - high)


def exact_interval(e: Expr, domain: Sequence[Size]) -> tuple[Size, Size] | None:
    """The least and the greatest value that ``e`` takes over a non-empty ``domain``; None where it is not linear in the axes, so
    that an interval may hold values that it never takes."""
    parts = affine(e)
    if parts.rest.kind not in ("const", "size"):
        return None
    return span(parts.rest.attr, [(domain[number], factor) for number, factor in parts.coefficients.items()])


def _interval(root: Expr, domain: Sequence[Size]) -> Interval:
    """Bounds of an i64 expression over a non-empty ``domain``, None where there is none that is known."""
    found: dict[int, Interval] = {}
    for e in walk(root):
        if e.kind == "axis":
            found[id(e)] = (0, domain[e.attr] - 1)
        elif e.kind in ("const", "size") and e.dtype is DType.I64:
            found[id(e)] = (e.attr, e.attr)
        elif e.kind == "call" and e.dtype is DType.I64:
            found[id(e)] = _of_call(e, [found[id(a)] for a in e.args])
        else:
            found[id(e)] = _ANY
    return found[id(root)]


def _of_call(e: Expr, args: list[Interval]) -> Interval:
    a = args[0]
    match e.attr:
        case "add":
            return _plus(a[0], args[1][0]), _plus(a[1], args[1][1])
        case "sub":
            return _plus(a[0], _minus(args[1][1])), _plus(a[1], _minus(args[1][0]))
        case "neg":
            return _minus(a[1]), _minus(a[0])
        case "mul":
            return _product(a, args[1])
        case "div":
            divisor = args[1][0]
            if isinstance(divisor, int) and divisor > 0 and divisor == args[1][1] and _natural(a[0]):
                assert a[0] is not None
                return a[0] // divisor, None if a[1] is None else a[1] // divisor
            return _ANY
        case "mod":
            divisor = args[1][0]
            if divisor is None or divisor != args[1][1] or not _natural(divisor):
                return _ANY
            return 0, divisor - 1
        case "min":
            return _least(a[0], args[1][0]), _tighter(a[1], args[1][1])
        case "max":
            low = _minus(_tighter(_minus(a[0]), _minus(args[1][0])))
            return low, _minus(_least(_minus(a[1]), _minus(args[1][1])))
        case "where":
            return _least(args[1][0], args[2][0]), _minus(_least(_minus(args[1][1]), _minus(args[2][1])))
        case _:
            return _ANY


def _natural(a: Size | None) -> bool:
    return a is not None and known_nonnegative(a)


def _plus(a: Size | None, b: Size | None) -> Size | None:
    return None if a is None or b is None else a + b


def _minus(a: Size | None) -> Size | None:
    return None if a is None else a * -1


def _least(a: Size | None, b: Size | None) -> Size | None:
    if a is None or b is None:
        return None
    if known_nonnegative(b - a):
        return a
    return b if known_nonnegative(a - b) else None


def _tighter(a: Size | None, b: Size | None) -> Size | None:
    """An upper bound of the minimum: either will do, the smaller one if known."""
    if a is None or b is None:
        return b if a is None else a
    least = _least(a, b)
    return a if least is None else least


def _product(a: Interval, b: Interval) -> Interval:
    if _natural(a[0]) and _natural(b[0]):
        assert a[0] is not None and b[0] is not None
        return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]
    for x, y in ((a, b), (b, a)):
        factor = y[0]
        if isinstance(factor, int) and factor < 0 and factor == y[1]:
            return _times(x[1], factor), _times(x[0], factor)
    return _ANY


def _times(a: Size | None, factor: int) -> Size | None:
    return None if a is None else a * factor
