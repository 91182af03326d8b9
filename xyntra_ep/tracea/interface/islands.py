"""From islands to a plan file: all ops are decided, all kernels compiled in one go, all failures named at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from xyntra_ep.errors import CompileError, InternalError, UnsupportedError, XyntraError
from xyntra_ep.guard import guarded
from xyntra_ep.spans import span
from xyntra_ep.tracea.core_ir.dims import Size, assuming, expected, typical
from xyntra_ep.tracea.core_ir.ops import Attention, Conv, Gemm, Product, Program
from xyntra_ep.tracea.interface.compiled import device_kernel
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.kernel_texts import KernelTexts
from xyntra_ep.tracea.kernels.shared.causal_mask import find_causal_sum
from xyntra_ep.tracea.kernels.shared.column_bounds import Bounds
from xyntra_ep.tracea.planning.literals import with_literals
from xyntra_ep.tracea.planning.manifest import (
    Alternative,
    IslandEntry,
    KernelEntry,
    LogLevel,
    Manifest,
    TensorEntry,
    merge_constants,
    write_island,
    write_manifest,
)
from xyntra_ep.tracea.planning.plan import PlanError, PlannedProgram, PlanStep
from xyntra_ep.tracea.planning.planner import Announce, plan_program
from xyntra_ep.tracea.prebuilt.first import Lacking
from xyntra_ep.tracea.prebuilt.library import PrebuiltKernels
from xyntra_ep.tracea.runtime.cache_root import KERNELS
from xyntra_ep.tracea.runtime.kernel_cache import Compilation, KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Island:
    """A part of a graph to be carried out by us. ``alternatives``: the first whose guards hold is executed."""

    name: str
    nodes: tuple[int, ...]
    inputs: tuple[TensorEntry, ...]
    outputs: tuple[TensorEntry, ...]
    alternatives: tuple[Program, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandFailure:
    """Why an island cannot be had. ``nodes``: the graph nodes at fault (all of the island's when it is not one op)."""

    island: int
    op: int | None
    nodes: tuple[int, ...]
    error: XyntraError

    @property
    def reason(self) -> str:
        return self.error.what


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileResult:
    """``islands[i]`` is None when island i failed; ``failures`` then says where and why. ``successors``: kernels that are to take
    the place of others once somebody has compiled them."""

    islands: tuple[IslandEntry | None, ...]
    kernels: tuple[KernelEntry, ...]
    failures: tuple[IslandFailure, ...]
    compiled: int  # kernels that were not in the cache
    successors: tuple[KernelSource, ...] = ()


def compile_islands(islands: Sequence[Island], context: Context) -> CompileResult:
    """Plan and compile all islands. Raises UnsupportedError when there is no compiler at all."""
    if not islands:
        return CompileResult(islands=(), kernels=(), failures=(), compiled=0)
    failures: list[IslandFailure] = []
    planned: list[list[PlannedProgram]] = []
    with context.kernels.compilation() as compilation:
        distinct: dict[str, KernelSource] = {}  # by the text that plans know them by

        def announce(source: KernelSource) -> None:
            if source.text not in distinct:
                distinct[source.text] = source.distinct()
                compilation.add(distinct[source.text])

        for i, island in enumerate(islands):
            with span("plan kernels", island.name):
                programs, why_not = _plan(i, island, context, announce)
            planned.append(programs)
            failures += why_not
        lost: dict[str, CompiledKernel | CompileError | InternalError] = {}
        for kernel in (k for programs in planned for p in programs for k in p.kernels):
            try:
                with guarded("compiling"):
                    announce(kernel)
            except InternalError as error:
                lost[kernel.text] = error
        with span("wait for compilers"):
            results = lost | dict(zip(distinct, _compile(compilation, list(distinct.values()), context), strict=True))
    for i, programs in enumerate(planned):
        failures += [f for p in programs for f in _kernel_failures(i, p, results)]
    bad = {f.island for f in failures}
    kernels = _KernelList(results, context.successors)
    entries: list[IslandEntry | None] = []
    for i, (island, programs) in enumerate(zip(islands, planned, strict=True)):
        try:
            entries.append(None if i in bad else _entry(island, programs, kernels.number))
        except InternalError as error:
            entries.append(None)
            failures.append(IslandFailure(island=i, op=None, nodes=island.nodes, error=error))
    return CompileResult(
        islands=tuple(entries),
        kernels=tuple(kernels.entries),
        failures=tuple(failures),
        compiled=sum(isinstance(r, CompiledKernel) and not r.cached for r in results.values()),
        successors=tuple(kernels.successors),
    )


def _plan(
    number: int, island: Island, context: Context, announce: Announce | None
) -> tuple[list[PlannedProgram], list[IslandFailure]]:
    """The alternatives that can be planned, and why the others cannot."""
    programs: list[PlannedProgram] = []
    failures: list[IslandFailure] = []
    for program in island.alternatives:
        try:
            if context.device is not None:  # a device's memory is not looked at: it reads the nearest element, and no run fails
                program = dataclasses.replace(program, faults=[])
            with guarded("planning"):
                beside = context.policy.side_by_side
                planned = plan_program(program, context.caps, builder=context.builder, announce=announce, side_by_side=beside)
                programs.append(planned if context.successors is None else with_literals(planned))
        except PlanError as error:
            failures += [
                IslandFailure(island=number, op=f.op, nodes=program.sources[f.op], error=f.error) for f in error.failures
            ]
        except InternalError as error:
            failures.append(IslandFailure(island=number, op=None, nodes=island.nodes, error=error))
    return programs, failures


def check_plan(island: Island, context: Context) -> None:
    """Plan an island, compiling nothing. Raises InternalError where a fault of ours hinders that which is not one op's alone."""
    programs, failures = _plan(0, island, context, announce=None)
    for failure in failures:
        if failure.op is None:
            raise failure.error
    if not failures:
        _entry(island, programs, lambda _: 0)


def _compile(
    compilation: Compilation | PrebuiltKernels | Lacking | KernelTexts, sources: Sequence[KernelSource], context: Context
) -> list[CompiledKernel | CompileError | InternalError]:
    """Each source as a compiled kernel, or why not; one by one where a fault of ours hinders compiling them together."""
    try:
        with guarded("compiling"):
            return [*compilation.finish(sources)]
    except InternalError:
        return [_compile_alone(source, context) for source in sources]


def _compile_alone(source: KernelSource, context: Context) -> CompiledKernel | CompileError | InternalError:
    try:
        with guarded("compiling"):
            return context.kernels.compile_many([source])[0]
    except InternalError as error:
        return error


def write_plan(
    digest: str,
    result: CompileResult,
    context: Context,
    *,
    refusal: str = "",
    may_move: bool = False,
    log_level: LogLevel = LogLevel.VERBOSE,
    log_line: str = "",
    report: str = "",
    depends: Sequence[tuple[str, bytes]] = (),
    bundled: bool = False,
) -> bytes:
    """The plan file of a graph. The context needs the native hash function. ``bundled``: kernels are beside the plan,
    found by their hashes."""
    if context.hash128 is None:
        raise UnsupportedError("plans need the plugin library's hash function", where="write_plan")
    return write_manifest(
        Manifest(
            digest=digest,
            root="" if bundled else str(context.root.path),
            device=context.device_identity,
            refusal=refusal,
            may_move=may_move,
            log_level=log_level,
            log_line=log_line,
            report=report,
            depends=tuple(depends),
            kernels=tuple(dataclasses.replace(k, path="") for k in result.kernels) if bundled else result.kernels,
            islands=tuple(i for i in result.islands if i is not None),
        ),
        context.hash128,
    )


def report_of(
    entry: IslandEntry, kernels: Sequence[KernelEntry], context: Context, ops_ns: Mapping[int, float] | None = None
) -> tuple[list[Mapping[str, Any]], list[list[int]]]:
    """What `explain` prints about an island's kernels, which are among ``kernels``: one row per op of its alternatives, equal
    rows once. And for each alternative the row that each of its run steps belongs to. ``ops_ns``: what ops of the first
    alternative take, by a better estimate than the one that their kernels were chosen by. That one is ``decided_ns`` of a row,
    and ``steps_ns`` what the plan's costs of the op's steps come to at the same sizes; a profile has them at the sizes of a run.
    """
    made = _device_kernels(kernels, context)
    rows: list[Mapping[str, Any]] = []
    known: dict[str, int] = {}
    steps = []
    for number, alternative in enumerate(entry.alternatives):
        program = alternative.planned.program
        launched: dict[int, list[Mapping[str, Any]]] = {}
        for step in alternative.planned.run if made else ():
            launched.setdefault(step.op, []).append(made[alternative.kernels[step.kernel]])
        estimated = ops_ns or {} if number == 0 else {}
        row_of: dict[int, int] = {}
        times = alternative.planned.times_of_op()
        planned_ns = _planned_ns(alternative.planned)
        for op, decision in alternative.planned.decisions:
            row = {
                "label": program.ops[op].label or decision.chosen.name,
                "variant": decision.chosen.name,
                "alternative": number,
                "nodes": list(program.sources[op]),
                "config": dict(decision.config),
                "cost_ns": round(estimated.get(op, decision.cost_ns)),
                "decided_ns": round(decision.cost_ns),
                "steps_ns": round(planned_ns.get(op, 0.0)),
                "runner_up": [decision.runner_up.variant, round(decision.runner_up.cost_ns)] if decision.runner_up else None,
                "evidence": str(decision.evidence),
                "rejected": [list(pair) for pair in decision.rejected],
                "launches": launched.get(op, []),
                "notes": _notes(program, op, times.get(op, 1)),
                "tiles": _tiles(program.ops[op], decision.config),
            }
            row_of[op] = known.setdefault(repr(row), len(rows))
            if row_of[op] == len(rows):
                rows.append(row)
        steps.append([row_of[step.op] for step in alternative.planned.run])
    return rows, steps


def _planned_ns(planned: PlannedProgram) -> dict[int, float]:
    """What the steps of each op cost by the plan, all together, over the sizes that decisions assume. Of a step that has no
    units at some sizes nothing is carried out there."""
    steps: dict[int, list[PlanStep]] = {}
    for step in planned.run:
        steps.setdefault(step.op, []).append(step)
    with assuming(planned.program.assumed):
        return {op: expected(partial(_typical_ns, of_op)) for op, of_op in steps.items()}


def _typical_ns(steps: Sequence[PlanStep]) -> float:
    return sum(typical(step.cost_ns) for step in steps if typical(step.units) > 0)


def _notes(program: Program, number: int, times: Size) -> list[str]:
    """What is known of an op that its kernels make use of, and the rules by which it came about."""
    op, sources = program.ops[number], program.sources[number]
    notes = [] if times == 1 else [f"one of {times} images at a time"]
    if isinstance(op, Attention) and isinstance(depth := op.inputs[0].shape[3], int):
        mask = find_causal_sum(op.score, depth)
        notes += [] if mask is None else [f"causal: {mask}"]
    if isinstance(op, (Gemm, Conv)) and op.product is Product.I32:
        notes.append("products of bytes")
    notes += dict.fromkeys(text for text, node in program.remarks if node in sources)
    rules = dict.fromkeys(rule for rule, nodes in program.rules if nodes and set(nodes) <= set(sources))
    return [*notes, *(f"rule {rule}" for rule in rules)]


def _tiles(op: Any, config: Mapping[str, int]) -> Mapping[str, Any] | None:
    """What says which tiles of an attention's scores exist, at usual sizes: its bounds as lines over its rows."""
    if not isinstance(op, Attention):
        return None
    depth = op.inputs[0].shape[3]
    mask = find_causal_sum(op.score, depth) if isinstance(depth, int) else None
    bounds = Bounds() if mask is None else mask.bounds
    rows, columns = typical(op.inputs[0].shape[2]), typical(op.inputs[1].shape[2])
    ends, begins = ([list(b.line(rows, columns)) for b in side] for side in (bounds.ends, bounds.begins))
    tile = [config.get("rows", 64), config.get("columns", 64)]
    return {"rows": rows, "columns": columns, "tile": tile, "ends": ends, "begins": begins}


def _device_kernels(kernels: Sequence[KernelEntry], context: Context) -> list[Mapping[str, Any]]:
    """Each kernel as its device's compiler reports it; none on the CPU."""
    if context.device is None:
        return []
    gpu, root = context.device.gpu, context.root.path
    made = [device_kernel(root / k.path, k.symbol, k.threads, k.shared_bytes, gpu) for k in kernels]
    return [dataclasses.asdict(kernel) | {"text": str(kernel)} for kernel in made]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """A launch of a run: the program's op that it serves, what the plan takes it to cost on one core, and how often it is."""

    op: int
    cost_ns: Size
    units: Size
    times: Size = 1


def step_costs(entry: IslandEntry) -> tuple[StepCost, ...]:
    """The launches of the alternative that is executed when the model keeps what it declares."""
    planned = entry.alternatives[0].planned
    return tuple(
        StepCost(op=s.op, cost_ns=s.cost_ns, units=s.units, times=planned.times_of_step(i)) for i, s in enumerate(planned.run)
    )


class _KernelList:
    """The kernels of a plan file, each once, numbered as they are first asked for."""

    def __init__(self, results: Mapping[str, CompiledKernel | CompileError | InternalError], cache: KernelCache | None) -> None:
        """``cache``: of the kernels' successors."""
        self._results = results
        self._cache = cache
        self._numbers: dict[tuple[str, tuple[int | None, ...]], int] = {}
        self.entries: list[KernelEntry] = []
        self.successors: list[KernelSource] = []

    def number(self, source: KernelSource) -> int:
        known_by = source.text, source.literals
        if known_by not in self._numbers:
            kernel = self._results[source.text]
            assert isinstance(kernel, CompiledKernel)
            self._numbers[known_by] = len(self.entries)
            path = f"{KERNELS}/{kernel.path.name}"
            entry = KernelEntry(
                path=path,
                symbol=kernel.symbol,
                hash128=kernel.hash128,
                threads=source.threads,
                shared_bytes=source.shared_bytes,
            )
            self.entries.append(self._succeeded(entry, source))
        return self._numbers[known_by]

    def _succeeded(self, entry: KernelEntry, source: KernelSource) -> KernelEntry:
        """With the kernel that is to take its place, which nobody has compiled yet."""
        if self._cache is None or not source.literals:
            return entry
        successor = source.specialised()
        self.successors.append(successor)
        file = f"{KERNELS}/{self._cache.key(successor.text)}{self._cache.compiler.suffix}"
        return dataclasses.replace(entry, successor=file, successor_symbol=successor.symbol)


def _entry(island: Island, programs: Sequence[PlannedProgram], number: Callable[[KernelSource], int]) -> IslandEntry:
    """The island as the plan has it; ``number`` of a kernel in its list. Raises InternalError where it cannot be written."""
    with guarded("writing the plan"):
        entry = IslandEntry(
            name=island.name,
            nodes=island.nodes,
            inputs=island.inputs,
            outputs=island.outputs,
            constants=merge_constants(programs),
            alternatives=tuple(Alternative(planned=p, kernels=tuple(number(k) for k in p.kernels)) for p in programs),
        )
        return dataclasses.replace(entry, data=write_island(entry))


def _kernel_failures(
    island: int, planned: PlannedProgram, results: Mapping[str, CompiledKernel | CompileError | InternalError]
) -> list[IslandFailure]:
    failures = []
    for number, kernel in enumerate(planned.kernels):
        result = results[kernel.text]
        if not isinstance(result, CompiledKernel):
            failures += [
                IslandFailure(island=island, op=op, nodes=planned.program.sources[op], error=result)
                for op in planned.ops_of_kernel(number)
            ]
    return failures
