"""A plan with its sizes known: which bytes are where, and which kernel is called with what. What carries it out, in this process
(run_program.py) or on a processor that is emulated (emulated.py), need not know of programs and symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Program, Value, ValueKind
from xyntra_ep.tracea.planning.plan import BufferKind, PlanLoop, PlannedProgram, PlanStep

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """``data``: what it holds from the start. ``first``, ``last``: the steps between which a temporary lives."""

    kind: BufferKind
    size_bytes: int
    data: bytes | None = None
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call of ``kernel`` for each of ``ranges`` of units, with (buffer, offset in bytes) each. ``position``: among the plan's
    run steps. Those of a loop come again for each image: ``again`` are the first and last of them where it is not the first
    image, ``once_more`` where it is not the last."""

    label: str
    position: int = 0
    again: tuple[int, int] | None = None
    once_more: tuple[int, int] | None = None
    kernel: int
    buffers: Sequence[tuple[int, int]]
    params: Sequence[int] = ()
    ranges: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    buffer: int
    shape: tuple[int, ...]
    dtype: DType

    def of(self, data: bytes) -> Array:
        return np.frombuffer(data, dtype=self.dtype.numpy).reshape(self.shape).copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """``init`` steps run once, before anything else."""

    buffers: Sequence[Buffer]
    init: Sequence[Step] = ()
    run: Sequence[Step]
    outputs: Sequence[Output]


def work_of(planned: PlannedProgram, inputs: Sequence[Array], constants: Sequence[Array], seed: int = 0) -> Work:
    """The units of a step in ranges of random size, in random order, and steps that are carried out side by side, too."""
    program = planned.program
    symbols = _symbols(program, inputs)
    for guard in program.guards:
        assert evaluate(guard, symbols), f"the program does not apply: guard {guard} is zero"
    for check, message in program.checks:
        assert evaluate(check, symbols), f"the run fails with INVALID_ARGUMENT: {message}"
    rng = np.random.default_rng(seed)

    def step(planned_step: PlanStep, position: int) -> Step:
        return Step(
            label=planned_step.label,
            position=position,
            kernel=planned_step.kernel,
            buffers=[(b.buffer, evaluate(b.offset_bytes, symbols)) for b in planned_step.buffers],
            params=[evaluate(p, symbols) for p in planned_step.params],
            ranges=_ranges(evaluate(planned_step.units, symbols), rng),
        )

    order = np.arange(len(planned.run))
    for wave in planned.waves:
        rng.shuffle(order[wave.first : wave.last + 1])
    run = [step(planned.run[i], position) for position, i in enumerate(order)]
    for loop in reversed(planned.loops):
        run[loop.first : loop.last + 1] = _for_each_image(loop, run[loop.first : loop.last + 1], symbols)

    buffers: list[Buffer] = []
    outputs: dict[int, Output] = {}
    for number, buffer in enumerate(planned.buffers):
        size, data = 0, None
        match buffer.kind:
            case BufferKind.INPUT:
                data = _bytes(program, ValueKind.INPUT, inputs[buffer.index], buffer.index, symbols)
            case BufferKind.CONSTANT:
                data = _bytes(program, ValueKind.CONST, constants[buffer.index], buffer.index, symbols)
            case BufferKind.LITERAL:
                data = buffer.literal
            case BufferKind.OUTPUT:
                shape = tuple(evaluate(s, symbols) for s in planned.output_shapes[buffer.index])
                outputs[buffer.index] = output = Output(buffer=number, shape=shape, dtype=output_types(program)[buffer.index])
                size = int(np.prod(shape, dtype=np.int64)) * output.dtype.bytes
            case BufferKind.ARENA | BufferKind.POOL | BufferKind.INIT:
                size = evaluate(buffer.size_bytes, symbols)
        size = len(data) if data is not None else size
        buffers.append(Buffer(kind=buffer.kind, size_bytes=size, data=data, first=buffer.first, last=buffer.last))
    return Work(
        buffers=buffers,
        init=[step(s, i) for i, s in enumerate(planned.init)],
        run=run,
        outputs=[outputs[i] for i in sorted(outputs)],
    )


def _for_each_image(loop: PlanLoop, steps: Sequence[Step], symbols: Mapping[str, int]) -> Iterator[Step]:
    strides = {buffer: evaluate(stride, symbols) for buffer, stride in loop.strides_bytes}
    images, within = evaluate(loop.images, symbols), (loop.first, loop.last)
    for image in range(images):
        for each in steps:
            buffers = [(number, offset + image * strides.get(number, 0)) for number, offset in each.buffers]
            again, once_more = within if image else None, within if image < images - 1 else None
            yield replace(each, buffers=buffers, again=again, once_more=once_more)


def output_types(program: Program) -> list[DType]:
    return [v.dtype for v in sorted(_of_kind(program, ValueKind.OUTPUT), key=lambda v: v.index)]


def _of_kind(program: Program, kind: ValueKind) -> list[Value]:
    return [v for v in program.values if v.kind is kind]


def _bytes(program: Program, kind: ValueKind, data: Array, index: int, symbols: Mapping[str, int]) -> bytes:
    for value in _of_kind(program, kind):
        if value.index == index:
            shape = tuple(evaluate(s, symbols) for s in value.shape)
            assert data.shape == shape, f"{kind} {index} has shape {data.shape}, not {shape}"
            assert data.dtype == value.dtype.numpy, f"{kind} {index} is {data.dtype}, not {value.dtype}"
    return np.ascontiguousarray(data).tobytes()


def _ranges(units: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    if units <= 0:
        return []
    cuts = rng.integers(0, units + 1, int(rng.integers(0, 5)))
    ranges = list(pairwise(sorted({0, units, *map(int, cuts)})))
    rng.shuffle(ranges)
    return [(int(begin), int(end)) for begin, end in ranges]


def _symbols(program: Program, inputs: Sequence[Array]) -> dict[str, int]:
    bound = {
        b.name: int(inputs[b.input].shape[b.index] if b.kind == "dim" else inputs[b.input].reshape(-1)[b.index])
        for b in program.bindings
    }
    return program.with_definitions(bound)
