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
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.machine import need
from tests.support.memory import Arena, Block, Tensor
from xyntra_ep import knobs
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.core_ir.dims import Size, evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType, to_float64
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Program, ValueKind
from xyntra_ep.tracea.doctor.variants import AnyVariant, by_op, cpu_variants
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram, PlanStep
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.compilers import find_compiler, target_flags
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa

Array = NDArray[Any]


def plan_for(program: Program, caps: Capabilities, variants: Iterable[AnyVariant] | None = None) -> PlannedProgram:
    """Plan with all variants, or with only ``variants`` for the ops that these compute."""
    table = {**cpu_variants(), **by_op(variants or ())}
    return plan_program(program, caps, variants=table)


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
    got = run_planned(planned, inputs, constants, caps, seed=seed)
    again = run_planned(planned, inputs, constants, caps, seed=seed + 1)
    wanted = interpret(program, inputs, constants)
    for i, (value, a, b, w) in enumerate(zip(_outputs(program), got, again, wanted, strict=True)):
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
    return _Execution(planned, inputs, constants, caps, seed).run()


def _outputs(program: Program) -> list[DType]:
    return [v.dtype for v in sorted(_of_kind(program, ValueKind.OUTPUT), key=lambda v: v.index)]


def _of_kind(program: Program, kind: ValueKind) -> list[Any]:
    return [v for v in program.values if v.kind is kind]


@cache
def kernel_cache(isa: Isa, bf16: bool, vnni: bool) -> KernelCache:
    root = open_root(knobs.current().cache_root)
    return KernelCache(root, find_compiler(root), target_flags(isa, bf16=bf16, vnni=vnni))


_Function = Any  # a ctypes function
_loaded: dict[str, _Function] = {}


def _functions(planned: PlannedProgram, caps: Capabilities) -> list[_Function]:
    need(caps)
    cache = kernel_cache(caps.isa, caps.avx512_bf16, caps.avx512_vnni)
    functions = []
    for kernel in cache.compile_many([k.distinct() for k in planned.kernels]):
        if isinstance(kernel, CompileError):
            raise AssertionError(f"{kernel}\n{kernel.log}\n{kernel.source}")
        if str(kernel.path) not in _loaded:
            function = getattr(ctypes.CDLL(str(kernel.path), mode=ctypes.RTLD_LOCAL), kernel.symbol)
            function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
            function.restype = None
            _loaded[str(kernel.path)] = function
        functions.append(_loaded[str(kernel.path)])
    return functions


class _Execution:
    def __init__(
        self,
        planned: PlannedProgram,
        inputs: Sequence[Array],
        constants: Sequence[Array],
        caps: Capabilities,
        seed: int,
    ) -> None:
        self.planned = planned
        self.functions = _functions(planned, caps)
        self.rng = np.random.default_rng(seed)
        self.symbols = _symbols(planned.program, inputs)
        for guard in planned.program.guards:
            assert self.size(guard), f"the program does not apply: guard {guard} is zero"
        for check, message in planned.program.checks:
            assert self.size(check), f"the run fails with INVALID_ARGUMENT: {message}"
        self.memory: dict[int, Tensor | Block] = {}
        arena: dict[int, tuple[int, int, int]] = {}
        for number, buffer in enumerate(planned.buffers):
            match buffer.kind:
                case BufferKind.ARENA:
                    arena[number] = (self.size(buffer.size_bytes), buffer.first, buffer.last)
                case BufferKind.INPUT:
                    self._tensor(number, ValueKind.INPUT, inputs[buffer.index], buffer.index)
                case BufferKind.CONSTANT:
                    self._tensor(number, ValueKind.CONST, constants[buffer.index], buffer.index)
                case BufferKind.OUTPUT:
                    shape, dtype = self.output(buffer.index)
                    self.memory[number] = Tensor(int(np.prod(shape, dtype=np.int64)) * dtype.bytes)
                case BufferKind.LITERAL:
                    self.memory[number] = literal = Block(len(buffer.literal))
                    literal.data[:] = np.frombuffer(buffer.literal, dtype=np.uint8)
                case BufferKind.POOL | BufferKind.INIT:
                    self.memory[number] = Block(self.size(buffer.size_bytes))
        self.arena = Arena(arena)

    def size(self, size: Size) -> int:
        return evaluate(size, self.symbols)

    def output(self, index: int) -> tuple[tuple[int, ...], DType]:
        shape = tuple(self.size(s) for s in self.planned.output_shapes[index])
        return shape, _outputs(self.planned.program)[index]

    def _tensor(self, number: int, kind: ValueKind, data: Array, index: int) -> None:
        for value in _of_kind(self.planned.program, kind):
            if value.index == index:
                shape = tuple(self.size(s) for s in value.shape)
                assert data.shape == shape, f"{kind} {index} has shape {data.shape}, not {shape}"
                assert data.dtype == value.dtype.numpy, f"{kind} {index} is {data.dtype}, not {value.dtype}"
        flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self.memory[number] = tensor = Tensor(flat.size)
        tensor.data[:] = flat

    def run(self) -> list[Array]:
        for step in self.planned.init:
            self._step(step, {})
        fixed = {n: m.data.tobytes() for n, m in self.memory.items() if self._is_fixed(n)}
        for position, step in enumerate(self.planned.run):
            self.arena.before(position)
            self._step(step, {n: self.arena.address(n) for n in self._arena_buffers(step)})
            problem = self.arena.after(position)
            assert not problem, f"{step.label}: {problem}"
        for number, before in fixed.items():
            after = self.memory[number].data.tobytes()
            assert after == before, f"a run step changed {self.planned.buffers[number].kind.name} {number}"
        results: dict[int, Array] = {}
        for number, buffer in enumerate(self.planned.buffers):
            if buffer.kind is BufferKind.OUTPUT:
                shape, dtype = self.output(buffer.index)
                data = self.memory[number].data.copy()
                results[buffer.index] = data.view(dtype.numpy).reshape(shape)
        return [results[i] for i in sorted(results)]

    def _is_fixed(self, number: int) -> bool:
        kind = self.planned.buffers[number].kind
        return kind in (BufferKind.INPUT, BufferKind.POOL, BufferKind.LITERAL)

    def _arena_buffers(self, step: PlanStep) -> set[int]:
        return {b.buffer for b in step.buffers if self.planned.buffers[b.buffer].kind is BufferKind.ARENA}

    def _step(self, step: PlanStep, arena: Mapping[int, int]) -> None:
        addresses = [
            (arena[b.buffer] if b.buffer in arena else self.memory[b.buffer].address) + self.size(b.offset_bytes)
            for b in step.buffers
        ]
        buffers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        params = (ctypes.c_int64 * max(len(step.params), 1))(*(self.size(p) for p in step.params))
        for begin, end in self._ranges(self.size(step.units)):
            self.functions[step.kernel](buffers, params, begin, end)
        for use in step.buffers:
            if use.buffer not in arena and (problem := self.memory[use.buffer].problem()):
                kind = self.planned.buffers[use.buffer].kind.name
                raise AssertionError(f"{step.label}: {kind} buffer {use.buffer} {problem}")

    def _ranges(self, units: int) -> list[tuple[int, int]]:
        """[0, units) in a few ranges of random size, in random order."""
        if units <= 0:
            return []
        cuts = self.rng.integers(0, units + 1, int(self.rng.integers(0, 5)))
        edges = sorted({0, units, *map(int, cuts)})
        ranges = list(pairwise(edges))
        self.rng.shuffle(ranges)
        return [(int(begin), int(end)) for begin, end in ranges]


def _symbols(program: Program, inputs: Sequence[Array]) -> dict[str, int]:
    bound = {
        b.name: int(inputs[b.input].shape[b.index] if b.kind == "dim" else inputs[b.input].reshape(-1)[b.index])
        for b in program.bindings
    }
    return program.with_definitions(bound)
