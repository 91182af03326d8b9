"""What all threads of a block agree on. They may only wait for each other where all of them come by. In a role, where a block's
threads go ways of their own, those of a warpgroup may still exchange values.

A value is uniform when it follows from the block's number, sizes, constants, loops with uniform bounds, and elements at uniform
places of memory that the kernel does not write or that the block shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from xyntra_ep.tracea.semantic_ir.check import Broken, require
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import FragmentDot, LoadFragments
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import MatrixDot
from xyntra_ep.tracea.semantic_ir.gpu.nodes import AsyncCommit, AsyncWait, Barrier, LoadPacket, SubgroupXor
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import Once, Role, Roles, WarpgroupDot
from xyntra_ep.tracea.semantic_ir.nodes import (
    THREAD,
    Assign,
    For,
    Gather,
    If,
    Let,
    Load,
    Pointer,
    PointerType,
    Rvalue,
    Space,
    Statement,
    Var,
)


def check_uniform(body: Sequence[Statement]) -> frozenset[str]:
    """The names that threads do not agree on. Raises Broken where a barrier, a group of copies or an exchange is not reached by
    all threads of a block."""
    divergent = {THREAD.name}
    _mark_all(body, divergent)
    _demand(body, divergent, uniform=True)
    if body and isinstance(roles := body[-1], Roles):
        for part in roles.parts:
            _check_role(body[:-1], part)
    return frozenset(divergent)


def _check_role(before: Sequence[Statement], part: Role) -> None:
    """The same for the threads of one warpgroup, which agree on its number."""
    divergent = {THREAD.name}
    _mark_all((*before, *part.body), divergent)
    _demand(part.body, divergent, uniform=True, in_role=True)


def _mark_all(body: Sequence[Statement], divergent: set[str]) -> None:
    before = -1
    while before != len(divergent):  # loops carry what they assign to their beginning
        before = len(divergent)
        _mark(body, divergent, uniform=True)


def values_in(node: Statement | Rvalue) -> Iterator[Rvalue]:
    """Every distinct rvalue of a node, itself included; not those of nested statements."""
    seen: set[int] = set()
    stack: list[object] = [node]
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Rvalue):
            yield item
        for name in _names(type(item)):
            part = getattr(item, name)
            if isinstance(part, Rvalue):
                stack.append(part)
            elif isinstance(part, tuple):
                stack.extend(p for p in part if isinstance(p, Rvalue))


_fields: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    if kind not in _fields:
        _fields[kind] = tuple(f.name for f in fields(kind))
    return _fields[kind]


def space_of(pointer: Pointer) -> Space:
    kind = pointer.vtype
    assert isinstance(kind, PointerType)
    return kind.space


def is_uniform(e: Rvalue, divergent: set[str]) -> bool:
    """Whether all threads have the same value."""
    for part in values_in(e):
        if isinstance(part, Var) and part.name in divergent:
            return False
        if isinstance(part, SubgroupXor):
            return False
        if isinstance(part, (Load, Gather)):
            kind = part.pointer.vtype
            assert isinstance(kind, PointerType)
            if kind.space is Space.PRIVATE or (kind.space is Space.GLOBAL and kind.writable):
                return False
    return True


def _mark(body: Sequence[Statement], divergent: set[str], uniform: bool) -> None:
    """Add the names that threads do not agree on. ``uniform``: all threads run ``body``, equally often."""
    for s in body:
        match s:
            case Let(var=var, value=value) if not is_uniform(value, divergent):
                divergent.add(var.name)
            case Assign(var=var, value=value) if not (uniform and is_uniform(value, divergent)):
                divergent.add(var.name)
            case LoadPacket(variables=variables, pointer=pointer, index=at):
                if not is_uniform(Load(pointer, at, 1), divergent):
                    divergent.update(v.name for v in variables)
            case LoadFragments(variables=variables):
                divergent.update(v.name for v in variables)
            case FragmentDot(c=sums):
                divergent.update(v.name for v in sums)
            case For():
                together = all(is_uniform(e, divergent) for e in (s.begin, s.end, s.step))
                if not together:
                    divergent.add(s.var.name)
                _mark(s.body, divergent, uniform and together)
            case WarpgroupDot(c=sums):
                divergent.update(v.name for v in sums)
            case Roles():  # who comes by in each is for `rings.py`
                for part in s.parts:
                    if part.group is not None:
                        divergent.add(part.group.name)
                    _mark(part.body, divergent, uniform)
            case Once():
                _mark(s.body, divergent, False)
            case If():
                together = uniform and is_uniform(s.condition, divergent)
                _mark(s.then, divergent, together)
                _mark(s.otherwise, divergent, together)


def _demand(body: Sequence[Statement], divergent: set[str], uniform: bool, in_role: bool = False) -> None:
    for s in body:
        try:
            if isinstance(s, (Barrier, AsyncCommit, AsyncWait)):
                require(uniform and not in_role, "not all threads of the block come here")
            together = not isinstance(s, (LoadFragments, FragmentDot, MatrixDot))
            require(uniform or together, "not all threads of the warp come here")
            require(uniform or not any(isinstance(e, SubgroupXor) for e in values_in(s)), "not all threads exchange values")
        except Broken as problem:
            problem.statement = s
            raise
        match s:
            case For():
                together = all(is_uniform(e, divergent) for e in (s.begin, s.end, s.step))
                _demand(s.body, divergent, uniform and together, in_role)
            case Once():
                _demand(s.body, divergent, False, in_role)
            case If():
                together = uniform and is_uniform(s.condition, divergent)
                _demand(s.then, divergent, together, in_role)
                _demand(s.otherwise, divergent, together, in_role)
