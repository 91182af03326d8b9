"""What follows from its place alone: masks and positions, whether a graph computes them or has them as a table.

    Slice(bool constant, a lower triangle)[past : past + S, : T]    is    t <= s + past
    Constant(the columns from 3 before the diagonal up to it)       is    t <= s and s - 3 <= t
    Cast<bool>(Trilu(ones))                                         is    t <= s
    and(t <= s, padding[b, t]), read by every layer                 is    false beyond t <= s

A table has to be read wherever it is asked; a formula is known while kernels are made, which leave out what a causal mask hides.
Triangles and bands are known by their contents, which are no part of a graph's digest: plans name the constants that they
depend on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from xyntra_ep.fusion.scheduling.compose import axes
from xyntra_ep.fusion.scheduling.dag import Dag, unit_reshape
from xyntra_ep.fusion.tensor import Expand, Leaf, Map, Permute, Reshape, Slice, Tensor, View
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.expr import Expr

_DEEPEST = 16  # nodes one above the other
_DEAREST = 24  # operations of a formula: more are better done once and read


class Formulas:
    """The tensors of ``dag`` that have one. Those that constants decide are noted in ``context``."""

    def __init__(self, dag: Dag, context: Context) -> None:
        self._dag, self._context = dag, context
        self._known: dict[tuple[int, int], Expr | None] = {}
        self._edges: dict[tuple[int, int], Edge | None] = {}

    def at(self, t: Tensor, index: Sequence[Expr]) -> Expr | None:
        """The element of ``t`` at ``index``, made of nothing but that; None where there is no such expression."""
        found = self._of(t, _DEEPEST)
        return None if found is None else _placed(found, index)

    def edge(self, t: Tensor, index: Sequence[Expr]) -> Edge | None:
        """How far ``t`` is more than one constant, at ``index``; None where nothing is known, or no two axes of it decide."""
        found = self._edge_of(t, _DEEPEST)
        if found is None or sum(e.kind == "axis" for e in E.walk(found.within)) < 2 or not _is_kept(found.beyond.attr, t.dtype):
            return None
        return Edge(_placed(found.within, index), found.beyond)

    # -- formulas

    def _of(self, t: Tensor, depth: int) -> Expr | None:
        """Over the tensor's own axes."""
        t = self._dag.get(t)
        key = (id(t.node), t.output)
        if key not in self._known:
            found = self._made(t, depth) if depth else None
            self._known[key] = found if found is not None and _operations(found) <= _DEAREST else None
        return self._known[key]

    def _made(self, t: Tensor, depth: int) -> Expr | None:
        value = t.scalar()
        if value is not None:
            return E.const(value, t.dtype)
        match t.node:
            case View():
                base, index = self._seen(t, t.node)
                found = None if index is None else self._of(base, depth - 1)
                return None if found is None or index is None else _placed(found, index)
            case Map():
                return self._computed(t.node.body, t.node, depth)
            case Leaf(kind="const" | "literal"):
                return self._stored(t, t.node)
        return None

    def _seen(self, t: Tensor, view: View) -> tuple[Tensor, Sequence[Expr] | None]:
        """What ``t`` is a view of, and where its elements are there; None where that is not to be said axis by axis."""
        base, index = self._dag.get(view.base), axes(t.rank)
        match view.step:
            case Permute(perm=perm):
                index = [index[perm.index(i)] for i in range(len(perm))]
            case Slice(starts=starts, steps=steps):
                scaled = [E.call("mul", i, E.size(s)) for i, s in zip(index, steps, strict=True)]
                index = [E.call("add", i, E.size(s)) for i, s in zip(scaled, starts, strict=True)]
            case Expand(factors=factors):
                index = [E.call("mul", i, E.size(f)) for i, f in zip(index, factors, strict=True)]
            case Reshape():
                return base, unit_reshape(base.shape, t.shape, index)
        return base, index

    def _computed(self, body: Expr, node: Map, depth: int) -> Expr | None:
        """Of an expression of ``node`` that reads nothing but formulas."""
        loads = [e for e in E.walk(body) if e.kind == "load"]
        inputs = {e.attr: self._of(node.inputs[e.attr], depth - 1) for e in loads}
        if any(found is None for found in inputs.values()):
            return None

        def leaf(e: Expr) -> Expr | None:
            if e.kind != "load":
                return None
            found = inputs[e.attr]
            assert found is not None
            return _placed(found, [E.rewrite(i, leaf) for i in e.args])

        return E.rewrite(body, leaf)

    def _stored(self, t: Tensor, leaf: Leaf) -> Expr | None:
        *outer, rows, columns = t.shape if t.rank >= 2 else (0, 0, 0)
        if any(n != 1 for n in outer):
            return None
        assert isinstance(rows, int) and isinstance(columns, int), "a constant's shape is known"
        array = leaf.array
        if array is None:
            read = self._context.graph.values[leaf.name].read
            assert read is not None, "a constant's elements are known"
            array = read()
        found = band(array.reshape(rows, columns))
        # Numbers that are no band are weights, which are others in each model.
        if leaf.array is None and (found is not None or not t.dtype.is_float):
            self._context.depends.add(leaf.name)
        if found is None:
            return None
        holds = found.holds(E.axis(t.rank - 2), E.axis(t.rank - 1))
        inside, outside = (to_float64(np.asarray(x), t.dtype).item() for x in (found.inside, found.outside))
        return E.call("where", holds, E.const(inside, t.dtype), E.const(outside, t.dtype))

    # -- edges

    def _edge_of(self, t: Tensor, depth: int) -> Edge | None:
        """Over the tensor's own axes."""
        t = self._dag.get(t)
        key = (id(t.node), t.output)
        if key not in self._edges:
            formula = self._of(t, depth)
            if formula is not None:
                found = _edge_of_formula(formula)
            elif not depth:
                found = None
            elif isinstance(t.node, View):
                base, index = self._seen(t, t.node)
                inner = None if index is None else self._edge_of(base, depth - 1)
                found = None if inner is None or index is None else Edge(_placed(inner.within, index), inner.beyond)
            else:
                found = self._edge_in(t.node.body, t.node, depth) if isinstance(t.node, Map) else None
            self._edges[key] = found if found is not None and _operations(found.within) <= _DEAREST else None
        return self._edges[key]

    def _edge_in(self, e: Expr, node: Map, depth: int) -> Edge | None:
        """Of an expression of ``node``."""
        if e.kind == "load":
            found = self._edge_of(node.inputs[e.attr], depth - 1)
            if found is None or any(x.kind == "load" for x in E.walk(*e.args)):
                return None
            return Edge(_placed(found.within, e.args), found.beyond)
        if e.kind != "call" or not any(x.kind == "load" for x in E.walk(e)):
            return _edge_of_formula(e)
        if e.attr == "where":
            found = self._edge_in(e.args[0], node, depth)
            chosen = None if found is None else e.args[1 if found.beyond.attr else 2]
            return Edge(found.within, chosen) if found is not None and chosen is not None and chosen.kind == "const" else None
        if e.attr in ("and", "or"):
            parts = [self._within(a, node, depth, e.attr == "or") for a in e.args]
            deciding = [p for p in parts if p is not None]
            return Edge(reduce(lambda a, b: E.call("and", a, b), deciding), E.const(e.attr == "or")) if deciding else None
        varying = [i for i, a in enumerate(e.args) if a.kind != "const"]
        found = self._edge_in(e.args[varying[0]], node, depth) if len(varying) == 1 else None
        if found is None:
            return None
        beyond = E.call(e.attr, *(found.beyond if i == varying[0] else a for i, a in enumerate(e.args)))
        return Edge(found.within, beyond) if beyond.kind == "const" else None

    def _within(self, e: Expr, node: Map, depth: int, beyond: bool) -> Expr | None:
        """Where a condition of ``node`` is not known to be ``beyond``."""
        formula = self._computed(e, node, depth)
        if formula is not None:
            return E.call("not", formula) if beyond else formula
        found = self._edge_in(e, node, depth)
        return found.within if found is not None and found.beyond.attr == beyond else None


def _is_kept(value: float | int | bool, dtype: DType) -> bool:
    """Whether a value comes back as it was after it has been stored."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(to_float64(from_float64(np.asarray(value), dtype), dtype) == value)


def _edge_of_formula(e: Expr) -> Edge | None:
    if e.kind == "call" and e.dtype is DType.BOOL:
        return Edge(e, E.const(False))
    if e.kind == "call" and e.attr == "where" and e.args[2].kind == "const":
        return Edge(e.args[0], e.args[2])
    return None


def _placed(formula: Expr, index: Sequence[Expr]) -> Expr:
    return E.rewrite(formula, lambda e: index[e.attr] if e.kind == "axis" else None)


def _operations(formula: Expr) -> int:
    return sum(e.kind == "call" for e in E.walk(formula))


@dataclass(frozen=True, slots=True)
class Edge:
    """Where ``within`` (of places alone) is false, a tensor is ``beyond``, a constant."""

    within: Expr
    beyond: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Row r is ``inside`` in its columns below r + ``end``, of those from r + ``begin`` on if that is given, else ``outside``."""

    end: int
    inside: Any
    outside: Any
    begin: int | None = None

    def holds(self, row: Expr, column: Expr) -> Expr:
        """Whether an element is inside."""
        below = E.call("le", column, E.call("add", row, E.const(self.end - 1)))
        if self.begin is None:
            return below
        return E.call("and", below, E.call("le", E.call("add", row, E.const(self.begin)), column))


def band(array: NDArray[Any]) -> Band | None:
    """What a matrix of two values is, bit by bit: a triangle, a band along the diagonal, or None where it is anything else.

    >>> band(np.tri(3, 5, 1, dtype=bool))
    Band(end=2, inside=np.True_, outside=np.False_, begin=None)
    >>> band(np.tri(9, 9, 0, dtype=bool) & ~np.tri(9, 9, -4, dtype=bool))
    Band(end=1, inside=np.True_, outside=np.False_, begin=-3)
    """
    rows, columns = array.shape
    if not array.size:
        return None
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    # By column less row, as the first column and the first row tell; a table of other numbers mostly ends here.
    line = np.concatenate([bits[:0:-1, 0], bits[0]])
    changes = np.flatnonzero(line[1:] != line[:-1]) + 1
    is_triangle, is_band = len(changes) == 1, len(changes) == 2 and line[0] == line[-1] and rows > 1
    if not (is_triangle or is_band) or not np.array_equal(bits, sliding_window_view(line, columns)[::-1]):
        return None
    values = np.concatenate([array[:0:-1, 0], array[0]])
    first, last = int(changes[0]), int(changes[-1])
    if is_triangle:
        return Band(end=first - (rows - 1), inside=values[0], outside=values[-1])
    return Band(begin=first - (rows - 1), end=last - (rows - 1), inside=values[first], outside=values[0])
