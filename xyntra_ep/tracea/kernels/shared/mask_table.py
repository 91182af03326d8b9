"""Recognising masks that are tables: conditions and numbers that are read, by which whole tiles of scores may be hidden.

    where(seen[b, t], x, -inf)              hidden where not seen
    where(seen[s, t] and t <= s, x, -1e4)   the same, with a formula beside it; the number may have weight where nothing else has
    x + mask[b, 0, s, t]                    hidden where the mask is below a number that no score makes up for

What such a table holds is known when a session begins, if it is a constant, or in a run. Kernels then list the tiles that exist
(`core_ir/tile_graph.py`). A formula alone is for `causal_mask.py`, which needs no list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from xyntra_ep.tracea.core_ir.expr import Expr, call, const, walk
from xyntra_ep.tracea.kernels.shared.causal_mask import limit_of, operands_of, where_number
from xyntra_ep.tracea.kernels.shared.column_bounds import COLUMN

# A mask that is added hides by -1e4 as exporters write it, which is -9984 in bfloat16, and by whatever is lower.
_HIDES = -9000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskTable:
    """``seen``: 1.0 where a score may have weight, else 0.0, over (batch, head, row, column). What is hidden scores no more than
    ``masked``: surely, or with a ``limit`` as long as no element of q and k is larger than that."""

    seen: Expr
    masked: float
    limit: float | None = None

    @property
    def axes(self) -> frozenset[int]:
        """Along which it changes."""
        return frozenset(e.attr for e in walk(self.seen) if e.kind == "axis")


def find_table(score: Expr, depth: int | None) -> MaskTable | None:
    """The mask of a score whose product has ``depth`` terms; None: one that is added is left alone."""
    terms = operands_of(score, "add")
    added = [t for t in terms if t.kind == "load" and _follows_columns(t)]
    if depth is not None and added:
        others = reduce(lambda a, b: call("add", a, b), [t for t in terms if t not in added])
        limit = limit_of(others, _HIDES, depth)
        if limit is not None:
            hides = reduce(lambda a, b: call("or", a, b), [call("le", t, const(_HIDES)) for t in added])
            return MaskTable(seen=_number(call("not", hides)), masked=0.75 * _HIDES, limit=limit)
    return _conditions(score) if len(terms) == 1 else None


def _conditions(score: Expr) -> MaskTable | None:
    """Of choices between a score and one number."""
    number: Expr | None = None
    seen: list[Expr] = []
    x = score
    while (level := where_number(x, True) or where_number(x, False)) is not None and number in (None, level[0]):
        number, condition, x, says_seen = level
        if not _has_product(condition):
            seen.append(condition if says_seen else call("not", condition))
    if number is None or not any(_follows_columns(c) and any(e.kind == "load" for e in walk(c)) for c in seen):
        return None
    return MaskTable(seen=_number(reduce(lambda a, b: call("and", a, b), seen)), masked=float(number.attr))


def _number(condition: Expr) -> Expr:
    return call("where", condition, const(1.0), const(0.0))


def _has_product(e: Expr) -> bool:
    return any(x.kind == "acc" for x in walk(e))


def _follows_columns(e: Expr) -> bool:
    return any(x is COLUMN for x in walk(e))
