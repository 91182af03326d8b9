"""From what was read to what is computed: axes are joined, masks become extents.

    pid * BLOCK + lane < n        ->  one axis of extent n
    where(that, load, other)      ->  load

Nothing is guessed: a store is taken where each element is written once, and a mask is dropped where what it hides would change
nothing. Else the kernel is refused with the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

import numpy as np

from xyntra_ep.frameworks.triton.reading.values import AxisKind, Found, Kernel, Stored
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.index_range import affine, exact_interval, stays_inside
from xyntra_ep.tracea.core_ir.ops import ReduceKind

_IDENTITY = {ReduceKind.SUM: 0.0, ReduceKind.MAX: -np.inf, ReduceKind.MIN: np.inf}
Pair = tuple[int, int]


class _Apart(Exception):
    """Two axes do not always step as one."""


@dataclass(slots=True)
class Lifted:
    """A store: ``at`` and ``value`` over axes of these ``extents``; reductions by number, each after those that it reads."""

    kernel: Kernel
    stored: Stored
    at: Expr
    value: Expr
    mask: Expr
    found: dict[int, Found]
    extents: list[int]
    counts: dict[int, frozenset[int]]  # what joined axes stand for
    grid: dict[int, int]  # axes that programs differ in, to the axis of the kernel that says where each program is

    def refuse(self, reason: str, line: int = 0) -> NoReturn:
        self.kernel.refuse(line or self.stored.line, reason)

    def change(self, by: Callable[[Expr], Expr]) -> None:
        """All expressions at once; nothing where one cannot be changed."""
        at, value, mask = by(self.at), by(self.value), by(self.mask)
        found = {
            n: replace(f, body=by(f.body), factors=(by(f.factors[0]), by(f.factors[1])) if f.factors else None)
            for n, f in self.found.items()
        }
        self.at, self.value, self.mask, self.found = at, value, mask, found

    def roots(self) -> Iterator[Expr]:
        yield from (self.at, self.value, self.mask)
        yield from (f.body for f in self.found.values())


def lift(kernel: Kernel, stored: Stored) -> Lifted:
    made = Lifted(
        kernel=kernel,
        stored=stored,
        at=stored.at,
        value=stored.value,
        mask=stored.mask if stored.mask is not None else E.const(True),
        found=_needed(kernel, stored),
        extents=[axis.extent for axis in kernel.axes],
        counts={},
        grid={i: i for i, axis in enumerate(kernel.axes) if axis.kind is AxisKind.GRID},
    )
    while any(_join(made, pair) for pair in _pairs(made)):
        pass
    _restrict(made)
    _restrict_sums(made)
    made.change(lambda e: simplified(e, made.extents))
    _check_written_once(made)
    return made


def _needed(kernel: Kernel, stored: Stored) -> dict[int, Found]:
    """The reductions in what is stored and in these, those that are read first."""
    order: dict[int, Found] = {}

    def visit(e: Expr) -> None:
        for x in E.walk(e):
            if x.kind == "acc" and x.attr not in order:
                if not isinstance(x.attr, int):
                    kernel.refuse(stored.line, "what a loop carries is used before the loop ends")
                visit(kernel.found[x.attr].body)
                order[x.attr] = kernel.found[x.attr]

    visit(stored.value)
    return order


# -- axes that are counted as one


def _pairs(made: Lifted) -> list[Pair]:
    """Axes of which one counts whole runs of the other, wherever both are in a sum."""
    found: dict[Pair, None] = {}
    for root in made.roots():
        for x in E.walk(root):
            if x.kind != "call" or x.dtype is not DType.I64:
                continue
            form = affine(x).coefficients
            for outer, step in form.items():
                for inner, factor in form.items():
                    if outer != inner and factor != 0 and step == factor * made.extents[inner] and made.extents[inner] > 1:
                        found[outer, inner] = None
    return list(found)


def _join(made: Lifted, pair: Pair) -> bool:
    outer, inner = pair
    if inner in made.grid or any((outer in f.axes) != (inner in f.axes) for f in made.found.values()):
        return False
    new, extent = len(made.extents), made.extents[inner]
    try:
        made.change(lambda e: _joined(e, pair, extent, new))
    except _Apart:
        return False
    made.extents.append(made.extents[outer] * extent)
    made.counts[new] = frozenset[int]().union(*(made.counts.get(i, {i}) for i in pair))
    if outer in made.grid:
        made.grid[new] = made.grid[outer]
    made.found = {n: replace(f, axes=(f.axes - {*pair}) | {new} if outer in f.axes else f.axes) for n, f in made.found.items()}
    return True


def _joined(e: Expr, pair: Pair, extent: int, new: int) -> Expr:
    outer, inner = pair
    known: dict[Expr, Expr] = {}

    def visit(x: Expr) -> Expr:
        if x not in known:
            known[x] = _visit(x)
        return known[x]

    def _visit(x: Expr) -> Expr:
        if x.dtype is DType.I64 and (x.kind == "axis" or (x.kind == "call" and x.attr in ("add", "sub", "mul", "neg"))):
            parts = affine(x)
            if parts.coefficients:
                form = dict(parts.coefficients)
                step, factor = form.pop(outer, 0), form.pop(inner, 0)
                if step != factor * extent:
                    raise _Apart
                total = visit(parts.rest)
                for number, by in {**form, new: factor}.items():
                    total = E.call("add", total, E.call("mul", E.axis(number), E.size(by)))
                return total
        if x.kind == "load":
            return E.load(x.attr, *(visit(a) for a in x.args), dtype=x.dtype)
        if x.kind == "call" and x.attr in ("lt", "le", "eq") and x.args[0].dtype is DType.I64:  # one axis may be on each side
            return E.call(x.attr, visit(E.call("sub", *x.args)), E.const(0))
        return E.call(x.attr, *(visit(a) for a in x.args)) if x.kind == "call" else x

    return visit(e)


# -- masks


def _restrict(made: Lifted) -> None:
    """The store's mask as ends of axes."""
    for condition in _conditions(made.mask):
        bound = _bound(condition, made.extents)
        if bound is None:
            made.refuse("a store whose mask says more than where axes end")
        elif not isinstance(bound, bool):
            number, extent = bound
            made.extents[number] = min(made.extents[number], max(extent, 0))


def _restrict_sums(made: Lifted) -> None:
    """What reductions hide by masks need not be looked at, where all of one length stay of one length."""
    before, lengths = list(made.extents), len(_lengths(made))
    for found in made.found.values():
        _restrict_sum(made, found)
    if len(_lengths(made)) > lengths:
        made.extents[:] = before


def _lengths(made: Lifted) -> set[tuple[int, ...]]:
    return {tuple(sorted(made.extents[i] for i in found.axes)) for found in made.found.values()}


def _restrict_sum(made: Lifted, found: Found) -> None:
    for x in E.walk(found.body):
        bound = _bound(x, made.extents) if x.kind == "call" and x.attr in ("lt", "le") else None
        if not isinstance(bound, tuple):
            continue
        axis, extent = bound
        if axis in found.axes and 0 < extent < made.extents[axis]:
            over_it = [f for f in made.found.values() if axis in f.axes]
            if all(_changes_nothing(made, f, axis, extent) for f in over_it):
                made.extents[axis] = extent


def _changes_nothing(made: Lifted, found: Found, axis: int, extent: int) -> bool:
    beyond = E.call("add", E.axis(axis), E.const(extent))
    moved = E.rewrite(found.body, lambda e: beyond if e is E.axis(axis) else None)
    extents = list(made.extents)
    extents[axis] -= extent
    left = simplified(moved, extents, of_hidden=True)
    return left.kind == "const" and left.attr == _IDENTITY[found.kind]


def _conditions(mask: Expr) -> list[Expr]:
    if mask.kind == "call" and mask.attr == "and":
        return [c for a in mask.args for c in _conditions(a)]
    return [mask]


def _bound(condition: Expr, extents: list[int]) -> tuple[int, int] | Literal[True] | None:
    """(axis, where it ends) of a condition that says so, True where it always holds, None of another."""
    if condition.kind == "const" and condition.attr:
        return True
    if condition.kind != "call" or condition.attr not in ("lt", "le") or condition.args[0].dtype is not DType.I64:
        return None
    if simplified(condition, extents).kind == "const":
        return True if simplified(condition, extents).attr else None
    gap = affine(E.call("sub", condition.args[1], condition.args[0]))
    form = {i: c for i, c in gap.coefficients.items() if c != 0}
    if len(form) != 1 or gap.rest.kind != "const":
        return None
    [(number, step)] = form.items()
    if not isinstance(step, int) or step > 0:
        return None
    return number, (int(gap.rest.attr) - (condition.attr == "lt")) // -step + 1


# -- expressions


def simplified(root: Expr, extents: list[int], *, of_hidden: bool = False) -> Expr:
    """``root`` with comparisons decided that hold, or do not, for all values of the axes. ``of_hidden``: it is asked about what
    a mask hides, where a softmax has exp(-inf - maximum), which is 0, or NaN in a row whose other elements are NaN, too."""
    done: dict[Expr, Expr] = {}
    for e in E.walk(root):
        args = tuple(done[a] for a in e.args)
        if e.kind == "load":
            done[e] = E.load(e.attr, *args, dtype=e.dtype)
        elif e.kind == "call":
            done[e] = _decided(E.call(e.attr, *args), extents, of_hidden)
        else:
            done[e] = e
    return done[root]


def _decided(e: Expr, extents: list[int], of_hidden: bool) -> Expr:
    if e.kind != "call":
        return e
    args = e.args
    if e.attr in ("lt", "le") and args[0].dtype is DType.I64:
        interval = exact_interval(E.call("sub", args[1], args[0]), extents)
        least = 1 if e.attr == "lt" else 0
        if interval is not None and isinstance(interval[0], int) and isinstance(interval[1], int):
            if interval[0] >= least:
                return E.const(True)
            if interval[1] < least:
                return E.const(False)
    if (
        e.attr == "fmod"
        and args[1].kind == "const"
        and args[0].dtype is DType.I64
        and stays_inside(args[0], args[1].attr, extents)
    ):
        return args[0]
    if of_hidden and e.attr == "mul" and any(a.kind == "const" and a.attr == 0 for a in args):
        return E.const(0.0)
    if of_hidden and e.attr == "sub" and args[0].kind == "const" and args[0].attr == -np.inf:
        return args[0]
    return e


# -- each element once


def _check_written_once(made: Lifted) -> None:
    parts = affine(made.at)
    if parts.rest.kind != "const":
        made.refuse("a store to places that are computed")
    form = {i: abs(c) for i, c in parts.coefficients.items() if isinstance(c, int) and c != 0 and made.extents[i] != 1}
    used = sorted({made.grid[i] for i in parts.coefficients if i in made.grid})
    axes = [made.kernel.axes[i] for i in used]
    places = [axis.places for axis in axes if axis.places is not None]
    different = len(set(zip(*(p.tolist() for p in places), strict=True))) if places else 1
    if different != made.kernel.programs or different != int(np.prod([axis.extent for axis in axes])):
        made.refuse("a store by several programs to the same places, or by none to some between them")
    reach = 0
    for number, step in sorted(form.items(), key=lambda item: item[1]):
        if step <= reach:
            made.refuse("a store of several elements to one place")
        reach += step * (made.extents[number] - 1)
    loops = {i for i in made.stored.axes if made.kernel.axes[i].extent > 1}
    if not loops <= {i for axis in parts.coefficients for i in made.counts.get(axis, {axis})}:
        made.refuse("a store to the same place in each iteration")
