"""What the numbers in a trace stand for: islands and their steps, with the nodes of the model that a step computes.

The texts come with the trace, so that a reader needs nothing but it. They name a plan as a session's report does, which `explain`
reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xyntra_ep.diagnostics.explain import GraphReport, IslandReport, parse
from xyntra_ep.diagnostics.kernel_times import multiplied_in
from xyntra_ep.diagnostics.trace.ring import ALL_STEPS, TextKind


@dataclass(frozen=True, slots=True, kw_only=True)
class StepName:
    """``nodes``: as the model calls them; of those without a name, their operator."""

    label: str
    symbol: str
    variant: str = ""
    nodes: tuple[str, ...] = ()
    op_types: tuple[str, ...] = ()
    precision: str = "fp32"

    @property
    def title(self) -> str:
        """Labels repeat, and a node's name says which it is."""
        return f"{self.label} {self.nodes[0]}" if self.nodes and self.nodes[0] != self.label else self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandName:
    """``steps``: of each alternative."""

    name: str
    graph: str
    device: str
    nodes: tuple[str, ...]
    steps: tuple[tuple[StepName, ...], ...]

    def step(self, alternative: int, number: int) -> StepName:
        if number == ALL_STEPS:
            return StepName(label=f"all kernels of {self.name}", symbol="", nodes=self.nodes)
        if alternative < len(self.steps) and number < len(self.steps[alternative]):
            return self.steps[alternative][number]
        return StepName(label=f"step {number}", symbol="")


UNKNOWN = IslandName(name="an island", graph="", device="", nodes=(), steps=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """All that a trace tells of itself. ``plain``: stages, by their places."""

    plain: Mapping[int, str]
    islands: Mapping[int, IslandName]
    files: tuple[str, ...]

    @classmethod
    def of(cls, texts: Mapping[int, tuple[TextKind, str]]) -> Names:
        plain: dict[int, str] = {}
        files: list[str] = []
        graphs: dict[str, GraphReport] = {}
        islands: dict[int, IslandName] = {}
        for place, (kind, text) in texts.items():
            try:
                if kind is TextKind.NAME:
                    plain[place] = printable(text)
                elif kind is TextKind.FILE:
                    files.append(text)
                elif kind is TextKind.PLAN:
                    entry = json.loads(text)
                    graphs[entry["digest"]] = parse([entry]).graphs[0]
                else:
                    entry = json.loads(text)
                    islands[place] = _island(entry, graphs.get(entry["digest"]))
            except (
                ValueError,
                KeyError,
                TypeError,
                IndexError,
                AttributeError,
            ):  # what another process wrote: then without names
                continue
        return cls(plain=plain, islands=islands, files=tuple(files))

    def island(self, place: int) -> IslandName:
        return self.islands.get(place, UNKNOWN)


def printable(text: str) -> str:
    """Names come from models, where anything may stand, and a terminal obeys some of it.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _island(entry: Mapping[str, Any], graph: GraphReport | None) -> IslandName:
    name = str(entry["island"])
    report = next((i for i in graph.islands if i.name == name), None) if graph is not None else None
    members = _members(graph, report.nodes) if graph is not None and report is not None else ()
    return IslandName(
        name=printable(name),
        graph=printable(graph.name) if graph is not None else "",
        device=printable(str(entry.get("device", ""))),
        nodes=tuple(called for _, called in members),
        steps=tuple(_steps(rows, a, graph, report) for a, rows in enumerate(entry["steps"])),
    )


def _steps(
    rows: Sequence[Sequence[str]], alternative: int, graph: GraphReport | None, report: IslandReport | None
) -> tuple[StepName, ...]:
    found = []
    for number, (label, symbol) in enumerate(rows):
        step = StepName(label=printable(str(label)), symbol=printable(str(symbol)))
        if graph is not None and report is not None and alternative < len(report.steps):
            kernel = report.kernels[report.steps[alternative][number]]
            members = _members(graph, kernel.nodes)
            step = StepName(
                label=step.label,
                symbol=step.symbol,
                variant=printable(kernel.variant),
                nodes=tuple(called for _, called in members),
                op_types=tuple(op_type for op_type, _ in members),
                precision=multiplied_in(kernel.variant, [symbol]),
            )
        found.append(step)
    return tuple(found)


def _members(graph: GraphReport, nodes: Sequence[int]) -> list[tuple[str, str]]:
    """Operators, and what the model calls its nodes."""
    return [(printable(op), printable(called or op)) for op, called in (graph.nodes[n] for n in nodes if n in graph.nodes)]
