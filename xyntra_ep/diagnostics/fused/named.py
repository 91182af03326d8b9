"""Groups that are one of the named operators of `custom_ops`.

What a kernel computes is read off its core-IR op, where it does not matter how an exporter spelt a GELU or a normalisation; which
graph value plays which part is read off the group's nodes. A group that is nearly a named operator is not one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xyntra_ep.diagnostics.fused.groups import Group
from xyntra_ep.fusion.graph import Graph, Node
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Attention, Conv, Gemm, NoSoftmax, Pointwise, RowReduce, ValueKind

AttributeValue = int | float | str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCall:
    """A call of ``custom_ops``' operator ``name``. ``swapped``: inputs that it wants with their last two axes exchanged."""

    name: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    swapped: frozenset[int] = frozenset()


def named_call(graph: Graph, group: Group, inputs: Sequence[str], outputs: Sequence[str]) -> NamedCall | None:
    """The named operator that ``group`` is; ``inputs`` are those that are not small constants. None: it is none."""
    values = [graph.values[name] for name in (*inputs, *outputs)]
    if group.extra or len(outputs) != 1 or any(v.dtype is not DType.F32 or v.shape is None for v in values):
        return None
    part = _Group(graph, group, inputs)
    match group.op:
        case Gemm() if not group.moved:
            return _gemm(part, group.op)
        case Conv() if not group.moved:
            return _conv(part, group.op)
        case Attention() if not group.moved:
            return _attention(part, group.op)
        case Pointwise() if not group.moved:
            return _activation(part, group.op)
        case RowReduce():
            return _layer_norm(part, group.op) or (None if group.moved else _rms_norm(part, group.op))
        case _:
            return None


class _Group:
    """The nodes and inputs of a group, to be asked for their parts."""

    def __init__(self, graph: Graph, group: Group, inputs: Sequence[str]) -> None:
        self.graph = graph
        self.group = group
        self.inputs = list(inputs)

    def only(self, *op_types: str) -> Node | None:
        """The one node of these types."""
        found = self.all(*op_types)
        return found[0] if len(found) == 1 else None

    def all(self, *op_types: str) -> list[Node]:
        nodes = (self.graph.nodes[n] for n in sorted(self.group.nodes))
        return [n for n in nodes if n.op_type in op_types and not n.domain]

    def rank(self, name: str) -> int:
        shape = self.graph.values[name].shape
        return -1 if shape is None else len(shape)

    def others(self, *taken: str) -> list[str]:
        return [name for name in self.inputs if name not in taken]

    def is_input(self, *names: str) -> bool:
        return all(name in self.inputs for name in names)

    def constant(self, load: Expr) -> str | None:
        """The graph's name of the constant that ``load`` reads along the last axis."""
        value = self.group.program.values[self.group.op.inputs[load.attr].value]
        return value.name if value.kind is ValueKind.CONST and self.rank(value.name) == 1 else None


def _along(e: Expr, axis: int) -> bool:
    """A load by the index of one axis: a bias, a scale."""
    return e.kind == "load" and e.args == (E.axis(axis),)


def _whole(e: Expr, domain: Sequence[Size]) -> bool:
    """A load at the loop position itself."""
    if e.kind != "load" or len(e.args) != len(domain):
        return False
    return all(i is E.axis(a) or (n == 1 and i is E.const(0)) for a, (i, n) in enumerate(zip(e.args, domain, strict=True)))


# -- products


def _gemm(part: _Group, gemm: Gemm) -> NamedCall | None:
    node = part.only("MatMul", "Gemm")
    if node is None or not part.is_input(*node.inputs[:2]) or not _plain(node) or node.inputs[0] == node.inputs[1]:
        return None
    x, w = node.inputs[:2]
    rest = part.others(x, w)
    biases = [name for name in rest if part.rank(name) == 1]
    if part.rank(x) < 2 or part.rank(w) != 2 or len(biases) != 1:
        return None
    last = len(gemm.domain) - 1
    if gemm.epilogue.kind == "call" and gemm.epilogue.attr == "gelu_erf" and len(rest) == 1:
        terms = _terms(gemm.epilogue.args[0])
        fits = len(terms) == 2 and E.acc(0) in terms and any(_along(t, last) for t in terms)
        return NamedCall(name="GemmBiasGelu", inputs=(x, w, *rest)) if fits else None
    terms = _terms(gemm.epilogue)
    residual = [name for name in rest if name not in biases]
    if len(terms) == 3 and len(residual) == 1 and E.acc(0) in terms:
        roles = [_along(t, last) for t in terms], [_whole(t, gemm.domain) for t in terms]
        if sum(roles[0]) == 1 and sum(roles[1]) == 1:
            return NamedCall(name="GemmBiasResidual", inputs=(x, w, *biases, *residual))
    return None


def _plain(node: Node) -> bool:
    """x @ w, whatever the node is called."""
    unit = all(node.attr(name, 1.0) == 1.0 for name in ("alpha", "beta"))
    return node.op_type == "MatMul" or (unit and not node.attr("transA", 0) and not node.attr("transB", 0))


def _terms(e: Expr) -> list[Expr]:
    return [t for a in e.args for t in _terms(a)] if e.kind == "call" and e.attr == "add" else [e]


def _conv(part: _Group, conv: Conv) -> NamedCall | None:
    node = part.only("Conv")
    if node is None or len(node.inputs) != 3 or not part.is_input(*node.inputs) or len(conv.domain) != 4:
        return None
    if node.attr("auto_pad", "NOTSET") != "NOTSET" or len(set(node.inputs)) != 3:
        return None
    attributes: dict[str, AttributeValue] = {
        name: node.attr(name) for name in ("strides", "pads", "dilations", "group") if name in node.attrs
    }
    terms = _terms(conv.epilogue.args[0]) if conv.epilogue.kind == "call" and conv.epilogue.attr == "relu" else []
    rest = part.others(*node.inputs)
    if E.acc(0) not in terms or sum(_along(t, 1) for t in terms) != 1:
        return None
    if len(terms) == 2 and not rest:
        return NamedCall(name="ConvBiasRelu", inputs=node.inputs, attributes=attributes)
    if len(terms) == 3 and len(rest) == 1 and any(_permuted(t, len(conv.domain)) for t in terms):
        return NamedCall(name="ConvBiasResidualRelu", inputs=(*node.inputs, *rest), attributes=attributes)
    return None


def _permuted(e: Expr, rank: int) -> bool:
    """A load at the loop position of a tensor whose axes are stored in another order, as images are."""
    return e.kind == "load" and len(e.args) == rank and set(e.args) == {E.axis(a) for a in range(rank)}


# -- attention


def _attention(part: _Group, attention: Attention) -> NamedCall | None:
    products = part.all("MatMul")
    if len(products) != 2 or attention.no_softmax is not NoSoftmax.NAN:
        return None
    (q, k), (_, v) = (node.inputs for node in products)
    masks = part.others(q, k, v)
    if len({q, k, v}) != 3 or not part.is_input(q, k, v) or len(masks) != 1 or any(part.rank(n) != 4 for n in (q, k, v)):
        return None
    terms = _terms(attention.score)
    scaled = [t for t in terms if _scale(t) is not None]
    if len(terms) != 2 or len(scaled) != 1:
        return None
    [mask] = [t for t in terms if t is not scaled[0]]
    scale = _scale(scaled[0])
    if scale is None or not _broadcasts(mask, 4):
        return None
    return NamedCall(name="Attention", inputs=(q, k, v, *masks), attributes={"scale": scale}, swapped=frozenset({1}))


def _scale(e: Expr) -> float | None:
    """c in acc * c or acc / c."""
    if e is E.acc(0):
        return 1.0
    if e.kind != "call" or e.attr not in ("mul", "div"):
        return None
    numbers = [a.attr for a in e.args if a.kind == "const"]
    if len(numbers) != 1 or E.acc(0) not in e.args or (e.attr == "div" and (e.args[0] is not E.acc(0) or not numbers[0])):
        return None
    return float(numbers[0]) if e.attr == "mul" else 1.0 / float(numbers[0])


def _broadcasts(e: Expr, rank: int) -> bool:
    """A load by the last axes, each index the loop's or 0."""
    places = range(rank - len(e.args), rank)
    return e.kind == "load" and all(i is E.axis(a) or i is E.const(0) for i, a in zip(e.args, places, strict=True))


# -- rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Norm:
    """dividend / sqrt(acc(last) / n + epsilon) * scale, over the last axis of ``domain``; scale is a constant's name."""

    dividend: Expr
    mean: Expr  # acc(0) / n
    epsilon: float
    scale: str


def _norm(part: _Group, rows: RowReduce, body: Expr) -> _Norm | None:
    if len(rows.outputs) != 1 or rows.outputs[0].per_row or len(rows.inner) != 1 or not isinstance(rows.inner[0], int):
        return None
    above, below = _quotient(body)
    scales = [e for e in above if _along(e, len(rows.outer))]
    if len(above) != 2 or len(scales) != 1 or len(below) != 1 or below[0].kind != "call" or below[0].attr != "sqrt":
        return None
    n = E.const(float(rows.inner[0]))
    square = E.call("div", E.acc(len(rows.stages) - 1), n)
    epsilon = [e.attr for e in _terms(below[0].args[0]) if e.kind == "const"]
    scale = part.constant(scales[0])
    if set(_terms(below[0].args[0])) != {square, *map(E.const, epsilon)} or len(epsilon) != 1 or scale is None:
        return None
    [dividend] = [e for e in above if e is not scales[0]]
    return _Norm(dividend=dividend, mean=E.call("div", E.acc(0), n), epsilon=float(epsilon[0]), scale=scale)


def _quotient(e: Expr) -> tuple[list[Expr], list[Expr]]:
    """A product as what stands above and below the line."""
    if e.kind == "call" and e.attr in ("mul", "div"):
        (a, b), (c, d) = (_quotient(x) for x in e.args)
        return (a + c, b + d) if e.attr == "mul" else (a + d, b + c)
    return ([], []) if e is E.const(1.0) else ([e], [])


def _layer_norm(part: _Group, rows: RowReduce) -> NamedCall | None:
    terms = _terms(rows.outputs[0].body)
    shifts = [t for t in terms if _along(t, len(rows.outer))]
    if len(terms) != 2 or len(shifts) != 1 or len(rows.stages) != 2:
        return None
    norm = _norm(part, rows, terms[terms[0] is shifts[0]])
    bias = part.constant(shifts[0])
    x = rows.stages[0].body
    if norm is None or bias is None or norm.dividend is not E.call("sub", x, norm.mean):
        return None
    summed = [t for t in _terms(x) if not (part.group.moved and _along(t, len(rows.outer)))]
    rest = part.others(norm.scale, bias)
    if rows.stages[1].body is not E.call("mul", norm.dividend, norm.dividend) or len(rest) != 2:
        return None
    if len(summed) != 2 or not all(_whole(t, (*rows.outer, *rows.inner)) for t in summed):
        return None
    return NamedCall(name="LayerNormResidual", inputs=(*rest, norm.scale, bias), attributes={"epsilon": norm.epsilon})


def _rms_norm(part: _Group, rows: RowReduce) -> NamedCall | None:
    norm = _norm(part, rows, rows.outputs[0].body) if len(rows.stages) == 1 else None
    if norm is None or not _whole(norm.dividend, (*rows.outer, *rows.inner)):
        return None
    rest = part.others(norm.scale)
    if rows.stages[0].body is not E.call("mul", norm.dividend, norm.dividend) or len(rest) != 1:
        return None
    return NamedCall(name="RmsNorm", inputs=(*rest, norm.scale), attributes={"epsilon": norm.epsilon})


# -- activations


def _activation(part: _Group, pointwise: Pointwise) -> NamedCall | None:
    if len(part.inputs) != 1 or len(pointwise.bodies) != 1:
        return None
    [body] = pointwise.bodies
    names = {"gelu_tanh": "GeluTanh", "silu": "Silu"}
    if body.kind != "call" or body.attr not in names or not _whole(body.args[0], pointwise.domain):
        return None
    return NamedCall(name=names[body.attr], inputs=tuple(part.inputs))
