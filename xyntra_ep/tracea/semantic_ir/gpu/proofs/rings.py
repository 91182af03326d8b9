"""Who waits for whom in a kernel whose warpgroups have roles: every copy into a slot, and every product out of it, must come
after what it depends on, whatever the order in which warpgroups run.

The roles are carried out side by side, in several orders, for every number of rounds of their loops: one loop up to a few rounds
more than there are slots, loops in loops (the tiles that a block computes, the steps of each) up to as many together. What is a
size of a run, or is named before the roles, is taken to be any number. An *event* is a copy that has landed, or a product that is
complete. What a warpgroup knows of is what it has waited for: mbarriers hand on, with each phase, what those who arrived knew,
and the copies whose bytes they counted. Then

    product   knows of the last copy into each slot that it reads
    copy      knows of the last copy into its slot, and of all products that read it
    sums      are touched when all products that make them are complete, registers of a when all that read them are; a fence
              precedes products that follow the touching
    phases    expect as many bytes as copies bring; nobody waits for ever; all copies and products are complete at the end

The blocks of a cluster are carried out side by side, too. They go round loops as often as each other: that may follow from the
cluster's number, not from the block's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from math import prod

from xyntra_ep.tracea.semantic_ir.check import require
from xyntra_ep.tracea.semantic_ir.gpu.nodes import SharedArray, Slot
from xyntra_ep.tracea.semantic_ir.gpu.proofs.numbers import number
from xyntra_ep.tracea.semantic_ir.gpu.proofs.ring_state import Place, RingState, Use
from xyntra_ep.tracea.semantic_ir.gpu.proofs.role_skeleton import Products, Quiet, bounds, skeleton
from xyntra_ep.tracea.semantic_ir.gpu.proofs.uniform import values_in
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import (
    WARPS,
    Arrive,
    CopyTensor,
    ExpectBytes,
    Mbarriers,
    Once,
    Role,
    Roles,
    WaitAt,
    WarpgroupCommit,
    WarpgroupFence,
    WarpgroupWait,
)
from xyntra_ep.tracea.semantic_ir.nodes import BLOCK, THREAD, For, If, Kernel, Let, Offset, Pointer, Rvalue, Var, binary, index


def check_rings(kernel: Kernel, roles: Roles) -> None:
    """Raise Broken where an order of warpgroups is not safe."""
    parts = tuple(skeleton(part) for part in roles.parts)
    named = {*kernel.params, *(s.var.name for s in kernel.body if isinstance(s, Let))}
    lengths = {name for part in parts for name in bounds(part.body)} & named
    require(kernel.cluster == 1 or not _differs(kernel, lengths), "blocks of a cluster may go round a loop differently often")
    _check(
        _Block(
            blocks=kernel.cluster,
            parts=parts,
            mbarriers=roles.mbarriers,
            lengths=tuple(sorted(lengths)),
            slots=tuple((s.var.name, s.slots) for s in kernel.body if isinstance(s, SharedArray)),
            bytes=tuple((m.name, m.bytes) for m in kernel.maps),
        )
    )


def _differs(kernel: Kernel, names: set[str]) -> bool:
    """Whether one of the values that are named before the roles may differ between the blocks of a cluster."""
    cluster = binary("div", BLOCK, index(kernel.cluster))
    differing = {BLOCK.name, THREAD.name}
    for s in kernel.body:
        if not isinstance(s, Let) or s.value == cluster:
            continue
        if any(isinstance(e, Var) and e.name in differing for e in values_in(s.value)):
            differing.add(s.var.name)
    return not names.isdisjoint(differing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """What all runs have in common, for so many ``blocks``. ``lengths``: names of how often loops go round; ``bytes``: of a
    tensor's box."""

    blocks: int
    parts: tuple[Role, ...]
    mbarriers: tuple[Mbarriers, ...]
    lengths: tuple[str, ...]
    slots: tuple[tuple[str, int], ...]
    bytes: tuple[tuple[str, int], ...]

    @property
    def rounds(self) -> int:
        """Of loops, after which nothing new comes."""
        return 2 * max((slots for _, slots in self.slots), default=1) + 2


@lru_cache(maxsize=64)  # kernels that differ in sizes and epilogues alone have the same
def _check(block: _Block) -> None:
    for sizes in product(range(block.rounds + 1), repeat=len(block.lengths)):
        if prod(sizes) > block.rounds:
            continue
        for hasty, eager in product(_orders(block), (False, True)):
            _carry_out(block, dict(zip(block.lengths, sizes, strict=True)), hasty, eager)


def _orders(block: _Block) -> Iterator[Sequence[tuple[int, int]]]:
    """Who goes ahead of the others: all, one role, one block. Each is a block and a role."""
    everyone = list(product(range(block.blocks), range(len(block.parts))))
    yield everyone
    for role in range(len(block.parts)):
        yield [who for who in everyone if who[1] == role]
    for rank in range(block.blocks) if block.blocks > 1 else ():
        yield [who for who in everyone if who[0] == rank]


def _carry_out(block: _Block, sizes: Mapping[str, int], hasty: Sequence[tuple[int, int]], eager: bool) -> None:
    """In one order: who is ``hasty`` goes on as long as it can, others do one thing at a time."""
    state = RingState(block.blocks, block.mbarriers, dict(block.slots), dict(block.bytes), eager)
    groups = [
        _Group(state, part, sizes, rank, member, (rank, number) in hasty, block.rounds)
        for rank in range(block.blocks)
        for number, part in enumerate(block.parts)
        for member in range(part.warpgroups)
    ]
    waiting = [group.acting() for group in groups]
    while waiting:
        before = state.acts
        waiting = [group for group in waiting if next(group, True) is None]
        if waiting and before == state.acts:
            require(state.land(), "warpgroups wait for each other for ever")
    state.land()
    known = 0
    for group in groups:
        known |= group.known
    require(all(not use.copied & ~known for use in state.uses.values()), "a copy is not waited for")


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """Products that are not complete: ``event``, and the names of their registers."""

    event: int
    sums: frozenset[str]


class _Group:
    """A warpgroup on its way through its role: number ``member`` of it, in a ``block`` of the cluster. ``rounds``: of loops, at
    most."""

    def __init__(
        self, state: RingState, part: Role, sizes: Mapping[str, int], block: int, member: int, hasty: bool, rounds: int
    ) -> None:
        self._state, self._part, self._block, self._hasty, self._rounds = state, part, block, hasty, rounds
        self.known = 0
        self._numbers: dict[str, int] = dict(sizes)
        if part.group is not None:
            self._numbers[part.group.name] = member
        self._open: list[_UnderWay] = []  # products that no group has yet
        self._groups: list[list[_UnderWay]] = []
        self._fenced = False

    def acting(self) -> Iterator[None]:
        """Yields where it must wait, until it need not; and before each act, unless it is hasty."""
        yield from self._body(self._part.body)
        require(not self._open and not self._groups, "products are not waited for")

    def _body(self, body: Sequence[object]) -> Iterator[None]:
        for s in body:
            match s:
                case Quiet():
                    self._touch(s)
                case WaitAt():
                    yield from self._wait(s)
                case For():
                    yield from self._loop(s)
                case If():
                    yield from self._body(s.then if self._settled(s.condition) else s.otherwise)
                case Once():
                    yield from self._body(s.body)
                case WarpgroupFence():
                    self._fenced = True
                case WarpgroupCommit():
                    self._groups.append(self._open)
                    self._open = []
                case _:
                    yield from self._before()
                    self._state.acts += 1
                    self._act(s)

    def _before(self) -> Iterator[None]:
        """Let others go first, which is no waiting."""
        if not self._hasty:
            self._state.acts += 1
            yield

    def _loop(self, s: For) -> Iterator[None]:
        begin, end, step = (self._settled(e) for e in (s.begin, s.end, s.step))
        for i in range(begin, end, step)[: self._rounds]:
            self._numbers[s.var.name] = i
            yield from self._body(s.body)

    def _wait(self, s: WaitAt) -> Iterator[None]:
        at, parity = self._place(s.mbarrier), self._settled(s.parity)
        yield from self._before()
        while not self._state.passes(at, parity):
            yield
        self._state.acts += 1
        self.known |= self._state.mbarriers[at].known

    def _act(self, s: object) -> None:
        match s:
            case Arrive():
                for at in self._places(s.mbarrier, s.everywhere):
                    self._state.arrive(at, WARPS, self.known)
            case ExpectBytes():
                self._state.arrive(self._place(s.mbarrier), 1, self.known, s.bytes)
            case CopyTensor():
                self._copy(s)
            case Products():
                self._multiply(s)
            case WarpgroupWait():
                self._finish(s.pending)
                self._free({v.name for v in s.sums})

    def _copy(self, s: CopyTensor) -> None:
        targets = self._places(s.target, s.everywhere)
        for place, at in zip(targets, self._places(s.mbarrier, s.everywhere), strict=True):
            event, phase = self._state.event(), (at, self._state.mbarriers[at].phase)
            use = self._state.uses.get(place)
            if use is None or use.phase != phase or use.read:
                known = use is None or not use.read & ~self.known
                require(known, "a tensor is copied to where products may still read")
                require(use is None or not use.copied & ~self.known, "a tensor is copied to where a copy is under way")
                use = self._state.uses[place] = Use(phase)
            use.copied |= event
            self._state.copy(event, s.map, at)

    def _multiply(self, s: Products) -> None:
        require(self._fenced, "no fence between what was done to sums and products")
        event = self._state.event()
        for pointer in s.pointers:
            place = self._place(pointer)
            use = self._state.uses.get(place)
            known = use is not None and not use.copied & ~self.known
            require(known, "{} is multiplied before its copy is waited for", place[1])
            assert use is not None
            use.read |= event
        self._open.append(_UnderWay(event, s.sums))

    def _finish(self, pending: int) -> None:
        while len(self._groups) > pending:
            for done in self._groups.pop(0):
                self.known |= done.event

    def _free(self, sums: Set[str]) -> None:
        under_way = chain(self._open, *self._groups)
        require(all(p.sums.isdisjoint(sums) for p in under_way), "sums are used while products make them")

    def _touch(self, s: Quiet) -> None:
        """What is done besides: it must leave alone what products make."""
        self._free(s.sums)
        self._fenced = self._fenced and not s.changes
        for name, value in s.sets:
            found = None if value is None else number(value, self._numbers)
            if found is None:
                self._numbers.pop(name, None)
            else:
                self._numbers[name] = found

    def _place(self, pointer: Pointer) -> Place:
        slot: int | None = 0
        while isinstance(pointer, Offset):
            if isinstance(pointer, Slot):
                slot = number(pointer.number, self._numbers)
                require(slot is not None, "which slot is used does not follow from loop counters")
            pointer = pointer.pointer
        assert slot is not None
        require(0 <= slot < self._state.slots[pointer.name], "{} has no slot {}", pointer.name, slot)
        return self._block, pointer.name, slot

    def _places(self, pointer: Pointer, everywhere: bool) -> list[Place]:
        """The same in all blocks, if it is so."""
        _, name, slot = place = self._place(pointer)
        return [(block, name, slot) for block in self._state.blocks] if everywhere else [place]

    def _settled(self, e: Rvalue) -> int:
        value = number(e, self._numbers)
        require(value is not None, "a loop, a condition or a parity does not follow from sizes and loop counters")
        assert value is not None
        return value
