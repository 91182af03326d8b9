"""A graph whose islands are computed in float64 by the definition of what kernels compute.

What is left of an error then is that of fusion and its rules, not of kernels. Tensors are float64 within a graph, and of the
type that PyTorch expects where they leave it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from xyntra_ep.frameworks.torch.backend import settings, traced
from xyntra_ep.frameworks.torch.compiled_graph import CompiledGraph, planned_graph, with_islands
from xyntra_ep.frameworks.torch.record import Direction
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.options import Options
from xyntra_ep.provider.opened_graph import GraphIsland
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.planning.manifest import IslandEntry


def interpreted_backend(options: Mapping[str, Any], module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """As the backend of torch.compile, with its options."""
    chosen, _ = settings(None, options)
    return traced(functools.partial(_compile, chosen), module, example_inputs)


def _compile(options: Options, direction: Direction, module: GraphModule, inputs: Sequence[Any]) -> CompiledGraph:
    return CompiledGraph(module, direction, options, (), _interpreted)


def _interpreted(
    module: GraphModule, constants: Mapping[FxNode, torch.Tensor], direction: Direction, options: Options
) -> Callable[..., Any]:
    conversion, plan = planned_graph(module, constants, options)
    entries = {members: entry for members, entry in zip(plan.members, plan.result.islands, strict=False) if entry is not None}

    def module_of(island: GraphIsland, dtypes: Sequence[torch.dtype]) -> torch.nn.Module:
        return _Interpreted(entries[island.nodes], plan.graph, dtypes)

    run = with_islands(conversion, plan.opened(), module_of)
    for tensor in (*run.buffers(), *run.parameters()):  # constants of the graph
        tensor.data = _wide(tensor.data)
    [output] = [node for node in module.graph.nodes if node.op == "output"]
    expected = [node.meta.get("val") if isinstance(node, FxNode) else None for node in output.args[0]]

    def called(*args: Any) -> list[Any]:
        results = run(*map(_wide, args))
        return [_as(result, value) for result, value in zip(results, expected, strict=True)]

    return called


class _Interpreted(torch.nn.Module):
    """``dtypes``: of the outputs; floats stay float64."""

    def __init__(self, entry: IslandEntry, graph: Graph, dtypes: Sequence[torch.dtype]) -> None:
        super().__init__()
        self._program = entry.alternatives[-1].planned.program  # the last has no guards
        reads = [graph.values[name].read for name in self._program.constants]
        self._constants = [read() for read in reads if read is not None]
        self._dtypes = tuple(dtypes)

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = interpret(self._program, [t.detach().contiguous().numpy() for t in args], self._constants)
        made = [torch.from_numpy(np.array(value)) for value in values]  # copies: an output may be a view of an input
        return tuple(t if dtype.is_floating_point else t.to(dtype) for t, dtype in zip(made, self._dtypes, strict=True))


def _wide(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _as(result: Any, value: Any) -> Any:
    """A result as PyTorch expects it; what is no tensor as it is."""
    return result.to(value.dtype) if isinstance(result, torch.Tensor) and isinstance(value, torch.Tensor) else result
