"""A batch in a loop: neighbouring ops carried out for one image after the other, so that what they hand on stays in the caches.

Eight images of 112 x 112 x 96 floats are 38 MB between two convolutions; one image is 5. Ops that treat all indices of their
first axis alike become ops over one index, in a loop over them. That is worth it where what they hand on leaves the caches by all
images together and not by one, and where it outweighs that the weights are read again for each image.

    ops 0..40 over [n, ...]   ->   for image in n: ops 0..40 over [1, ...]      what only these use holds one image
    ops 41.. over [n, ...]         ops 41.. over [n, ...]

No element is computed otherwise than before. This is for processors: a device keeps its units busy with all images.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, known_nonnegative, product, symbols_of
from xyntra_ep.tracea.core_ir.expr import axis, walk
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Program, Value, ValueKind
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

SERVED = 8  # images of a batch of which nobody knows anything
STEP_NS = 400.0  # launching a kernel once more, and waking the threads for it
WORTH = 0.02  # of the time that the ops' data takes as it is: a loop that gains less is left
# Data that is used again at once comes so much faster from a cache than from memory; some of the cache has other data.
L2_TO_DRAM, L3_TO_DRAM = 4.0, 2.2
OWN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLoop:
    """Ops ``first`` to ``last`` of a program, or the run steps that they become, are carried out ``images`` times. ``views``: for
    each value that is one image of another, that other one and the elements from one image to the next."""

    first: int
    last: int
    images: Size
    views: Mapping[int, tuple[int, Size]]


def over_images(
    program: Program, live: Sequence[int], once: Collection[int], caps: Capabilities
) -> tuple[Program, tuple[BatchLoop, ...]]:
    """``program`` with loops over images where they pay, in the order of their ops. ``live``: the ops that are carried out;
    ``once``: those of them that are so when the session is created. Ops and values keep their numbers; values are added."""
    looped = replace(program, values=list(program.values), ops=list(program.ops))
    chains = _chains(program, [i for i in live if i not in once])
    parts = [part for chain in chains for part in _worthwhile(program, chain, caps)]
    parts.sort(key=lambda part: part[0].number)
    return looped, tuple(_slice(looped, part, _used_outside(program, part, live)) for part in parts)


@dataclass(frozen=True, slots=True)
class _Batched:
    """An op that treats the indices of its first axis alike: ``images`` of them."""

    number: int
    op: CoreOp
    images: Size
    axes: tuple[int | None, ...]  # of each operand, inputs first: the one that is over the images
    strides: Mapping[int, Size]  # by value, in elements: from one image to the next, 0 for what all images share

    @property
    def operands(self) -> Iterator[tuple[Operand, int | None]]:
        return zip(self.op.operands, self.axes, strict=True)


def _batched(program: Program, number: int) -> _Batched | None:
    op = program.ops[number]
    images, axes = op.images(), _image_axes(op)
    if images is None or axes is None or images in (0, 1):
        return None
    strides: dict[int, Size] = {}
    for operand, at in zip(op.operands, axes, strict=True):
        if at is not None and operand.shape[at] != images:
            return None
        stride = 0 if at is None else operand.strides[at]
        given = program.values[operand.value].kind in (ValueKind.CONST, ValueKind.LITERAL)
        if strides.setdefault(operand.value, stride) != stride or (given and stride != 0) or not known_nonnegative(stride):
            return None
    if any(strides[out.value] == 0 for out in op.written):
        return None
    return _Batched(number, op, images, axes, strides)


def _image_axes(op: CoreOp) -> tuple[int | None, ...] | None:
    """Which axis of each operand the op's first one walks along. None where an expression uses that one otherwise."""
    first = axis(0)
    found = {j: None if j in op.shared_by_images else 0 for j in range(op.reads_directly)}
    for body, _, _ in op.expressions():
        for e in walk(body):
            at = [k for k, arg in enumerate(e.args) if arg is first]
            if (e is first and body is first) or (at and (e.kind != "load" or len(at) > 1)):
                return None
            if e.kind == "load" and found.setdefault(e.attr, at[0] if at else None) != (at[0] if at else None):
                return None
    return (*(found.get(j) for j in range(len(op.inputs))), *(0 for _ in op.written))


@dataclass(slots=True)
class _Chain:
    """Ops that may be in one loop, in order."""

    images: Size
    ops: list[_Batched] = field(default_factory=list)
    strides: dict[int, Size] = field(default_factory=dict)  # by value
    made: set[int] = field(default_factory=set)

    def takes(self, program: Program, batched: _Batched) -> bool:
        """Whether each iteration could do this op, too: it reads what the same iteration made, and no other."""
        if batched.images != self.images:
            return False
        if any(self.strides.get(value, stride) != stride for value, stride in batched.strides.items()):
            return False
        made = self.made | {out.value for out in batched.op.written}
        # Such a value is made of images, one beside the other: since its views stay within it, that of an image stays in there.
        return all(
            at is not None and product(program.values[operand.value].shape) == self.images * operand.strides[at]
            for operand, at in batched.operands
            if operand.value in made
        )

    def add(self, batched: _Batched) -> None:
        self.ops.append(batched)
        self.strides.update(batched.strides)
        self.made.update(out.value for out in batched.op.written)


def _of_one(operand: Operand, at: int) -> Operand:
    return replace(operand, shape=(*operand.shape[:at], 1, *operand.shape[at + 1 :]))


def _chains(program: Program, run: Sequence[int]) -> Iterator[_Chain]:
    chain: _Chain | None = None
    for number in run:
        batched = _batched(program, number)
        if chain is not None and (batched is None or not chain.takes(program, batched)):
            yield chain
            chain = None
        if batched is None:
            continue
        if chain is None:
            chain = _Chain(images=batched.images)
            if not chain.takes(program, batched):
                chain = None
                continue
        chain.add(batched)
    if chain is not None:
        yield chain


class _Memory:
    """What moving data costs at the sizes that are expected."""

    def __init__(self, program: Program, images: Size, caps: Capabilities) -> None:
        self._caps = caps
        # One image is the usual batch of services. It is run as well by a loop: the batches that count here are the large ones.
        _, usual, large = program.assumed
        self.at = usual | {name: large.get(name, SERVED) for name in symbols_of(images)}
        self.images = evaluate(images, self.at)

    def knows(self, op: CoreOp) -> bool:
        return all(symbols_of(size) <= self.at.keys() for o in op.operands for size in (*o.shape, *o.strides))

    def bytes(self, operand: Operand, at: int | None) -> int:
        """Of one image, or of what all share: each element once."""
        extents = [n for i, (n, s) in enumerate(zip(operand.shape, operand.strides, strict=True)) if i != at and s != 0]
        return max(0, evaluate(product(extents), self.at)) * operand.dtype.bytes

    def ns(self, count: int, among: int) -> float:
        """Moving so many bytes that are among so many others."""
        caps = self._caps
        faster = L2_TO_DRAM if among <= caps.l2_bytes * OWN else L3_TO_DRAM if among <= caps.l3_bytes * OWN else 1.0
        return count / (caps.dram_gbs * faster)


@dataclass(frozen=True, slots=True)
class _Gain:
    """What an op in a loop gains by each value that the loop makes, and pays."""

    data_ns: float  # as it is
    saved_ns: Mapping[int, float]
    shared_bytes: int

    def less(self, inside: Collection[int]) -> float:
        return sum(ns for value, ns in self.saved_ns.items() if value in inside)


def _gain(memory: _Memory, batched: _Batched) -> _Gain:
    images = memory.images
    each = {o.value: memory.bytes(o, at) for o, at in batched.operands if at is not None and o.strides[at] != 0}
    shared = {o.value: memory.bytes(o, at) for o, at in batched.operands if o.value not in each}
    one = sum(each.values())
    saved = {v: memory.ns(n * images, one * images) - memory.ns(n * images, one) for v, n in each.items()}
    return _Gain(memory.ns(one * images, one * images), saved, sum(shared.values()))


def _worthwhile(program: Program, chain: _Chain, caps: Capabilities) -> Iterator[Sequence[_Batched]]:
    """The parts of a chain that gain most, those before and behind them looked at in turn."""
    memory = _Memory(program, chain.images, caps)
    if memory.images < 2 or not all(memory.knows(b.op) for b in chain.ops):
        return
    gains = [_gain(memory, b) for b in chain.ops]
    total = sum(g.shared_bytes for g in gains)
    paid = [(memory.images - 1) * (memory.ns(g.shared_bytes, total) + STEP_NS) for g in gains]
    worth = [g.less(chain.made) - p for g, p in zip(gains, paid, strict=True)]
    left = [(0, len(gains))]
    while left:
        begin, end = left.pop()
        part = _best(range(begin, end), worth)
        if len(part) < 2:
            continue
        inside = {out.value for k in part for out in chain.ops[k].op.written}
        net = sum(gains[k].less(inside) - paid[k] for k in part)
        if net > WORTH * sum(gains[k].data_ns for k in part):
            yield [chain.ops[k] for k in part]
        left += [(begin, part[0]), (part[-1] + 1, end)]


def _best(among: range, worth: Sequence[float]) -> range:
    """The neighbours with the largest sum (Kadane's algorithm)."""
    best, best_sum, begin, so_far = range(0), 0.0, among.start, 0.0
    for k in among:
        if so_far <= 0:
            begin, so_far = k, 0.0
        so_far += worth[k]
        if so_far > best_sum:
            best, best_sum = range(begin, k + 1), so_far
    return best


def _used_outside(program: Program, part: Sequence[_Batched], live: Sequence[int]) -> set[int]:
    """Values that are not only the ops' of ``part``."""
    numbers = {b.number for b in part}
    used = {o.value for i in live if i not in numbers for o in program.ops[i].operands}
    return used | {value for value, _ in program.faults}


def _slice(program: Program, part: Sequence[_Batched], outside: Collection[int]) -> BatchLoop:
    """Make the ops of ``part`` those of one image. Values are shrunk that only they use; of others they see a view."""
    images = part[0].images
    views: dict[int, tuple[int, Size]] = {}
    seen_as: dict[int, int] = {}
    for value, stride in {v: s for b in part for v, s in b.strides.items()}.items():
        whole = program.values[value]
        if stride == 0:
            seen_as[value] = value
        elif whole.kind is ValueKind.TEMP and value not in outside:
            program.values[value] = replace(whole, shape=_image_shape(whole, images, stride))
            seen_as[value] = value
        else:
            program.values.append(replace(whole, kind=ValueKind.TEMP, shape=_image_shape(whole, images, stride)))
            seen_as[value] = len(program.values) - 1
            views[len(program.values) - 1] = (value, stride)
    for b in part:
        program.ops[b.number] = _of_one_image(b, seen_as)
    return BatchLoop(first=part[0].number, last=part[-1].number, images=images, views=views)


def _image_shape(whole: Value, images: Size, stride: Size) -> tuple[Size, ...]:
    """What the last image can reach; the axes of one image where the value's are known to be those of images."""
    if whole.shape and whole.shape[0] == images and product(whole.shape[1:]) == stride:
        return (1, *whole.shape[1:])
    return (product(whole.shape) - (images - 1) * stride,)


def _of_one_image(batched: _Batched, seen_as: Mapping[int, int]) -> CoreOp:
    op = batched.op
    operands = [
        replace(operand if at is None else _of_one(operand, at), value=seen_as[operand.value]) for operand, at in batched.operands
    ]
    return op.with_operands(tuple(operands[: len(op.inputs)]), operands[len(op.inputs) :])
