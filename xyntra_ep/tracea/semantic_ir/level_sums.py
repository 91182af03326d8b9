"""What is quantised of the sum of two quantised elements is one sum of products, rounded.

    quantise(dequantise(a) + dequantise(b))  =  clamp(rint(a * A + (b * B + C)))          a and b are of at most 256 integers each

As it is written the left side takes two products, a sum, a division and its bounds; the right side two fused products. It holds
where both sides are equal for each pair of a and b, of which there are at most 65,536, and all are tried. The left side is what
its operations give if each is computed exactly and rounded to f32, as the definition has it. The right side may miss a sum that
lies in the middle between two integers: with a C that is a little smaller or larger it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, Expr
from xyntra_ep.tracea.semantic_ir.level_tables import Ends, ends_of

_NUDGES = tuple(n * 2.0**-20 for n in (0, 1, -1, 4, -4, 16, -16, 64, -64))  # of C, in levels
_LARGEST = 2.0**20  # of A, B and C, so that what is rounded is an integer of 32 bits

_Affine = dict[Expr | None, Fraction]  # the factors of levels; the constant belongs to None


@dataclass(frozen=True, slots=True)
class LevelSum:
    """rint(``first`` * ``a`` + (``second`` * ``b`` + ``constant``)), from ``low`` to ``high``; what is in brackets is rounded to
    f32. Without the ends it is an integer of 32 bits."""

    first: Expr
    a: float
    second: Expr
    b: float
    constant: float
    low: float
    high: float


def level_sums(nodes: Iterable[Expr], bytes_of: Callable[[Expr], Ends | None]) -> Iterator[tuple[Expr, LevelSum]]:
    """Those of ``nodes`` that quantise such a sum, and how. ``bytes_of``: of an integer that is loaded, between what it lies
    where it is a byte."""
    for e in nodes:
        if e.attr == "quantise" and e.kind == "call" and ends_of(e) is not None:
            levels: dict[Expr, Ends] = {}
            found = _affine(e.args[0], bytes_of, levels)
            if found is not None and len(levels) == 2 and (made := _fitted(e, tuple(levels.items()), tuple(found.items()))):
                yield e, made


def _affine(e: Expr, bytes_of: Callable[[Expr], Ends | None], levels: dict[Expr, Ends]) -> _Affine | None:
    """``e`` as a sum of levels times factors, and the levels; None where it is something else."""
    if e.kind == "const":
        return {None: Fraction(e.attr)} if abs(e.attr) < _LARGEST else None
    ends = bytes_of(e) if e.kind == "load" and e.dtype is DType.I64 else ends_of(e) if e.attr == "quantise" else None
    if ends is not None:
        levels[e] = ends
        return {e: Fraction(1)}
    if e.kind != "call" or e.attr not in ("to_f", "wrap_i32", "add", "sub", "mul"):
        return None
    parts = [_affine(a, bytes_of, levels) for a in e.args]
    if any(part is None for part in parts):
        return None
    a, *more = (part for part in parts if part is not None)
    if not more:
        return a
    (b,) = more
    if e.attr == "mul":
        number, other = (a, b) if set(a) == {None} else (b, a)
        return {level: factor * number[None] for level, factor in other.items()} if set(number) == {None} else None
    sign = 1 if e.attr == "add" else -1
    return {level: a.get(level, Fraction(0)) + sign * b.get(level, Fraction(0)) for level in (*a, *(k for k in b if k not in a))}


@lru_cache(maxsize=1024)  # a tile asks the same for each of its vectors
def _fitted(
    quantised: Expr, levels: tuple[tuple[Expr, Ends], tuple[Expr, Ends]], affine: tuple[tuple[Expr | None, Fraction], ...]
) -> LevelSum | None:
    """None where no C is found."""
    scale, zero, low, high = (a.attr for a in quantised.args[1:])
    if not 0 < scale < _LARGEST:
        return None
    factors = {level: float(factor / Fraction(scale)) for level, factor in affine}
    middle = factors.pop(None, 0.0) + zero
    if not all(abs(f) < _LARGEST for f in (*factors.values(), middle)):
        return None
    axes = zip(levels, ((-1, 1), (1, -1)), strict=True)
    numbers = {level: np.arange(ends[0], ends[1] + 1).reshape(shape) for (level, ends), shape in axes}
    wanted = _value(quantised, dict(numbers))
    for first, second in (list(numbers), list(numbers)[::-1]):
        a, b = (np.float32(factors[level]) for level in (first, second))
        for nudge in _NUDGES:
            constant = np.float32(middle + nudge)
            inner = (numbers[second] * np.longdouble(b) + np.longdouble(constant)).astype(np.float32)
            found = np.rint((numbers[first] * np.longdouble(a) + inner).astype(np.float32))
            if np.array_equal(np.clip(found, low, high), wanted):
                return LevelSum(first, float(a), second, float(b), float(constant), low, high)
    return None


def _value(e: Expr, known: dict[Expr, Any]) -> Any:
    """``e`` by its definition where the levels are what is ``known``, floats rounded to f32 after each operation."""
    if e not in known:
        value = e.attr if e.kind == "const" else SCALAR_OPS[str(e.attr)].reference(*(_value(a, known) for a in e.args))
        is_float = e.dtype is DType.F32
        known[e] = np.asarray(value).astype(np.float32).astype(np.float64) if is_float else np.asarray(value)
    return known[e]
