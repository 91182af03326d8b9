"""The model with its groups as function calls.

    x, w -> MatMul -> Add(b) -> Div, Erf, Add, Mul, Mul -> y      becomes      x, w, b -> ai.xyntra.GemmBiasGelu -> y

Everything else of the model stays: opsets, dimensions, weights, outputs. Constants that went into function bodies, and nodes that
nobody needs any more, are removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from pathlib import Path

from onnx import FunctionProto, ModelProto, NodeProto, helper

from xyntra_custom_ops import DOMAIN, VERSION
from xyntra_ep.diagnostics.fused.bodies import OLDEST_OPSET, attribute_names, named_body
from xyntra_ep.diagnostics.fused.graph import Source, names_read, nodes_inside, source_of
from xyntra_ep.diagnostics.fused.groups import Group, Left, find_groups, find_islands
from xyntra_ep.diagnostics.fused.model import FusedModel, Unfused
from xyntra_ep.diagnostics.fused.named import NamedCall, named_call
from xyntra_ep.diagnostics.fused.outline import outline, signature
from xyntra_ep.options import Options

FUNCTIONS_SINCE_IR = 8
_SWAP = (0, 1, 3, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """Nodes of the new graph in place of one or more old ones; ``last`` is the position of the last of those."""

    last: int
    protos: tuple[NodeProto, ...]
    needs: frozenset[str]


@dataclass(slots=True)
class _Rewriter:
    source: Source
    functions: dict[str, FunctionProto] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)

    def unit(self, group: Group) -> _Unit:
        """The call that stands for ``group``."""
        nodes = sorted(group.nodes)
        graph = self.source.graph
        known = signature(self.source, nodes)
        named = named_call(graph, group, known.inputs, known.outputs) if self.source.opset >= OLDEST_OPSET else None
        if named is None:
            function = outline(self.source, group.op, nodes, known)
            protos = [helper.make_node(function.name, known.inputs, known.outputs, domain=DOMAIN)]
        else:
            function = named_body(named.name, self.source.opset, self.source.model.ir_version)
            unread = [f"{known.outputs[0]}/{name}" for name in function.output[len(known.outputs) :]]
            protos = list(self._named(named, [*known.outputs, *unread]))  # ONNX Runtime wants a name for every output
        protos[-1].name = graph.nodes[nodes[-1]].name
        self.functions.setdefault(function.name, function)
        self.calls[function.name] += 1
        return _Unit(last=nodes[-1], protos=tuple(protos), needs=frozenset(n for p in protos for n in p.input))

    def _named(self, named: NamedCall, outputs: Iterable[str]) -> Iterator[NodeProto]:
        """The call, after the transpositions that it wants."""
        inputs = list(named.inputs)
        for i in sorted(named.swapped):
            swapped = f"{inputs[i]}/swapped"
            yield self._swap(inputs[i], swapped)
            inputs[i] = swapped
        call = helper.make_node(named.name, inputs, list(outputs), domain=DOMAIN)
        for name, default in attribute_names(named.name).items():
            if name in named.attributes:
                call.attribute.append(helper.make_attribute(name, named.attributes[name]))
            elif default is not None:
                call.attribute.append(default)
        yield call

    def _swap(self, name: str, result: str) -> NodeProto:
        """The last two axes exchanged; a Transpose that made ``name`` is not undone but done otherwise."""
        graph = self.source.graph
        maker = graph.nodes[graph.producer[name]] if name in graph.producer else None
        perm = maker.attr("perm") if maker is not None and maker.op_type == "Transpose" and not maker.domain else None
        if maker is not None and perm is not None:
            return helper.make_node("Transpose", [maker.inputs[0]], [result], name=result, perm=[perm[i] for i in _SWAP])
        return helper.make_node("Transpose", [name], [result], name=result, perm=list(_SWAP))


def rewrite(model: ModelProto, folder: Path, target: Path, options: Options) -> tuple[ModelProto, FusedModel]:
    """The fused model (``model`` itself, changed) and what was done; ``folder`` holds its external data."""
    source = source_of(model, folder, strict=options.fp32_strict)
    graph = source.graph
    partition = find_islands(graph, options.min_island)
    groups, left = find_groups(graph, partition.islands)
    work = _Rewriter(source)
    before = len(source.model.graph.node)
    while True:
        order, ring = _ordered(source, [(group, work.unit(group)) for group in groups])
        if not ring:
            break
        smallest = min(ring, key=lambda g: len(g.nodes))
        left.append(Left(nodes=tuple(sorted(smallest.nodes)), reason="its kernel and another wait for each other"))
        groups.remove(smallest)
        work = _Rewriter(source)
    bodies: Counter[str] = Counter()
    for proto in source.protos:
        bodies[proto.op_type] += nodes_inside(proto)
    _replace(source, order, work)
    reasons = Counter(f"{graph.nodes[n].op_type}({why})" for n, why in partition.declined.items())
    return source.model, FusedModel(
        output=target,
        nodes_before=before,
        nodes_after=len(source.model.graph.node),
        islands=len(partition.islands),
        functions=dict(work.calls.most_common()),
        unfused=tuple(Unfused(nodes=tuple(graph.nodes[n].title for n in group.nodes), reason=group.reason) for group in left),
        declined=dict(reasons.most_common()),
        bodies=dict((+bodies).most_common()),
    )


def _ordered(source: Source, calls: list[tuple[Group, _Unit]]) -> tuple[list[NodeProto], list[Group]]:
    """The nodes of the new graph in topological order, near the old one; or the groups that wait for one another in a ring."""
    taken = {n for group, _ in calls for n in group.nodes}
    units = [unit for _, unit in calls]
    for node in source.graph.nodes:
        if node.id not in taken:
            needs = frozenset((*node.inputs, *node.implicit_inputs))
            units.append(_Unit(last=node.id, protos=(source.protos[node.id],), needs=needs))
    maker = {name: i for i, unit in enumerate(units) for proto in unit.protos for name in proto.output if name}
    waits = [{maker[name] for name in unit.needs if name in maker} - {i} for i, unit in enumerate(units)]
    readers: list[list[int]] = [[] for _ in units]
    for i, above in enumerate(waits):
        for j in above:
            readers[j].append(i)
    ready = [(unit.last, i) for i, unit in enumerate(units) if not waits[i]]
    heapify(ready)
    order: list[NodeProto] = list(source.constant_nodes)
    done: set[int] = set()
    while ready:
        _, i = heappop(ready)
        done.add(i)
        order.extend(units[i].protos)
        for j in readers[i]:
            waits[j].discard(i)
            if not waits[j]:
                heappush(ready, (units[j].last, j))
    return order, [group for i, (group, _) in enumerate(calls) if i not in done]


def _replace(source: Source, order: list[NodeProto], work: _Rewriter) -> None:
    """Put the new nodes and functions into the model and drop what is of no use any more."""
    model = source.model
    nodes = _alive(order, {o.name for o in model.graph.output})
    read = {name for node in nodes for name in names_read(node)} | {o.name for o in model.graph.output}
    made = {name for node in nodes for name in node.output}
    for i, tensor in reversed(list(enumerate(model.graph.initializer))):
        if tensor.name in source.tensors and tensor.name not in read:
            del model.graph.initializer[i]
    for i, value in reversed(list(enumerate(model.graph.value_info))):
        if value.name not in made and value.name not in read:
            del model.graph.value_info[i]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    present = {(f.domain, f.name) for f in model.functions}
    model.functions.extend(f for f in work.functions.values() if (f.domain, f.name) not in present)
    if work.functions:
        model.ir_version = max(model.ir_version, FUNCTIONS_SINCE_IR)
        if all(o.domain != DOMAIN for o in model.opset_import):
            model.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))


def _alive(order: list[NodeProto], wanted: set[str]) -> list[NodeProto]:
    """The nodes that the ``wanted`` values need."""
    read = set(wanted)
    alive: list[NodeProto] = []
    for node in reversed(order):
        if read.intersection(node.output):
            alive.append(node)
            read.update(names_read(node))
    return alive[::-1]
