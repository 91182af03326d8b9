"""Programs: ops in order, their values, and the sizes that a run brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbols_of
from xyntra_ep.tracea.core_ir.ops.core_op import CoreOp
from xyntra_ep.tracea.core_ir.ops.operand import Operand, Value, contiguous_strides


class SymbolKind(StrEnum):
    DIM = "dim"
    ELEMENT = "element"


class Range(NamedTuple):
    """Sizes that a symbol is expected to have: a small one, the usual one, a large one."""

    small: int
    usual: int
    large: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where a symbol's value comes from: a dimension of an input, or an element of an integer input tensor. ``plausible``: what
    estimates take it for; None where nobody knows."""

    name: str
    kind: SymbolKind
    input: int
    index: int
    plausible: Range | None = None


Applied = tuple[str, tuple[int, ...]]  # a rule of algebra, and the graph nodes of what it was applied to


@dataclass(slots=True, kw_only=True)
class Program:
    """One island (one of its alternatives). ``sources[i]``: which graph nodes op i came from (for reasons and labels)."""

    values: list[Value] = field(default_factory=list)
    ops: list[CoreOp] = field(default_factory=list)
    sources: list[tuple[int, ...]] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    definitions: list[tuple[str, Size]] = field(default_factory=list)  # symbols computed from earlier ones, in order
    guards: list[Size] = field(default_factory=list)  # the alternative applies when all are non-zero
    checks: list[tuple[Size, str]] = field(default_factory=list)  # zero: the run fails with the message
    faults: list[tuple[int, str]] = field(
        default_factory=list
    )  # values of bools: one true after a run, it fails with the message
    constants: list[str] = field(default_factory=list)  # graph names of CONST values
    rules: list[tuple[str, tuple[int, ...]]] = field(
        default_factory=list
    )  # that were applied: which, to ops of which graph nodes
    remarks: list[tuple[str, int]] = field(default_factory=list)  # about what was made of a graph node

    def with_definitions(self, bound: Mapping[str, int]) -> dict[str, int]:
        """The values of all symbols, from those of the bound ones."""
        symbols = dict(bound)
        for name, size in self.definitions:
            symbols[name] = evaluate(size, symbols)
        return symbols

    @property
    def assumed(self) -> tuple[dict[str, int], ...]:
        """What symbols may be, small, usual and large: those of which something is known."""
        return tuple(self._assumed(k) for k in range(len(Range._fields)))

    def _assumed(self, k: int) -> dict[str, int]:
        symbols = {b.name: b.plausible[k] for b in self.bindings if b.plausible is not None}
        for name, size in self.definitions:
            if symbols_of(size) <= symbols.keys():
                symbols[name] = evaluate(size, symbols)
        return symbols

    def operand(self, value: int) -> Operand:
        """The plain contiguous view of a value."""
        v = self.values[value]
        return Operand(value=value, dtype=v.dtype, shape=v.shape, strides=contiguous_strides(v.shape))
