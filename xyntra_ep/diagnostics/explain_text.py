"""The page of `explain`, graph by graph.

small: 3 of 4 nodes on XyntraEP in 1 island (planned now)
  island0: 3 nodes, 2 kernels (est. 2.1 us, ORT 4.25 us): MatMul x2, Relu
    gemm x2                  gemm.packed_b                  1.5 us  71%  MatMul
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xyntra_ep.fusion.reason import Kind
from xyntra_ep.options import Goal
from xyntra_ep.wording import counted

if TYPE_CHECKING:
    from xyntra_ep.diagnostics.explain import Declined, GraphReport, Kernel

_WIDTH = 200
_LEAST = 0.01  # of a page's time: kinds of kernels that take less share a line


def graph_text(graph: GraphReport, whole_ns: int) -> str:
    """What becomes of one graph; percentages are of ``whole_ns``, the time of all that the page is about."""
    if graph.failure:
        return f"XyntraEP takes nothing: {graph.failure}"
    if graph.inlined and not graph.claimed:
        return f"{graph.name or 'graph'}: it has functions, which ONNX Runtime inlines next"
    lines = [
        f"{graph.name or 'graph'}: {graph.claimed} of {graph.total} nodes on XyntraEP in {counted(len(graph.islands), 'island')}"
        f" ({'compiled ahead of time' if graph.compiled else 'stored plan' if graph.stored else 'planned now'})",
    ]
    if graph.cache:
        lines.append(f"  cache: {graph.cache}")
    if graph.prebuilt:
        lines.append(f"  kernels: {graph.prebuilt}")
    if graph.options:
        lines.append(f"  options: {graph.options}")
    if graph.device:
        lines.append(f"  device: {graph.device}")
    if graph.placement:
        lines.append(f"  backend=auto: {'the device' if graph.device else 'the CPU'}, because {graph.placement}")
    if graph.precision not in ("", "fp32"):
        lines.append(f"  precision: {graph.precision}")
    if graph.goal not in ("", Goal.BALANCED):
        lines += [f"  policy={graph.goal}, {name}: {why}" for name, why in graph.policy.items()]
    for island in graph.islands:
        kinds = Counter(graph.nodes[n][0] for n in island.nodes)
        usual = island.usual
        estimate = f" ({island.estimate})" if island.estimate else ""
        lines.append(
            f"  {island.name}: {counted(len(island.nodes), 'node')}, {counted(len(usual), 'kernel')}{estimate}: {_counted(kinds)}"
        )
        lines += _kernel_lines(graph, usual, whole_ns)
        if len(usual) < len(island.kernels):
            lines.append(f"    {len(island.kernels) - len(usual)} more for feeds whose sizes differ from what the model declares")
    if apart := graph.control_flow:
        lines.append(f"  control flow: {_counted(Counter(d.op_type for d in apart))}; the bodies are graphs of their own")
    if lost := [d for d in graph.declined if d not in apart]:
        lines += _declined_lines(lost, graph.claim == "profitable")
    return "\n".join(lines)


def _kernel_lines(graph: GraphReport, kernels: Sequence[Kernel], whole_ns: int) -> Iterator[str]:
    """One line for all that are alike, and one for the kinds that take next to nothing."""
    alike: dict[tuple[str, str, str, tuple[str, ...]], list[Kernel]] = {}
    for kernel in kernels:
        ops = _counted(Counter(graph.nodes[n][0] for n in kernel.nodes if n in graph.nodes)) + " (tuned)" * kernel.is_measured
        below = (*kernel.notes, *(str(launch["text"]) for launch in kernel.launches if launch["report"]))
        alike.setdefault((kernel.label, kernel.variant, ops, below), []).append(kernel)
    small = [kind for kind, of in alike.items() if not kind[3] and _ns(of) < _LEAST * whole_ns]
    if len(small) < 2:
        small = []
    for kind, of in alike.items():
        if kind in small:
            continue
        label, variant, ops, below = kind
        label += f" x{len(of)}" if len(of) > 1 else ""
        yield f"    {label:<24} {variant:<24} {_time(_ns(of), whole_ns)}  {ops}"
        yield from (f"      {text}" for text in below)
    if rest := [kernel for kind in small for kernel in alike[kind]]:
        text = f"{len(rest)} more, of kinds below {_LEAST:.0%} (--json has them)"
        yield f"    {text:<49} {_time(_ns(rest), whole_ns)}"


def _declined_lines(declined: Sequence[Declined], only_winners: bool) -> Iterator[str]:
    slower = sum(d.why.kind is Kind.COST for d in declined)
    note = f" ({slower} by the estimates; claim=all takes those all the same)" if slower and only_winners else ""
    yield f"  on CPU, {counted(len(declined), 'node')}{note}:"
    by_reason: dict[tuple[str, str], list[str]] = {}
    for d in declined:
        by_reason.setdefault((d.op_type, d.reason), []).append(d.name)
    for (op_type, reason), names in by_reason.items():
        shown = ", ".join(n for n in names[:3] if n)
        more = f" ({shown}{', ...' if len(names) > 3 else ''})" if shown else ""
        yield f"    {len(names):>4} {op_type}: {reason}{more}"[:_WIDTH]


def _ns(kernels: Sequence[Kernel]) -> int:
    return sum(kernel.cost_ns for kernel in kernels)


def _time(ns: int, whole_ns: int) -> str:
    return f"{ns / 1000:>9.1f} us {ns / whole_ns if whole_ns else 0:>4.0%}"


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(kind if n == 1 else f"{kind} x{n}" for kind, n in kinds.most_common(6))
