"""Waves: neighbouring run steps that are carried out side by side, since none needs what another one makes.

Each step wakes the threads and waits for the last of them, and what has little to do keeps few of them busy. The four branches of
an Inception block are nine steps in a row, or three waves:

    1x1 | 1x1 3x3 | 1x1 5x5 | pool 1x1      ->      [1x1, 1x1, 1x1, pool]  [5x5, 3x3, 1x1]

List scheduling: steps stay in the order of the program, but a later one is drawn to an earlier one where that saves something.
In a wave those come first on which the longest chain of others waits, so that what is left over at its end is short.

Graham, "Bounds on Multiprocessing Timing Anomalies", 1969; Kohler, "A Preliminary Evaluation of the Critical Path Method for
Scheduling Tasks on Multiprocessor Systems", 1975. This is for processors: a device's queue overlaps by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xyntra_ep.tracea.core_ir.dims import assuming, product, typical
from xyntra_ep.tracea.core_ir.ops import Operand, Program, ValueKind
from xyntra_ep.tracea.kernels.variant import TempBuffer
from xyntra_ep.tracea.planning.buffers import Key, StepDraft
from xyntra_ep.tracea.planning.in_place import resolve
from xyntra_ep.tracea.planning.order.batch_loop import BatchLoop
from xyntra_ep.tracea.planning.plan import PlanWave
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

SHORT_NS = 200_000.0  # of one core; waking the threads once less, which takes some microseconds, is nothing to a longer step
REACH = 16  # steps that one is drawn forward over at most: what it makes has to wait in a cache that long
_STREAMED = frozenset({ValueKind.CONST, ValueKind.LITERAL})


@dataclass(slots=True)
class _Step:
    """``before``: the steps that have to be done first; ``path_ns``: what it takes until the last of those is done that wait
    for it, itself included, if there were threads enough. ``held_bytes``: of values that another step may have written or will
    read."""

    cost_ns: float
    touched: dict[Key, bool]  # whether it is written
    held_bytes: dict[Key, int]
    before: set[int] = field(default_factory=set)
    path_ns: float = 0.0


def in_waves(
    program: Program, run: Sequence[StepDraft], loops: Sequence[BatchLoop], caps: Capabilities
) -> tuple[list[int], list[PlanWave]]:
    """The order in which the steps of ``run`` are carried out, and the waves in that. Steps of ``loops``, which have images side
    by side, stay where they are, and none passes them."""
    aliases = {view: value for loop in loops for view, (value, _) in loop.views.items()}
    with assuming(program.assumed):
        values = _sizes(program)
        steps = []
        for draft in run:
            touched = _touched(draft, aliases)
            held = {key: values[key[0]] for key in touched if not key[1] and key[0] in values}
            steps.append(_Step(float(typical(draft.call.cost_ns)), touched, held))
        order: list[int] = []
        waves: list[PlanWave] = []
        start = 0
        for first, last in [*((loop.first, loop.last) for loop in loops), (len(run), len(run) - 1)]:
            _depend(program, run, steps, range(start, first))
            for wave in _scheduled(steps, range(start, first), caps):
                if len(wave) > 1:
                    waves.append(PlanWave(len(order), len(order) + len(wave) - 1))
                order += wave
            order += range(first, last + 1)
            start = last + 1
    return order, waves


def _sizes(program: Program) -> dict[int, int]:
    """Bytes of values, but of those that are read once, whoever is beside it."""
    moving = {i: value for i, value in enumerate(program.values) if value.kind not in _STREAMED}
    return {i: typical(product(value.shape)) * value.dtype.bytes for i, value in moving.items()}


def _touched(draft: StepDraft, aliases: Mapping[int, int]) -> dict[Key, bool]:
    found: dict[Key, bool] = {}
    for declared, buffer in zip(draft.call.kernel.buffers, draft.call.buffers, strict=True):
        key = (draft.serial, buffer.name) if isinstance(buffer, TempBuffer) else (resolve(aliases, buffer.value), "")
        found[key] = found.get(key, False) or declared.writable
    return found


def _depend(program: Program, run: Sequence[StepDraft], steps: Sequence[_Step], span: range) -> None:
    """Fill in who waits for whom, and for how long."""
    users: dict[Key, list[int]] = {}
    for i in span:
        for key, writes in steps[i].touched.items():
            for earlier in users.setdefault(key, []):
                if (writes or steps[earlier].touched[key]) and not _apart(program, run[earlier], run[i], key):
                    steps[i].before.add(earlier)
            users[key].append(i)
    for i in reversed(span):
        steps[i].path_ns += steps[i].cost_ns
        for earlier in steps[i].before:
            steps[earlier].path_ns = max(steps[earlier].path_ns, steps[i].path_ns)


def _apart(program: Program, a: StepDraft, b: StepDraft, key: Key) -> bool:
    """Whether two steps write different parts of a value, which neither of them reads, as those do that are joined behind it."""
    value, temporary = key
    if temporary or a.serial == b.serial:
        return False
    ops = program.ops[a.op], program.ops[b.op]
    if any(operand.value == value for op in ops for operand in op.inputs):
        return False
    parts = [[operand for operand in op.written if operand.value == value] for op in ops]
    return bool(parts[0] and parts[1]) and all(_disjoint(x, y) for x in parts[0] for y in parts[1])


def _disjoint(a: Operand, b: Operand) -> bool:
    """Whether two parts of a value lie behind each other along an axis of the whole. Not where that depends on sizes."""
    if a.strides != b.strides or not all(isinstance(n, int) and n > 0 for n in a.strides):
        return False
    if not isinstance(a.offset, int) or not isinstance(b.offset, int):
        return False
    first, second = (a, b) if a.offset <= b.offset else (b, a)
    strides = {axis: typical(stride) for axis, stride in enumerate(a.strides)}
    distance = abs(b.offset - a.offset)
    inwards = sorted((axis for axis in strides if strides[axis] <= distance), key=lambda axis: -strides[axis])
    if not inwards:
        return False
    apart, left_over = divmod(distance, strides[inwards[0]])
    outwards = [stride for stride in strides.values() if stride > distance]
    room = min(outwards, default=math.inf)
    if any(stride % room for stride in outwards):  # places along several axes could lie nearer than one step along the least
        return False
    for axis in inwards:  # of the whole: what lies along one axis fits between two places of the next
        extents = first.shape[axis], second.shape[axis]
        if not all(isinstance(extent, int) for extent in extents) and room != math.inf:
            return False
        begin = apart if axis == inwards[0] else 0
        if max(typical(extents[0]), begin + typical(extents[1])) * strides[axis] > room:
            return False
        room = strides[axis]
    extent = first.shape[inwards[0]]
    return left_over == 0 and isinstance(extent, int) and extent <= apart


def _scheduled(steps: Sequence[_Step], span: range, caps: Capabilities) -> Iterator[list[int]]:
    """Steps that are carried out one by one, and those that are so together."""
    left = list(span)
    done: set[int] = set()
    while left:
        wave = [left[0]]
        if steps[left[0]].cost_ns <= SHORT_NS:
            held = steps[left[0]].held_bytes
            for i in left[1 : REACH + 1]:
                if steps[i].cost_ns > SHORT_NS or not steps[i].before <= done:
                    continue
                wanted = held | steps[i].held_bytes
                if sum(wanted.values()) <= caps.l2_bytes:
                    wave.append(i)
                    held = wanted
        left = [i for i in left[: REACH + 1] if i not in wave] + left[REACH + 1 :]
        done.update(wave)
        yield sorted(wave, key=lambda i: (-steps[i].path_ns, i))
