"""Sizes that only a run knows, as PyTorch writes them (SymPy expressions), as values of a fusion graph.

A symbol is the extent of an axis of a tensor that is at hand, so a size is `Shape` of that tensor and integer arithmetic; fusion
computes none of it at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.graph_draft import GraphDraft
from xyntra_ep.tracea.core_ir.dtypes import DType


def expression_of(size: Any) -> Any:
    """What a size is: an int, else a SymPy expression."""
    if isinstance(size, int):
        return size
    found = size.node.expr
    return int(found) if found.is_Integer else found


class Sizes:
    """``places`` of sizes that are the extent of an axis: (value, axis), the nearest first."""

    def __init__(self, draft: GraphDraft) -> None:
        self._draft = draft
        self._places: dict[Any, tuple[str, int]] = {}

    def learn(self, name: str, shape: Sequence[Any]) -> None:
        """The extents of a value that is there for all that follows."""
        for axis, size in enumerate(shape):
            expression = expression_of(size)
            if not isinstance(expression, int):
                self._places.setdefault(expression, (name, axis))

    def vector(self, sizes: Iterable[Any]) -> str:
        """The sizes as a value, a list of int64."""
        found = [expression_of(size) for size in sizes]
        if all(isinstance(size, int) for size in found):
            return self._draft.ints(*found)
        return self._draft.node("Concat", *(self.one(size) for size in found), dtype=DType.I64, axis=0)

    def one(self, expression: Any) -> str:
        """A size as a list of one element."""
        draft = self._draft
        if isinstance(expression, int) or expression.is_Integer:
            return draft.ints(int(expression))
        if expression in self._places:
            name, axis = self._places[expression]
            return draft.node("Shape", name, dtype=DType.I64, start=axis, end=axis + 1)
        kind = type(expression).__name__
        if kind == "Add":
            return self._folded("Add", expression.args)
        if kind == "Mul" and all(argument.is_integer for argument in expression.args):
            return self._folded("Mul", expression.args)
        if kind == "Pow" and expression.args[1].is_Integer and int(expression.args[1]) > 0:
            return self._folded("Mul", [expression.args[0]] * int(expression.args[1]))
        if kind in ("FloorDiv", "CleanDiv") and len(expression.args) == 2:  # of sizes, which are not negative
            return draft.node("Div", self.one(expression.args[0]), self.one(expression.args[1]))
        raise UnsupportedError(f"a size that is {expression}")

    def _folded(self, op: str, arguments: Sequence[Any]) -> str:
        result = self.one(arguments[0])
        for argument in arguments[1:]:
            result = self._draft.node(op, result, self.one(argument))
        return result
