"""What pays: which nodes are worth claiming when only winners are wanted (option ``claim=profitable``).

ORT's time is its table of efficiencies times the machine's ceilings (`ort_cost`), less what its own optimizer fuses; ours is what
the plan says of its steps, never less than the memory's time, with a fee for each step and for entering the island. Both are
taken at the sizes that people serve (`plausible`), on one core and on all: the expected gain over the sizes decides, where it is
worse. No time is measured, so that the same machine and model give the same claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from xyntra_ep.fusion.estimates.ort_cost import (
    BLOCKS,
    INTEGERS,
    PARALLEL_NS,
    Ceilings,
    Load,
    Sized,
    Work,
    load,
    load_of,
    of_blocks,
    of_integers,
    shared_ns,
    work_of,
)
from xyntra_ep.fusion.estimates.ort_fusions import absorbed
from xyntra_ep.fusion.estimates.plausible import SEQUENCE, assumed_text
from xyntra_ep.fusion.graph import Graph, NodeId
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir.dims import evaluate, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Program
from xyntra_ep.tracea.interface.device_costs import DeviceCosts
from xyntra_ep.tracea.interface.islands import StepCost

WORTH = 0.02  # of ORT's time for an island: a kernel that loses less is not worth parting it
ISLAND_NS = 300.0  # entering an island; measured: one of our own costs what one of ORT's nodes does
STEP_NS = 60.0  # launching a kernel
HEAVY_DOUBT = 1.15  # what the estimate of a product may be off by, and its kernel still be the faster one
DEVICE_DOUBT = {False: 1.5, True: HEAVY_DOUBT}  # the same of a device, by whether anything was measured on it
SLOW = 2.0  # a kernel this much slower than ORT's nodes is given back, if that also pays for parting the island


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Nanoseconds of one run, ours and ORT's, at one point: unknown sizes are those of ``at`` ("": there are none), on
    ``threads`` cores (0: nobody asked). ``gain``: expected over all sizes, geometric mean; None where this point is all that
    counts."""

    ours_ns: float
    ort_ns: float
    heavy: bool = False  # products and convolutions carry it
    at: str = ""
    threads: int = 0
    gain: float | None = None
    ops_ns: Mapping[int, float] = field(default_factory=dict)  # ours, of each op of the program that is carried out in a run

    @property
    def loses(self) -> bool:
        return self.ratio * (HEAVY_DOUBT if self.heavy else 1.0) < 1.0

    @property
    def ratio(self) -> float:
        """ORT's time over ours."""
        return self.gain if self.gain is not None else self.ort_ns / max(self.ours_ns, 1.0)

    def __str__(self) -> str:
        text = f"est. {time_text(self.ours_ns)}, ORT {time_text(self.ort_ns)}"
        if self.at:
            text += f" at {self.at}"
        if self.threads:
            text += f" on {cores_text(self.threads)}"
        return text if self.gain is None or not self.at else f"{text}, {self.gain:.2g}x over the sizes that are usual"


def cores_text(cores: int) -> str:
    return "one core" if cores == 1 else f"{cores} cores"


def time_text(ns: float) -> str:
    """Three digits and a unit.

    >>> time_text(120_400), time_text(8_130), time_text(2.34e6)
    ('120 us', '8.13 us', '2.34 ms')
    """
    value, unit = (ns / 1e6, "ms") if ns >= 1e6 else (ns / 1e3, "us")
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def cpu_cannot(graph: Graph, members: Sequence[NodeId]) -> bool:
    """Whether ORT's CPU provider has no kernel for some of the nodes: it computes nothing in bfloat16, and no LSTM, GRU or RNN
    whose layout has the batch first."""
    if any(graph.nodes[i].op_type in ("LSTM", "GRU", "RNN") and graph.nodes[i].attr("layout", 0) for i in members):
        return True
    names = (name for i in members for name in (*graph.nodes[i].inputs, *graph.nodes[i].outputs) if name)
    return any(graph.values[name].dtype is DType.BF16 for name in names)


class Comparison:
    """Our plan of an island against ORT on the same nodes. ``traced``: the walk that ``program`` was made from."""

    def __init__(
        self,
        graph: Graph,
        members: Sequence[NodeId],
        traced: Context,
        program: Program,
        steps: Sequence[StepCost],
        ceilings: Ceilings,
        cores: int,
        threads: Sequence[int] = (),
    ) -> None:
        """``threads``: of a session, each of which it is to pay on; one and all ``cores`` where that is not given."""
        self._graph = graph
        self._members = members
        self._traced = traced
        self._program = program
        self._steps = steps
        self._ceilings = ceilings
        self._cores = max(1, cores)
        self._threads = sorted({*threads} or {1, self._cores})
        self._table = load(ceilings.unit_bits, tiles=ceilings.tiles)
        self._absorbed = absorbed(graph, members)
        self._at = assumed_text(graph) if program.bindings else ""
        self._heavy = any(program.ops[step.op].is_heavy for step in steps)

    def total(self) -> Estimate:
        """The whole island, on as many cores as it compares worst on, at usual sizes."""
        found = []
        for threads in self._threads:
            points = [self._estimate(point, threads) for point in self._points]
            gain = math.exp(sum(math.log(max(e.ort_ns, 1.0) / max(e.ours_ns, 1.0)) for e in points) / len(points))
            found.append(replace(points[len(points) // 2], gain=gain))
        return min(found, key=lambda e: e.ratio)

    def typical(self) -> Estimate:
        """The whole island on one core, at usual sizes: one point for all islands of a graph."""
        return self._estimate(self._usual, 1)

    def _estimate(self, point: _Point, threads: int) -> Estimate:
        theirs = sum(work.on(threads) + self._table.node_ns for work in point.ort.values())
        ops_ns = {op: time.on(threads) for op, time in point.ours.items()}
        mine = ISLAND_NS + sum(ops_ns.values())
        return Estimate(ours_ns=mine, ort_ns=theirs, heavy=self._heavy, at=self._at, threads=threads, ops_ns=ops_ns)

    def on_device(self, inputs: Sequence[str], outputs: Sequence[str], costs: DeviceCosts) -> Estimate:
        """The island on a device, its tensors on the host, against ORT on all cores. All the sizes together, because a device is
        chosen for what takes long."""
        ours = ort = 0.0
        for point in self._points:
            at = point.symbols
            there, back = ([t.bytes for n in names if (t := self._sized(n, at)) is not None] for names in (inputs, outputs))
            ours += costs.total_ns(there, back, sum(max(0, evaluate(step.cost_ns, at)) for step in self._steps))
            ort += self._ort_on_all(point)
        return Estimate(ours_ns=ours, ort_ns=ort)

    def share_on_cpu(self, cost_ns: Callable[[CoreOp], float]) -> float:
        """Of ORT's time, what our own kernels on the processor would take of it, at most all: what they would lose is ORT's.
        ``cost_ns``: the estimate of an op's kernel there, on one core, at usual sizes."""
        ops = {step.op for step in self._steps}
        ours = ISLAND_NS + sum(shared_ns(cost_ns(self._program.ops[op]), self._cores) + STEP_NS for op in ops)
        return min(1.0, ours / max(1.0, self._ort_on_all(self._usual)))

    def _ort_on_all(self, point: _Point) -> float:
        return sum(work.on(self._cores) + self._table.node_ns for work in point.ort.values())

    def slow(self) -> dict[NodeId, Estimate]:
        """Nodes whose kernel loses so much that it is better to part the island and let ORT have them."""
        found: dict[NodeId, Estimate] = {}
        for point in self._points:
            ort, ours = point.ort, point.ours
            all_of = {threads: self._by_node(ours, threads) for threads in self._threads}
            for op, mine in ours.items():
                nodes = [NodeId(n) for n in self._program.sources[op]]
                # Elementwise kernels stand between others: ORT's price for their nodes says little without those.
                if cpu_cannot(self._graph, nodes) or not self._program.ops[op].is_one_node:
                    continue
                parting = (
                    WORTH * sum(work.ns for work in ort.values())
                    + 2 * ISLAND_NS
                    + 2 * self._memory_ns(self._program.ops[op], point.symbols, self._ceilings.near_bytes)
                )
                for threads in self._threads:
                    # Of a node that several kernels compute, each stands for as much as it has of our time.
                    share = {n: mine.on(threads) / all_of[threads][n] for n in nodes}
                    theirs = sum((ort[n].on(threads) + self._table.node_ns) * share[n] for n in nodes if n in ort)
                    if mine.on(threads) > SLOW * theirs + parting:
                        lost = Estimate(ours_ns=mine.on(threads), ort_ns=theirs, at=self._at, threads=threads)
                        found |= dict.fromkeys(nodes, lost)
        return found

    def _by_node(self, ours: Mapping[int, _OpTime], threads: int) -> dict[NodeId, float]:
        """What all kernels take that a node is computed by."""
        found: dict[NodeId, float] = {}
        for op, time in ours.items():
            for n in map(NodeId, self._program.sources[op]):
                found[n] = found.get(n, 0.0) + max(time.on(threads), 1.0)
        return found

    @cached_property
    def _points(self) -> list[_Point]:
        """At small, usual and large sizes; once where all are known."""
        ranges = {b.name: b.plausible or SEQUENCE for b in self._program.bindings}
        sizes = [{name: r[k] for name, r in ranges.items()} for k in range(3)] if ranges else [{}]
        points = [self._program.with_definitions(symbols) for symbols in sizes]
        return [_Point(symbols, self._ort(symbols), self._ours(symbols)) for symbols in points]

    @property
    def _usual(self) -> _Point:
        return self._points[len(self._points) // 2]

    def _ort(self, symbols: Mapping[str, int]) -> dict[NodeId, Work]:
        """Work of each node on one core; what is fused away is left out."""
        found: dict[NodeId, Work] = {}
        for i in self._members:
            fused = self._absorbed.get(i)
            if fused == "":
                continue
            node = self._graph.nodes[i]
            inputs = [self._sized(name, symbols) for name in node.inputs]
            outputs = [t for t in (self._sized(name, symbols) for name in node.outputs) if t is not None]
            load_ = load_of(node, inputs, outputs, self._table)
            if load_ is not None and fused == INTEGERS:
                load_ = of_integers(load_, self._table)
            elif load_ is not None and fused is not None and fused.endswith(BLOCKS):
                load_ = of_blocks(load_, fused.removesuffix(BLOCKS), outputs[0], self._table)
            elif load_ is not None and fused is not None:
                load_ = Load(row=fused, units=load_.units, bytes=load_.bytes)
            found[i] = Work(ns=0.0) if load_ is None else work_of(load_, self._table, self._ceilings)
        return found

    def _sized(self, name: str, symbols: Mapping[str, int]) -> Sized | None:
        t = self._traced.tensors.get(name)
        if t is None:
            return None
        shape = tuple(max(0, evaluate(s, symbols)) for s in t.shape)
        return Sized(shape=shape, dtype=t.dtype, is_const=self._graph.values[name].is_constant)

    def _ours(self, symbols: Mapping[str, int]) -> dict[int, _OpTime]:
        """Of each op that is carried out when the island runs."""
        found: dict[int, _OpTime] = {}
        for step in self._steps:
            time = found.setdefault(step.op, _OpTime())
            if evaluate(step.units, symbols) <= 0:  # of several launches the one for other sizes: nothing is called
                continue
            times = max(0, evaluate(step.times, symbols))
            time.launches += times
            time.add(times * max(0, evaluate(step.cost_ns, symbols)), max(1, times * evaluate(step.units, symbols)))
            time.floor_ns = times * self._memory_ns(self._program.ops[step.op], symbols, self._ceilings.near_bytes)
        return found

    def _memory_ns(self, op: CoreOp, symbols: Mapping[str, int], near_bytes: int) -> float:
        """Moving each operand once, when they are too large to be near."""
        moved: float = sum(_bytes(o, symbols) for o in op.written)
        points = op.points()
        most = math.inf if points is None else evaluate(points, symbols)  # a gather from a large table reads few of it
        moved += sum(min(_bytes(o, symbols), most * o.dtype.bytes) for o in op.inputs)
        return moved / self._ceilings.dram_gbs if moved > near_bytes else 0.0


@dataclass(frozen=True, slots=True)
class _Point:
    """An island at certain sizes: what its nodes cost ORT on one core, and what each op costs us."""

    symbols: Mapping[str, int]
    ort: Mapping[NodeId, Work]
    ours: Mapping[int, _OpTime]


@dataclass(slots=True)
class _OpTime:
    """Of the launches of one op: work on one core, and how finely each may be shared out."""

    launches: int = 0
    floor_ns: float = 0.0
    _work: list[tuple[float, int]] | None = None

    def add(self, ns: float, units: int) -> None:
        self._work = [*(self._work or []), (ns, units)]

    def on(self, threads: int) -> float:
        """With ``threads`` threads. The memory is taken to serve each of them as fast as one, as it is for ORT."""
        work = sum(ns / min(threads, units) if ns >= PARALLEL_NS else ns for ns, units in self._work or [])
        return max(work, shared_ns(self.floor_ns, threads)) + STEP_NS * self.launches


def _bytes(operand: Operand, symbols: Mapping[str, int]) -> int:
    """Each element once: along a stride of 0 nothing new is read."""
    extents = [n for n, stride in zip(operand.shape, operand.strides, strict=True) if stride != 0]
    return max(0, evaluate(product(extents), symbols)) * operand.dtype.bytes
