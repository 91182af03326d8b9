"""The alternatives of a model taken as one island, and which of them a run takes: as native code decides, without it.

[declared, plain] = alternatives(model)
declared.applies(feeds)      its guards hold
plain.run(feeds)             through the interpreter, in stored types; fails where a run would be refused
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tests.support.models.graph_from_model import graph_from_model
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.trace import trace
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.planning.legality import check_program

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class OneIsland:
    """All nodes of a model as one program."""

    graph: Graph
    program: Program
    inputs: tuple[str, ...]

    def symbols(self, feeds: Mapping[str, Array]) -> dict[str, int]:
        bound: dict[str, int] = {}
        for b in self.program.bindings:
            source = feeds[self.inputs[b.input]]
            bound[b.name] = int(source.shape[b.index] if b.kind == "dim" else source.reshape(-1)[b.index])
        return self.program.with_definitions(bound)

    def applies(self, feeds: Mapping[str, Array]) -> bool:
        symbols = self.symbols(feeds)
        return all(evaluate(g, symbols) for g in self.program.guards)

    def refusals(self, feeds: Mapping[str, Array]) -> list[str]:
        """The messages of checks that do not hold."""
        symbols = self.symbols(feeds)
        return [message for condition, message in self.program.checks if not evaluate(condition, symbols)]

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        assert not self.refusals(feeds), self.refusals(feeds)
        return interpret(self.program, [feeds[name] for name in self.inputs], self.constants(), keep_float64=False)

    def constants(self) -> list[Array]:
        return [_constant(self.graph, name) for name in self.program.constants]

    def kinds(self) -> list[str]:
        """The labels of the program's ops, in order."""
        return [op.label or type(op).__name__.lower() for op in self.program.ops]

    def ops(self, kind: type[Any]) -> list[Any]:
        return [op for op in self.program.ops if isinstance(op, kind)]


def one_island(model: onnx.ModelProto, trust: bool = True) -> OneIsland:
    """``model`` traced and scheduled as a whole, into a program that planning takes."""
    graph = graph_from_model(model)
    everything = [n.id for n in graph.nodes]
    inputs, _ = graph.boundary(everything)
    context = trace(graph, everything, inputs, trust)
    program = build_program(context, inputs, [o.name for o in model.graph.output])
    check_program(program)
    return OneIsland(graph, program, tuple(inputs))


def alternatives(model: onnx.ModelProto) -> list[OneIsland]:
    """As the planner makes them: what the model declares under guards, then (when there were any) what assumes nothing."""
    declared = one_island(model)
    return [declared, one_island(model, trust=False)] if declared.program.guards else [declared]


def _constant(graph: Graph, name: str) -> Array:
    read = graph.values[name].read
    assert read is not None
    return np.asarray(read())
