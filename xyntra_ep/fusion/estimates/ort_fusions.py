"""What ORT's own optimizer would fuse: nodes that cost it nothing beside the one that takes them in.

A provider sees the graph before ORT's extended optimisations. Counted node by node, ORT would look slower than it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from xyntra_ep.fusion.estimates.ort_cost import BLOCKS, INTEGERS
from xyntra_ep.fusion.graph import Graph, Node, NodeId
from xyntra_ep.tracea.core_ir.dtypes import FOUR_BITS

_ACTIVATIONS = frozenset({"Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"})
_LEAST_BLOCK = 16
_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})
_BETWEEN_PAIRS = _PRODUCTS | {
    "Add",
    "Mul",
    "Concat",
    "AveragePool",
    "GlobalAveragePool",
    "MaxPool",
    "Sigmoid",
    "LeakyRelu",
    "Softmax",
}


def absorbed(graph: Graph, members: Iterable[NodeId]) -> dict[NodeId, str]:
    """Nodes of ``members`` that ORT fuses away -> "", and nodes whose fused form has a row of its own -> that row (``INTEGERS``:
    what it is for bytes; "4" + ``BLOCKS``: for weights in 4 bits)."""
    found: dict[NodeId, str] = {}
    for i in members:
        node = graph.nodes[i]
        if node.op_type in _PRODUCTS:
            _finish(graph, node, found)
        elif node.op_type == "Erf":
            _gelu(graph, node, found)
        elif node.op_type == "Sqrt":
            _normalisation(graph, node, found)
        elif node.op_type == "DequantizeLinear":
            _blocks(graph, node, found)
        elif node.op_type == "MatMulInteger":
            _scaling(graph, node, found)
        if node.op_type in _BETWEEN_PAIRS:
            _pairs(graph, node, found)
    return found


def _scaling(graph: Graph, node: Node, found: dict[NodeId, str]) -> None:
    """Cast, scale and bias after a product of integers."""
    after = _reader(graph, node)
    for kind in ("Cast", "Mul", "Add"):
        if after is None or after.op_type != kind:
            return
        found[after.id] = ""
        after = _reader(graph, after)


def _blocks(graph: Graph, node: Node, found: dict[NodeId, str]) -> None:
    """A constant in blocks before products: ORT makes MatMulNBits of each, for which it rounds the other operand to bytes."""
    weights = graph.values[node.inputs[0]]
    readers = [graph.nodes[c] for c in graph.consumers.get(node.outputs[0], ())]
    if not weights.is_constant or int(node.attr("block_size", 0)) < _LEAST_BLOCK or int(node.attr("axis", 1)) != 0:
        return
    if readers and all(r.op_type in ("MatMul", "Gemm") and node.outputs[0] == r.inputs[1] for r in readers):
        bits = 4 if weights.elem_type in FOUR_BITS else 8
        found[node.id] = ""
        found.update({r.id: f"{bits}{BLOCKS}" for r in readers})


def _pairs(graph: Graph, node: Node, found: dict[NodeId, str]) -> None:
    """An operator between dequantised operands and a quantised result: ORT computes it in integers. A product may give floats."""
    makers = [graph.nodes[graph.producer[name]] for name in node.inputs if name in graph.producer]
    if not makers or any(maker.op_type != "DequantizeLinear" or maker.attr("block_size", 0) for maker in makers):
        return
    after = _reader(graph, node)
    if after is not None and after.op_type in _ACTIVATIONS and node.op_type == "Conv":
        found[after.id] = ""
        after = _reader(graph, after)
    if after is not None and after.op_type == "QuantizeLinear":
        found[after.id] = ""
    elif node.op_type != "MatMul":
        return
    if node.op_type in _PRODUCTS:
        found[node.id] = INTEGERS
    for maker in makers:
        if all(found.get(graph.nodes[c].id) == INTEGERS for name in maker.outputs for c in graph.consumers.get(name, ())):
            found[maker.id] = ""


def _finish(graph: Graph, node: Node, found: dict[NodeId, str]) -> None:
    """An addition and an activation after a product or convolution."""
    after = _reader(graph, node)
    if after is not None and after.op_type == "Add":
        found[after.id] = ""
        after = _reader(graph, after)
    if after is not None and after.op_type in _ACTIVATIONS and node.op_type != "MatMul":
        found[after.id] = ""


def _gelu(graph: Graph, erf: Node, found: dict[NodeId, str]) -> None:
    """x * (erf(x / sqrt 2) + 1) * 0.5: one pass, called Gelu."""
    before, one = _maker(graph, erf, "Div", "Mul"), _reader(graph, erf)
    if before is None or one is None or one.op_type != "Add":
        return
    found[erf.id] = "Gelu"
    found[before.id] = found[one.id] = ""
    product = _reader(graph, one)
    for _ in range(2):
        if product is None or product.op_type != "Mul":
            return
        found[product.id] = ""
        product = _reader(graph, product)


def _normalisation(graph: Graph, root: Node, found: dict[NodeId, str]) -> None:
    """(x - mean) / sqrt(mean((x - mean)^2) + eps) * scale + shift: one pass, called LayerNormalization."""
    chain = [root]
    for kinds in (("Add",), ("ReduceMean",), ("Pow", "Mul"), ("Sub",), ("ReduceMean",)):
        above = _maker(graph, chain[-1], *kinds)
        if above is None:
            return
        chain.append(above)
    after = _reader(graph, root)
    while after is not None and after.op_type in ("Div", "Mul", "Add", "Reciprocal") and len(chain) < 9:
        chain.append(after)
        after = _reader(graph, after)
    found.update(dict.fromkeys((n.id for n in chain), ""))
    found[chain[4].id] = "LayerNormalization"  # the Sub has the size of the whole


def _maker(graph: Graph, node: Node, *kinds: str) -> Node | None:
    makers = (graph.nodes[graph.producer[name]] for name in node.inputs if name in graph.producer)
    return next((n for n in makers if n.op_type in kinds), None)


def _reader(graph: Graph, node: Node) -> Node | None:
    """The only reader of the node's only result."""
    readers = [graph.nodes[c] for name in node.outputs if name for c in graph.consumers.get(name, ())]
    return readers[0] if len(readers) == 1 and not graph.values[node.outputs[0]].is_output else None
