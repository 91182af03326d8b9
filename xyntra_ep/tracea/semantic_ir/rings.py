"""Who waits for whom in a kernel whose warpgroups have roles: every copy into a slot, and every product out of it, must come
after what it depends on, whatever the order in which warpgroups run.

The roles are carried out side by side, for every number of rounds of a loop of unknown length up to a few more than there are
slots, in several orders. An *event* is a copy that has landed, or a product that is complete. What a warpgroup knows of is what
it has waited for: mbarriers hand on, with each phase, what those who arrived knew, and the copies whose bytes they counted. Then

    product   knows of the last copy into each slot that it reads
    copy      knows of the last copy into its slot, and of all products that read it
    sums      are touched when all products that make them are complete; a fence precedes products that follow the touching
    phases    expect as many bytes as copies bring; nobody waits for ever; all copies and products are complete at the end
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from xyntra_ep.tracea.semantic_ir.check import require
from xyntra_ep.tracea.semantic_ir.fragment_nodes import LoadFragments
from xyntra_ep.tracea.semantic_ir.gpu_nodes import LoadPacket, SharedArray, Slot, StorePacket
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
from xyntra_ep.tracea.semantic_ir.numbers import number
from xyntra_ep.tracea.semantic_ir.uniform import space_of, values_in
from xyntra_ep.tracea.semantic_ir.warpgroup_nodes import (
    WARPS,
    Arrive,
    CopyTensor,
    ExpectBytes,
    Once,
    Roles,
    WaitAt,
    WarpgroupCommit,
    WarpgroupDot,
    WarpgroupFence,
    WarpgroupWait,
)

_ACTS = (Arrive, CopyTensor, ExpectBytes, Once, WaitAt, WarpgroupCommit, WarpgroupDot, WarpgroupFence, WarpgroupWait)
Place = tuple[str, int]  # a slot of an array


def check_rings(kernel: Kernel, roles: Roles) -> None:
    """Raise Broken where an order of warpgroups is not safe."""
    slots = {s.var.name: s.slots for s in kernel.body if isinstance(s, SharedArray)}
    facts = _Facts()
    lengths = sorted({v.name for part in roles.parts for v in _bounds(part.body, facts) if v.name in kernel.params})
    for sizes in product(range(_rounds(slots) + 1), repeat=len(lengths)):
        for hasty, eager in product((*range(len(roles.parts)), None), (False, True)):
            _Run(kernel, roles, facts, slots, dict(zip(lengths, sizes, strict=True)), eager).whole(hasty)


def _rounds(slots: Mapping[str, int]) -> int:
    """Of a loop, after which nothing new comes."""
    return 2 * max(slots.values(), default=1) + 2


def _bounds(body: Sequence[Statement], facts: _Facts) -> Iterator[Var]:
    """Names in the bounds of loops that copy, multiply or wait."""
    for s in body:
        if facts.acts(s):
            if isinstance(s, For):
                yield from (v for e in (s.begin, s.end, s.step) for v in values_in(e) if isinstance(v, Var))
            for inner in _inside(s):
                yield from _bounds(inner, facts)


def _inside(s: Statement) -> tuple[Sequence[Statement], ...]:
    match s:
        case For() | Once():
            return (s.body,)
        case If():
            return s.then, s.otherwise
    return ()


class _Facts:
    """What is asked about statements again and again."""

    def __init__(self) -> None:
        self._acts: dict[int, bool] = {}
        self._names: dict[int, frozenset[str]] = {}

    def acts(self, s: Statement) -> bool:
        """Whether a statement, or one in it, has to do with other warpgroups."""
        found = self._acts.get(id(s))
        if found is None:
            found = isinstance(s, _ACTS) or any(self.acts(inner) for body in _inside(s) for inner in body)
            self._acts[id(s)] = found
        return found

    def names(self, s: Statement) -> frozenset[str]:
        """What is used in a statement that does not act, and in those in it, of which none may use shared memory."""
        found = self._names.get(id(s))
        if found is None:
            require(not touches_shared(s), "shared memory is used by others than copies and products")
            inner = (self.names(i) for body in _inside(s) for i in body)
            found = frozenset(v.name for v in values_in(s) if isinstance(v, Var)).union(*inner)
            self._names[id(s)] = found
        return found


def touches_shared(s: Statement) -> bool:
    """Whether a statement itself loads from shared memory or stores there."""
    pointers = [e.pointer for e in values_in(s) if isinstance(e, (Load, Gather))]
    if isinstance(s, (LoadFragments, LoadPacket, Store, StorePacket)):
        pointers.append(s.pointer)
    return any(space_of(pointer) is Space.SHARED for pointer in pointers)


@dataclass(slots=True)
class _Mbarrier:
    arrivals: int  # of each phase
    left: int  # of the phase under way
    phase: int = 0
    bytes: int = 0  # expected less those that have come
    coming: set[int] = field(default_factory=set)  # what the phase under way hands on
    known: set[int] = field(default_factory=set)  # what the complete ones hand on


@dataclass(slots=True)
class _Use:
    """Of a slot: the events of its last copies, which one phase of an mbarrier counts, and those of products since."""

    phase: tuple[Place, int]
    copied: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)


class _Run:
    """One order. ``eager``: copies land at once, else when nobody can go on without."""

    def __init__(
        self, kernel: Kernel, roles: Roles, facts: _Facts, slots: Mapping[str, int], sizes: Mapping[str, int], eager: bool
    ) -> None:
        self._bytes = {m.name: m.bytes for m in kernel.maps}
        self._roles, self.facts, self.slots, self.sizes, self._eager = roles, facts, slots, sizes, eager
        self.rounds = _rounds(slots)
        self.mbarriers = {
            (m.array.name, i): _Mbarrier(m.arrivals, m.arrivals) for m in roles.mbarriers for i in range(slots[m.array.name])
        }
        self.uses: dict[Place, _Use] = {}
        self._flying: list[tuple[int, Place, int]] = []  # (event, mbarrier, bytes)
        self._events = 0
        self.acts = 0  # how much has been done

    def event(self) -> int:
        self._events += 1
        return self._events

    def whole(self, hasty: int | None) -> None:
        """Each goes on as long as it can; where role ``hasty`` is given, the others do one thing at a time."""
        groups = [
            _Group(self, part.body, hasty in (None, number))
            for number, part in enumerate(self._roles.parts)
            for _ in range(part.warpgroups)
        ]
        waiting = [group.acting() for group in groups]
        while waiting:
            before = self.acts
            waiting = [group for group in waiting if next(group, True) is None]
            if waiting and before == self.acts:
                require(bool(self._flying), "warpgroups wait for each other for ever")
                self._land()
        self._land()
        known = set().union(*(group.known for group in groups))
        require(all(use.copied <= known for use in self.uses.values()), "a copy is not waited for")

    def passes(self, at: Place, parity: int) -> bool:
        return self.mbarriers[at].phase % 2 != parity

    def arrive(self, at: Place, count: int, known: set[int], size: int = 0) -> None:
        mbarrier = self.mbarriers[at]
        require(mbarrier.left >= count, "more arrive at {} than its phase expects", at[0])
        mbarrier.left -= count
        mbarrier.bytes += size
        mbarrier.coming |= known
        self._complete(mbarrier)

    def copy(self, event: int, tensor: str, at: Place) -> None:
        self._flying.append((event, at, self._bytes[tensor]))
        if self._eager:
            self._land()

    def _land(self) -> None:
        flying, self._flying = self._flying, []
        for event, at, size in flying:
            mbarrier = self.mbarriers[at]
            mbarrier.bytes -= size
            mbarrier.coming.add(event)
            require(mbarrier.bytes >= 0, "copies bring more bytes than {} expects", at[0])
            self._complete(mbarrier)

    def _complete(self, mbarrier: _Mbarrier) -> None:
        if mbarrier.left == 0 and mbarrier.bytes == 0:
            mbarrier.known |= mbarrier.coming
            mbarrier.coming = set()
            mbarrier.phase += 1
            mbarrier.left = mbarrier.arrivals


class _Group:
    """A warpgroup on its way through its role."""

    def __init__(self, run: _Run, body: Sequence[Statement], hasty: bool) -> None:
        self._run, self._body, self._hasty = run, body, hasty
        self.known: set[int] = set()
        self._numbers: dict[str, int] = dict(run.sizes)
        self._open: list[int] = []  # products that no group has yet
        self._groups: list[list[int]] = []
        self._sums: set[str] = set()  # of products under way
        self._fenced = False

    def acting(self) -> Iterator[None]:
        """Yields where it must wait, until it need not; and before each act, unless it is hasty."""
        yield from self._block(self._body)
        require(not self._open and not self._groups, "products are not waited for")

    def _block(self, body: Sequence[Statement]) -> Iterator[None]:
        for s in body:
            match s:
                case Let() | Assign():
                    self._set(s.var.name, number(s.value, self._numbers))
                case WaitAt():
                    yield from self._wait(s)
                case For() if self._run.facts.acts(s):
                    yield from self._loop(s)
                case If() if self._run.facts.acts(s):
                    yield from self._block(s.then if self._settled(s.condition) else s.otherwise)
                case Once():
                    yield from self._block(s.body)
                case Arrive() | ExpectBytes() | CopyTensor() | WarpgroupDot() | WarpgroupWait():
                    self._run.acts += 1
                    if not self._hasty:
                        yield
            self._act(s)

    def _loop(self, s: For) -> Iterator[None]:
        begin, end, step = (self._settled(e) for e in (s.begin, s.end, s.step))
        for i in range(begin, end, step)[: self._run.rounds]:
            self._numbers[s.var.name] = i
            yield from self._block(s.body)

    def _wait(self, s: WaitAt) -> Iterator[None]:
        at, parity = self._place(s.mbarrier), self._settled(s.parity)
        while not self._run.passes(at, parity):
            yield
        self._run.acts += 1
        self.known |= self._run.mbarriers[at].known

    def _act(self, s: Statement) -> None:
        match s:
            case Arrive():
                self._run.arrive(self._place(s.mbarrier), WARPS, self.known)
            case ExpectBytes():
                self._run.arrive(self._place(s.mbarrier), 1, self.known, s.bytes)
            case CopyTensor():
                self._copy(s)
            case WarpgroupFence():
                self._fenced = True
            case WarpgroupDot():
                self._dot(s)
            case WarpgroupCommit():
                self._groups.append(self._open)
                self._open = []
            case WarpgroupWait():
                self._finish(s.pending)
            case _ if not self._run.facts.acts(s):
                self._touch(s)

    def _copy(self, s: CopyTensor) -> None:
        place, at, event = self._place(s.target), self._place(s.mbarrier), self._run.event()
        phase = at, self._run.mbarriers[at].phase
        use = self._run.uses.get(place)
        if use is None or use.phase != phase or use.read:
            known = use is None or use.read <= self.known
            require(known, "a tensor is copied to where products may still read")
            require(use is None or use.copied <= self.known, "a tensor is copied to where a copy is under way")
            use = self._run.uses[place] = _Use(phase)
        use.copied.add(event)
        self._run.copy(event, s.map, at)

    def _dot(self, s: WarpgroupDot) -> None:
        require(self._fenced, "no fence between what was done to sums and products")
        event = self._run.event()
        for matrix in (s.a, s.b):
            place = self._place(matrix.pointer)
            use = self._run.uses.get(place)
            require(use is not None and use.copied <= self.known, "{} is multiplied before its copy is waited for", place[0])
            assert use is not None
            use.read.add(event)
        self._open.append(event)
        self._sums.update(v.name for v in s.c)

    def _finish(self, pending: int) -> None:
        while len(self._groups) > pending:
            self.known.update(self._groups.pop(0))
        if not self._groups and not self._open:
            self._sums.clear()

    def _touch(self, s: Statement) -> None:
        """What is done besides: it must leave alone what products make."""
        require(not self._run.facts.names(s) & self._sums, "sums are used while products make them")
        if isinstance(s, (Let, Assign)):
            self._fenced = self._fenced and s.value.type.lanes == 0

    def _place(self, pointer: Pointer) -> Place:
        slot: int | None = 0
        while isinstance(pointer, Offset):
            if isinstance(pointer, Slot):
                slot = number(pointer.number, self._numbers)
                require(slot is not None, "which slot is used does not follow from loop counters")
            pointer = pointer.pointer
        assert slot is not None
        require(0 <= slot < self._run.slots[pointer.name], "{} has no slot {}", pointer.name, slot)
        return pointer.name, slot

    def _settled(self, e: Rvalue) -> int:
        value = number(e, self._numbers)
        require(value is not None, "a loop, a condition or a parity does not follow from sizes and loop counters")
        assert value is not None
        return value

    def _set(self, name: str, value: int | None) -> None:
        if value is None:
            self._numbers.pop(name, None)
        else:
            self._numbers[name] = value
