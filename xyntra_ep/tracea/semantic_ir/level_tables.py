"""What depends on one quantised element alone is looked up in a table of its levels.

    quantise(gelu(dequantise(q)))  =  table[q - low]          q is one of at most 256 integers

Models whose activations are quantised step by step (x, x / sqrt(2), erf of it, 1 + that ...) compute long chains of that kind.
An entry is what the chain gives if each of its operations is computed exactly and rounded to f32, as the definition has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, Expr
from xyntra_ep.tracea.semantic_ir.math_library import has_math_function
from xyntra_ep.tracea.semantic_ir.nodes import LIBM, Elem
from xyntra_ep.tracea.semantic_ir.table_nodes import ENTRIES

_WORTH = 14  # instructions from the level to the result, from which on a lookup takes less time without an instruction for it
_COSTS = {"quantise": 7, "div": 5, "sqrt": 5, "to_f": 0, "to_i": 0}  # of others: 1
_FUNCTION = 20  # instructions of an elementary function
_WORDS = (-(2**31), 2**31 - 1)

Ends = tuple[int, int]  # the least and the largest level


@dataclass(frozen=True, slots=True)
class LevelTable:
    """``result`` is entry ``level`` - ``low`` of ``table``. ``elem``: see `Lookup`."""

    result: Expr
    level: Expr
    low: int
    table: tuple[float, ...]
    elem: Elem


@dataclass(frozen=True, slots=True)
class _Chain:
    """An expression depends on ``level`` alone, by ``cost`` instructions. Without a level it is a constant."""

    level: Expr | None
    cost: int


def level_tables(nodes: Sequence[Expr], roots: Iterable[Expr], bytes_of: Callable[[Expr], Ends | None]) -> Iterator[LevelTable]:
    """The longest chains from a level that are worth a table.

    ``nodes``: all that is to be computed for ``roots``, operands before users; operands that are not among them have been
    computed. ``bytes_of``: of an integer that is loaded, between what it lies where it is a byte.
    """
    values: dict[Expr, dict[int, Any]] = {}  # by level and expression
    for e, level in _worthwhile(tuple(nodes), tuple(roots)):
        bounds = bytes_of(level) if level.kind == "load" else ends_of(level)
        if bounds is None:
            continue
        if level not in values:
            values[level] = _values(nodes, level, bounds)
        found = np.broadcast_to(values[level][id(e)], (bounds[1] - bounds[0] + 1,))
        if e.dtype is DType.F32 or (found.min() >= _WORDS[0] and found.max() <= _WORDS[1]):
            elem = Elem.F32 if e.dtype is DType.F32 else Elem.I32
            yield LevelTable(e, level, bounds[0], tuple(found.tolist()), elem)


@lru_cache(maxsize=256)  # a tile asks the same for each of its vectors
def _worthwhile(nodes: tuple[Expr, ...], roots: tuple[Expr, ...]) -> tuple[tuple[Expr, Expr], ...]:
    """The ends of chains that cost more than a lookup, and their levels."""
    chains: dict[int, _Chain] = {}
    for e in nodes:
        if (chain := _chain_of(e, chains)) is not None:
            chains[id(e)] = chain
    ends = {id(r) for r in roots}
    for e in nodes:
        own = chains.get(id(e))
        for a in e.args if e.kind != "load" else ():
            of = chains.get(id(a))
            if of is not None and (own is None or own.level is not of.level):
                ends.add(id(a))
    found = [(e, chains[id(e)]) for e in nodes if id(e) in ends and id(e) in chains and e.dtype is not DType.BOOL]
    return tuple((e, chain.level) for e, chain in found if chain.level is not None and chain.cost >= _WORTH)


def _chain_of(e: Expr, chains: dict[int, _Chain]) -> _Chain | None:
    """None for what depends on several things, or on what has many values."""
    if e.kind == "const":
        return _Chain(None, 0)
    if e.kind == "load" and e.dtype is DType.I64:
        return _Chain(e, 0)
    if e.kind != "call":
        return None
    of = [chains.get(id(a)) for a in e.args]
    levels = {id(c.level): c.level for c in of if c is not None and c.level is not None}
    if len(levels) != 1 or None in of:
        return _Chain(e, 0) if e.attr == "quantise" and ends_of(e) is not None else None
    (level,) = levels.values()
    return _Chain(level, sum(c.cost for c in of if c is not None) + _cost_of(str(e.attr)))


def ends_of(quantised: Expr) -> Ends | None:
    """Between what an element lies that is quantised by constants; None where it has more values than a table."""
    if any(a.kind != "const" for a in quantised.args[1:]):
        return None
    low, high = (a.attr for a in quantised.args[3:])
    return (int(low), int(high)) if low == int(low) and high == int(high) and 0 < high - low < ENTRIES else None


def _cost_of(op: str) -> int:
    return _COSTS.get(op, _FUNCTION if has_math_function(op) or op in LIBM or op in ("pow", "fmod") else 1)


def _values(nodes: Sequence[Expr], level: Expr, ends: Ends) -> dict[int, Any]:
    """What those of ``nodes`` are for each value of ``level`` that depend on it alone."""
    numbers = np.arange(ends[0], ends[1] + 1)
    known: dict[int, Any] = {id(level): numbers.astype(np.float64) if level.dtype is DType.F32 else numbers}
    with np.errstate(all="ignore"):
        for e in nodes:
            if e.kind == "const":
                known[id(e)] = np.asarray(e.attr)
            elif e is level or any(id(a) not in known for a in e.args) or not e.args or e.kind == "load":
                continue
            else:
                known[id(e)] = SCALAR_OPS[str(e.attr)].reference(*(known[id(a)] for a in e.args))
            if e.dtype is DType.F32:
                known[id(e)] = np.asarray(known[id(e)]).astype(np.float32).astype(np.float64)
    return known
