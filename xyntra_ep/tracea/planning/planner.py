"""A program becomes a plan: what is done once, what is done every time, and in which memory.

ops -> live ops -> constant ops and run ops -> loops over images -> launches (decide, build, print)
    -> weights that run steps read as they are get a copy of their own -> steps, some side by side -> buffers with lifetimes
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xyntra_ep.errors import CompileError, InvariantError, UnsupportedError
from xyntra_ep.guard import guarded
from xyntra_ep.tracea.core_ir.dims import Dim, Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, load
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Pointwise, Program, Value, ValueKind
from xyntra_ep.tracea.core_ir.work import NO_WORK
from xyntra_ep.tracea.doctor.variants import VariantTable, cpu_variants, gpu_variants
from xyntra_ep.tracea.kernels.variant import KernelCall, Phase, ValueBuffer
from xyntra_ep.tracea.planning.bounds import bounds_of
from xyntra_ep.tracea.planning.buffers import BufferTable, StepDraft
from xyntra_ep.tracea.planning.builder import Built, Emit, Launch, OpBuilder, TunedFor
from xyntra_ep.tracea.planning.constants import constant_ops, live_ops
from xyntra_ep.tracea.planning.in_place import reused_input
from xyntra_ep.tracea.planning.legality import check_program
from xyntra_ep.tracea.planning.order.batch_loop import BatchLoop, over_images
from xyntra_ep.tracea.planning.order.waves import in_waves
from xyntra_ep.tracea.planning.plan import OpFailure, PlanError, PlanLoop, PlannedProgram, PlanStep, PlanTensor
from xyntra_ep.tracea.runtime.kernel_source import Definitions, KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR, Capabilities
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

Announce = Callable[[KernelSource], None]


@dataclass(slots=True)
class _Op:
    """An op with its launches. ``index``: which op of the caller's program it is, or serves (``is_copy``: of a weight)."""

    index: int
    op: CoreOp
    once: bool
    built: Built
    is_copy: bool = False


def cpu_builder(caps: Capabilities) -> OpBuilder:
    """A builder over all CPU variants; it learns as it goes, so keep it."""
    from xyntra_ep.tracea.emitters.cpu import emit

    return OpBuilder(caps, cpu_variants(), emit)


def gpu_builder(
    gpu: Gpu,
    emit: Callable[[Kernel], Definitions],
    caps: Capabilities = SCALAR,
    variants: VariantTable | None = None,
    tuned_for: TunedFor | None = None,
    slack: float = 1.0,
) -> OpBuilder:
    """A builder over ``variants``, or all for GPUs, printing with ``emit``; ``caps``: the machine that the GPU is in."""
    chosen = variants if variants is not None else gpu_variants()
    return OpBuilder(caps, chosen, lambda kernel, _: emit(kernel), tuned_for, gpu=gpu, slack=slack)


def plan_program(
    program: Program,
    caps: Capabilities,
    *,
    builder: OpBuilder | None = None,
    variants: VariantTable | None = None,
    emit: Emit | None = None,
    announce: Announce | None = None,
    side_by_side: bool = True,
) -> PlannedProgram:
    """Plan ``program`` for the machine ``caps``; nothing is compiled. ``announce`` is told of kernels as they become known (of
    some again and again), so that compiling can begin. ``side_by_side``: independent steps become waves.

    Raises PlanError with every op that no variant admits, InvariantError when the program itself is not
    legal.
    """
    check_program(program)
    if builder is None:
        if variants is None and emit is None:
            builder = cpu_builder(caps)
        else:
            from xyntra_ep.tracea.emitters.cpu import emit as emit_cpu

            builder = OpBuilder(caps, cpu_variants() if variants is None else variants, emit or emit_cpu)
    program = dataclasses.replace(program, values=list(program.values))  # copies of weights become new values
    live = live_ops(program)
    program.checks = [*program.checks, *bounds_of(program, live)]
    once, known = constant_ops(program, live)
    loops: tuple[BatchLoop, ...] = ()
    if not builder.for_device:
        program, loops = over_images(program, live, once, caps)
    ops = _build_all(program, live, once, known, builder, announce)
    copies = _copy_weights(program, ops, known, builder)
    known |= {_written(copy) for copy in copies}
    beside = caps if side_by_side and not builder.for_device else None
    return _assemble(program, copies + ops, known, loops, beside, in_place=builder.aliases)


def _build_all(
    program: Program, live: list[int], once: frozenset[int], known: frozenset[int], builder: OpBuilder, announce: Announce | None
) -> list[_Op]:
    ops: list[_Op] = []
    failures: list[OpFailure] = []
    for i in live:
        try:
            with guarded("building kernels"):
                built = builder.build(program.ops[i], program, known)
                if announce is not None:
                    for launch in built.launches:
                        announce(launch.source)
        except (UnsupportedError, CompileError) as error:
            failures.append(OpFailure(op=i, error=error))
        else:
            ops.append(_Op(i, program.ops[i], i in once, built))
    if failures:
        raise PlanError(failures)
    return ops


def _copy_weights(program: Program, ops: list[_Op], known: frozenset[int], builder: OpBuilder) -> list[_Op]:
    """Copy each constant that a run step reads unpacked: ORT frees the original when the session has been created."""
    copied: dict[int, _Op] = {}
    failures: list[OpFailure] = []
    for op in ops:
        if op.once:
            continue
        for value in _read_by_run(op.built):
            if program.values[value].kind is not ValueKind.CONST or value in copied:
                continue
            copy = _identity(program, value)
            try:
                with guarded("building kernels"):
                    built = builder.build(copy, program, known)
            except UnsupportedError as error:
                failures.append(OpFailure(op=op.index, error=error))
            else:
                copied[value] = _Op(op.index, copy, True, built, is_copy=True)
        op.built = _redirect(op.built, {value: _written(copy) for value, copy in copied.items()})
    if failures:
        raise PlanError(failures)
    return list(copied.values())


def _identity(program: Program, value: int) -> Pointwise:
    """The op that copies the bytes of a value to a new one; the type only has to have the right width."""
    original = program.values[value]
    size_bytes = product(original.shape) * original.dtype.bytes
    assert isinstance(size_bytes, int), "a constant has a constant shape"
    dtype = DType.F32 if size_bytes % DType.F32.bytes == 0 else DType.U8
    shape = (size_bytes // dtype.bytes,)
    program.values.append(Value(kind=ValueKind.TEMP, dtype=original.dtype, shape=original.shape, name=original.name))
    source = Operand(value=value, dtype=dtype, shape=shape, strides=(1,))
    target = dataclasses.replace(source, value=len(program.values) - 1)
    return Pointwise(
        domain=shape,
        inputs=(source,),
        bodies=(load(0, axis(0), dtype=dtype),),
        outputs=(target,),
        label=f"copy {original.name}".strip(),
    )


def _written(copy: _Op) -> int:
    return copy.op.written[0].value


def _read_by_run(built: Built) -> list[int]:
    return [
        buffer.value
        for launch in built.launches
        if launch.call.phase is Phase.RUN
        for buffer in launch.call.buffers
        if isinstance(buffer, ValueBuffer)
    ]


def _redirect(built: Built, moved: dict[int, int]) -> Built:
    """``built`` with its run launches reading copies."""
    if not any(value in moved for value in _read_by_run(built)):
        return built
    launches = []
    for launch in built.launches:
        call = launch.call
        if call.phase is Phase.RUN:
            buffers = tuple(
                dataclasses.replace(b, value=moved[b.value]) if isinstance(b, ValueBuffer) and b.value in moved else b
                for b in call.buffers
            )
            launch = dataclasses.replace(launch, call=dataclasses.replace(call, buffers=buffers))
        launches.append(launch)
    return dataclasses.replace(built, launches=tuple(launches))


def _assemble(
    program: Program,
    ops: list[_Op],
    known: frozenset[int] | set[int],
    loops: Sequence[BatchLoop],
    caps: Capabilities | None,
    in_place: bool,
) -> PlannedProgram:
    """``caps``: of the processor that steps are carried out by side by side; None: they are one after the other. ``in_place``:
    what an op makes may take the memory of what it reads."""
    sources: dict[str, int] = {}
    kernels: list[KernelSource] = []
    init: list[StepDraft] = []
    run: list[StepDraft] = []
    numbers = _Numbers(program)
    for serial, op in enumerate(ops):
        label = op.op.label or op.built.decision.chosen.name
        work = op.built.work
        for launch in op.built.launches:
            text = launch.source.text
            if text not in sources:
                sources[text] = len(kernels)
                kernels.append(launch.source)
            once = op.once or launch.call.phase is Phase.PREPARE
            draft = StepDraft(
                call=numbers.given_to(launch),
                kernel=sources[text],
                label=f"{label} (prepare)" if once and not op.once else label,
                op=op.index,
                serial=serial,
                once=once,
                variant=op.built.decision.chosen.name,
                work=NO_WORK if once else work,
            )
            work = work if once else NO_WORK
            if once:
                _require_fixed(draft)
            (init if once else run).append(draft)
    looped = [_of_steps(loop, run) for loop in loops]
    order, waves = (list(range(len(run))), []) if caps is None else in_waves(program, run, looped, caps)
    run = [run[i] for i in order]
    table = BufferTable(program, known | numbers.values, init, run, looped, waves)
    if in_place:
        _reuse_memory(program, ops, run, table)
    init_steps, run_steps = (tuple(_step(draft, table) for draft in drafts) for drafts in (init, run))
    return PlannedProgram(
        program=program,
        kernels=tuple(kernels),
        init=init_steps,
        run=run_steps,
        buffers=tuple(table.finish()),
        output_shapes=tuple(
            v.shape for v in sorted((v for v in program.values if v.kind is ValueKind.OUTPUT), key=lambda v: v.index)
        ),
        decisions=tuple((op.index, op.built.decision) for op in ops if not op.is_copy),
        faults=tuple((table.index(value), message) for value, message in program.faults),
        loops=tuple(_plan_loop(program, loop, table) for loop in looped),
        waves=tuple(waves),
    )


class _Numbers:
    """What is in buffers of numbers, as values of the program; equal ones are one."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._value_of: dict[bytes, int] = {}

    @property
    def values(self) -> frozenset[int]:
        return frozenset(self._value_of.values())

    def given_to(self, launch: Launch) -> KernelCall:
        if not launch.numbers:
            return launch.call
        value = self._value_of.get(launch.numbers)
        if value is None:
            value = self._value_of[launch.numbers] = len(self._program.values)
            shape = (len(launch.numbers) // DType.F32.bytes,)
            self._program.values.append(
                Value(kind=ValueKind.LITERAL, dtype=DType.F32, shape=shape, literal=launch.numbers, name="numbers")
            )
        return dataclasses.replace(launch.call, buffers=(*launch.call.buffers, ValueBuffer(value=value)))


def _of_steps(loop: BatchLoop, run: Sequence[StepDraft]) -> BatchLoop:
    steps = [i for i, draft in enumerate(run) if loop.first <= draft.op <= loop.last]
    return dataclasses.replace(loop, first=steps[0], last=steps[-1])


def _plan_loop(program: Program, loop: BatchLoop, table: BufferTable) -> PlanLoop:
    strides = tuple((table.index(value), n * program.values[value].dtype.bytes) for value, n in loop.views.values())
    return PlanLoop(first=loop.first, last=loop.last, images=loop.images, strides_bytes=strides)


def _reuse_memory(program: Program, ops: list[_Op], run: list[StepDraft], table: BufferTable) -> None:
    """Let ops that can write over an operand that ends with them."""
    steps_of: dict[int, list[int]] = {}
    for position, draft in enumerate(run):
        steps_of.setdefault(draft.serial, []).append(position)
    for serial, op in enumerate(ops):
        steps = steps_of.get(serial, [])
        # With several launches a later one might still read what an earlier one overwrote.
        if op.once or len(steps) != 1:
            continue
        step, out = steps[0], op.op.written[0].value
        if not table.is_temporary(out) or table.first_use(out) < step:
            continue
        inputs = {operand.value for operand in op.op.inputs}
        dying = {v for v in inputs if table.is_temporary(v) and table.last_use(v) == step}
        if (reused := reused_input(program, op.op, dying)) is not None:
            table.join(out, reused)


def _require_fixed(draft: StepDraft) -> None:
    call = draft.call
    sizes: list[Size] = [*call.params, call.units, *(s for view in call.tensors for s in view.sizes)]
    for buffer in call.buffers:
        sizes.append(buffer.offset_bytes if isinstance(buffer, ValueBuffer) else buffer.size_bytes)
    if any(isinstance(size, Dim) for size in sizes):
        raise InvariantError(f"{draft.label}: an init step depends on a shape", pass_name=draft.variant)


def _step(draft: StepDraft, table: BufferTable) -> PlanStep:
    call = draft.call
    cost_ns = call.cost_ns if not draft.once or not isinstance(call.cost_ns, Dim) else 0
    return PlanStep(
        kernel=draft.kernel,
        label=draft.label,
        buffers=tuple(table.use(draft, buffer) for buffer in call.buffers),
        params=call.params,
        units=call.units,
        cost_ns=cost_ns,
        op=draft.op,
        work=draft.work,
        tensors=tuple(PlanTensor(view=v, dtype=m.dtype, box=m.box) for v, m in zip(call.tensors, call.kernel.maps, strict=True)),
    )
