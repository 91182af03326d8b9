"""Sizes that must be equal get one name, all over a program.

A trace may learn late that two sizes are equal: t = 1 or s when a mask is added, t = s when the scores meet the values. What was
made before and after it then differs in names alone, and equal layers would be different kernels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from xyntra_ep.fusion.passes._pass import Fact, Pass
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, substitute
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.core_ir.ops.core_op import field_names


def rename(program: Program, names: Mapping[str, Size]) -> None:
    """Replace symbols by others that they equal in every run, in values and ops; what defines and checks them stays."""
    if names:
        renamer = _Renamer(names)
        program.values = [dataclasses.replace(v, shape=renamer.part(v.shape)) for v in program.values]
        program.ops = [renamer.part(op) for op in program.ops]


class _Renamer:
    def __init__(self, names: Mapping[str, Size]) -> None:
        self._names = names
        self._sizes: dict[Dim, Size] = {}

    def part(self, part: Any) -> Any:
        """A field of an op; the same object where nothing in it changes."""
        if isinstance(part, Dim):
            return self._size(part)
        if isinstance(part, Expr):
            return E.rewrite(part, lambda e: E.size(self._size(e.attr)) if e.kind == "size" else None)
        if isinstance(part, tuple):
            parts = tuple(self.part(p) for p in part)
            return part if all(new is old for new, old in zip(parts, part, strict=True)) else parts
        if dataclasses.is_dataclass(part) and not isinstance(part, type):
            old = {name: getattr(part, name) for name in field_names(type(part))}
            new = {name: self.part(value) for name, value in old.items()}
            return part if all(new[name] is old[name] for name in old) else dataclasses.replace(part, **new)
        return part

    def _size(self, size: Size) -> Size:
        if not isinstance(size, Dim):
            return size
        found = self._sizes.get(size)
        if found is None:
            found = substitute(size, self._names)
            found = self._sizes[size] = size if found == size else found
        return found


PASS = Pass(
    name="name_sizes",
    doc="sizes that must be equal have one name",
    requires=(Fact.OPS,),
    establishes=(Fact.NAMES,),
    run=lambda draft: rename(draft.program, draft.context.checks.synonyms()),
)
