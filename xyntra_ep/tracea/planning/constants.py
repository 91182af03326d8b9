"""What is known when a session is created, and what nobody needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xyntra_ep.tracea.core_ir.ops import CoreOp, Program, ValueKind

_KNOWN = frozenset({ValueKind.CONST, ValueKind.LITERAL})


def live_ops(program: Program) -> list[int]:
    """The ops that an output or the judgement of a run depends on, in order.

    A write never ends the need for what was there before: it may cover a part of the value only.
    """
    needed = {i for i, v in enumerate(program.values) if v.kind is ValueKind.OUTPUT} | {value for value, _ in program.faults}
    live: list[int] = []
    for i in range(len(program.ops) - 1, -1, -1):
        op = program.ops[i]
        if any(o.value in needed for o in op.written):
            live.append(i)
            needed.update(o.value for o in op.inputs)
    return live[::-1]


def constant_ops(program: Program, ops: Iterable[int]) -> tuple[frozenset[int], frozenset[int]]:
    """(ops carried out once, when the session is created; values known then).

    An op moves there when all it reads is known, no size depends on a symbol and it writes no output or fault. A value
    is known only when all of its writers moved.
    """
    moved = {i: program.ops[i] for i in ops if _may_move(program, program.ops[i])}
    writers: dict[int, list[int]] = {}
    for i in ops:
        for out in program.ops[i].written:
            writers.setdefault(out.value, []).append(i)
    while True:
        known = _known_values(program, writers, moved)
        stay = [
            i
            for i, op in moved.items()
            if any(o.value not in known for o in op.inputs) or any(o.value not in known for o in op.written)
        ]
        if not stay:
            return frozenset(moved), frozenset(known)
        for i in stay:
            del moved[i]


def _may_move(program: Program, op: CoreOp) -> bool:
    kept = {value for value, _ in program.faults}
    written = [o.value for o in op.written]
    return op.is_fixed and all(program.values[v].kind is ValueKind.TEMP and v not in kept for v in written)


def _known_values(program: Program, writers: Mapping[int, Sequence[int]], moved: Mapping[int, CoreOp]) -> set[int]:
    known = {i for i, v in enumerate(program.values) if v.kind in _KNOWN}
    known.update(value for value, ops in writers.items() if all(i in moved for i in ops))
    return known
