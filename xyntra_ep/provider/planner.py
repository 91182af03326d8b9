"""From the graph that ORT showed to the plan that native code carries out: the one road from GetCapability to a claim.

    RawGraph -> options -> fusion.Graph -> analyse -> partition -> per island: trace, passes -> compile -> plan bytes

What fails on the way un-claims the nodes at fault, with the reason, and the rest is partitioned again. A fault of our own is a
failure as any other (`xyntra_ep/guard.py`): it costs the node, where that can be found, else the island.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xyntra_ep import options as options_module
from xyntra_ep import spans
from xyntra_ep.errors import CompileError, ConfigError, InternalError, UnsupportedError
from xyntra_ep.fusion.dump import Dump
from xyntra_ep.fusion.egraph import Algebra
from xyntra_ep.fusion.estimates.cost import DEVICE_DOUBT, Comparison, Estimate, cpu_cannot, time_text
from xyntra_ep.fusion.estimates.ort_cost import Ceilings
from xyntra_ep.fusion.graph import Graph, NodeId
from xyntra_ep.fusion.partition import analyse, partition, unwanted
from xyntra_ep.fusion.passes import Target
from xyntra_ep.fusion.reason import Kind, Reason
from xyntra_ep.fusion.rules import algebra
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.trace import SMALL_CONSTANT_BYTES, TraceError, trace
from xyntra_ep.fusion.trace import Context as TraceContext
from xyntra_ep.guard import guarded
from xyntra_ep.options import AUTO, BackendName, Claim, Options, Tune
from xyntra_ep.provider import registration
from xyntra_ep.provider.first_run import begins_prebuilt, go_on
from xyntra_ep.provider.fusion_graph import graph_of
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.provider.placement import Placement, confirmed, place
from xyntra_ep.provider.plan_report import log_line, made_anew, report
from xyntra_ep.provider.waiting import announced
from xyntra_ep.spans import span
from xyntra_ep.tracea.backends.cpu import Processor
from xyntra_ep.tracea.core_ir.ops import CoreOp, Product, Program, ValueKind
from xyntra_ep.tracea.doctor.policy import Policy
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.device_costs import DeviceCosts
from xyntra_ep.tracea.interface.islands import (
    CompileResult,
    Island,
    StepCost,
    check_plan,
    compile_islands,
    step_costs,
    write_plan,
)
from xyntra_ep.tracea.interface.precision import Agreed, agree
from xyntra_ep.tracea.interface.tuning.model import TuningRequest, request_at_hand, tune_islands
from xyntra_ep.tracea.optimizer.tuning_cache import Verdict
from xyntra_ep.tracea.planning.manifest import LogLevel, TensorEntry
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.tracea.runtime.kernel_files import Hash128
from xyntra_ep.tracea.runtime.plan_store import store_plan

ROUNDS = 6  # of un-claiming what failed; after that whole islands go
SEARCHES = 16  # for the node at which a fault of ours begins; after that whole islands go
SAID_AT_MOST = 1024  # graphs: who is given more than that hears of an old one again
_said: dict[str, None] = {}  # digests of graphs whose line this process has logged, the oldest first
_LEVELS = {"verbose": LogLevel.VERBOSE, "info": LogLevel.INFO, "warning": LogLevel.WARNING, "error": LogLevel.ERROR}


def plan_graph(raw: RawGraph, digest: str) -> bytes:
    """The plan of one graph as native code reads it; stored for the next session where the cache allows it."""
    with spans.heard_by(registration.trace_stage()), span("plan"):
        return _plan_graph(raw, digest)


def _plan_graph(raw: RawGraph, digest: str) -> bytes:
    hash128 = hash128_of(registration.library())
    try:
        options = options_module.parse(raw.options)
        is_ahead = options_module.AHEAD_OF_TIME in raw.options
        if is_ahead and options.backend not in (AUTO, Processor.name):
            raise ConfigError(f"backend={options.backend} cannot be compiled ahead of time", hint="leave it out: processors can")
        options = replace(options, backend=BackendName(Processor.name)) if is_ahead else options
        registration.say_unknown()  # what was set since the import
        placement = place(options, raw.options.get(options_module.DEVICE_ID), hash128)
        rules = algebra(options.rules, strict=options.fp32_strict)
    except ConfigError as error:
        empty = CompileResult(islands=(), kernels=(), failures=(), compiled=0)
        return write_plan(digest, empty, Context(hash128=hash128), refusal=str(error))
    with span("read graph"):
        graph = graph_of(raw, strict=options.fp32_strict, dim_hints=dict(options.dim_hints))
    if is_ahead:
        from xyntra_ep.provider.ahead import compile_ahead

        return compile_ahead(graph, digest, options, rules, hash128)
    with announced(options.cache_dir, _LEVELS[options.log_level.value]):
        work, result = planned(graph, options, rules, placement, hash128)
        if placement.may_move:
            work.placement = _settled(work, result, hash128)
            if work.placement.device is None:
                work, result = planned(graph, options, rules, work.placement, hash128)
    context = work.context
    go_on(result, context, digest)
    level, line = log_line(work)
    if raw.is_subgraph:  # one line per model: the graph around this one says it
        level = LogLevel.VERBOSE
    with span("report"):
        told = report(work, result)
    depends = work.depended(hash128)

    def plan(level: LogLevel, note: str = "") -> bytes:
        shown = f"{line}{note}" if level >= _LEVELS[options.log_level.value] else ""
        return write_plan(
            digest,
            result,
            context,
            may_move=work.placement.may_move,
            log_level=level,
            log_line=shown,
            report=json.dumps({**told, "cache": f"{told['cache']}{note}"}),
            depends=depends,
        )

    # A warning comes once for a graph: a plan that is found again speaks more softly.
    quiet = min(level, LogLevel.INFO)
    again = plan(quiet)
    anew = made_anew(work, digest)
    if work.lasting and options.dump_dir is None and options.rules is None and not context.root.reason:
        store_plan(context.root, digest, again)
    first = _is_first(digest)
    if anew:  # which is so this once
        return plan(LogLevel.WARNING, f", made anew what the cache had, because {anew}")
    return plan(level) if first and level is not quiet else again


def _is_first(digest: str) -> bool:
    """Whether this process has not planned the graph before."""
    if digest in _said:
        return False
    while len(_said) >= SAID_AT_MOST:
        _said.pop(next(iter(_said)), None)
    _said[digest] = None
    return True


def _settled(work: Planner, result: CompileResult, hash128: Hash128) -> Placement:
    """Where a graph stays that was planned for a device which nobody asked for: there, if it pays and trials confirm it."""
    placement, device = work.placement, work.context.device
    assert device is not None
    pays, why = work.weighed(result, placement.costs)
    if pays:
        placement = confirmed(placement, work.options, hash128)
        if placement.device is None:
            return placement
        if placement.costs != work.placement.costs:  # measured meanwhile
            pays, why = work.weighed(result, placement.costs)
    if pays:
        return replace(placement, reason=f"{placement.reason}: {why}")
    return Placement(reason=f"{device.name} would not pay: {why}", lasting=placement.lasting and work.lasting)


def planner_of(
    graph: Graph, options: Options, rules: Algebra, context: Context, placement: Placement, request: TuningRequest
) -> Planner:
    """Of a graph for the device of ``context``."""
    dump = Dump(options.dump_dir) if options.dump_dir is not None else None
    lasting = placement.lasting and request.left_out is None
    agreed = agree(options.precision, context)
    return Planner(graph, options, rules, context, agreed, placement, request, lasting=lasting, dump=dump)


def planned(
    graph: Graph, options: Options, rules: Algebra, placement: Placement, hash128: Hash128
) -> tuple[Planner, CompileResult]:
    """What is ours of a graph, whoever made it, and its kernels."""
    context = Context(
        cache_dir=options.cache_dir,
        dump_dir=options.dump_dir,
        hash128=hash128,
        device=placement.device,
        strict=options.fp32_strict,
        policy=Policy.of(options),
        prebuilt_first=begins_prebuilt(options),
    )
    request = request_at_hand()
    work = planner_of(graph, options, rules, context, placement, request)
    result = work.run()
    if options.tune is Tune.SESSION and not options.deterministic:
        try:
            changed = tune_islands(result, context, request)
        except UnsupportedError as error:
            work.untuned = str(error)
            return work, result
        if changed:  # decided anew, by what was measured
            work = planner_of(graph, options, rules, context.anew, placement, request)
            result = work.run()
    return work, result


def _slower(nodes: Sequence[NodeId], estimate: Estimate) -> Reason:
    return Reason(kind=Kind.COST, text=f"declined: {estimate}", nodes=tuple(nodes))


def _measured(nodes: Sequence[NodeId], verdict: Verdict | None) -> Reason:
    text = "left out to be measured" if verdict is None else f"declined, measured: {verdict.ratio:.2f}x with it"
    return Reason(kind=Kind.COST, text=text, nodes=tuple(nodes))


@dataclass(slots=True)
class Planner:
    graph: Graph
    options: Options
    rules: Algebra
    context: Context
    precision: Agreed
    placement: Placement
    request: TuningRequest
    declined: dict[NodeId, Reason] = field(default_factory=dict)
    depends: set[str] = field(default_factory=set)
    members: list[list[NodeId]] = field(default_factory=list)
    traced: list[TraceContext] = field(default_factory=list)  # of each island's first alternative
    estimates: dict[str, Estimate] = field(default_factory=dict)  # by the island's name, all at one point: for people
    note: str = ""
    faults: list[tuple[InternalError, list[NodeId]]] = field(default_factory=list)  # of ours, and the nodes they cost
    searches: int = 0
    lasting: bool = True  # whether the next session would come to the same plan: not after a disk was full or a compiler hung
    dump: Dump | None = None  # of passes
    given: Mapping[NodeId, Reason] = field(default_factory=dict)  # declined before anybody has looked
    untuned: str = ""  # why kernels were not tuned though that was asked for

    def depended(self, hash128: Hash128, *, small: bool = False) -> list[tuple[str, bytes]]:
        """The constants whose bytes the plan was made from, with their hashes; ``small``: those, too, that are part of a graph's
        digest."""
        names = self.depends | (self.small_constants if small else set())
        read = {name: self.graph.values[name].read for name in sorted(names)}
        return [(name, hash128(constant().tobytes())) for name, constant in read.items() if constant is not None]

    @property
    def small_constants(self) -> set[str]:
        """That the islands' nodes read: plans may depend on their bytes without saying so."""
        read = (name for group in self.members for n in group for name in self.graph.nodes[n].inputs if name)
        values = (self.graph.values[name] for name in read)
        return {value.name for value in values if value.is_constant and value.constant_bytes <= SMALL_CONSTANT_BYTES}

    def run(self) -> CompileResult:
        """Partition and compile until nothing new fails."""
        with span("analyse"):
            self.declined, self.graph = analyse(self.graph, lambda node, error: self.faults.append((error, [node])))
        for node, reason in self.given.items():
            self.declined.setdefault(node, reason)
        result = CompileResult(islands=(), kernels=(), failures=(), compiled=0)
        for attempt in range(ROUNDS):
            with span("partition and build programs"):
                islands = self._islands()
            try:
                with guarded("compiling"), span("compile islands"):
                    result = compile_islands(islands, self.context)
            except (UnsupportedError, OSError) as error:  # no compiler, or no place to work in
                if not isinstance(error, InternalError):
                    self.note = str(error)
                    self.lasting = False
                self._decline_all({n for g in self.members for n in g}, error, Kind.OTHER)
                return CompileResult(islands=(), kernels=(), failures=(), compiled=0)
            last = attempt == ROUNDS - 1  # what is declined now would be planned no more
            if not result.failures and (last or not self._decline_losers(result)):
                break
            for failure in result.failures:
                self.lasting = self.lasting and not isinstance(failure.error, CompileError)
                group = self.members[failure.island]
                if attempt == ROUNDS - 2:
                    nodes = set(group)
                elif failure.op is None or not failure.nodes:
                    nodes = self._where_it_begins(group) if isinstance(failure.error, InternalError) else set(group)
                else:
                    nodes = {NodeId(n) for n in failure.nodes}
                self._decline_all(nodes, failure.error, Kind.VARIANT)
        return result

    def _decline_losers(self, result: CompileResult) -> bool:
        """Estimate each island; when only winners are wanted, give back what ORT does faster: single kernels, else all of it."""
        with span("estimate"):
            return self._declined_losers(result)

    def _declined_losers(self, result: CompileResult) -> bool:
        before = len(self.declined)
        self.estimates = {}
        if self.context.device is not None:  # whose times the estimate does not know
            return False
        for group, traced, entry in zip(self.members, self.traced, result.islands, strict=True):
            assert entry is not None
            planned = entry.alternatives[0].planned
            left_out = self.request.left_out
            verdict = self.context.verdict(planned) if self._only_winners and left_out is None else None
            asked = self.context.island_question(planned) if left_out else None
            if (left_out and asked is not None and asked.key in left_out) or (verdict is not None and verdict.loses):
                self._decline(_measured(group, verdict))
                continue
            try:
                with guarded("estimating"):
                    comparison = self._comparison(group, traced, planned.program, step_costs(entry))
                    self.estimates[entry.name] = comparison.typical()
                    total, slow = comparison.total(), comparison.slow() if self._only_winners else {}
            except InternalError as error:
                self._decline_all(set(group), error, Kind.FAULT)
                continue
            if not self._only_winners or (verdict is not None and verdict.wins):  # measured to be faster than ONNX Runtime
                continue
            for node, estimate in slow.items():
                self._decline(_slower([node], estimate))
            if not slow and total.loses and not cpu_cannot(self.graph, group):
                self._decline(_slower(group, total))
        return len(self.declined) > before

    def weighed(self, result: CompileResult, costs: DeviceCosts) -> tuple[bool, str]:
        """Whether a device that was not asked for is worth the way there and back, by our own kernels on the CPU; and why."""
        there = here = 0.0
        for group, traced, entry in zip(self.members, self.traced, result.islands, strict=False):
            if entry is None:
                continue
            program = entry.alternatives[0].planned.program
            comparison = self._comparison(group, traced, program, step_costs(entry))
            total = comparison.on_device(*self.graph.boundary(group), costs)
            there += total.ours_ns
            here += total.ort_ns * comparison.share_on_cpu(self._cpu_cost_ns(program))
        if not here:
            return False, "nothing of the graph runs there"
        pays = here > DEVICE_DOUBT[costs.is_measured] * self.context.policy.device_doubt * there
        return pays, f"est. {time_text(there)} there, {time_text(here)} on the CPU; {costs}"

    def _cpu_cost_ns(self, program: Program) -> Callable[[CoreOp], float]:
        context = self.context.on(None)
        known = frozenset(i for i, value in enumerate(program.values) if value.kind is ValueKind.CONST)

        def cost_ns(op: CoreOp) -> float:
            try:
                return context.estimate(op, program, known).cost_ns
            except UnsupportedError:  # ORT's then
                return math.inf

        return cost_ns

    def _comparison(self, group: list[NodeId], traced: TraceContext, program: Program, steps: Sequence[StepCost]) -> Comparison:
        caps = self.context.caps
        ceilings = Ceilings(
            gflops=caps.fma_gflops, dram_gbs=caps.dram_gbs, near_bytes=caps.l2_bytes, unit_bits=caps.unit_bits,
            block=16 if caps.lanes >= 16 else 8, vnni=caps.vnni, tiles=caps.amx_int8,
        )  # fmt: skip
        threads = self.context.policy.threads(caps.cores)
        return Comparison(self.graph, group, traced, program, steps, ceilings, caps.cores, threads)

    @property
    def _only_winners(self) -> bool:
        """Whether what loses to ONNX Runtime is given back. Who names a device gets it."""
        return self.options.claim is Claim.PROFITABLE and self.context.device is None

    def _decline_all(self, nodes: set[NodeId], error: Exception, kind: Kind) -> None:
        """Decline ``nodes`` for what was raised; a fault of ours is noted."""
        if isinstance(error, InternalError):
            self.faults.append((error, sorted(nodes)))
        self._decline(Reason.of(error, kind, nodes))

    def _decline(self, reason: Reason) -> None:
        """Decline the nodes that the reason is about; the first reason of a node stays."""
        for n in map(NodeId, reason.nodes):
            self.declined.setdefault(n, reason)

    def _where_it_begins(self, group: list[NodeId]) -> set[NodeId]:
        """The node of ``group`` that a fault of ours comes with: the last of the fewest first ones that have it. All, where
        planning finds none."""
        self.searches += 1
        if self.searches > SEARCHES or not self._is_at_fault(group):
            return set(group)
        right, wrong = 0, len(group)
        while wrong - right > 1:
            middle = (right + wrong) // 2
            right, wrong = (right, middle) if self._is_at_fault(group[:middle]) else (middle, wrong)
        return {group[wrong - 1]}

    def _is_at_fault(self, group: list[NodeId]) -> bool:
        """Whether a fault of ours hinders an island of ``group``."""
        inputs, outputs = self.graph.boundary(group)
        try:
            traced, programs = self._alternatives(group, inputs, outputs)
            check_plan(self._island(group, inputs, outputs, traced[0], programs), self.context)
        except UnsupportedError as error:
            return isinstance(error, InternalError)
        return False

    def _islands(self) -> list[Island]:
        """The islands over what is not declined, each with its alternatives; what cannot be built is declined and retried."""
        while True:
            self.members, self.traced = [], []
            islands: list[Island] = []
            before = len(self.declined)
            for group in partition(self.graph, self.declined):
                self._build(group, islands)
            if len(self.declined) == before:
                return islands

    def _build(self, group: list[NodeId], islands: list[Island]) -> None:
        """Add the island of ``group``, or decline the node that fails, or all of them; the caller then partitions again."""
        inputs, outputs = self.graph.boundary(group)
        if (reason := unwanted(group, outputs, self.options.min_island)) is not None:
            return self._decline(reason)
        try:
            name = f"island{len(islands)}"
            traced, programs = self._alternatives(group, inputs, outputs, name)
            island = self._island(group, inputs, outputs, traced[0], programs, name)
        except TraceError as error:
            return self._decline_all({error.node}, error.cause, Kind.LEGALITY)
        except InternalError as error:
            return self._decline_all(self._where_it_begins(group), error, Kind.FAULT)
        except UnsupportedError as error:
            return self._decline_all(set(group), error, Kind.LEGALITY)
        self.depends |= {name for context in traced for name in context.depends}
        try:
            with guarded("estimating"):
                hopeless = self._hopeless(group, traced[0], programs[0])
        except InternalError as error:
            return self._decline_all(set(group), error, Kind.FAULT)
        if hopeless is not None:
            return self._decline(hopeless)
        self.members.append(group)
        self.traced.append(traced[0])
        islands.append(island)
        return None

    def _alternatives(
        self, group: list[NodeId], inputs: Sequence[str], outputs: Sequence[str], name: str = ""
    ) -> tuple[list[TraceContext], list[Program]]:
        """The programs of an island of ``group``, and what each was traced in; what has a ``name`` is dumped, where that is asked
        for. Raises TraceError where a node cannot be done."""
        programs: list[Program] = []
        contexts: list[TraceContext] = []
        for trust in (True, False):
            try:
                with span("trace", name):
                    traced = trace(self.graph, group, inputs, trust=trust)
            except TraceError as error:
                if programs and not isinstance(error.cause, InternalError):  # without it feeds could be refused
                    error.cause.what = f"needs what the model declares about shapes ({error.what})"
                raise
            with guarded("building programs"):
                title = f"{name}.{len(programs)}" if programs else name
                watch = self.dump.watch(self.graph, group, title) if self.dump is not None and name else None
                program = build_program(traced, inputs, outputs, target=self._target, algebra=self.rules, watch=watch)
            programs.append(program)
            contexts.append(traced)
            if not program.guards:
                break
        return contexts, programs

    @property
    def _target(self) -> Target:
        on_device = self.context.device is not None
        return Target(
            product=self.precision.product,
            halves=self.context.halves,
            in_bytes=self.context.multiplies_bytes_by_blocks,
            counts_in_32_bits=on_device,
            strict=self.options.fp32_strict,
            continues_sums=not on_device and self.precision.product is Product.F32,
        )

    def _island(
        self,
        group: list[NodeId],
        inputs: Sequence[str],
        outputs: Sequence[str],
        traced: TraceContext,
        programs: Sequence[Program],
        name: str = "",
    ) -> Island:
        with guarded("building programs"):
            return Island(
                name=name,
                nodes=tuple(self.graph.nodes[n].ort_id for n in group),
                inputs=tuple(self._entry(name, traced) for name in inputs),
                outputs=tuple(self._entry(name, traced) for name in outputs),
                alternatives=tuple(programs),
            )

    def _hopeless(self, group: list[NodeId], traced: TraceContext, program: Program) -> Reason | None:
        """Why nothing need be compiled to know that ORT is faster: what we would spend without computing anything is too much."""
        if not self._only_winners or cpu_cannot(self.graph, group):
            return None
        least = self._comparison(group, traced, program, ()).total()
        return _slower(group, least) if least.loses else None

    def _entry(self, name: str, traced: TraceContext) -> TensorEntry:
        """The rank is what tracing found: of inner values ORT may not know it."""
        return TensorEntry(name=name, elem_type=self.graph.values[name].elem_type, rank=traced.tensors[name].rank)
