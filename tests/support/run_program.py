"""Run a core-IR program through planning, code generation and a compiler, in this process and without ONNX
Runtime.

program = Program(...)
[y] = run_program(program, [x], [w], AVX512)
check_program(program, [x], [w], AVX512, max_err=1e-6)          # against core_ir.interpreter, in float64

Every buffer is guarded (memory.py), units are carried out in ranges of random size in random order, and
`check_program` does it twice and wants equal bits. INPUT, OUTPUT and CONSTANT end at an unreadable page:
reading one element too many is a segmentation fault here, as it may be in production.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from tests.support.emulated import EMULATORS, cross_compiler, run_emulated
from tests.support.instructions import instructions_beyond
from tests.support.machine import need
from tests.support.memory import Arena, Block, Tensor
from tests.support.simulated import lacking_even_so, simulated
from tests.support.work import Array, Step, Work, output_types, work_of
from xyntra_ep import knobs
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.core_ir.dtypes import to_float64
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.doctor.profile import lacking, this_machine
from xyntra_ep.tracea.doctor.variants import AnyVariant, by_op, cpu_variants
from xyntra_ep.tracea.emitters.cpu import emit
from xyntra_ep.tracea.planning.builder import OpBuilder
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.compilers import find_compiler, target_flags
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa

_general = ContextVar("_general", default=False)


@contextmanager
def general_kernels() -> Iterator[None]:
    """Within it programs are planned with kernels that serve many shapes, as those are that are prebuilt."""
    token = _general.set(True)
    try:
        yield
    finally:
        _general.reset(token)


def plan_for(program: Program, caps: Capabilities, variants: Iterable[AnyVariant] | None = None) -> PlannedProgram:
    """Plan with all variants, or with only ``variants`` for the ops that these compute."""
    table = {**cpu_variants(), **by_op(variants or ())}
    return plan_program(program, caps, builder=OpBuilder(caps, table, emit, general=_general.get()))


def run_program(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array],
    caps: Capabilities,
    *,
    variants: Iterable[AnyVariant] | None = None,
    seed: int = 0,
) -> list[Array]:
    """The outputs of ``program``, computed by generated code."""
    return run_planned(plan_for(program, caps, variants), inputs, constants, caps, seed=seed)


def check_program(
    program: Program,
    inputs: Sequence[Array],
    constants: Sequence[Array],
    caps: Capabilities,
    max_err: float,
    *,
    variants: Iterable[AnyVariant] | None = None,
    seed: int = 0,
) -> list[Array]:
    """Assert that generated code agrees with the interpreter and does not depend on how units are split.

    ``max_err`` bounds max |a - b| / max |b| over the finite elements of each float output; NaN and infinities
    must be where the interpreter has them; integers and bools must be equal.
    """
    planned = plan_for(program, caps, variants)
    sources = [k.distinct() for k in planned.kernels]
    got, again = carry_out([work_of(planned, inputs, constants, s) for s in (seed, seed + 1)], sources, caps)
    wanted = interpret(program, inputs, constants)
    for i, (value, a, b, w) in enumerate(zip(output_types(program), got, again, wanted, strict=True)):
        where = f"output {i}, seed {seed}, kernels {[k.symbol for k in planned.kernels]}"
        assert a.tobytes() == b.tobytes(), f"{where}: the result depends on how units are split"
        compare(to_float64(a, value), w, max_err if value.is_float else 0.0, where)
    return got


def compare(got: Array, wanted: Array, max_err: float, where: str) -> None:
    """See ``check_program``."""
    assert got.shape == wanted.shape, f"{where}: shape {got.shape}, not {wanted.shape}"
    if wanted.dtype.kind != "f":
        wrong = np.argwhere(got != wanted)
        assert not len(wrong), f"{where}: {len(wrong)} elements differ, first at {tuple(wrong[0])}"
        return
    finite = np.isfinite(wanted)
    special = np.argwhere(~finite & ~((got == wanted) | (np.isnan(got) & np.isnan(wanted))))
    assert not len(special), f"{where}: {len(special)} of NaN/Inf are wrong, first at {tuple(special[0])}"
    if not finite.any():
        return
    error = np.where(finite, np.abs(got - np.where(finite, wanted, 0.0)), 0.0)
    scale = max(float(np.abs(wanted[finite]).max()), float(np.finfo(np.float32).tiny))
    worst = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error))), error.shape)
    relative = float(error[worst]) / scale
    assert relative <= max_err, (
        f"{where}: error {relative:.3g} exceeds {max_err:g} at {tuple(map(int, worst))}: {got[worst]!r}, not {wanted[worst]!r}"
    )


def run_planned(
    planned: PlannedProgram,
    inputs: Sequence[Array],
    constants: Sequence[Array],
    caps: Capabilities,
    *,
    seed: int = 0,
) -> list[Array]:
    """Compile and carry out a plan."""
    [results] = carry_out([work_of(planned, inputs, constants, seed)], [k.distinct() for k in planned.kernels], caps)
    return results


def carry_out(works: Sequence[Work], sources: Sequence[KernelSource], caps: Capabilities) -> list[list[Array]]:
    """The outputs of each of ``works``, whose steps call the kernels ``sources``. This is the one place where tests come to
    execute generated code: here, if the machine has what it was made for or what it lacks can be simulated, or emulated. Where
    none of it can be, the test is skipped.
    """
    kernels = _compiled(sources, caps)
    if lacking_even_so(this_machine(), caps):
        return run_emulated(caps.isa, [(work, kernels) for work in works])
    if knobs.current().isa is not None:  # a larger machine would execute anything and say nothing
        for kernel in kernels:
            beyond = instructions_beyond(kernel.path, this_machine())
            assert not beyond, f"{kernel.symbol}, made for {caps.isa}, has what this machine lacks: {beyond}"
    functions = [_loaded(str(kernel.path), kernel.symbol) for kernel in kernels]
    return [_Execution(work, functions).run() for work in works]


@cache
def kernel_cache(isa: Isa, bf16: bool, vnni: bool) -> KernelCache:
    root = open_root(knobs.current().cache_root)
    there = isa is this_machine().isa or isa not in EMULATORS
    compiler = find_compiler(root) if there else cross_compiler(isa)
    return KernelCache(root, compiler, target_flags(isa, bf16=bf16, vnni=vnni))


def _compiled(sources: Sequence[KernelSource], caps: Capabilities) -> list[CompiledKernel]:
    machine = this_machine()
    is_simulated = lacking(machine, caps) != "" and not lacking_even_so(machine, caps)
    if is_simulated:
        sources = [simulated(source) for source in sources]
    else:
        need(caps)
    kernels = []
    for kernel in kernel_cache(caps.isa, caps.avx512_bf16, caps.vnni and not is_simulated).compile_many(sources):
        if isinstance(kernel, CompileError):
            raise AssertionError(f"{kernel}\n{kernel.log}\n{kernel.source}")
        kernels.append(kernel)
    return kernels


_Function = Any  # a ctypes function


@cache
def _loaded(path: str, symbol: str) -> _Function:
    function = getattr(ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL), symbol)
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function.restype = None
    return function


class _Execution:
    """Of one work, in this process."""

    def __init__(self, work: Work, functions: Sequence[_Function]) -> None:
        self.work = work
        self.functions = functions
        self.memory: dict[int, Tensor | Block] = {}
        arena: dict[int, tuple[int, int, int]] = {}
        for number, buffer in enumerate(work.buffers):
            match buffer.kind:
                case BufferKind.ARENA:
                    arena[number] = (buffer.size_bytes, buffer.first, buffer.last)
                case BufferKind.INPUT | BufferKind.CONSTANT | BufferKind.OUTPUT:
                    self.memory[number] = Tensor(buffer.size_bytes)
                case _:
                    self.memory[number] = Block(buffer.size_bytes)
            if buffer.data is not None:
                self.memory[number].data[:] = np.frombuffer(buffer.data, dtype=np.uint8)
        self.arena = Arena(arena)

    def run(self) -> list[Array]:
        for step in self.work.init:
            self._step(step, {})
        fixed = {n: m.data.tobytes() for n, m in self.memory.items() if self._is_fixed(n)}
        for step in self.work.run:
            self.arena.before(step.position, step.again)
            self._step(step, {n: self.arena.address(n) for n in self._arena_buffers(step)})
            problem = self.arena.after(step.position, step.once_more)
            assert not problem, f"{step.label}: {problem}"
        for number, before in fixed.items():
            after = self.memory[number].data.tobytes()
            assert after == before, f"a run step changed {self.work.buffers[number].kind.name} {number}"
        return [output.of(self.memory[output.buffer].data.tobytes()) for output in self.work.outputs]

    def _is_fixed(self, number: int) -> bool:
        return self.work.buffers[number].kind in (BufferKind.INPUT, BufferKind.POOL, BufferKind.LITERAL)

    def _arena_buffers(self, step: Step) -> set[int]:
        return {number for number, _ in step.buffers if self.work.buffers[number].kind is BufferKind.ARENA}

    def _step(self, step: Step, arena: Mapping[int, int]) -> None:
        addresses = [(arena[n] if n in arena else self.memory[n].address) + offset for n, offset in step.buffers]
        buffers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        params = (ctypes.c_int64 * max(len(step.params), 1))(*step.params)
        for begin, end in step.ranges:
            self.functions[step.kernel](buffers, params, begin, end)
        for number, _ in step.buffers:
            if number not in arena and (problem := self.memory[number].problem()):
                kind = self.work.buffers[number].kind.name
                raise AssertionError(f"{step.label}: {kind} buffer {number} {problem}")
