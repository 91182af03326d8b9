"""A fusion graph without a session: planned for the processor, its islands opened. Front ends beside ONNX Runtime use it.

fusion.Graph -> planner -> plan bytes -> an OpenedIsland for each island; what is declined is the caller's, with the reason
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep import options as options_module
from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.graph import Graph, NodeId
from xyntra_ep.fusion.reason import Reason
from xyntra_ep.fusion.rules import algebra
from xyntra_ep.options import AUTO, Options
from xyntra_ep.provider import registration
from xyntra_ep.provider.first_run import go_on
from xyntra_ep.provider.opened_island import OpenedIsland
from xyntra_ep.provider.placement import Placement
from xyntra_ep.provider.planner import planned
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult, report_of, write_plan
from xyntra_ep.tracea.planning.manifest import IslandEntry
from xyntra_ep.tracea.runtime.hashing import hash128_of

CPU = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphIsland:
    """Nodes that are carried out together: ``inputs`` and ``outputs`` are values of the graph, by name."""

    nodes: tuple[NodeId, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opened: OpenedIsland
    kernels: tuple[str, ...]  # for people


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedGraph:
    graph: Graph
    islands: tuple[GraphIsland, ...]
    declined: Mapping[NodeId, Reason]
    note: str = ""  # why nothing could be had, where that is so


def checked(given: Mapping[str, str]) -> Options:
    """Options of a front end that runs on the processor. Raises ConfigError."""
    options = options_module.parse(given)
    if options.backend not in (AUTO, CPU):
        raise ConfigError(
            f"backend={options.backend!r} needs an ONNX Runtime session",
            where=options_module.PROVIDER,
            hint=f"allowed: {AUTO}, {CPU}",
        )
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGraph:
    """What is ours; nothing is opened yet."""

    graph: Graph
    members: tuple[tuple[NodeId, ...], ...]
    declined: Mapping[NodeId, Reason]
    note: str
    plan: bytes
    result: CompileResult
    kernels: tuple[tuple[str, ...], ...]  # of each island

    def opened(self) -> OpenedGraph:
        """Packs the constants."""
        islands: list[GraphIsland] = []
        for members, entry, kernels in zip(self.members, self.result.islands, self.kernels, strict=False):
            if entry is not None:
                islands.append(self._opened(len(islands), members, entry, kernels))
        return OpenedGraph(graph=self.graph, islands=tuple(islands), declined=self.declined, note=self.note)

    def _opened(self, number: int, members: tuple[NodeId, ...], entry: IslandEntry, kernels: tuple[str, ...]) -> GraphIsland:
        reads = [self.graph.values[name].read for name in entry.constants]
        constants = [read() for read in reads if read is not None]
        return GraphIsland(
            nodes=members,
            inputs=tuple(tensor.name for tensor in entry.inputs),
            outputs=tuple(tensor.name for tensor in entry.outputs),
            opened=OpenedIsland(self.plan, number, entry, constants),
            kernels=kernels,
        )


def plan_for_cpu(graph: Graph, options: Options) -> PlannedGraph:
    hash128 = hash128_of(registration.library())
    rules = algebra(options.rules, strict=options.fp32_strict)
    work, result = planned(graph, options, rules, Placement(), hash128)
    go_on(result, work.context, "")  # no session, so nobody explains one
    kernels = [_labels(entry, result, work.context) if entry is not None else () for entry in result.islands]
    return PlannedGraph(
        graph=work.graph,
        members=tuple(tuple(group) for group, _ in zip(work.members, result.islands, strict=False)),
        declined=dict(work.declined),
        note=work.note,
        plan=write_plan("", result, work.context),
        result=result,
        kernels=tuple(kernels),
    )


def _labels(entry: IslandEntry, result: CompileResult, context: Context) -> tuple[str, ...]:
    rows: Sequence[Mapping[str, object]]
    rows, _ = report_of(entry, result.kernels, context)
    return tuple(f"{row['label']} ({row['variant']})" for row in rows if row["alternative"] == 0)
