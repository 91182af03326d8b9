"""What a trace demands of symbolic sizes: conditions of a run, guards of a plan's alternative, and which sizes are equal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir.dims import Dim, DimOp, Size, either, eq, select, symbol, symbols_of


class Checks:
    """What must hold at run time. ``conditions``: else the run fails with a message. ``guards``: else another alternative of the
    plan is executed; only with ``speculate`` are unrelated sizes that meet in a broadcast assumed to be equal, under a guard."""

    def __init__(self, speculate: bool = False) -> None:
        self.where = ""  # the node that demands, as messages call it
        self._conditions: dict[Size, str] = {}
        self.guards: list[Size] = []
        self.definitions: list[tuple[str, Size]] = []  # names for run-time choices, so that sizes made of them stay small
        self._speculate = speculate
        self._equal: dict[Size, Size] = {}  # size -> the simpler one it equals, by check or guard
        self._sources: dict[Size, frozenset[Size]] = {}  # run-time broadcast result -> the sizes it was made of

    @property
    def conditions(self) -> list[tuple[Size, str]]:
        return list(self._conditions.items())

    def require(self, condition: Size, message: str) -> None:
        if condition == 0:
            raise UnsupportedError(message)
        if isinstance(condition, Dim):
            self._conditions.setdefault(condition, self.located(message))

    def located(self, message: str) -> str:
        """``message`` with the node at fault in front."""
        if not self.where:
            return message
        operator = re.split(r"[(#]", self.where)[0]
        return f"{self.where}: {message.removeprefix(f'{operator}: ')}"

    def require_equal(self, a: Size, b: Size, message: str) -> None:
        """Demand a == b; from here on they are the same size."""
        if not self.same(a, b):
            self.require(eq(a, b), message)
            self._unite(a, b)

    def same(self, a: Size, b: Size) -> bool:
        """Equal as polynomials or by what was demanded or assumed."""
        return a == b or self.root(a) == self.root(b)

    def is_source(self, part: Size, whole: Size) -> bool:
        """Whether ``whole`` is what broadcasting ``part`` gave, so that both are known to fit."""
        return part in self._sources.get(whole, ())

    def root(self, a: Size) -> Size:
        """The name that equal sizes have in common: a number, where one of them is known."""
        while a in self._equal:
            a = self._equal[a]
        return a

    def synonyms(self) -> dict[str, Size]:
        """Symbols, each with the one that stands for it and all that equal it."""
        named = {name: size for size in self._equal for name in symbols_of(size) if size == symbol(name)}
        roots = {name: self.root(size) for name, size in named.items()}
        return {name: root for name, root in roots.items() if any(root == symbol(n) for n in symbols_of(root))}

    def _unite(self, a: Size, b: Size) -> Size:
        keep, drop = sorted((self.root(a), self.root(b)), key=lambda s: (isinstance(s, Dim), len(repr(s))))
        if keep != drop:
            self._equal[drop] = keep
        return keep

    def broadcast(self, a: Size, b: Size, axis: int) -> Size:
        """The extent of an axis where a meets b (NumPy's rule)."""
        if b == 1 or self.same(a, b):
            return self.root(a) if self.same(a, b) else a
        if a == 1:
            return b
        if isinstance(a, int) and isinstance(b, int):
            raise UnsupportedError(f"cannot broadcast {a} with {b}")
        for whole, part in ((a, b), (b, a)):
            if self.is_source(part, whole):
                return whole
        for whole, part in ((a, b), (b, a)):
            if _clipped_below(part, whole):  # where they differ neither is 1: ORT would refuse the feeds as well
                self.require_equal(whole, part, f"cannot broadcast: axis {axis} has incompatible sizes")
                return self.root(whole)
        if self._speculate and eq(a, b) != 0:
            self.guards.append(eq(a, b))
            return self._unite(a, b)
        compatible = either(eq(a, b), either(eq(a, 1), eq(b, 1)))
        self.require(compatible, f"cannot broadcast: axis {axis} has incompatible sizes")
        if isinstance(a, int) or isinstance(b, int):
            result: Size = a if isinstance(a, int) else b
        else:
            for extent in (a, b):  # a name stands for something that is not negative
                self.require(dims.le(0, extent), f"the size of axis {axis} would be negative")
            result = self._define(select(eq(a, 1), b, a))
        self._sources[result] = frozenset({a, b}) | self._sources.get(a, frozenset()) | self._sources.get(b, frozenset())
        return result

    def assume(self, condition: Size) -> bool:
        """Whether ``condition`` holds always or, where assumptions are made, under a guard."""
        if isinstance(condition, int):
            return condition != 0
        if condition in self._conditions or condition in self.guards:
            return True
        if self._speculate:
            self.guards.append(condition)
        return self._speculate

    def assume_slice(self, start: Size, end: Size, extent: Size) -> bool:
        """Under a guard, that a slice from a run-time position needs no clamping: 0 <= start <= end <= extent."""
        if not self._speculate or not dims.known_nonnegative(start):
            return False
        for condition in (dims.le(start, end), dims.le(end, extent)):
            if condition == 0:
                return False
            if isinstance(condition, Dim):
                self.guards.append(condition)
        return True

    def _define(self, size: Size) -> Size:
        for name, known in self.definitions:
            if known == size:
                return symbol(name)
        self.definitions.append((f"t{len(self.definitions)}", size))
        return symbol(self.definitions[-1][0])

    def fit(self, t: Tensor, shape: Sequence[Size]) -> Tensor:
        """``t`` with exactly ``shape``: sizes known to be equal take the name in ``shape``, axes of extent 1 are repeated."""
        shape = tuple(shape)
        t = t.reshape((1,) * (len(shape) - t.rank) + t.shape)
        named = [want if self.same(have, want) else have for have, want in zip(t.shape, shape, strict=True)]
        return t.named(named).expand(shape)


def _clipped_below(part: Size, whole: Size) -> bool:
    """Whether ``part`` is min(whole, c) for a constant c >= 2, as slicing a position table to the sequence length gives."""
    if not isinstance(part, Dim) or len(part.terms) != 1:
        return False
    monomial, coefficient = part.terms[0]
    if coefficient != 1 or len(monomial) != 1 or monomial[0].op is not DimOp.MIN:
        return False
    a, b = monomial[0].args
    limit = b if a == whole else a if b == whole else None
    return isinstance(limit, int) and limit >= 2


def broadcast_shapes(checks: Checks, *shapes: Sequence[Size]) -> tuple[Size, ...]:
    """NumPy's rule, axis by axis from the right; see ``Checks.broadcast`` for unrelated sizes."""
    rank = max((len(s) for s in shapes), default=0)
    result: list[Size] = [1] * rank
    for shape in shapes:
        for i, extent in enumerate(shape):
            axis = i + rank - len(shape)
            result[axis] = checks.broadcast(result[axis], extent, axis)
    return tuple(result)
