"""What of a role has to do with other warpgroups, for `rings.py`, which carries roles out many times: statements that copy,
multiply or wait (they *act*), the loops and conditions around them, and of all others what follows from them in one
``Quiet`` each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.semantic_ir.check import require
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import LoadFragments
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import TakePacket
from xyntra_ep.tracea.semantic_ir.gpu.nodes import LoadPacket, Slot, StorePacket
from xyntra_ep.tracea.semantic_ir.gpu.proofs.uniform import space_of, values_in
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import (
    Arrive,
    CopyTensor,
    ExpectBytes,
    Once,
    Role,
    WaitAt,
    WarpgroupCommit,
    WarpgroupDot,
    WarpgroupFence,
    WarpgroupWait,
)
from xyntra_ep.tracea.semantic_ir.nodes import (
    Assign,
    For,
    Gather,
    If,
    Let,
    Load,
    Offset,
    Pointer,
    Rvalue,
    Space,
    Statement,
    Store,
    Var,
)

_ACTS = (Arrive, CopyTensor, ExpectBytes, Once, WaitAt, WarpgroupCommit, WarpgroupDot, WarpgroupFence, WarpgroupWait)


@dataclass(frozen=True, slots=True)
class Quiet(Statement):
    """Statements that do not act, one after the other. ``sums``: registers of products that they use; ``sets``: numbers that acts
    depend on, in order, None where they do not follow from others; ``changes``: whether a value that may be a sum is made or
    changed."""

    sums: frozenset[str]
    sets: tuple[tuple[str, Rvalue | None], ...]
    changes: bool


@dataclass(frozen=True, slots=True)
class Products(Statement):
    """Products of matrices in the same slots, one after the other: the names of the registers that they use, and where the slots
    are."""

    sums: frozenset[str]
    pointers: tuple[Pointer, ...]


def skeleton(role: Role) -> Role:
    """The role with its products put together, and its statements that do not act. Raises Broken where one of these touches
    shared memory."""
    needed = set(decisive(role.body))
    before = -1
    while before != len(needed):
        before = len(needed)
        for s in _all_in(role.body):
            if isinstance(s, (Let, Assign)) and s.var.name in needed:
                needed.update(_names(s.value))
    sums = {v.name for s in _all_in(role.body) if isinstance(s, WarpgroupDot) for v in s.registers}
    return replace(role, body=_quieted(role.body, needed, sums))


def bounds(body: Sequence[Statement]) -> Iterator[str]:
    """Names in the bounds of loops that act."""
    for s in body:
        if isinstance(s, For) and _acts(s):
            for e in (s.begin, s.end, s.step):
                yield from _names(e)
        for inner in _inside(s):
            yield from bounds(inner)


def decisive(body: Sequence[Statement]) -> Iterator[str]:
    """Names that say how often and in which slots acts are done."""
    yield from bounds(body)
    for s in _all_in(body):
        match s:
            case If() if _acts(s):
                yield from _names(s.condition)
            case WaitAt():
                yield from _names(s.parity)
        for pointer in _pointers(s):
            while isinstance(pointer, Offset):
                if isinstance(pointer, Slot):
                    yield from _names(pointer.number)
                pointer = pointer.pointer


def _pointers(s: Statement) -> tuple[Pointer, ...]:
    match s:
        case Arrive() | ExpectBytes() | WaitAt():
            return (s.mbarrier,)
        case CopyTensor():
            return s.target, s.mbarrier
        case WarpgroupDot():
            return tuple(m.pointer for m in s.matrices)
    return ()


def _names(e: Rvalue) -> Iterator[str]:
    return (v.name for v in values_in(e) if isinstance(v, Var))


def _inside(s: Statement) -> tuple[Sequence[Statement], ...]:
    match s:
        case For() | Once():
            return (s.body,)
        case If():
            return s.then, s.otherwise
    return ()


def _all_in(body: Sequence[Statement]) -> Iterator[Statement]:
    for s in body:
        yield s
        for inner in _inside(s):
            yield from _all_in(inner)


def _acts(s: Statement) -> bool:
    return any(isinstance(inner, _ACTS) for inner in _all_in((s,)))


def _quieted(body: Sequence[Statement], needed: set[str], sums: set[str]) -> tuple[Statement, ...]:
    made: list[Statement] = []
    quiet: list[Statement] = []
    for s in body:
        if not _acts(s):
            quiet.append(s)
            continue
        made.extend(_quiet(quiet, needed, sums))
        quiet = []
        match s:
            case For() | Once():
                s = replace(s, body=_quieted(s.body, needed, sums))
            case If():
                s = replace(s, then=_quieted(s.then, needed, sums), otherwise=_quieted(s.otherwise, needed, sums))
            case CopyTensor():
                s = replace(s, coordinates=())
            case WarpgroupDot():
                s = Products(frozenset(v.name for v in s.registers), _pointers(s))
                last = made[-1] if made else None
                if isinstance(last, Products) and last.pointers == s.pointers:
                    s = Products(s.sums | last.sums, s.pointers)
                    made.pop()
        made.append(s)
    return (*made, *_quiet(quiet, needed, sums))


def _quiet(body: Sequence[Statement], needed: set[str], sums: set[str]) -> Iterator[Quiet]:
    if not body:
        return
    names: set[str] = set()
    sets: list[tuple[str, Rvalue | None]] = []
    changes = False
    for s in body:
        for inner in _all_in((s,)):
            require(not _touches_shared(inner), "shared memory is used by others than copies and products")
            names.update(v.name for v in values_in(inner) if isinstance(v, Var))
            if isinstance(inner, (Let, Assign)):
                changes |= inner.value.type.lanes != 0
                if inner.var.name in needed:
                    sets.append((inner.var.name, inner.value if inner is s else None))
    yield Quiet(frozenset(names & sums), tuple(sets), changes)


def _touches_shared(s: Statement) -> bool:
    """Whether a statement itself loads from shared memory or stores there."""
    pointers = [e.pointer for e in values_in(s) if isinstance(e, (Load, Gather))]
    if isinstance(s, (LoadFragments, LoadPacket, Store, StorePacket, TakePacket)):
        pointers.append(s.pointer)
    return any(space_of(pointer) is Space.SHARED for pointer in pointers)
