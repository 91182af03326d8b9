"""Reading a node's operands and attributes, with the declines that go with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.tensor import Leaf, Tensor, from_content
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

Inputs: TypeAlias = list[Tensor | None]
Lower: TypeAlias = Callable[[Context, Node, Inputs], Tensor]
LowerMany: TypeAlias = Callable[[Context, Node, Inputs], Sequence[Tensor]]


def one(inputs: Sequence[Tensor | None], i: int) -> Tensor:
    """Input ``i``, which must be there."""
    found = maybe(inputs, i)
    if found is None:
        raise UnsupportedError(f"input {i} is missing")
    return found


def maybe(inputs: Sequence[Tensor | None], i: int) -> Tensor | None:
    """Input ``i`` or None."""
    return inputs[i] if i < len(inputs) else None


def all_of(inputs: Sequence[Tensor | None]) -> list[Tensor]:
    return [one(inputs, i) for i in range(len(inputs))]


def as_float(t: Tensor) -> Tensor:
    """``t``, which must be of a float type."""
    if not t.dtype.is_float:
        raise UnsupportedError(f"dtype {t.dtype}")
    return t


def float_input(inputs: Sequence[Tensor | None], i: int) -> Tensor:
    return as_float(one(inputs, i))


def wanted_outputs(node: Node) -> int:
    """How many outputs the node has up to the last one that is named."""
    return max((i + 1 for i, name in enumerate(node.outputs) if name), default=0)


def require_indices(c: Context, indices: Tensor, extents: Sequence[Size], message: str, *, backwards: bool = True) -> None:
    """Every element of ``indices`` must name one of an axis: k, k + n ... of its last axis one of ``extents[k]``, for n extents.
    With ``backwards`` a negative one counts from the end. Those known now are judged now, or when sizes are; others in each run.
    """
    period = len(extents)
    least = [-n if backwards else 0 for n in extents]
    known = _known_elements(c, indices)
    if known is None:

        def chosen(sizes: Sequence[Size], place: Expr) -> Expr:
            result = E.size(sizes[0])
            for k, size in enumerate(sizes[1:], start=1):
                here = E.call("eq", E.call("mod", place, E.const(period)), E.const(k))
                result = E.call("where", here, E.size(size), result)
            return result

        def wrong(v: Expr, place: Expr) -> Expr:
            return E.call("or", E.call("lt", v, chosen(least, place)), E.call("le", chosen(extents, place), v))

        c.require_data(indices, wrong, message)
        return
    for k, (low, extent) in enumerate(zip(least, extents, strict=True)):
        elements = known[k::period]
        numbers = [i for i in elements if isinstance(i, int)]
        ends = {min(numbers), max(numbers)} if numbers else set()
        symbolic: list[Size] = [i for i in elements if isinstance(i, Dim)]
        for i in [*ends, *symbolic]:
            c.require(dims.both(dims.le(low, i), dims.lt(i, extent)), message)


def _known_elements(c: Context, t: Tensor) -> list[Size] | None:
    if t.content is not None:
        return list(t.content.reshape(-1))
    if isinstance(t.node, Leaf) and t.is_const:
        return [int(i) for i in c.constant(t, "indices").reshape(-1)]
    return None


def const_number(t: Tensor, what: str) -> float | int | bool:
    """The value of a one-element constant."""
    value = t.scalar()
    if value is None:
        raise UnsupportedError(f"{what} is not constant")
    return value


def normal_axis(axis: int, rank: int) -> int:
    """``axis`` counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise UnsupportedError(f"axis {axis} of a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis


def wrapped(dtype: DType, value: Expr) -> Expr:
    """``value`` as it reads back after being stored as ``dtype``: narrow integers wrap.

    Floats are not rounded: inside a fused chain a half-precision graph is computed in f32, as ORT does inside its own fused
    nodes. Rounding after every node costs accuracy and time; a Cast that the model writes down does round.
    """
    wrap = f"wrap_{dtype}"
    return E.call(wrap, value) if wrap in E.SCALAR_OPS and value.dtype is DType.I64 else value


def fold(operands: Sequence[Tensor], function: Callable[..., Size], dtype: DType) -> Tensor | None:
    """Elementwise ``function`` over integer contents that are known (shape arithmetic); None when one is not."""
    known = [t.content for t in operands if t.content is not None and not t.dtype.is_float]
    if len(known) < len(operands):
        return None
    contents = np.broadcast_arrays(*known)
    values = [function(*elements) for elements in zip(*(x.reshape(-1) for x in contents), strict=True)]
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return from_content(array.reshape(contents[0].shape), dtype)


def f(value: float) -> Expr:
    """A float constant."""
    return E.const(float(value))


def total(terms: Sequence[Expr]) -> Expr:
    """The sum of at least one term."""
    result = terms[0]
    for term in terms[1:]:
        result = E.call("add", result, term)
    return result


def within(position: Expr, extent: Size) -> Expr:
    """0 <= position < extent."""
    return E.call("and", E.call("le", E.const(0), position), E.call("lt", position, E.size(extent)))


def clamp_index(position: Expr, extent: Size) -> Expr:
    """``position`` moved into [0, extent)."""
    return E.call("max", E.call("min", position, E.size(extent - 1)), E.const(0))


def from_end(position: Expr, extent: Size) -> Expr:
    """An index as ONNX writes it: a negative one counts from the end."""
    return E.call("where", E.call("lt", position, E.const(0)), E.call("add", position, E.size(extent)), position)
