"""What a name of a kernel stands for while it is read: a number, a block of elements, a pointer to elements.

A block is an expression of core IR over axes: programs of the grid, lanes of `tl.arange`, iterations of loops. Its shape says
which axis each of its dimensions is (None: an extent of 1).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind


class AxisKind(StrEnum):
    GRID = "grid"  # a function of the program's number, or of its numbers
    LANE = "lane"
    LOOP = "loop"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis:
    """``places``: of a GRID axis, where each program is."""

    kind: AxisKind
    extent: int
    places: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A reduction: of ``body`` over ``axes``; in expressions it is acc(number). ``factors``: of `tl.dot`, what is multiplied."""

    kind: ReduceKind
    body: Expr
    axes: frozenset[int]
    line: int
    factors: tuple[Expr, Expr] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    expr: Expr
    shape: tuple[int | None, ...] = ()

    @property
    def is_scalar(self) -> bool:
        return not self.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """``parameter``: the number of the tensor; ``at`` counts its elements."""

    parameter: int
    at: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    parameter: int
    at: Expr
    value: Expr
    mask: Expr | None
    axes: frozenset[int]  # those of the loops it is in
    line: int


@dataclass(slots=True)
class Kernel:
    """What was read: the axes by number, reductions, stores in their order."""

    where: str  # the file
    grid: tuple[int, ...]
    axes: list[Axis] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    stores: list[Stored] = field(default_factory=list)
    dtypes: list[DType] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    stored_before: frozenset[int] = frozenset()  # the tensors that an earlier iteration stores to
    _grid_axes: dict[bytes, int] = field(default_factory=dict)

    @property
    def programs(self) -> int:
        return int(np.prod(self.grid))

    def axis(self, axis: Axis) -> int:
        self.axes.append(axis)
        return len(self.axes) - 1

    def grid_axis(self, places: NDArray[Any]) -> Expr:
        """The integer that the programs have these values of."""
        if places.size == 0 or (places == places.flat[0]).all():
            return E.const(int(places.flat[0]) if places.size else 0)
        least = int(places.min())
        key = (places - least).tobytes()
        if key not in self._grid_axes:
            extent = int(places.max()) - least + 1
            self._grid_axes[key] = self.axis(Axis(kind=AxisKind.GRID, extent=extent, places=places - least))
        found = E.axis(self._grid_axes[key])
        return found if least == 0 else E.call("add", found, E.const(least))

    def places(self, e: Expr) -> NDArray[Any] | None:
        """The value of an integer in each program, None where other axes matter."""
        values: dict[Expr, NDArray[Any]] = {}
        for x in E.walk(e):
            if x.kind == "const":
                values[x] = np.full(self.programs, x.attr)
            elif x.kind == "axis" and self.axes[x.attr].kind is AxisKind.GRID:
                places = self.axes[x.attr].places
                assert places is not None
                values[x] = places
            elif x.kind == "call":
                if any(a not in values for a in x.args):
                    return None
                values[x] = np.asarray(E.SCALAR_OPS[x.attr].reference(*(values[a] for a in x.args)))
            else:
                return None
        return values[e]

    def refuse(self, line: int, reason: str) -> NoReturn:
        raise refusal(self.where, line, reason)


@dataclass(frozen=True, slots=True)
class Place:
    """A node of the source, for messages."""

    kernel: Kernel
    node: ast.AST
    first: int
    file: str

    @property
    def line(self) -> int:
        return self.first + getattr(self.node, "lineno", 1) - 1

    def refuse(self, reason: str) -> NoReturn:
        raise refusal(self.file, self.line, reason)


def refusal(file: str, line: int, reason: str) -> UnsupportedError:
    return UnsupportedError(reason, where=f"{file}:{line}", hint="docs/triton.md says what is read")


def unified(place: Place, kernel: Kernel, blocks: Sequence[Block]) -> tuple[list[Expr], tuple[int | None, ...]]:
    """The expressions of blocks that are combined element by element, and the shape of the result. Lanes that stand at the same
    dimension are the same, those at different dimensions are not: i[:, None] and i[None, :] have two."""
    rank = max(len(b.shape) for b in blocks)
    names: list[dict[int, int]] = [{} for _ in blocks]
    shape: list[int | None] = []
    for i in range(rank):
        chosen: int | None = None
        for k, block in enumerate(blocks):
            if not block.shape:
                continue
            if len(block.shape) != rank:
                place.refuse(f"blocks of {len(block.shape)} and {rank} dimensions are combined")
            number = block.shape[i]
            if number is None:
                continue
            if chosen is None:
                chosen = kernel.axis(kernel.axes[number]) if number in shape else number
            if kernel.axes[number].extent != kernel.axes[chosen].extent:
                place.refuse(f"blocks of {kernel.axes[number].extent} and {kernel.axes[chosen].extent} elements are combined")
            names[k][number] = chosen
        shape.append(chosen)
    return [renamed(kernel, block.expr, names[k]) for k, block in enumerate(blocks)], tuple(shape)


def renamed(kernel: Kernel, e: Expr, names: dict[int, int]) -> Expr:
    """``e`` with other axes. What a reduction has inside is its own, so one that depends on them is made anew."""

    names = {old: new for old, new in names.items() if old != new}
    if not names:
        return e

    def leaf(x: Expr) -> Expr | None:
        if x.kind == "axis" and x.attr in names:
            return E.axis(names[x.attr])
        if x.kind == "acc" and isinstance(x.attr, int):
            found = kernel.found[x.attr]
            if free_axes(kernel, x) & names.keys():
                body = renamed(kernel, found.body, names)
                factors = found.factors and tuple(renamed(kernel, f, names) for f in found.factors)
                new = Found(kind=found.kind, body=body, axes=found.axes, line=found.line, factors=factors or None)  # type: ignore[arg-type]  # two
                kernel.found.append(new)
                return E.node("acc", (), len(kernel.found) - 1, x.dtype)
        return None

    return E.rewrite(e, leaf)


def free_axes(kernel: Kernel, e: Expr) -> frozenset[int]:
    """The axes that ``e`` differs along, those that reductions in it run over left out."""
    found: set[int] = set()
    for x in E.walk(e):
        if x.kind == "axis":
            found.add(x.attr)
        elif x.kind == "acc" and isinstance(x.attr, int):
            inner = kernel.found[x.attr]
            found |= free_axes(kernel, inner.body) - inner.axes
    return frozenset(found)


def joined(kernel: Kernel, kind: ReduceKind, body: Expr, axes: frozenset[int], line: int) -> Expr:
    """A reduction over ``axes``; of one of the same kind it is one over the axes of both."""
    factors = None
    if body.kind == "acc" and isinstance(body.attr, int) and kernel.found[body.attr].kind is kind:
        inner = kernel.found[body.attr]
        body, axes, factors = inner.body, axes | inner.axes, inner.factors
    if not axes <= free_axes(kernel, body) and kind is ReduceKind.SUM:
        kernel.refuse(line, "a sum of something that is the same for all that are summed")
    kernel.found.append(Found(kind=kind, body=body, axes=axes, line=line, factors=factors))
    return E.node("acc", (), len(kernel.found) - 1, body.dtype)
