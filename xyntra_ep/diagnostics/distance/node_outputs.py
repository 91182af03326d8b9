"""A model with every intermediate tensor as an output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xyntra_ep.errors import ConfigError, UnsupportedError

if TYPE_CHECKING:
    from onnx import NodeProto


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOutputs:
    """``producers``: of each tensor the operator that makes it, in the order of the graph. ``bodies``: by control-flow operator,
    how many nodes its bodies have; their tensors are of one trip and no output can be made of them."""

    model: bytes
    producers: Mapping[str, str]
    bodies: Mapping[str, int]


def with_all_outputs(path: Path) -> AllOutputs:
    """Of tensors whose type is known. Raises ConfigError without the onnx package, UnsupportedError for a model of 2 GB."""
    try:
        import onnx
    except ImportError as error:
        raise ConfigError("comparing by node needs the onnx package", where="compare", hint="pip install onnx") from error
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    graph = model.graph
    typed = {v.name: v for v in graph.value_info}
    present = {o.name for o in graph.output}
    producers: dict[str, str] = {}
    bodies: Counter[str] = Counter()
    for node in graph.node:
        for name in node.output:
            if name in typed and name not in present:
                graph.output.append(typed[name])
            if name in typed or name in present:
                producers[name] = node.op_type
        if inner := sum(1 for _ in _inside(node)):
            bodies[node.op_type] += inner
    if model.ByteSize() >= 1 << 31:
        raise UnsupportedError("the model is too large to be changed in memory", where=str(path), hint="compare without nodes")
    return AllOutputs(model=model.SerializeToString(), producers=producers, bodies=bodies)


def _inside(node: NodeProto) -> Iterator[NodeProto]:
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield inner
                yield from _inside(inner)
