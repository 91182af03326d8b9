"""What a lazy tensor demands of its sizes, whatever operator made it: no kernel then reads what is not there.

Each kind of node has its rule: a slice lies inside its base, a reshape keeps the number of elements, an axis is repeated only
where it has one, parts of a concatenation agree, and an element that is read at a place linear in the loop's position is there at
all positions. What is proven for all sizes costs nothing; what is left becomes a condition of the run. `planning.bounds` proves
the same of the finished program, where views have become strides.

Reads below a choice (padding, windows) and at positions that are data are not judged here: kernels clamp those, and the operator
itself demands that data are in range (`Context.require_data`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xyntra_ep.fusion.checks import Checks
from xyntra_ep.fusion.tensor import (
    ConcatNode,
    ConvNode,
    Expand,
    GemmNode,
    Map,
    Reshape,
    RowNode,
    Slice,
    Tensor,
    View,
)
from xyntra_ep.tracea.core_ir.dims import Size, both, either, eq, le, lt, product
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.index_range import exact_interval

Condition = tuple[Size, str]


def conditions(t: Tensor, checks: Checks) -> Iterator[Condition]:
    """(condition, what is wrong without it) of ``t`` itself, not of what it reads; those that hold always are left out."""
    for condition, message in _all(t, checks):
        if condition != 1:
            yield condition, message


def _all(t: Tensor, checks: Checks) -> Iterator[Condition]:
    for axis, extent in enumerate(t.shape):
        yield le(0, extent), f"the size of axis {axis} would be negative"
    match t.node:
        case View(base=base, step=step):
            yield from _view(base, step, checks)
        case Map(inputs=inputs, body=body):
            yield from _reads(body, inputs, t.shape)
        case RowNode() as row:
            both_domains = (*row.outer, *row.inner)
            for body in (*(s.body for s in row.stages), *(b for b, per_row in row.outputs if not per_row)):
                yield from _reads(body, row.inputs, both_domains)
            for body in (b for b, per_row in row.outputs if per_row):
                yield from _reads(body, row.inputs, row.outer)
        case GemmNode(a=a, b=b):
            yield _same(checks, a.shape[-1], b.shape[-2]), "the inner dimensions of a product differ"
            for x, y in zip(a.shape[:-2], b.shape[:-2], strict=True):
                yield _same(checks, x, y), "the batch dimensions of a product differ"
        case ConvNode(x=x, w=w, group=group):
            yield _same(checks, x.shape[1], w.shape[1] * group), "the channels differ from those of the weights"
            yield eq(w.shape[0], w.shape[0] // group * group), "the output channels cannot be divided into the groups"
        case ConcatNode(parts=parts, axis=axis):
            for part in parts:
                for i, (have, want) in enumerate(zip(part.shape, t.shape, strict=True)):
                    if i != axis:  # what has no elements is not copied, however long it is otherwise
                        agree = either(_same(checks, have, want), eq(part.shape[axis], 0))
                        yield agree, f"axis {i} of the concatenated tensors differs"


def _same(checks: Checks, a: Size, b: Size) -> Size:
    return 1 if checks.same(a, b) else eq(a, b)


def _view(base: Tensor, step: object, checks: Checks) -> Iterator[Condition]:
    match step:
        case Reshape(shape=shape):
            if not _same_sizes(checks, shape, base.shape):
                yield eq(product(shape), base.size), "the number of elements differs"
        case Slice(starts=starts, steps=steps, shape=shape):
            for axis, (first, stride, length) in enumerate(zip(starts, steps, shape, strict=True)):
                if first == 0 and stride == 1 and checks.same(length, base.shape[axis]):
                    continue
                yield inside(first, stride, length, base.shape[axis]), f"what is taken of axis {axis} lies outside of it"
        case Expand(shape=shape):
            for axis, (have, want) in enumerate(zip(base.shape, shape, strict=True)):
                if not (have == 1 or checks.same(have, want) or checks.is_source(have, want)):
                    yield either(eq(have, 1), eq(have, want)), f"axis {axis} can be repeated only where it is 1"


def _same_sizes(checks: Checks, a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether the shapes agree but for axes of 1, so that their products need no look."""
    left, right = ([s for s in shape if s != 1] for shape in (a, b))
    return len(left) == len(right) and all(checks.same(x, y) for x, y in zip(left, right, strict=True))


def inside(first: Size, stride: Size, length: Size, extent: Size) -> Size:
    """Whether ``length`` elements from ``first`` on, ``stride`` apart, lie in [0, extent); nothing always does."""
    last = first + (length - 1) * stride
    if isinstance(stride, int):
        low, high = (first, last) if stride >= 0 else (last, first)
        within = both(le(0, low), lt(high, extent))
    else:
        within = both(both(le(0, first), lt(first, extent)), both(le(0, last), lt(last, extent)))
    return either(within, le(length, 0)) if within != 1 else 1


def _reads(body: Expr, inputs: Sequence[Tensor], domain: Sequence[Size]) -> Iterator[Condition]:
    """Of the loads that are carried out at every position of ``domain``."""
    empty: Size | None = None
    for load in _unconditional_loads(body):
        operand = inputs[load.attr]
        for axis, (index, extent) in enumerate(zip(load.args, operand.shape, strict=True)):
            found = exact_interval(index, domain)
            if found is None or (index.kind == "axis" and domain[index.attr] == extent):
                continue
            within = both(le(0, found[0]), lt(found[1], extent))
            if within != 1:
                empty = eq(product(domain), 0) if empty is None else empty
                yield either(within, empty), f"axis {axis} of an operand is too short"


def _unconditional_loads(body: Expr) -> list[Expr]:
    """Loads outside of the branches of a choice."""
    found: dict[Expr, None] = {}
    seen: set[int] = set()
    stack = [body]
    while stack:
        e = stack.pop()
        if id(e) in seen:
            continue
        seen.add(id(e))
        if e.kind == "load":
            found[e] = None
        stack.extend(e.args[:1] if e.kind == "call" and e.attr == "where" else e.args)
    return list(found)
