"""What a plan tells people: the line in ONNX Runtime's log, and the report that `xyntra explain` shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from xyntra_ep import options_file
from xyntra_ep.errors import InternalError, UnsupportedError, did_you_mean
from xyntra_ep.fusion.estimates.plausible import assumed_text
from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.fusion.partition import awaits_inlining, reasons_by_operator
from xyntra_ep.fusion.reason import Reason
from xyntra_ep.fusion.trace import CONTROL_FLOW
from xyntra_ep.guard import guarded
from xyntra_ep.options import Precision
from xyntra_ep.provider.first_run import unlike_asked
from xyntra_ep.provider.other_precision import times
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.interface.islands import CompileResult, report_of
from xyntra_ep.tracea.interface.precision import PRODUCTS
from xyntra_ep.tracea.planning.manifest import LogLevel
from xyntra_ep.tracea.runtime.plan_store import distrusted
from xyntra_ep.wording import counted

if TYPE_CHECKING:
    from xyntra_ep.provider.planner import Planner

_PRECISION_OF = {DType.BF16: Precision.BF16, DType.F16: Precision.FP16}


def log_line(work: Planner) -> tuple[LogLevel, str]:
    lost = {n: why for n, why in work.declined.items() if why.text != CONTROL_FLOW}
    total = len(work.graph.nodes) - len(work.declined) + len(lost)
    claimed = total - len(lost)
    text = f"XyntraEP: {claimed} of {counted(total, 'node')} in {counted(len(work.members) if claimed else 0, 'island')}"
    if work.context.device is not None:
        text += f" on {work.context.device.name}"
    if len(lost) < len(work.declined):
        text += f", {_bodies(work)}"
    unread = options_file.unread_file()
    unlike_asked = ([unread] if unread else []) + (_unlike_asked(work) if claimed or len(lost) < len(work.declined) else [])
    text += "".join(f", {what}" for what in unlike_asked)
    if not lost:
        return LogLevel.WARNING if unlike_asked else LogLevel.INFO, text
    if awaits_inlining(work.graph):
        return LogLevel.INFO, f"XyntraEP: {total} nodes, some of them functions that are inlined next"
    if work.note:  # the same for all that could have been had
        return LogLevel.WARNING, f"{text}; {len(lost)} on CPU: {work.note}"
    kinds = list(reasons_by_operator(work.graph, lost))
    shown = ", ".join(f"{kind} {n}" for kind, n in kinds[:6]) + (", ..." if len(kinds) > 6 else "")
    text += f"; {len(lost)} on CPU: {shown}"
    return LogLevel.WARNING, text


def _bodies(work: Planner) -> str:
    """ONNX Runtime shows them as graphs of their own, which log nothing, so that there is one line for a model."""
    kinds = dict.fromkeys(work.graph.nodes[n].op_type for n, why in _declined(work) if why.text == CONTROL_FLOW)
    return f"and apart from these the bodies of {' and '.join(kinds)} (`xyntra explain` tells of them)"


def _unlike_asked(work: Planner) -> list[str]:
    """What was asked for and could not be had, though there are kernels."""
    what = [work.precision.shortfall, *_unused_hints(work), unlike_asked(work.options, work.context)]
    if work.context.root.reason:
        what.append(f"the next process compiles all again, because the cache {work.context.root.reason}")
    what += [work.untuned, work.context.tuning_problem]
    what.append((work.dump.problem if work.dump is not None else "") or work.context.kernels.dump_problem)
    return [text for text in what if text]


def _unused_hints(work: Planner) -> list[str]:
    if work.graph.is_subgraph:
        return []
    dims = _dims(work)
    unused = [name for name in work.graph.dim_hints if name not in dims]
    hints = {name: did_you_mean(name, dims) if dims else "all of them are fixed, or have no name" for name in unused}
    return [f"dim_hints: the model's inputs have no dimension {name!r}. {hint}" for name, hint in hints.items()]


def made_anew(work: Planner, digest: str) -> str:
    """Why what the cache had of this graph is not used, where somebody else can have made it."""
    found = distrusted(work.context.root, digest)
    claimed = len(work.declined) < len(work.graph.nodes)
    return found or (work.context.kernels.distrusted if claimed else "")


def report(work: Planner, result: CompileResult) -> Mapping[str, Any]:
    """What `explain` shows; node numbers are positions in ``nodes``."""
    islands = []
    for group, entry in zip(work.members, result.islands, strict=False):
        if entry is None:
            continue
        estimate = work.estimates.get(entry.name)
        try:
            with guarded("reporting"):
                kernels, steps = report_of(entry, result.kernels, work.context, estimate.ops_ns if estimate is not None else None)
        except InternalError as error:  # the island is ours all the same
            work.faults.append((error, group))
            kernels, steps = [], []
        row: dict[str, Any] = {"name": entry.name, "nodes": list(group), "kernels": kernels, "steps": steps}
        if (
            work.request.left_out is not None
            and (asked := work.context.island_question(entry.alternatives[0].planned)) is not None
        ):
            row |= {"key": asked.key, "form": asked.form, "sizes": dict(asked.sizes)}
        if estimate is not None:
            row |= {"ours_ns": round(estimate.ours_ns), "ort_ns": round(estimate.ort_ns)}
        if work.dump is not None:
            row["passes"] = [asdict(step) for step in work.dump.steps[entry.name]]
        islands.append(row)
    return {
        "graph": work.graph.name,
        "nodes": [{"id": n.id, "op_type": n.op_type, "domain": n.domain, "name": n.name} for n in work.graph.nodes],
        "islands": islands,
        "declined": [
            {
                "node": n,
                "op_type": work.graph.nodes[n].op_type,
                "name": work.graph.nodes[n].name,
                "reason": reason.text,
                "kind": reason.kind,
            }
            for n, reason in _declined(work)
        ],
        "faults": [
            {"stage": error.where, "reason": error.what, "nodes": list(nodes), "traceback": error.details}
            for error, nodes in work.faults
        ],
        "cache": work.context.root.reason,
        "prebuilt": _prebuilt(work),
        "precision": work.precision.shortfall or str(work.options.precision),
        "device": work.context.device_identity,
        "placement": work.placement.reason,
        "options": options_file.unread_file(),
        "inlined": awaits_inlining(work.graph),
        "claim": str(work.options.claim),
        "policy": {"goal": str(work.context.policy.goal), "reasons": dict(work.context.policy.reasons())},
        "measured": work.context.has_ceilings,
        "dims": _dims(work),
        "assumed": "" if work.graph.is_subgraph else assumed_text(work.graph),
        "products": _products(work, result),
    }


def _prebuilt(work: Planner) -> str:
    """For what processors kernels were compiled beforehand, and why these are used; nothing where others are."""
    library = work.context.prebuilt
    if library is None:
        return ""
    why = "since there is no compiler" if work.context.successors is None else "until those for this model's sizes are compiled"
    return f"prebuilt for {library.target}, {why}"


def _declined(work: Planner) -> list[tuple[NodeId, Reason]]:
    """In the order of the nodes."""
    return sorted(work.declined.items(), key=lambda row: row[0])


def _dims(work: Planner) -> list[str]:
    """The symbolic dimensions of the model's inputs, which a session may fix by their names."""
    if work.graph.is_subgraph:
        return []
    inputs = (v for v in work.graph.values.values() if v.is_input and v.shape is not None and not v.is_constant)
    return list(dict.fromkeys(d for v in inputs for d in v.shape or () if isinstance(d, str)))


def _products(work: Planner, result: CompileResult) -> dict[str, list[int]]:
    """The precisions that the machine multiplies faster in than in what the session asked for: what the islands' kernels take
    together, as they are and in it."""
    if work.options.precision is not Precision.FP32 or work.precision.shortfall:
        return {}
    planned = [entry.alternatives[0].planned for entry in result.islands if entry is not None]
    found = {}
    for half in sorted(work.context.halves, key=str):
        precision = _PRECISION_OF[half]
        try:
            with guarded("estimating"):
                found[str(precision)] = [round(ns) for ns in times(planned, PRODUCTS[precision], work.context)]
        except UnsupportedError as error:
            if isinstance(error, InternalError):
                work.faults.append((error, []))
    return found
