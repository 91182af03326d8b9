"""Which ops are built alike: those that differ only in where their data lies and in what their sizes are called.

A key holds everything that building may depend on, with values and symbols numbered by first appearance. Layers of a
transformer have the same key, and so do the alternatives of an island, whose sizes are the same under other names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xyntra_ep.tracea.core_ir.dims import Atom, Dim, DimOp, Size
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Program
from xyntra_ep.tracea.core_ir.ops.core_op import field_names

_PLAIN = (int, str, bytes, float, type(None))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpKey:
    """``key`` is equal for ops that are built alike; ``values`` and ``symbols`` are then renamed one for one, in order."""

    key: Any
    values: tuple[int, ...]
    symbols: tuple[str, ...]


def op_key(op: CoreOp, program: Program, constants: frozenset[int]) -> OpKey:
    numbering = _Numbering()
    for operand in op.operands:
        numbering.values.setdefault(operand.value, len(numbering.values))
    about = []
    for i in numbering.values:
        v = program.values[i]
        about.append((v.kind, v.dtype, numbering.sizes(v.shape), v.literal, i in constants))
    key = (type(op), numbering.part(op), tuple(about))
    return OpKey(key=key, values=tuple(numbering.values), symbols=tuple(numbering.symbols))


class _Numbering:
    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.symbols: dict[str, int] = {}
        self._exprs: dict[Expr, Any] = {}

    def part(self, part: Any) -> Any:
        """A field of an op, without labels."""
        if isinstance(part, _PLAIN):
            return part
        if isinstance(part, tuple):
            return tuple(self.part(p) for p in part)
        if isinstance(part, Operand):
            shape, strides = self.sizes(part.shape), self.sizes(part.strides)
            return (self.values[part.value], part.dtype, shape, strides, self.size(part.offset))
        if isinstance(part, Dim):
            return self.size(part)
        if isinstance(part, Expr):
            return self.expr(part)
        return tuple(self.part(getattr(part, name)) for name in field_names(part.__class__) if name != "label")

    def sizes(self, sizes: tuple[Size, ...]) -> tuple[Any, ...]:
        return tuple(self.size(size) for size in sizes)

    def size(self, size: Size) -> Any:
        if isinstance(size, int):
            return size
        return tuple((tuple(self._atom(atom) for atom in monomial), coefficient) for monomial, coefficient in size.terms)

    def _atom(self, atom: Atom) -> Any:
        if atom.op is DimOp.SYMBOL:
            return self.symbols.setdefault(atom.key, len(self.symbols))
        return (atom.op, *(self.size(arg) for arg in atom.args if not isinstance(arg, str)))

    def expr(self, e: Expr) -> Any:
        """Expressions are interned: one that names no size is its own key."""
        found = self._exprs.get(e)
        if found is None:
            if e.kind == "size":
                found = ("size", self.size(e.attr))
            else:
                args = tuple(self.expr(arg) for arg in e.args)
                same = all(new is old for new, old in zip(args, e.args, strict=True))
                found = e if same else (e.kind, args, e.attr, e.dtype)
            self._exprs[e] = found
        return found
