"""How many axes a value has of which the model says nothing.

ONNX infers no shapes of many operators of ai.onnx.ml, nor of what stands behind them. Some of those stay with ONNX Runtime: the
trees in the middle of a model of scikit-learn would make strangers of everything that follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xyntra_ep.fusion.graph import Graph

_OUTPUTS: Mapping[str, tuple[int, ...]] = {
    "SVMClassifier": (1, 2),  # labels [N], scores [N, classes]
    "SVMRegressor": (2,),
    "TreeEnsemble": (2,),
    "TreeEnsembleClassifier": (1, 2),
    "TreeEnsembleRegressor": (2,),
}
_DOMAIN = "ai.onnx.ml"


def by_definition(graph: Graph) -> dict[str, int]:
    """Ranks that follow from the operator alone, whatever it reads, by the name of the value."""
    found = ((node, _OUTPUTS.get(node.op_type, ())) for node in graph.nodes if node.domain == _DOMAIN)
    return {name: rank for node, ranks in found for name, rank in zip(node.outputs, ranks, strict=False) if name}


def with_ranks(graph: Graph, ranks: Mapping[str, int]) -> Graph:
    """``graph`` with shapes of unknown sizes for those values that have no shape at all."""
    missing = {name: rank for name, rank in ranks.items() if graph.values[name].shape is None}
    if not missing:
        return graph
    values = {name: replace(graph.values[name], shape=(None,) * rank) for name, rank in missing.items()}
    return replace(graph, values={**graph.values, **values})
