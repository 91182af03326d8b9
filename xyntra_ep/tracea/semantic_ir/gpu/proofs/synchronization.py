"""What waits for what in a GPU kernel: every order of accesses to shared memory that a run can have must be safe.

The kernel is walked as a run would go, with the loops that touch shared memory carried out: those of known length as long as they
are (a few rounds more than there are slots, where they are longer). Where a loop's length or a condition depends on a size, the
walk is repeated with that size at every number of rounds; what depends on the thread is walked both ways. The slot of a
pipeline's stage must follow from loop counters. Per slot the walk keeps who read, wrote or copied since the last barrier, which
gives the rules:

    read      not between a write and the next barrier; not before a copy has been waited for and a barrier has followed
    write     not between a read, or a copy, and the next barrier
    copy      as a write; its group is committed and waited for before the kernel ends

Two writes between barriers are taken to be of different elements: who writes what is the lane maps' business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xyntra_ep.tracea.semantic_ir.check import Broken, require
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import LoadFragments
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import TakePacket
from xyntra_ep.tracea.semantic_ir.gpu.nodes import (
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Barrier,
    LoadPacket,
    SharedArray,
    Slot,
    StorePacket,
)
from xyntra_ep.tracea.semantic_ir.gpu.proofs.numbers import number
from xyntra_ep.tracea.semantic_ir.gpu.proofs.rings import check_rings
from xyntra_ep.tracea.semantic_ir.gpu.proofs.uniform import check_uniform, space_of, values_in
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import Roles
from xyntra_ep.tracea.semantic_ir.nodes import (
    Assign,
    For,
    Gather,
    If,
    Kernel,
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

_RUNS = 4096  # walks of one kernel: lengths of loops and outcomes of conditions, all combined
_TOGETHER = (Barrier, AsyncCommit, AsyncWait)
_WAITS = (*_TOGETHER, AsyncCopy)


def check_waiting(kernel: Kernel) -> None:
    """Raise Broken where threads may see, or spoil, what others have not finished."""
    divergent = check_uniform(kernel.body)
    arrays = [s for s in kernel.body if isinstance(s, SharedArray)]
    if not arrays:
        return
    if isinstance(roles := kernel.body[-1], Roles):
        check_rings(kernel, roles)
    rounds = 2 * max(array.slots for array in arrays) + 2
    facts = _Facts(divergent)
    choices = _Choices()
    runs = 0
    while True:
        _Run(rounds, facts, choices).whole(kernel.body)
        runs += 1
        require(runs <= _RUNS, "more than {} ways through the kernel", _RUNS)
        if not choices.advance():
            return


@dataclass(slots=True)
class _Choices:
    """A counter over all combinations of choices, whose number and ranges come out as they are made."""

    made: list[tuple[int, int]] = field(default_factory=list)  # (choice, number of choices)
    at: int = 0

    def choose(self, of: int) -> int:
        if self.at == len(self.made):
            self.made.append((0, of))
        choice, _ = self.made[self.at]
        self.at += 1
        return choice

    def advance(self) -> bool:
        """To the next combination; False after the last."""
        self.at = 0
        while self.made:
            choice, of = self.made.pop()
            if choice + 1 < of:
                self.made.append((choice + 1, of))
                return True
        return False


class _Facts:
    """What is asked about statements again and again."""

    def __init__(self, divergent: frozenset[str]) -> None:
        self.divergent = divergent
        self._touches: dict[int, tuple[bool, bool]] = {}
        self._reads: dict[int, list[Pointer]] = {}

    def touches(self, s: Statement) -> tuple[bool, bool]:
        """(a statement or what is in it reaches shared memory; it waits, copies, or fills a slot: which one has to be known)."""
        found = self._touches.get(id(s))
        if found is None:
            filled = s.pointer if isinstance(s, (Store, StorePacket)) and _is_shared(s.pointer) else None
            waits = isinstance(s, _WAITS) or (filled is not None and _is_in_slot(filled))
            shares = waits or filled is not None or bool(self.reads(s))
            for inner in _inside(s):
                more = self.touches(inner)
                shares, waits = shares or more[0], waits or more[1]
            found = self._touches[id(s)] = shares, waits
        return found

    def reads(self, s: Statement) -> list[Pointer]:
        """The shared memory that a statement itself reads."""
        found = self._reads.get(id(s))
        if found is None:
            found = [e.pointer for e in values_in(s) if isinstance(e, (Load, Gather)) and _is_shared(e.pointer)]
            if isinstance(s, (LoadPacket, LoadFragments, TakePacket)) and _is_shared(s.pointer):
                found.append(s.pointer)
            self._reads[id(s)] = found
        return found


def _is_shared(pointer: Pointer) -> bool:
    return space_of(pointer) is Space.SHARED


def _is_in_slot(pointer: Pointer) -> bool:
    while isinstance(pointer, Offset):
        if isinstance(pointer, Slot):
            return True
        pointer = pointer.pointer
    return False


def _inside(s: Statement) -> Iterator[Statement]:
    if isinstance(s, For):
        yield from s.body
    elif isinstance(s, If):
        yield from s.then
        yield from s.otherwise


def _all_inside(s: Statement) -> Iterator[Statement]:
    for inner in _inside(s):
        yield inner
        yield from _all_inside(inner)


@dataclass(slots=True)
class _SlotState:
    written: bool = False  # since the last barrier
    read: bool = False
    landed: bool = False  # a copy was waited for, and no barrier followed yet
    groups: set[int] = field(default_factory=set)  # of copies under way
    filled: bool = False


class _Run:
    """One way through a kernel."""

    def __init__(self, rounds: int, facts: _Facts, choices: _Choices) -> None:
        self._rounds = rounds
        self._facts = facts
        self._choices = choices
        self._known: dict[str, int] = {}
        self._decided: dict[int, bool] = {}  # conditions on several sizes keep their outcome
        self._slots: dict[tuple[str, int], _SlotState] = {}
        self._count: dict[str, int] = {}
        self._open_group = 0

    def whole(self, body: Sequence[Statement]) -> None:
        self._block(body)
        for (name, at), slot in self._slots.items():
            require(not slot.groups, "a copy into slot {} of {} is not waited for", at, name)

    def _block(self, body: Sequence[Statement]) -> None:
        for s in body:
            try:
                self._statement(s)
            except Broken as problem:
                if problem.statement is None:
                    problem.statement = s
                raise

    def _statement(self, s: Statement) -> None:
        for pointer in self._facts.reads(s):
            self._read(pointer)
        match s:
            case SharedArray():
                self._count[s.var.name] = s.slots
            case Let() | Assign():
                self._set(s.var.name, self.number(s.value))
            case Store() | StorePacket() if _is_shared(s.pointer):
                self._write(s.pointer)
            case AsyncCopy():
                self._copy(s.target)
            case AsyncCommit():
                self._open_group += 1
            case AsyncWait():
                self._land(self._open_group - s.pending)
            case Barrier():
                for slot in self._slots.values():
                    slot.read = slot.written = slot.landed = False
            case For():
                self._loop(s)
            case If():
                self._branch(s)

    # -- control flow

    def _loop(self, s: For) -> None:
        shares, waits = self._facts.touches(s)
        if shares:
            begin, end, step = (self._settled(e, waits) for e in (s.begin, s.end, s.step))
            if begin is None or end is None or step is None:
                # Of threads that go round unequally often, some do.
                length = 1 if self._differs(s) else self._choices.choose(self._rounds + 1 if waits else 2)
            else:
                length = min(max(0, -(-(end - begin) // step)), self._rounds)
            for i in range(length):
                self._set(s.var.name, None if begin is None or step is None else begin + i * step)
                self._block(s.body)
            if length < self._rounds and not self._differs(s):
                return
        self._forget(s.body)

    def _branch(self, s: If) -> None:
        shares, waits = self._facts.touches(s)
        condition = self._settled(s.condition, waits)
        if condition is None and any(isinstance(inner, _TOGETHER) for inner in _all_inside(s)):
            if id(s) not in self._decided:
                self._decided[id(s)] = bool(self._choices.choose(2))
            condition = int(self._decided[id(s)])
        if condition is not None:
            self._block(s.then if condition else s.otherwise)
            return
        if shares:
            self._block(s.then)
            self._block(s.otherwise)
        self._forget((s,))

    def _differs(self, s: For) -> bool:
        names = {v.name for e in (s.begin, s.end, s.step) for v in values_in(e) if isinstance(v, Var)}
        return bool(names & self._facts.divergent)

    def _settled(self, e: Rvalue, waits: bool) -> int | None:
        """The value of ``e``; where what waits depends on one size, that size gets a number first."""
        value = self.number(e)
        if value is None and waits:
            unknown = {v.name for v in values_in(e) if isinstance(v, Var) and v.name not in self._known}
            if len(unknown) == 1 and not unknown & self._facts.divergent:
                self._known[unknown.pop()] = self._choices.choose(self._rounds + 1)
                value = self.number(e)
        return value

    def _forget(self, body: Sequence[Statement]) -> None:
        """What ``body`` may have changed is not known any more."""
        for s in body:
            if isinstance(s, Assign):
                self._set(s.var.name, None)
            self._forget(tuple(_inside(s)))

    # -- events

    def _read(self, pointer: Pointer) -> None:
        slot = self._slot(pointer)
        require(not slot.groups, "shared memory is read before a copy into it is waited for")
        require(not slot.landed and not slot.written, "shared memory is read before a barrier follows what fills it")
        require(slot.filled, "shared memory is read that nothing has filled")
        slot.read = True

    def _write(self, pointer: Pointer) -> None:
        slot = self._slot(pointer)
        require(not slot.read, "shared memory is written before a barrier follows its reading")
        require(not slot.groups and not slot.landed, "shared memory is written while a copy fills it")
        slot.written = slot.filled = True

    def _copy(self, target: Pointer) -> None:
        slot = self._slot(target)
        require(not slot.read, "shared memory is copied to before a barrier follows its reading")
        require(not slot.written and not slot.landed, "shared memory is copied to before a barrier follows its writing")
        require(slot.groups <= {self._open_group}, "a copy goes where another group's is under way")
        slot.groups.add(self._open_group)
        slot.filled = True

    def _land(self, before: int) -> None:
        for slot in self._slots.values():
            if slot.groups and max(slot.groups) < before:
                slot.groups.clear()
                slot.landed = True

    def _slot(self, pointer: Pointer) -> _SlotState:
        number: int | None = 0
        while isinstance(pointer, Offset):
            if isinstance(pointer, Slot):
                number = self.number(pointer.number)
                require(number is not None, "which slot is used does not follow from loop counters")
            pointer = pointer.pointer
        assert number is not None
        require(0 <= number < self._count[pointer.name], "{} has no slot {}", pointer.name, number)
        return self._slots.setdefault((pointer.name, number), _SlotState())

    # -- numbers

    def _set(self, name: str, value: int | None) -> None:
        if value is None:
            self._known.pop(name, None)
        else:
            self._known[name] = value

    def number(self, e: Rvalue) -> int | None:
        return number(e, self._known)
