"""What pays: which islands are worth claiming when only winners are wanted (option ``claim=profitable``)."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Graph, NodeId, OpKind
from xyntra_ep.fusion.trace import find_op

FEWEST_LIGHT_NODES = 3  # entering an island costs about what ORT pays to dispatch two small nodes


def unprofitable(graph: Graph, members: Sequence[NodeId]) -> str | None:
    """Why an island would not beat ORT's CPU provider, None when it should.

    A Gemm, convolution or attention carries its island; elementwise nodes pay only by being fused with one another.
    """
    light = 0
    for i in members:
        try:
            kind = find_op(graph.nodes[i]).kind
        except UnsupportedError:
            continue
        if kind is OpKind.HEAVY:
            return None
        light += kind is OpKind.LIGHT
    return None if light >= FEWEST_LIGHT_NODES else f"not profitable: {light} small nodes"
