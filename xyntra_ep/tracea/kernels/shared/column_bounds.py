"""From conditions over places to ranges of columns: which of them a row of scores sees.

    column <= row + past                   end = row + (past + 1)
    row - window < column                  begin = row + (1 - window)
    column <= row mod S + ends[batch]      end = row mod S + (ends[batch] + 1)       query heads that share a key head are rows
    column < valid[batch]                  end = valid[batch]

What a bound has beside the row is the same for all rows of a head, so that it is known where a block of rows begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, size, walk

ROW, COLUMN = axis(2), axis(3)  # of a score: batch, head, row (of q), column (of k)
_ONE = const(1)

_Sum = dict[Expr, Size]  # integer -> how often it is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A column for each row: ``query`` (the row, or the row mod a size; None for the same column in all rows) + ``offset``."""

    query: Expr | None
    offset: Expr

    def line(self, rows: int, columns: int) -> tuple[int, int]:
        """(period, base) at typical sizes: row r has the column r mod period + base, with a period of 0 the column base. What is
        read is taken for the number of columns that were there before the queries."""
        period = rows if self.query is None or self.query is ROW else typical(self.query.args[1].attr)
        is_known = self.offset.kind in ("const", "size")
        read = 0 if is_known else columns - period
        known = self.offset if is_known else self.offset.args[-1] if self.offset.attr == "add" else const(0)
        base = read + (typical(known.attr) if known.kind in ("const", "size") else 0)
        return (0 if self.query is None else max(1, period)), int(base)

    def typical(self, rows: int, columns: int) -> NDArray[np.int64]:
        """Of each row."""
        return on_line(self.line(rows, columns), rows)

    def __str__(self) -> str:
        if self.query is None:
            return str(self.offset)
        return f"s + {self.offset}" if self.query is ROW else f"s mod {self.query.args[1]} + {self.offset}"


def on_line(line: tuple[int, int], rows: int) -> NDArray[np.int64]:
    """The columns of a bound's line (`Bound.line`), row by row."""
    period, base = line
    return base + (np.arange(rows) % period if period else np.zeros(rows, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A row sees the columns from the greatest of ``begins`` to before the least of ``ends``."""

    ends: tuple[Bound, ...] = ()
    begins: tuple[Bound, ...] = ()

    def spans(self, rows: int, columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The columns [begin, end) of each row, as far as they are known (`Bound.typical`)."""
        begins = [np.zeros(rows, np.int64), *(b.typical(rows, columns) for b in self.begins)]
        ends = [np.full(rows, columns), *(b.typical(rows, columns) for b in self.ends)]
        begin = np.minimum(reduce(np.maximum, begins), columns)
        return begin, np.maximum(np.clip(reduce(np.minimum, ends), 0, columns), begin)

    def share(self, rows: Size, columns: Size) -> float:
        """Of the scores, those that are seen, at typical sizes."""
        m, n = typical(rows), typical(columns)
        if not (self.ends or self.begins) or not m or not n:
            return 1.0
        begin, end = self.spans(m, n)
        return float((end - begin).mean()) / n

    def without_idle(self, columns: Size) -> Bounds:
        """Without ends that are known to hide none of so many columns from any row."""
        ends = (e for e in self.ends if e.offset.kind not in ("const", "size") or not known_nonnegative(e.offset.attr - columns))
        return replace(self, ends=tuple(ends))

    def __str__(self) -> str:
        below = [f"below {end}" for end in self.ends]
        return f"row s sees the columns {', '.join([f'from {begin} on' for begin in self.begins] + below)}"


def bound_of(condition: Expr, seen: bool) -> tuple[bool, Bound] | None:
    """(whether it is where a row's columns begin, the bound) of a condition that says what is ``seen``, or what is not; None
    where it says anything else."""
    if condition.kind != "call" or condition.attr not in ("le", "lt") or condition.args[0].dtype is not DType.I64:
        return None
    left, right = (_sum_of(a) for a in condition.args)
    # Seen where ``gap`` is at least ``least``.
    gap, least = (_add(right, left, -1), 0) if seen else (_add(left, right, -1), 1)
    if condition.attr == "lt":
        least = 1 - least
    side = gap.pop(COLUMN, 0)
    if side not in (1, -1):
        return None
    begins = side == 1
    bound = _add({}, gap, -1) if begins else gap
    offset = _add(bound, {_ONE: least if begins else 1 - least}, 1)
    queries = {e: n for e, n in offset.items() if n != 0 and _is_query(e)}
    rest = {e: n for e, n in offset.items() if n != 0 and e not in queries}
    if len(queries) > 1 or any(n != 1 for n in queries.values()) or any(_meets_rows(e) for e in rest):
        return None
    return begins, Bound(query=next(iter(queries), None), offset=_expr(rest))


def _is_query(e: Expr) -> bool:
    if e is ROW:
        return True
    return e.kind == "call" and e.attr == "mod" and e.args[0] is ROW and e.args[1].kind in ("const", "size")


def _meets_rows(e: Expr) -> bool:
    return any(x is ROW or x is COLUMN or x.kind == "acc" for x in walk(e))


def _sum_of(e: Expr) -> _Sum:
    """An integer as a sum; what is not one is a term of its own."""
    if e.kind in ("const", "size"):
        return {_ONE: e.attr}
    if e.kind == "call" and e.attr in ("add", "sub", "neg"):
        parts = [_sum_of(a) for a in e.args]
        if e.attr == "neg":
            return _add({}, parts[0], -1)
        return _add(parts[0], parts[1], 1 if e.attr == "add" else -1)
    if e.kind == "call" and e.attr == "mul":
        for a, b in (e.args, e.args[::-1]):
            if b.kind in ("const", "size"):
                return _add({}, _sum_of(a), b.attr)
    return {e: 1}


def _add(a: _Sum, b: _Sum, factor: Size) -> _Sum:
    total = dict(a)
    for e, n in b.items():
        total[e] = total.get(e, 0) + n * factor
    return total


def _expr(terms: _Sum) -> Expr:
    rest = dict(terms)
    constant = size(rest.pop(_ONE, 0))
    read = [call("mul", e, size(n)) for e, n in rest.items()]
    if not read:
        return constant
    total = reduce(lambda a, b: call("add", a, b), read)
    return call("add", total, constant)
