"""An FX graph, compiled: its islands run our kernels, the rest runs as it stands.

    FX graph -> Conversion -> planner -> islands -> FX graph with a module in the place of each island

It is planned at its first run, when the weights are at hand. A call is in islands with all that it became, or PyTorch's.
"""

from __future__ import annotations

import heapq
import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from xyntra_ep.frameworks.torch.conversion import ATEN, Conversion, target_name
from xyntra_ep.frameworks.torch.dtypes import OURS, THEIRS
from xyntra_ep.frameworks.torch.island_module import IslandModule
from xyntra_ep.frameworks.torch.record import RECORDS, CallRecord, Direction, GraphRecord
from xyntra_ep.frameworks.torch.triton_calls import is_launch, launched
from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.options import Options
from xyntra_ep.provider.opened_graph import GraphIsland, OpenedGraph, PlannedGraph, plan_for_cpu

ROUNDS = 12  # of leaving to PyTorch what turned out not to be ours; after that all of a graph
CHANGES = 2  # of weights; after that they are inputs like others
# What an island must have at least one of: a graph of nothing else moves elements, which views of PyTorch's do without a copy.
_FREE = frozenset(
    ("Reshape", "Transpose", "Expand", "Identity", "Shape", "Concat", "Slice", "Unsqueeze", "Gather", "Cast", "Range", "Tile")
)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A weight as it was when the islands were made of it."""

    tensor: torch.Tensor
    address: int
    version: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Kept:
        return cls(tensor, tensor.data_ptr(), tensor._version)

    def is_still(self, tensor: torch.Tensor) -> bool:
        return bool(tensor.data_ptr() == self.address and tensor._version == self.version)


class CompiledGraph:
    """``static``: which placeholders are the model's weights; they are kept, packed, until they change. ``build``: `compiled`, or
    what stands in for it in a check."""

    def __init__(
        self,
        module: GraphModule,
        direction: Direction,
        options: Options,
        static: Sequence[int],
        build: Callable[..., Callable[..., Any]] | None = None,
    ) -> None:
        self._module = module
        self._build = build or compiled
        self._direction = direction
        self._options = options
        self._static = tuple(static)
        self._kept: dict[int, _Kept] = {}
        self._changes = 0
        self._run: Callable[..., Any] | None = None
        self._lock = threading.Lock()
        self._boxed_call = True  # AOTAutograd's name for a function that takes a list of all arguments

    def __call__(self, args: list[Any]) -> Any:
        """``args`` is emptied, so that what is in it can go as soon as it is read."""
        run = self._run
        if run is None or not all(kept.is_still(args[i]) for i, kept in self._kept.items()):
            with self._lock:
                run = self._ready(args)
        taken = list(args)
        args.clear()
        return run(*taken)

    def _ready(self, args: Sequence[Any]) -> Callable[..., Any]:
        if self._run is not None:
            if all(kept.is_still(args[i]) for i, kept in self._kept.items()):
                return self._run
            self._changes += 1
        wanted = self._static if self._changes <= CHANGES else ()
        self._kept = {i: _Kept.of(args[i]) for i in wanted if _can_be_kept(args[i])}
        placeholders = [node for node in self._module.graph.nodes if node.op == "placeholder"]
        constants = {placeholders[i]: kept.tensor for i, kept in self._kept.items()}
        with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
            self._run = self._build(self._module, constants, self._direction, self._options)
        return self._run


def _can_be_kept(tensor: Any) -> bool:
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.device.type == "cpu" and tensor.dtype in OURS
    return plain and not tensor.is_inference() and tensor.layout is torch.strided


def compiled(
    module: GraphModule, constants: Mapping[FxNode, torch.Tensor], direction: Direction, options: Options
) -> Callable[..., Any]:
    """Plan, open, and put the islands in their places."""
    conversion, plan = planned_graph(module, constants, options)
    opened = plan.opened()
    _record(conversion, opened, direction)
    if not opened.islands and not any(map(is_launch, module.graph.nodes)):
        whole: Callable[..., Any] = module.forward
        return whole
    parts: Callable[..., Any] = with_islands(conversion, opened, IslandModule).forward
    return parts


def planned_graph(
    module: GraphModule, constants: Mapping[FxNode, torch.Tensor], options: Options
) -> tuple[Conversion, PlannedGraph]:
    """With what turned out not to be ours left to PyTorch."""
    opaque: dict[FxNode, str] = {}
    for attempt in range(ROUNDS):
        conversion = Conversion(module=module, constants=constants, opaque=opaque)
        conversion.run()
        plan = plan_for_cpu(conversion.draft.graph(), options)
        lost = {conversion.owner[n]: str(why) for n, why in plan.declined.items() if plan.graph.nodes[n].domain != ATEN}
        lost |= {owner: "it would only move elements" for group in plan.members for owner in _idle(conversion, plan, group)}
        if attempt == ROUNDS - 2:
            lost = {owner: "what is around it could not be planned" for owner in conversion.owner.values()} | lost
        new = {owner: why for owner, why in lost.items() if owner not in opaque}
        if not new:
            return conversion, plan
        opaque |= new
    raise AssertionError("after all calls were left to PyTorch nothing is declined")


def _idle(conversion: Conversion, plan: PlannedGraph, group: Sequence[NodeId]) -> list[FxNode]:
    """The calls of an island that computes nothing."""
    if any(plan.graph.nodes[n].op_type not in _FREE for n in group):
        return []
    return [conversion.owner[n] for n in group]


def _record(conversion: Conversion, opened: OpenedGraph, direction: Direction) -> None:
    home = {conversion.owner[n]: i for i, island in enumerate(opened.islands) for n in island.nodes}
    calls = []
    for node in conversion.module.graph.nodes:
        if node.op == "call_function" and (node in home or (node in conversion.opaque and _makes_tensors(node))):
            reason = "" if node in home else conversion.opaque[node]
            calls.append(CallRecord(name=node.name, target=target_name(node), island=home.get(node), reason=reason))
    kernels = tuple(island.kernels for island in opened.islands)
    RECORDS.add(GraphRecord(direction=direction, calls=tuple(calls), kernels=kernels, note=opened.note))


def _makes_tensors(node: FxNode) -> bool:
    """Arithmetic on sizes is Python's."""
    value = node.meta.get("val")
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else (value,)
    return any(isinstance(part, torch.Tensor) for part in parts)


def with_islands(
    conversion: Conversion, opened: OpenedGraph, module_of: Callable[[GraphIsland, Sequence[torch.dtype]], torch.nn.Module]
) -> GraphModule:
    """``module_of``: what carries out an island, given the types of its outputs."""
    old, new = conversion.module.graph, FxGraph()
    made: dict[FxNode, FxNode] = {}
    values: dict[str, FxNode] = {}  # by their names in the fusion graph

    def copy(node: FxNode) -> None:
        if node.target is torch.ops.aten.as_strided.default:  # which counts on how its operand is stored
            source = node.args[0]
            values[conversion.names[source]] = _like(new, fetched(source), source, conversion)
            made.pop(source, None)
        made[node] = new.node_copy(node, fetched)
        if node.target is torch.ops.aten.view.default:  # results of islands are contiguous, where PyTorch's own may not be
            made[node].target = torch.ops.aten.reshape.default
        if is_launch(node):
            made[node].target = launched
        values[conversion.names.get(node, node.name)] = made[node]

    def fetched(node: FxNode) -> FxNode:
        return made[node] if node in made else values[conversion.names[node]]

    modules: dict[str, torch.nn.Module] = {}
    for node in old.nodes:
        if node.op in ("placeholder", "get_attr"):
            copy(node)
    for unit in _order(conversion, opened):
        if isinstance(unit, GraphIsland):
            name = f"island_{len(modules)}"
            dtypes = [THEIRS[conversion.draft.dtype(output)] for output in unit.outputs]
            modules[name] = module_of(unit, dtypes)
            call = new.call_module(name, tuple(values[input] for input in unit.inputs))
            for i, output in enumerate(unit.outputs):
                values[output] = new.call_function(operator.getitem, (call, i))
        else:
            copy(unit)
            for user in unit.users:
                if (
                    conversion.names.get(user) == user.name
                    and user.target is operator.getitem
                    and not isinstance(unit.meta.get("val"), torch.Tensor)
                ):
                    copy(user)
    for node in old.nodes:
        if node.op == "output":
            new.output(torch.fx.map_arg(node.args[0], lambda n: _like(new, fetched(n), n, conversion)))
    root = torch.nn.Module()
    for node in old.nodes:
        if node.op == "get_attr":
            _set(root, str(node.target), _get(conversion.module, str(node.target)))
    for name, module in modules.items():
        root.add_module(name, module)
    return GraphModule(root, new)


def _order(conversion: Conversion, opened: OpenedGraph) -> list[GraphIsland | FxNode]:
    """Islands and calls so that each comes after what it reads, otherwise as they were."""
    graph = opened.graph
    units: list[GraphIsland | FxNode] = [*opened.islands]
    unit_of: dict[NodeId, int] = {n: i for i, island in enumerate(opened.islands) for n in island.nodes}
    for node in graph.nodes:
        if node.id not in unit_of:
            unit_of[node.id] = len(units)
            units.append(conversion.owner[node.id])
    waits: list[set[int]] = [set() for _ in units]
    first = [len(graph.nodes)] * len(units)
    for node in graph.nodes:
        unit = unit_of[node.id]
        first[unit] = min(first[unit], node.id)
        waits[unit] |= {unit_of[p] for p in graph.predecessors(node)} - {unit}
    feeds: dict[int, list[int]] = {}
    for unit, above in enumerate(waits):
        for a in above:
            feeds.setdefault(a, []).append(unit)
    ready = [(first[unit], unit) for unit, above in enumerate(waits) if not above]
    heapq.heapify(ready)
    left = [len(above) for above in waits]
    order: list[GraphIsland | FxNode] = []
    while ready:
        _, unit = heapq.heappop(ready)
        order.append(units[unit])
        for reader in feeds.get(unit, ()):
            left[reader] -= 1
            if not left[reader]:
                heapq.heappush(ready, (first[reader], reader))
    assert len(order) == len(units), "islands are convex and in no ring"
    return order


def _like(new: FxGraph, made: FxNode, node: FxNode, conversion: Conversion) -> FxNode:
    """A result of the graph with the strides that PyTorch expects of it."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.is_contiguous() or made.op in ("placeholder", "get_attr"):
        return made
    if node in conversion.opaque or (node.target is operator.getitem and node.args[0] in conversion.opaque):
        return made
    order = sorted(range(value.dim()), key=lambda axis: _stride(value, axis), reverse=True)
    return new.call_function(stored_in_order, (made, order))


def _stride(value: torch.Tensor, axis: int) -> int:
    stride = value.stride(axis)
    return stride if isinstance(stride, int) else int(stride.node.hint or 0)


def stored_in_order(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """The same tensor, its axes in memory as ``order`` says, from the outermost on."""
    back = [0] * len(order)
    for place, axis in enumerate(order):
        back[axis] = place
    return tensor.permute(*order).contiguous().permute(*back)


def _get(module: torch.nn.Module, path: str) -> Any:
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _set(root: torch.nn.Module, path: str, value: Any) -> None:
    *folders, name = path.split(".")
    for folder in folders:
        if not hasattr(root, folder):
            setattr(root, folder, torch.nn.Module())
        root = getattr(root, folder)
    setattr(root, name, value)
