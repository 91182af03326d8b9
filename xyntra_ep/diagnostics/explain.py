"""Which node runs where, and why.

print(xyntra_ep.explain("model.onnx"))                      # a session is made for the question
print(explain("model.onnx", sizes={"seq": 64}))             # and this dimension fixed in it
print(xyntra_ep.explain(session))                           # of a session that exists
explain(session).reason("node_17")                          # why one node is not ours
"""

from __future__ import annotations

import ctypes
import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.advice import advice, basis
from xyntra_ep.diagnostics.feeds import Sizes
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.fusion.cost import Estimate
from xyntra_ep.guard import is_fault
from xyntra_ep.provider import registration

_WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel of an island: what it computes, by which variant, for which nodes."""

    label: str
    variant: str
    nodes: tuple[int, ...]
    cost_ns: int
    config: Mapping[str, int]
    rejected: tuple[tuple[str, str], ...]
    launches: tuple[Mapping[str, Any], ...] = ()  # on a device: what its compiler reports (`interface.compiled.DeviceKernel`)
    notes: tuple[str, ...] = ()  # what is known of the op that kernels make use of
    alternative: int = 0  # 0: the plan for what the model declares; 1: the one that assumes nothing about sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandReport:
    name: str
    nodes: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    steps: tuple[tuple[int, ...], ...] = ()  # of each alternative: the position in `kernels` that each run step belongs to
    ours_ns: int = 0  # what a run is estimated to take, on one core; 0: no estimate
    ort_ns: int = 0

    @property
    def estimate(self) -> str:
        return str(Estimate(ours_ns=self.ours_ns, ort_ns=self.ort_ns)) if self.ours_ns else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """A node that ONNX Runtime keeps."""

    node: int
    op_type: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of our own, the stage of planning that met it, and the nodes that it cost."""

    stage: str
    reason: str
    nodes: tuple[int, ...]
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """One graph that ONNX Runtime showed: the model's, or that of a control-flow body. ``stored``: the plan came from the
    cache.
    """

    name: str
    nodes: Mapping[int, tuple[str, str]]  # op type, name
    islands: tuple[IslandReport, ...]
    declined: tuple[Declined, ...]
    stored: bool
    failure: str
    cache: str
    options: str
    precision: str  # the option, or why it was not followed
    digest: str = ""
    device: str = ""  # where islands run; empty for the CPU
    placement: str = ""  # why there; empty where the options say it
    claim: str = ""  # the option
    measured: bool = False  # whether estimates are by figures of this machine, or by assumed ones
    dims: tuple[str, ...] = ()  # the symbolic ones of its inputs
    assumed: str = ""  # what they are taken for in estimates
    products: tuple[str, ...] = ()  # precisions that are faster here than the one the session has
    inlined: bool = False  # ONNX Runtime inlines functions in it next and shows it again: what stays of it is told there
    faults: tuple[Fault, ...] = ()

    @property
    def claimed(self) -> int:
        return sum(len(i.nodes) for i in self.islands)

    @property
    def total(self) -> int:
        """Nodes whose place is decided here."""
        return self.claimed if self.inlined else len(self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All graphs of a session. ``str`` gives the table, ``raw`` what native code handed over; ``sizes`` are of dimensions that
    were fixed for the question."""

    graphs: tuple[GraphReport, ...]
    raw: Sequence[Mapping[str, Any]]
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def claimed(self) -> int:
        return sum(g.claimed for g in self.graphs)

    @property
    def total(self) -> int:
        return sum(g.total for g in self.graphs)

    @property
    def faults(self) -> tuple[str, ...]:
        """What faults of ours were met, each once: XyntraEP is to be mended, the model is not."""
        failures = [g.failure for g in self.graphs if is_fault(g.failure)]
        return tuple(dict.fromkeys([*failures, *(fault.reason for g in self.graphs for fault in g.faults)]))

    def reason(self, name: str) -> str:
        """Why the node called ``name`` runs where it does."""
        for graph in self.graphs:
            for number, (op_type, node_name) in graph.nodes.items():
                if node_name != name:
                    continue
                for island in graph.islands:
                    if number in island.nodes:
                        variants = [k.variant for k in island.kernels if number in k.nodes]
                        return f"{op_type} {name} runs on XyntraEP in {island.name}" + (
                            f" by {', '.join(variants)}" if variants else ", folded away"
                        )
                found = [d.reason for d in graph.declined if d.node == number]
                return f"{op_type} {name} stays on CPU: {found[0] if found else 'no reason is recorded'}"
        raise ConfigError(f"no node {name!r}", where="explain", hint="optimized models rename nodes; print the explanation")

    def __str__(self) -> str:
        planned = [g for g in self.graphs if not g.failure]
        if not planned:
            return "\n".join(map(_graph_text, self.graphs)) or "XyntraEP was shown no graph"
        fixed = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        head = [f"as in a session that fixes {fixed} (SessionOptions.add_free_dimension_override_by_name)"] if fixed else []
        head.append("nodes are what ONNX Runtime's optimizations leave of the file's, which `xyntra fuse` counts")
        head += [text] if (text := basis(planned)) else []
        parts = ["\n".join(head), *map(_graph_text, self.graphs)]
        if found := list(advice(planned)):
            parts.append("\n".join(["what would help:", *(f"  {text}" for text in found)]))
        return "\n\n".join(parts)


def explain(model: Any, *, options: Mapping[str, str] | None = None, sizes: Mapping[str, int] | None = None) -> Explanation:
    """The records of a session, or of one made for the model at a path, with provider ``options`` and the ``sizes`` of symbolic
    dimensions fixed. Raises ConfigError for what is no model, and for what is no dimension of its inputs."""
    made = isinstance(model, str | Path | bytes)
    if sizes:
        if not made:
            raise ConfigError("a session has its sizes", where="explain", hint="give a path, or leave out the sizes")
        Sizes.of(open_session(model), sizes, {})
    session = open_session(model, options or {}, sizes=sizes) if made else model
    if not hasattr(session, "get_providers"):
        raise ConfigError(
            f"a {type(model).__name__} is no model", where="explain", hint="give a path, a model's bytes or a session"
        )
    if "XyntraEP" not in session.get_providers():
        raise ConfigError("the session has no XyntraEP", where="explain", hint='providers=["XyntraEP", "CPUExecutionProvider"]')
    token = uuid.uuid4().hex
    session.set_ep_dynamic_options({"xyntra.explain_token": token})
    return replace(parse(json.loads(_take(token.encode()))), sizes=dict(sizes or {}))


def _take(token: bytes) -> bytes:
    library = registration.library()
    size = library.xyntra_take_report(token, None, 0)
    if not size:
        raise XyntraError("the session handed over no report", where="explain")
    buffer = ctypes.create_string_buffer(size)
    library.xyntra_take_report(token, buffer, size)
    return buffer.raw[:size]


def parse(raw: Sequence[Mapping[str, Any]]) -> Explanation:
    """Native code's records as data. A graph without a plan has its failure only."""
    return Explanation(graphs=tuple(_graph(entry) for entry in raw), raw=raw)


def _graph(entry: Mapping[str, Any]) -> GraphReport:
    plan = entry.get("plan") or {}
    unclaimed: Mapping[str, str] = entry.get("unclaimed") or {}
    nodes = {int(n["id"]): (str(n["op_type"]), str(n["name"])) for n in plan.get("nodes", ())}
    islands, lost = [], []
    for island in plan.get("islands", ()):
        members = tuple(map(int, island["nodes"]))
        if (why := unclaimed.get(island["name"])) is not None:  # planned, but it could not be loaded
            lost += [Declined(node=n, op_type=nodes[n][0], name=nodes[n][1], reason=why) for n in members]
            continue
        kernels = tuple(_kernel(k) for k in island["kernels"])
        ours_ns, ort_ns = int(island.get("ours_ns", 0)), int(island.get("ort_ns", 0))
        steps = tuple(tuple(map(int, rows)) for rows in island.get("steps", ()))
        name = str(island["name"])
        islands.append(IslandReport(name=name, nodes=members, kernels=kernels, steps=steps, ours_ns=ours_ns, ort_ns=ort_ns))
    declined = [
        Declined(node=int(d["node"]), op_type=d["op_type"], name=d["name"], reason=d["reason"]) for d in plan.get("declined", ())
    ]
    return GraphReport(
        name=str(plan.get("graph", "")),
        nodes=nodes,
        islands=tuple(islands),
        declined=() if plan.get("inlined") else tuple(sorted(declined + lost, key=lambda d: d.node)),
        stored=bool(entry.get("stored")),
        failure=str(entry.get("failure") or ""),
        cache=str(plan.get("cache", "")),
        options=str(plan.get("options", "")),
        precision=str(plan.get("precision", "")),
        device=str(plan.get("device", "")),
        placement=str(entry.get("moved") or plan.get("placement", "")),
        digest=str(entry.get("digest", "")),
        claim=str(plan.get("claim", "")),
        measured=bool(plan.get("measured")),
        dims=tuple(map(str, plan.get("dims", ()))),
        assumed=str(plan.get("assumed", "")),
        products=tuple(map(str, plan.get("products", ()))),
        inlined=bool(plan.get("inlined")),
        faults=tuple(_fault(row) for row in plan.get("faults", ())),
    )


def _fault(row: Mapping[str, Any]) -> Fault:
    nodes = tuple(map(int, row["nodes"]))
    return Fault(stage=str(row["stage"]), reason=str(row["reason"]), nodes=nodes, traceback=str(row["traceback"]))


def _kernel(row: Mapping[str, Any]) -> Kernel:
    return Kernel(
        label=row["label"],
        variant=row["variant"],
        nodes=tuple(map(int, row["nodes"])),
        cost_ns=int(row.get("cost_ns", 0)),
        config=row.get("config", {}),
        rejected=tuple((name, why) for name, why in row.get("rejected", ())),
        launches=tuple(row.get("launches", ())),
        notes=tuple(map(str, row.get("notes", ()))),
        alternative=int(row.get("alternative", 0)),
    )


def _graph_text(graph: GraphReport) -> str:
    if graph.failure:
        return f"XyntraEP takes nothing: {graph.failure}"
    if graph.inlined and not graph.claimed:
        return f"{graph.name or 'graph'}: it has functions, which ONNX Runtime inlines next"
    lines = [
        f"{graph.name or 'graph'}: {graph.claimed} of {graph.total} nodes on XyntraEP in {len(graph.islands)} islands"
        f" ({'stored plan' if graph.stored else 'planned now'})",
    ]
    if graph.cache:
        lines.append(f"  cache: {graph.cache}")
    if graph.options:
        lines.append(f"  options: {graph.options}")
    if graph.device:
        lines.append(f"  device: {graph.device}")
    if graph.placement:
        lines.append(f"  backend=auto: {'the device' if graph.device else 'the CPU'}, because {graph.placement}")
    if graph.precision not in ("", "fp32"):
        lines.append(f"  precision: {graph.precision}")
    for island in graph.islands:
        kinds = Counter(graph.nodes[n][0] for n in island.nodes)
        usual = [k for k in island.kernels if k.alternative == 0]
        whole_ns = island.ours_ns or sum(k.cost_ns for k in usual)  # entering the island is in the first of them
        estimate = f" ({island.estimate})" if island.estimate else ""
        lines.append(f"  {island.name}: {len(island.nodes)} nodes, {len(usual)} kernels{estimate}: {_counted(kinds)}")
        for kernel in usual:
            ops = _counted(Counter(graph.nodes[n][0] for n in kernel.nodes if n in graph.nodes))
            share = kernel.cost_ns / whole_ns if whole_ns else 0
            lines.append(f"    {kernel.label:<24} {kernel.variant:<24} {kernel.cost_ns / 1000:>9.1f} us {share:>4.0%}  {ops}")
            lines += [f"      {note}" for note in kernel.notes]
            lines += [f"      {launch['text']}" for launch in kernel.launches if launch["report"]]
        if len(usual) < len(island.kernels):
            lines.append(f"    {len(island.kernels) - len(usual)} more for feeds whose sizes differ from what the model declares")
    if graph.declined:
        lines.append(f"  on CPU, {len(graph.declined)} nodes:")
        by_reason: dict[tuple[str, str], list[str]] = {}
        for d in graph.declined:
            by_reason.setdefault((d.op_type, d.reason), []).append(d.name)
        for (op_type, reason), names in by_reason.items():
            shown = ", ".join(n for n in names[:3] if n)
            more = f" ({shown}{', ...' if len(names) > 3 else ''})" if shown else ""
            lines.append(f"    {len(names):>4} {op_type}: {reason}{more}"[: 2 * _WIDTH])
    return "\n".join(lines)


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(kind if n == 1 else f"{kind} x{n}" for kind, n in kinds.most_common(6))
