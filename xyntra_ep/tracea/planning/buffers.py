"""The memory of a plan: which buffer each value and temporary lives in, and from which run step to which."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops import Program, ValueKind
from xyntra_ep.tracea.core_ir.work import NO_WORK, SizedWork
from xyntra_ep.tracea.kernels.variant import KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.planning.in_place import resolve
from xyntra_ep.tracea.planning.order.batch_loop import BatchLoop
from xyntra_ep.tracea.planning.plan import BufferKind, BufferUse, PlanBuffer, PlanWave

Key = tuple[int, str]  # (value, "") or (serial number of the op, name of its temporary)
_GIVEN = {
    ValueKind.INPUT: BufferKind.INPUT,
    ValueKind.OUTPUT: BufferKind.OUTPUT,
    ValueKind.CONST: BufferKind.CONSTANT,
    ValueKind.LITERAL: BufferKind.LITERAL,
}
_READ_ONLY = frozenset({ValueKind.INPUT, ValueKind.CONST, ValueKind.LITERAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDraft:
    """A launch before it has buffers. ``serial``: the op it belongs to, whose temporaries it shares."""

    call: KernelCall
    kernel: int
    label: str
    op: int
    serial: int
    once: bool
    variant: str
    work: SizedWork = NO_WORK


class BufferTable:
    """Made from all steps at once, then asked for each step's buffers; ``finish`` lists them. ``loops``, ``waves``: of run
    steps."""

    def __init__(
        self,
        program: Program,
        known: Collection[int],
        init: Sequence[StepDraft],
        run: Sequence[StepDraft],
        loops: Sequence[BatchLoop] = (),
        waves: Sequence[PlanWave] = (),
    ) -> None:
        self._program = program
        self._known = known
        self._aliases = {view: value for loop in loops for view, (value, _) in loop.views.items()}
        self._views = frozenset(self._aliases)
        self._temp_bytes: dict[Key, Size] = {}
        self._uses: dict[Key, list[int]] = {}  # run steps
        self._made_once: set[Key] = set()
        self._buffers: dict[Key, int] = {}
        for draft in init:
            self._note(draft, None)
        for position, draft in enumerate(run):
            self._note(draft, position)
        for value, _ in program.faults:  # looked at when all is done
            self._uses[(value, "")].append(len(run) - 1)
        for loop in loops:
            self._keep_for_all_images(loop)
        self._keep_for_waves(waves)

    def _keep_for_all_images(self, loop: BatchLoop) -> None:
        """What is made before a loop is needed by its last image, and what is used behind it is made from the first one on."""
        for key, uses in self._uses.items():
            if any(loop.first <= step <= loop.last for step in uses):
                before = [loop.last] if uses[0] < loop.first else []
                behind = [loop.first] if uses[-1] > loop.last else []
                self._uses[key] = sorted([*uses, *before, *behind])

    def _keep_for_waves(self, waves: Sequence[PlanWave]) -> None:
        """What a step uses is there while those are carried out that are beside it."""
        wave_of = {step: wave for wave in waves for step in range(wave.first, wave.last + 1)}
        for key, uses in self._uses.items():
            beside = {at for step in uses if (wave := wave_of.get(step)) is not None for at in (wave.first, wave.last)}
            if beside:
                self._uses[key] = sorted({*uses, *beside})

    def _note(self, draft: StepDraft, position: int | None) -> None:
        for declared, buffer in zip(draft.call.kernel.buffers, draft.call.buffers, strict=True):
            key = self._key(draft, buffer)
            if isinstance(buffer, TempBuffer):
                if self._temp_bytes.setdefault(key, buffer.size_bytes) != buffer.size_bytes:
                    self._refuse(draft, f"temporary {buffer.name!r} has two sizes")
            elif declared.writable and self._program.values[key[0]].kind in _READ_ONLY:
                self._refuse(draft, f"writes to value {buffer.value}, which is given")
            if position is None:
                if isinstance(buffer, ValueBuffer) and key[0] not in self._known:
                    self._refuse(draft, f"needs value {buffer.value} before there is a run")
                self._made_once.add(key)
            else:
                if declared.writable and key in self._made_once:
                    self._refuse(draft, "a run step writes to what was made once")
                self._uses.setdefault(key, []).append(position)

    def _refuse(self, draft: StepDraft, what: str) -> None:
        raise InvariantError(f"{draft.label}: {what}", pass_name=draft.variant)

    def first_use(self, value: int) -> int:
        return self._uses[(value, "")][0]

    def last_use(self, value: int) -> int:
        return self._uses[(value, "")][-1]

    def is_temporary(self, value: int) -> bool:
        """Whether a value lives in the arena, in memory of its own."""
        is_own = self._program.values[value].kind is ValueKind.TEMP and value not in self._views
        return is_own and (value, "") not in self._made_once

    def join(self, value: int, into: int) -> None:
        """``value`` takes over the memory of ``into``."""
        root = resolve(self._aliases, into)
        self._aliases[value] = root
        self._uses[(root, "")] = [*self._uses[(root, "")], *self._uses[(value, "")]]

    def use(self, draft: StepDraft, buffer: ValueBuffer | TempBuffer) -> BufferUse:
        """The buffer as a step names it."""
        key = self._key(draft, buffer)
        at = self._buffers.setdefault(key, len(self._buffers))
        return BufferUse(buffer=at, offset_bytes=buffer.offset_bytes if isinstance(buffer, ValueBuffer) else 0)

    def index(self, value: int) -> int:
        """The buffer of a value that a step uses."""
        return self._buffers[(resolve(self._aliases, value), "")]

    def finish(self) -> list[PlanBuffer]:
        """Every buffer that ``use`` named, in that order."""
        return [self._describe(key) for key in self._buffers]

    def _describe(self, key: Key) -> PlanBuffer:
        steps = self._uses.get(key, [])
        if key in self._temp_bytes:
            size_bytes = self._temp_bytes[key]
        else:
            value = self._program.values[key[0]]
            if value.kind is not ValueKind.TEMP:
                return PlanBuffer(kind=_GIVEN[value.kind], index=value.index, literal=value.literal)
            size_bytes = product(value.shape) * value.dtype.bytes
        if key in self._made_once:
            return PlanBuffer(kind=BufferKind.POOL if steps else BufferKind.INIT, size_bytes=size_bytes)
        return PlanBuffer(kind=BufferKind.ARENA, size_bytes=size_bytes, first=min(steps), last=max(steps))

    def _key(self, draft: StepDraft, buffer: ValueBuffer | TempBuffer) -> Key:
        if isinstance(buffer, ValueBuffer):
            return (resolve(self._aliases, buffer.value), "")
        return (draft.serial, buffer.name)
