"""Which node runs where, and why.

print(xyntra_ep.explain("model.onnx"))                      # a session is made for the question
print(explain("model.onnx", sizes={"seq": 64}))             # and this dimension fixed in it
print(explain("model.onnx", shapes={"x": (64, 20)}))        # and the shape of this input
print(xyntra_ep.explain(session))                           # of a session that exists
explain(session).reason("node_17")                          # why one node is not ours
explain("model.onnx", passes=True).passes()                 # what each pass of fusion did
"""

from __future__ import annotations

import ctypes
import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.advice import advice, basis
from xyntra_ep.diagnostics.explain_passes import passes_text
from xyntra_ep.diagnostics.explain_text import graph_text
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.diagnostics.sizes import Shape, Sizes
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.fusion.dump import Step
from xyntra_ep.fusion.estimates.cost import Estimate
from xyntra_ep.fusion.reason import Kind, Reason
from xyntra_ep.fusion.trace import CONTROL_FLOW
from xyntra_ep.guard import is_fault
from xyntra_ep.provider import registration
from xyntra_ep.tracea.doctor.decision import Evidence
from xyntra_ep.tracea.runtime.background import refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel of an island: what it computes, by which variant, for which nodes."""

    label: str
    variant: str
    nodes: tuple[int, ...]
    cost_ns: int
    config: Mapping[str, int]
    rejected: tuple[Reason, ...]  # of each other variant
    launches: tuple[Mapping[str, Any], ...] = ()  # on a device: what its compiler reports (`interface.compiled.DeviceKernel`)
    notes: tuple[str, ...] = ()  # what is known of the op that kernels make use of
    alternative: int = 0  # 0: the plan for what the model declares; 1: the one that assumes nothing about sizes
    is_measured: bool = False  # chosen by what tuning has found, not by an estimate
    decided_ns: int = 0  # what it was chosen for: the estimate at usual sizes, less what tuning gained; 0: not recorded
    steps_ns: int = 0  # what the plan's costs of its launches come to at the same sizes
    runner_up: str = ""  # the variant that would have been chosen next; empty where no other admits the op
    runner_up_ns: int = 0
    tiles: Mapping[str, Any] | None = None  # of an attention: what says which tiles of its scores exist (`tile_map.py`)


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandReport:
    name: str
    nodes: tuple[int, ...]
    kernels: tuple[Kernel, ...]
    steps: tuple[tuple[int, ...], ...] = ()  # of each alternative: the position in `kernels` that each run step belongs to
    ours_ns: int = 0  # what a run is estimated to take, on one core; 0: no estimate
    ort_ns: int = 0
    passes: tuple[Step, ...] = ()  # what they did, of the plan for what the model declares; where `dump_dir` was given
    key: str = ""  # what verdicts on it are kept by; in sessions that tuning makes to judge islands, as the next two
    form: str = ""  # the same at all sizes
    sizes: Mapping[str, int] = field(default_factory=dict)  # that symbols usually have

    @property
    def estimate(self) -> str:
        return str(Estimate(ours_ns=self.ours_ns, ort_ns=self.ort_ns)) if self.ours_ns else ""

    @property
    def usual(self) -> list[Kernel]:
        """Those that run when feeds have the sizes that the model declares."""
        return [k for k in self.kernels if k.alternative == 0]

    @property
    def whole_ns(self) -> int:
        """Of a run: what its kernels take, and entering it, where that is known."""
        return self.ours_ns or sum(k.cost_ns for k in self.usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """A node that ONNX Runtime keeps."""

    node: int
    op_type: str
    name: str
    why: Reason

    @property
    def reason(self) -> str:
        return self.why.text


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
    cache; ``compiled``: from the model, ahead of time.
    """

    name: str
    nodes: Mapping[int, tuple[str, str]]  # op type, name
    islands: tuple[IslandReport, ...]
    declined: tuple[Declined, ...]
    stored: bool
    compiled: bool
    failure: str
    cache: str
    options: str
    precision: str  # the option, or why it was not followed
    prebuilt: str = ""  # for what processors kernels were compiled beforehand, and why they are used; empty where others are
    digest: str = ""
    device: str = ""  # where islands run; empty for the CPU
    placement: str = ""  # why there; empty where the options say it
    claim: str = ""  # the option
    goal: str = ""  # the option policy
    policy: Mapping[str, str] = field(default_factory=dict)  # what is chosen by which rule
    measured: bool = False  # whether estimates are by figures of this machine, or by assumed ones
    dims: tuple[str, ...] = ()  # the symbolic ones of its inputs
    assumed: str = ""  # what they are taken for in estimates
    products: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # by other precisions: of all kernels, ns now and then
    inlined: bool = False  # ONNX Runtime inlines functions in it next and shows it again: what stays of it is told there
    faults: tuple[Fault, ...] = ()

    @property
    def claimed(self) -> int:
        return sum(len(i.nodes) for i in self.islands)

    @property
    def control_flow(self) -> tuple[Declined, ...]:
        """Nodes with bodies. They stay with ONNX Runtime, and nothing is lost by that: the bodies are graphs of their own."""
        return tuple(d for d in self.declined if d.reason == CONTROL_FLOW)

    @property
    def total(self) -> int:
        """Nodes whose place is decided here."""
        return self.claimed if self.inlined else len(self.nodes) - len(self.control_flow)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All graphs of a session. ``str`` gives the table, ``raw`` what native code handed over; ``sizes`` are of dimensions that
    were fixed for the question, ``shapes`` of inputs that were, in the model."""

    graphs: tuple[GraphReport, ...]
    raw: Sequence[Mapping[str, Any]]
    sizes: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)

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
                if found == [CONTROL_FLOW]:
                    return f"{op_type} {name} stays with ONNX Runtime, as control flow does; its bodies are graphs of their own"
                return f"{op_type} {name} stays on CPU: {found[0] if found else 'no reason is recorded'}"
        raise ConfigError(f"no node {name!r}", where="explain", hint="optimized models rename nodes; print the explanation")

    def passes(self, name: str | None = None) -> str:
        """What passes did to each island, or to the node called ``name``. Raises ConfigError where nobody looked."""
        text = passes_text(self.graphs, name)
        if not text:
            return self.reason(name) if name is not None else "all nodes stay with ONNX Runtime, so there were no passes"
        if not any(island.passes for graph in self.graphs for island in graph.islands):
            raise ConfigError("the session did not look at its passes", where="explain", hint="give a path, and passes=True")
        return text

    def __str__(self) -> str:
        planned = [g for g in self.graphs if not g.failure]
        if not planned:
            return "\n".join(graph_text(graph, 0) for graph in self.graphs) or "XyntraEP was shown no graph"
        fixed = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        head = [f"as in a session that fixes {fixed} (SessionOptions.add_free_dimension_override_by_name)"] if fixed else []
        shapes = ", ".join(f"{name}: {list(shape)}" for name, shape in self.shapes.items())
        head += [f"as in a session of the model with these shapes of its inputs: {shapes}"] if shapes else []
        head.append("nodes are what ONNX Runtime's optimizations leave of the file's, which `xyntra fuse` counts")
        head += [text] if (text := basis(planned)) else []
        whole_ns = sum(island.whole_ns for graph in planned for island in graph.islands)
        parts = ["\n".join(head), *(graph_text(graph, whole_ns) for graph in self.graphs)]
        if found := list(advice(planned)):
            parts.append("\n".join(["what would help:", *(f"  {text}" for text in found)]))
        return "\n\n".join(parts)


def explain(
    model: Any,
    *,
    options: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    passes: bool = False,
) -> Explanation:
    """The records of a session, or of one made for the model at a path, with provider ``options`` and the ``sizes`` of symbolic
    dimensions, or the ``shapes`` of inputs, fixed. ``passes``: what passes did is looked at, for which the model is planned anew.
    Raises ConfigError for what is no model, and for what is no dimension or input of it."""
    made = isinstance(model, str | Path | bytes)
    by_name: Mapping[str, int] = {}
    in_model: Mapping[str, Shape] = {}
    if sizes or shapes:
        if not made:
            raise ConfigError("a session has its sizes", where="explain", hint="give a path, or leave out the sizes")
        asked = open_session(model)
        by_name, in_model = Sizes.of(asked, sizes or {}, {}, shapes).fixing(asked)
    session = model
    if made:
        with _planned_anew(options or {}, passes) as asked_options:
            session = open_session(model, asked_options, sizes=by_name, shapes=in_model)
    if not hasattr(session, "get_providers"):
        raise ConfigError(
            f"a {type(model).__name__} is no model", where="explain", hint="give a path, a model's bytes or a session"
        )
    if "XyntraEP" not in session.get_providers():
        raise ConfigError("the session has no XyntraEP", where="explain", hint='providers=["XyntraEP", "CPUExecutionProvider"]')
    token = uuid.uuid4().hex
    session.set_ep_dynamic_options({"xyntra.explain_token": token})
    return replace(parse(json.loads(_take(token.encode()))), sizes=by_name, shapes=in_model)


@contextmanager
def _planned_anew(options: Mapping[str, str], passes: bool) -> Iterator[Mapping[str, str]]:
    """``options`` under which a session looks at its ``passes``: it does where they are written down, and no plan is stored."""
    if not passes or "dump_dir" in options:
        yield options
        return
    with tempfile.TemporaryDirectory() as folder:
        yield {**options, "dump_dir": folder}


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
            lost += [_declined(n, nodes[n], Kind.OTHER, why) for n in members]
            continue
        kernels = tuple(_kernel(k) for k in island["kernels"])
        ours_ns, ort_ns = int(island.get("ours_ns", 0)), int(island.get("ort_ns", 0))
        steps = tuple(tuple(map(int, rows)) for rows in island.get("steps", ()))
        name = str(island["name"])
        passes = tuple(Step.of_row(row) for row in island.get("passes", ()))
        islands.append(
            IslandReport(
                name=name,
                nodes=members,
                kernels=kernels,
                steps=steps,
                ours_ns=ours_ns,
                ort_ns=ort_ns,
                passes=passes,
                key=str(island.get("key", "")),
                form=str(island.get("form", "")),
                sizes=island.get("sizes", {}),
            )
        )
    declined = [
        _declined(int(d["node"]), (d["op_type"], d["name"]), Kind(d["kind"]), d["reason"]) for d in plan.get("declined", ())
    ]
    return GraphReport(
        name=str(plan.get("graph", "")),
        nodes=nodes,
        islands=tuple(islands),
        declined=() if plan.get("inlined") else tuple(sorted(declined + lost, key=lambda d: d.node)),
        stored=bool(entry.get("stored")),
        compiled=bool(entry.get("compiled")),
        failure=str(entry.get("failure") or ""),
        cache=str(plan.get("cache", "")),
        prebuilt=_prebuilt(str(plan.get("prebuilt", "")), str(entry.get("digest", ""))),
        options=str(plan.get("options", "")),
        precision=str(plan.get("precision", "")),
        device=str(plan.get("device", "")),
        placement=str(entry.get("moved") or plan.get("placement", "")),
        digest=str(entry.get("digest", "")),
        claim=str(plan.get("claim", "")),
        goal=str((plan.get("policy") or {}).get("goal", "")),
        policy={str(name): str(why) for name, why in (plan.get("policy") or {}).get("reasons", {}).items()},
        measured=bool(plan.get("measured")),
        dims=tuple(map(str, plan.get("dims", ()))),
        assumed=str(plan.get("assumed", "")),
        products={str(name): (int(now), int(then)) for name, (now, then) in (plan.get("products") or {}).items()},
        inlined=bool(plan.get("inlined")),
        faults=tuple(_fault(row) for row in plan.get("faults", ())),
    )


def _prebuilt(text: str, digest: str) -> str:
    """With what the session could not know when it was made."""
    reasons = refusals(digest)
    return f"{text}; {len(reasons)} of these cannot be: {reasons[0]}" if text and reasons else text


def _declined(node: int, called: tuple[str, str], kind: Kind, text: str) -> Declined:
    return Declined(node=node, op_type=called[0], name=called[1], why=Reason(kind=kind, text=text, nodes=(node,)))


def _fault(row: Mapping[str, Any]) -> Fault:
    nodes = tuple(map(int, row["nodes"]))
    return Fault(stage=str(row["stage"]), reason=str(row["reason"]), nodes=nodes, traceback=str(row["traceback"]))


def _kernel(row: Mapping[str, Any]) -> Kernel:
    runner_up, runner_up_ns = row.get("runner_up") or ("", 0)
    return Kernel(
        label=row["label"],
        variant=row["variant"],
        is_measured=row.get("evidence") == str(Evidence.MEASURED),
        nodes=tuple(map(int, row["nodes"])),
        cost_ns=int(row.get("cost_ns", 0)),
        config=row.get("config", {}),
        rejected=tuple(Reason(kind=Kind.VARIANT, text=why, about=name) for name, why in row.get("rejected", ())),
        launches=tuple(row.get("launches", ())),
        notes=tuple(map(str, row.get("notes", ()))),
        alternative=int(row.get("alternative", 0)),
        decided_ns=int(row.get("decided_ns", 0)),
        steps_ns=int(row.get("steps_ns", 0)),
        runner_up=str(runner_up),
        runner_up_ns=int(runner_up_ns),
        tiles=row.get("tiles"),
    )
