"""Symbolic sizes: integers and polynomials over named dimensions.

A ``Size`` is a plain ``int`` or a ``Dim``. Arithmetic on ``Dim`` returns an ``int`` as soon as the result is constant, so code
that handles sizes needs no case split:

>>> s = symbol("s")
>>> (s * 12 * 64) // 64
12*s
>>> (s + 1) - s
1

A ``Dim`` is a polynomial in canonical form (a sorted tuple of monomials), so two sizes that are equal as polynomials compare
equal. What is not a polynomial (division with remainder, minimum, comparison) becomes an opaque *atom* with its operands.
Every symbol stands for a tensor dimension and is therefore >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from functools import lru_cache
from typing import TypeAlias

TYPICAL = 128  # what an estimate takes a size for that is known at run time only, and of which nobody knows anything
Assumed: TypeAlias = tuple[Mapping[str, int], ...]  # what symbols are: small, usual, large
_NOTHING: Assumed = ({}, {}, {})
_assumed: ContextVar[Assumed] = ContextVar("_assumed", default=_NOTHING)


class DimOp(IntEnum):
    """Operations of a size program; the numbers are those of docs/plan-format.md."""

    CONST = 0
    SYMBOL = 1
    ADD = 2
    SUB = 3
    MUL = 4
    FLOORDIV = 5
    CEILDIV = 6
    MOD = 7
    MIN = 8
    MAX = 9
    EQ = 10
    NE = 11
    LT = 12
    LE = 13
    AND = 14
    OR = 15
    NOT = 16
    SELECT = 17


class Atom:
    """A symbol (``op`` is SYMBOL, ``args`` holds its name) or an operation that is not polynomial."""

    __slots__ = ("_hash", "args", "key", "op")

    def __init__(self, op: DimOp, args: tuple[str | Size, ...]) -> None:
        self.op = op
        self.args = args
        self.key = str(args[0]) if op is DimOp.SYMBOL else f"{op.name.lower()}({', '.join(map(str, args))})"
        self._hash = hash((op, self.key))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self._hash == other._hash and self.op is other.op and self.key == other.key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.key


Monomial: TypeAlias = tuple[Atom, ...]


class Dim:
    """A non-constant polynomial; build it with ``symbol`` and arithmetic, never directly."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self._hash == other._hash and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Size) -> Size:
        return _from_terms(_terms(self) + _terms(other))

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + (other * -1)

    def __rsub__(self, other: Size) -> Size:
        return (self * -1) + other

    def __mul__(self, other: Size) -> Size:
        return _from_terms(
            [(tuple(sorted(a + b, key=lambda atom: atom.key)), ca * cb) for a, ca in _terms(self) for b, cb in _terms(other)]
        )

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return _floordiv(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return _floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return _mod(self, other)

    def __rmod__(self, other: Size) -> Size:
        return _mod(other, self)

    def __repr__(self) -> str:
        parts = []
        for monomial, coefficient in self.terms:
            factors = [str(coefficient)] if coefficient != 1 or not monomial else []
            parts.append("*".join(factors + [atom.key for atom in monomial]))
        return " + ".join(parts)


Size: TypeAlias = int | Dim


def symbol(name: str) -> Dim:
    """The dimension called ``name``. Equal names are the same dimension."""
    return Dim((((Atom(DimOp.SYMBOL, (name,)),), 1),))


def _terms(size: Size) -> list[tuple[Monomial, int]]:
    if isinstance(size, Dim):
        return list(size.terms)
    return [((), int(size))] if size else []


def _from_terms(terms: list[tuple[Monomial, int]]) -> Size:
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        total[monomial] = total.get(monomial, 0) + coefficient
    kept = [(m, c) for m, c in total.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Dim(tuple(sorted(kept, key=lambda t: (-len(t[0]), [a.key for a in t[0]]))))


def _opaque(op: DimOp, *args: Size) -> Size:
    return Dim((((Atom(op, args),), 1),))


def _divide_exact(size: Size, divisor: Size) -> tuple[Size, Size]:
    """(q, r) with size = q*divisor + r, moving into q every term that ``divisor`` divides; one of several terms divides all or
    nothing."""
    divisor_terms = _terms(divisor)
    if len(divisor_terms) != 1:
        whole = _quotient(size, divisor_terms) if divisor_terms else None
        return (0, size) if whole is None else (whole, 0)
    d_monomial, d_coefficient = divisor_terms[0]
    quotient: list[tuple[Monomial, int]] = []
    rest: list[tuple[Monomial, int]] = []
    for monomial, coefficient in _terms(size):
        left = list(monomial)
        for atom in d_monomial:
            if atom in left:
                left.remove(atom)
            else:
                break
        else:
            if coefficient % d_coefficient == 0:
                quotient.append((tuple(left), coefficient // d_coefficient))
                continue
        rest.append((monomial, coefficient))
    return _from_terms(quotient), _from_terms(rest)


def _quotient(size: Size, divisor: list[tuple[Monomial, int]]) -> Size | None:
    """The polynomial ``size`` / ``divisor``, None when there is a remainder.

    Long division: terms are sorted by degree, then by name, so each step removes the first one that is left.
    """
    (first, coefficient), whole = divisor[0], _from_terms(divisor)
    result: Size = 0
    while terms := _terms(size):
        left = list(terms[0][0])
        for atom in first:
            if atom not in left:
                return None
            left.remove(atom)
        if terms[0][1] % coefficient:
            return None
        step = _from_terms([(tuple(left), terms[0][1] // coefficient)])
        result, size = result + step, size - step * whole
    return result


def _floordiv(a: Size, b: Size) -> Size:
    if isinstance(b, int) and b == 1:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    quotient, rest = _divide_exact(a, b)
    if rest == 0:
        return quotient
    if isinstance(rest, int) and isinstance(b, int):
        return quotient + rest // b
    return quotient + _opaque(DimOp.FLOORDIV, rest, b)


def _mod(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    _, rest = _divide_exact(a, b)
    if rest == 0:
        return 0
    if isinstance(rest, int) and isinstance(b, int):
        return rest % b
    return _opaque(DimOp.MOD, rest, b)


def ceildiv(a: Size, b: Size) -> Size:
    """a / b rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b) if b else 0
    quotient, rest = _divide_exact(a, b)
    if rest == 0:
        return quotient
    if isinstance(rest, int) and isinstance(b, int):
        return quotient + -(-rest // b)
    return quotient + _opaque(DimOp.CEILDIV, rest, b)


def trunc_div(a: Size, b: Size) -> Size:
    """Division as ONNX defines it for integers: towards zero."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return select(eq(lt(a, 0), lt(b, 0)), _floordiv(a, b), ceildiv(a, b))


_Bounds: TypeAlias = tuple[int | None, int | None]
_ANYTHING: _Bounds = (None, None)


def _bounds(size: Size) -> _Bounds:
    """(lower, upper) bound by interval arithmetic, monomial by monomial (symbols are >= 0)."""
    if isinstance(size, int):
        return size, size
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in size.terms:
        least, most = _monomial_bounds(monomial)
        ends = (_scaled(least, coefficient), _scaled(most, coefficient))
        first, last = ends if coefficient > 0 else ends[::-1]
        low = None if low is None or first is None else low + first
        high = None if high is None or last is None else high + last
    return low, high


def _scaled(bound: int | None, factor: int) -> int | None:
    return None if bound is None else bound * factor


def _monomial_bounds(monomial: Monomial) -> _Bounds:
    """Bounds of a product of atoms; none where one of several atoms may be negative."""
    least = most = 1
    bounded = True
    for atom in monomial:
        low, high = _atom_bounds(atom)
        if len(monomial) == 1:
            return low, high
        if low is None or low < 0:
            return _ANYTHING
        least *= low
        if high is None:
            bounded = False
        else:
            most *= high
    return least, most if bounded else None


def _atom_bounds(atom: Atom) -> _Bounds:
    if atom.op is DimOp.SYMBOL:
        return 0, None
    if DimOp.EQ <= atom.op <= DimOp.NOT:
        return 0, 1
    operands = [arg for arg in atom.args if not isinstance(arg, str)]
    a, b = (_bounds(arg) for arg in operands[-2:])
    if atom.op in (DimOp.FLOORDIV, DimOp.CEILDIV, DimOp.MOD):
        return _division_bounds(atom.op, a, b)
    lows, highs = ([x for x in pair if x is not None] for pair in zip(a, b, strict=True))
    if atom.op is DimOp.MIN:  # below either bound
        return (min(lows) if len(lows) == 2 else None), min(highs, default=None)
    if atom.op is DimOp.MAX:  # above either bound
        return max(lows, default=None), (max(highs) if len(highs) == 2 else None)
    return (min(lows) if len(lows) == 2 else None), (max(highs) if len(highs) == 2 else None)


def _division_bounds(op: DimOp, a: _Bounds, b: _Bounds) -> _Bounds:
    """Of a quotient or remainder by something >= 0; division by 0 gives 0."""
    if b[0] is None or b[0] < 0:
        return _ANYTHING
    if op is DimOp.MOD:
        return 0, None if b[1] is None else max(0, b[1] - 1)
    divisor = b[0]
    if divisor > 0 and divisor == b[1]:
        rounding = 0 if op is DimOp.FLOORDIV else divisor - 1
        low, high = (None if x is None else (x + rounding) // divisor for x in a)
        return low, high
    return (0, a[1]) if a[0] is not None and a[0] >= 0 else _ANYTHING


_MOST_CASES = 4  # atoms that a proof takes apart, one after the other
_MOST_TRIALS = 256  # sizes that a proof looks at before it gives up


@lru_cache(maxsize=1 << 14)
def known_nonnegative(size: Size) -> bool:
    """Whether ``size`` >= 0 for all values of its symbols (false when not provable).

    Intervals first; then atoms are replaced by what bounds them: -min(a, b) is at least -a, and at least -b; x / d rounded down
    lies within (x - d + 1) / d and x / d.
    """
    return _Proof().found(size, _MOST_CASES, frozenset())


class _Proof:
    """A search that takes atoms apart in one order and never goes back to one, so that no set of them is tried twice: first those
    that have to hold in both cases, then those where one of two bounds is enough."""

    def __init__(self) -> None:
        self._trials = _MOST_TRIALS

    def found(self, size: Size, cases: int, tried: frozenset[Atom]) -> bool:
        low = _bounds(size)[0]
        if low is not None and low >= 0:
            return True
        if isinstance(size, int) or not cases or self._trials <= 0:
            return False
        lone = [(m[0], c) for m, c in size.terms if len(m) == 1 and m[0].op is not DimOp.SYMBOL and m[0] not in tried]
        bounded = [(atom, c, *_lower_candidates(atom, c)) for atom, c in lone]
        for atom, coefficient, enough, candidates in sorted(bounded, key=lambda row: -row[2]):
            tried = tried | {atom}
            rest = size - Dim((((atom,), coefficient),))
            self._trials -= len(candidates)
            proofs = (self.found(rest + c, cases - 1, tried) for c in candidates)
            if candidates and (any(proofs) if enough == 1 else all(proofs)):
                return True
        return False


def _lower_candidates(atom: Atom, coefficient: int) -> tuple[int, list[Size]]:
    """Sizes for ``coefficient`` * ``atom``: (1: each of them is a lower bound, 2: the lesser of both is; the sizes)."""
    operands = [arg for arg in atom.args if not isinstance(arg, str)]
    if atom.op in (DimOp.MIN, DimOp.MAX, DimOp.SELECT):
        either_will_do = (atom.op is DimOp.MIN and coefficient < 0) or (atom.op is DimOp.MAX and coefficient > 0)
        return (1 if either_will_do else 2), [operand * coefficient for operand in operands[-2:]]
    if atom.op in (DimOp.FLOORDIV, DimOp.CEILDIV):
        x, divisor = operands
        if isinstance(divisor, int) and divisor > 0 and coefficient % divisor == 0:
            slack = 0 if (atom.op is DimOp.CEILDIV) == (coefficient > 0) else (divisor - 1)
            moved = x - slack if coefficient > 0 else x + slack
            return 1, [moved * (coefficient // divisor)]
    return 1, []


def smin(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    if a == b or known_nonnegative(b - a):
        return a
    return b if known_nonnegative(a - b) else _opaque(DimOp.MIN, a, b)


def smax(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if a == b or known_nonnegative(a - b):
        return a
    return b if known_nonnegative(b - a) else _opaque(DimOp.MAX, a, b)


def eq(a: Size, b: Size) -> Size:
    """1 when equal, else 0."""
    if a == b:
        return 1
    difference = a - b
    if isinstance(difference, int) or known_nonnegative(difference - 1) or known_nonnegative(-1 - difference):
        return 0
    return _opaque(DimOp.EQ, a, b)


def ne(a: Size, b: Size) -> Size:
    same = eq(a, b)
    return 1 - same if isinstance(same, int) else _opaque(DimOp.NE, a, b)


def lt(a: Size, b: Size) -> Size:
    if known_nonnegative(b - a - 1):
        return 1
    return 0 if known_nonnegative(a - b) else _opaque(DimOp.LT, a, b)


def le(a: Size, b: Size) -> Size:
    return lt(a, b + 1)


def select(condition: Size, a: Size, b: Size) -> Size:
    if a == b:
        return a
    if isinstance(condition, int):
        return a if condition else b
    return _opaque(DimOp.SELECT, condition, a, b)


def both(a: Size, b: Size) -> Size:
    """Logical and of two 0/1 sizes."""
    if isinstance(a, int):
        return b if a else 0
    if isinstance(b, int):
        return a if b else 0
    return a if a == b else _opaque(DimOp.AND, a, b)


def either(a: Size, b: Size) -> Size:
    """Logical or of two 0/1 sizes."""
    if isinstance(a, int):
        return 1 if a else b
    if isinstance(b, int):
        return 1 if b else a
    return a if a == b else _opaque(DimOp.OR, a, b)


def product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def span(start: Size, steps: Iterable[tuple[Size, Size]]) -> tuple[Size, Size]:
    """The least and the greatest of start + i * step + j * step ..., for (extent, step) of each index, which is below its extent
    and not negative; no extent is 0.

    >>> span(3, [(symbol("n"), 2)])
    (3, 2*n + 1)
    """
    low = high = start
    for extent, step in steps:
        reach = (extent - 1) * step
        if known_nonnegative(step):
            high = high + reach
        elif known_nonnegative(step * -1):
            low = low + reach
        else:
            low, high = low + smin(0, reach), high + smax(0, reach)
    return low, high


def symbols_of(size: Size) -> frozenset[str]:
    """Names of all symbols in ``size``, inside atoms too."""
    if isinstance(size, int):
        return frozenset()
    found: set[str] = set()
    for monomial, _ in size.terms:
        for atom in monomial:
            if atom.op is DimOp.SYMBOL:
                found.add(atom.key)
            else:
                for arg in atom.args:
                    if isinstance(arg, Dim):
                        found |= symbols_of(arg)
    return frozenset(found)


_EVALUATE: dict[DimOp, Callable[..., int]] = {
    DimOp.FLOORDIV: lambda a, b: a // b if b else 0,
    DimOp.CEILDIV: lambda a, b: -(-a // b) if b else 0,
    DimOp.MOD: lambda a, b: a % b if b else 0,
    DimOp.MIN: min,
    DimOp.MAX: max,
    DimOp.EQ: lambda a, b: int(a == b),
    DimOp.NE: lambda a, b: int(a != b),
    DimOp.LT: lambda a, b: int(a < b),
    DimOp.LE: lambda a, b: int(a <= b),
    DimOp.AND: lambda a, b: int(bool(a) and bool(b)),
    DimOp.OR: lambda a, b: int(bool(a) or bool(b)),
    DimOp.NOT: lambda a: int(not a),
    DimOp.SELECT: lambda c, a, b: a if c else b,
}


def evaluate(size: Size, symbols: Mapping[str, int]) -> int:
    """The value of ``size``; the meaning that native code must agree with. KeyError for an unbound symbol."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        value = coefficient
        for atom in monomial:
            if atom.op is DimOp.SYMBOL:
                value *= symbols[atom.key]
            else:
                value *= _EVALUATE[atom.op](*(evaluate(a, symbols) for a in atom.args if not isinstance(a, str)))
        total += value
    return total


@contextmanager
def assuming(points: Assumed) -> Iterator[None]:
    """Within it `typical` takes symbols for what the usual one of ``points`` says."""
    token = _assumed.set(points)
    try:
        yield
    finally:
        _assumed.reset(token)


def typical(size: Size, symbol: int = TYPICAL) -> int:
    """``size`` at what is assumed of its symbols, and at ``symbol`` for others: for estimates."""
    return plausible(size, symbol)[1]


def plausible(size: Size, symbol: int = TYPICAL) -> tuple[int, ...]:
    """``size`` at each of the points that are assumed: small, usual, large. Symbols of which nothing is known are ``symbol``."""
    names = symbols_of(size)
    return tuple(evaluate(size, {name: point.get(name, symbol) for name in names}) for point in _assumed.get())


def expected(cost: Callable[[], float]) -> float:
    """What ``cost``, of what `typical` says, is over all sizes that are assumed: the geometric mean."""
    points = _assumed.get()
    if all(point == points[0] for point in points):  # nothing varies
        return cost()
    logarithms = []
    for point in points:
        with assuming((point, point, point)):
            logarithms.append(math.log(max(cost(), 1.0)))
    return math.exp(sum(logarithms) / len(logarithms))


def substitute(size: Size, replacements: Mapping[str, Size]) -> Size:
    """``size`` with symbols replaced; re-simplified."""
    if isinstance(size, int):
        return size
    total: Size = 0
    for monomial, coefficient in size.terms:
        value: Size = coefficient
        for atom in monomial:
            value = value * _substitute_atom(atom, replacements)
        total = total + value
    return total


_REBUILD: dict[DimOp, Callable[..., Size]] = {
    DimOp.FLOORDIV: _floordiv,
    DimOp.CEILDIV: ceildiv,
    DimOp.MOD: _mod,
    DimOp.MIN: smin,
    DimOp.MAX: smax,
    DimOp.EQ: eq,
    DimOp.NE: ne,
    DimOp.LT: lt,
    DimOp.LE: le,
    DimOp.AND: both,
    DimOp.OR: either,
    DimOp.SELECT: select,
}


def _substitute_atom(atom: Atom, replacements: Mapping[str, Size]) -> Size:
    if atom.op is DimOp.SYMBOL:
        return replacements.get(atom.key, symbol(atom.key))
    return _REBUILD[atom.op](*(substitute(a, replacements) for a in atom.args if not isinstance(a, str)))
