"""Movement: parts of tensors put elsewhere, as views or as index expressions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.frames import in_order, order_of
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._border import surrounded
from xyntra_ep.fusion.onnx_ops._operands import (
    Inputs,
    all_of,
    clamp_index,
    const_number,
    maybe,
    normal_axis,
    one,
    require_indices,
)
from xyntra_ep.fusion.op_spec import ALL, FLAG, INDICES, OpSpec, takes
from xyntra_ep.fusion.tensor import ConcatNode, Map, Slice, Tensor, View, from_content
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, ceildiv, select, smax, smin
from xyntra_ep.tracea.core_ir.expr import Expr

OPEN_ENDS = (2**31 - 1, 2**63 - 1)  # as the end of a slice: all that is left, in either direction
FAR = 2**31 - 1  # no axis is longer, so a bound beyond this is clamped whatever the size


def concat(c: Context, parts: list[Tensor], axis: int) -> Tensor:
    """``parts`` one after the other along ``axis``. Of one without elements nobody asks how long it is otherwise."""
    if any(t.rank != parts[0].rank for t in parts):
        raise UnsupportedError("Concat of different ranks")
    parts = _with_elements(c, parts, axis)
    other = [extent if i == axis else _common(c, parts, axis, i) for i, extent in enumerate(parts[0].shape)]
    contents = [t.content for t in parts if t.content is not None]
    extent = sum((t.shape[axis] for t in parts), start=0)
    shape = (*other[:axis], extent, *other[axis + 1 :])
    if len(contents) == len(parts):
        filled = [x for x in contents if x.size]  # what is empty need not fit
        return from_content(np.concatenate(filled, axis=axis) if filled else contents[0].reshape(shape), parts[0].dtype)
    if len(parts) == 1:
        return parts[0]
    perm = order_of(parts[0])
    if perm is not None and all(order_of(t) == perm for t in parts):  # where they lie, channels last mostly
        inverse = [perm.index(i) for i in range(len(perm))]
        return concat(c, [t.permute(inverse) for t in parts], perm[axis]).permute(perm)
    if len(parts) == 2 and isinstance(parts[0].shape[axis], int):
        joined = _rearranged(parts[0], parts[1], axis, shape)
        if joined is not None:
            return joined
    return Tensor(shape, parts[0].dtype, ConcatNode(parts=tuple(parts), axis=axis))


def _with_elements(c: Context, parts: Sequence[Tensor], axis: int) -> list[Tensor]:
    """``parts`` without those that have no elements along ``axis`` and no say in the other extents."""
    filled = [t for t in parts if t.shape[axis] != 0] or list(parts[:1])
    shape = filled[0].shape

    def fits(t: Tensor) -> bool:
        return all(c.checks.same(a, b) for i, (a, b) in enumerate(zip(t.shape, shape, strict=True)) if i != axis)

    if all(isinstance(extent, int) and extent > 0 for extent in shape):
        return filled
    return [t for t in parts if t is filled[0] or t.shape[axis] != 0 or not fits(t)]


def _common(c: Context, parts: Sequence[Tensor], axis: int, i: int) -> Size:
    """The extent of axis ``i`` of all parts but those that have no elements along ``axis``; that of the first one if none has.
    Where it is 0 though there are elements along ``axis``, the others have it too: ONNX Runtime then takes that of the first
    part, and leaves the result unwritten."""
    common = parts[0].shape[i]
    if all(c.checks.same(t.shape[i], common) for t in parts):
        return common
    if all(c.checks.assume(dims.eq(t.shape[i], common)) for t in parts):
        return common
    for t in reversed(parts):
        common = select(dims.eq(t.shape[axis], 0), common, t.shape[i])
    written = dims.either(dims.lt(0, common), dims.eq(sum((t.shape[axis] for t in parts), start=0), 0))
    for t in parts:
        empty = dims.eq(t.shape[axis], 0) * written
        c.require(dims.either(dims.eq(t.shape[i], common), empty), "shapes differ")
    return common


def _rearranged(a: Tensor, b: Tensor, axis: int, shape: Sequence[Size]) -> Tensor | None:
    """Two parts of one tensor in another order (a window that wraps round, half a head turned): no copy but where to read."""
    here = [E.axis(i) for i in range(len(shape))]
    first = E.size(a.shape[axis])
    behind = [*here[:axis], E.call("sub", here[axis], first), *here[axis + 1 :]]
    found = _element(a, here), _element(b, behind)
    if found[0] is None or found[1] is None or found[0][0].node is not found[1][0].node:
        return None
    (whole, x), (_, y) = found[0], found[1]
    is_first = E.call("lt", here[axis], first)
    if x.kind == "load" and y.kind == "load":  # then one load at either place
        at = [i if i is j else E.call("where", is_first, i, j) for i, j in zip(x.args, y.args, strict=True)]
        body = E.load(0, *at, dtype=whole.dtype)
    else:
        body = E.call("where", is_first, x, y)
    return Tensor(tuple(shape), a.dtype, Map(inputs=(whole,), body=body))


def _element(t: Tensor, index: list[Expr]) -> tuple[Tensor, Expr] | None:
    """(tensor, an element of a part of it at ``index``, perhaps changed by itself); None when ``t`` is no part."""
    if not (isinstance(t.node, Map) and len(t.node.inputs) == 1):
        place = _place(t, index)
        return None if place is None else (place[0], E.load(0, *place[1], dtype=t.dtype))
    (x,), body = t.node.inputs, t.node.body
    loads = [e for e in E.walk(body) if e.kind == "load"]
    if len(loads) != 1 or t.dtype is not x.dtype or _uses_its_position(body):
        return None
    place = _place(x, _at(loads[0].args, index))
    if place is None:
        return None
    whole, at = place
    return whole, E.rewrite(body, lambda e: E.load(0, *at, dtype=whole.dtype) if e is loads[0] else None)


def _at(indices: Sequence[Expr], index: Sequence[Expr]) -> list[Expr]:
    """``indices`` over axes, at ``index``."""
    return [E.rewrite(i, lambda e: index[e.attr] if e.kind == "axis" else None) for i in indices]


def _uses_its_position(body: Expr) -> bool:
    """Whether an axis is more than a place to load from."""
    stack = [body]
    while stack:
        e = stack.pop()
        if e.kind == "axis":
            return True
        stack.extend(() if e.kind == "load" else e.args)
    return False


def _place(t: Tensor, index: list[Expr]) -> tuple[Tensor, list[Expr]] | None:
    """The tensor that ``t`` is a slice of, and where in it."""
    return _followed(t, index) if isinstance(t.node, View) else None


def _followed(t: Tensor, index: list[Expr]) -> tuple[Tensor, list[Expr]]:
    """Through slices and what only moves elements."""
    node = t.node
    if isinstance(node, View) and isinstance(node.step, Slice):
        scaled = [E.call("mul", i, E.size(k)) for i, k in zip(index, node.step.steps, strict=True)]
        return _followed(node.base, [E.call("add", i, E.size(s)) for i, s in zip(scaled, node.step.starts, strict=True)])
    if isinstance(node, Map) and len(node.inputs) == 1 and node.body.kind == "load":
        return _followed(node.inputs[0], _at(node.body.args, index))
    return t, index


def part(t: Tensor, axis: int, start: Size, length: Size) -> Tensor:
    """``length`` elements of ``axis`` from ``start`` on."""
    starts: list[Size] = [0] * t.rank
    starts[axis] = start
    return t.slice(starts, [1] * t.rank, [*t.shape[:axis], length, *t.shape[axis + 1 :]])


def _concat(c: Context, node: Node, inputs: Inputs) -> Tensor:
    parts = all_of(inputs)
    return concat(c, parts, normal_axis(int(node.need("axis")), parts[0].rank))


def _split(c: Context, node: Node, inputs: Inputs) -> list[Tensor]:
    t, given = one(inputs, 0), maybe(inputs, 1)
    axis = normal_axis(int(node.attr("axis", 0)), t.rank)
    sizes: list[Size]
    if given is not None:
        sizes = given.ints("the sizes of Split")
    elif node.attr("split") is not None:
        sizes = [int(s) for s in node.attr("split")]
    else:
        parts = int(node.attr("num_outputs", len(node.outputs)))
        if node.version < 18:
            c.require(dims.eq(t.shape[axis] % parts, 0), "cannot split the axis evenly")
        chunk = ceildiv(t.shape[axis], parts)
        sizes = [chunk] * (parts - 1) + [t.shape[axis] - chunk * (parts - 1)]
    for size in sizes:
        c.require(dims.le(0, size), "more parts than there are elements, or a negative size")
    c.require(dims.eq(sum(sizes, start=0), t.shape[axis]), "the sizes do not add up to that of the axis")
    result: list[Tensor] = []
    start: Size = 0
    for size in sizes:
        result.append(part(t, axis, start, size))
        start = start + size
    return result


def _bound(position: Size, extent: Size, low: Size, high: Size) -> Size:
    """A slice bound as ONNX reads it: a negative one counts from the end; then it is clamped into [low, high]."""
    if isinstance(position, int):
        if abs(position) >= FAR:
            return high if position > 0 else low
        return smax(low, position + extent) if position < 0 else smin(position, high)
    moved = position if dims.known_nonnegative(position) else select(dims.lt(position, 0), position + extent, position)
    return smin(smax(low, moved), high)


def _slice(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = one(inputs, 0)
    if node.version < 10:
        starts, ends = list(node.need("starts")), list(node.need("ends"))
        given, steps = node.attr("axes"), None
    else:
        starts, ends = one(inputs, 1).ints("the start of Slice"), one(inputs, 2).ints("the end of Slice")
        axes_operand, steps_operand = maybe(inputs, 3), maybe(inputs, 4)
        given = None if axes_operand is None else axes_operand.const_ints("axes")
        steps = None if steps_operand is None else steps_operand.const_ints("steps")
    axes = [normal_axis(int(a), t.rank) for a in (range(len(starts)) if given is None else given)]
    begin: list[Size] = [0] * t.rank
    step = [1] * t.rank
    shape = list(t.shape)
    for i, axis in enumerate(axes):
        extent = t.shape[axis]
        step[axis] = 1 if steps is None else steps[i]
        if step[axis] == 0:
            raise UnsupportedError("Slice with step 0")
        forward = step[axis] > 0
        end = ends[i]
        to_the_end = isinstance(end, int) and (end >= FAR if forward else end <= -FAR or end in OPEN_ENDS)
        if forward and isinstance(starts[i], Dim):
            stop = extent if to_the_end else end
            if c.checks.assume_slice(starts[i], stop, extent):
                begin[axis], shape[axis] = starts[i], ceildiv(stop - starts[i], step[axis])
                continue
        low, high = (0, extent) if forward else (-1, extent - 1)
        begin[axis] = _bound(starts[i], extent, 0 if forward else smin(0, high), high)
        last = (extent if forward else -1) if to_the_end else _bound(end, extent, low, high)
        length = ceildiv(last - begin[axis], step[axis]) if forward else ceildiv(begin[axis] - last, -step[axis])
        shape[axis] = length if dims.known_nonnegative(length) else smax(0, length)
    return t.slice(begin, step, shape)


def _tile(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, repeats = one(inputs, 0), one(inputs, 1).ints("the repeats of Tile")
    for r in repeats:
        c.require(dims.le(0, r), "a negative number of repeats")
    shape = tuple(s * r for s, r in zip(t.shape, repeats, strict=True))
    known = [r for r in repeats if isinstance(r, int)]
    if t.content is not None and len(known) == len(repeats):
        return from_content(np.tile(t.content, known), t.dtype)
    if all(s == 1 for s, r in zip(t.shape, repeats, strict=True) if r != 1):
        return t.expand(shape)
    pairs = list(zip(t.shape, repeats, strict=True))  # an axis is tiled as two: which of the repeats, and where in it
    apart = [n for s, r in pairs for n in ((r, s) if r != 1 else (s,))]
    once = t.reshape([n for s, r in pairs for n in ((1, s) if r != 1 else (s,))])
    index = [E.axis(i) if have == want else E.const(0) for i, (have, want) in enumerate(zip(once.shape, apart, strict=True))]
    tiled = Tensor(tuple(apart), t.dtype, Map(inputs=(once,), body=E.load(0, *index, dtype=t.dtype)))
    return tiled.reshape(shape)


def _pad(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, fill = one(inputs, 0), maybe(inputs, 2)
    pads = list(node.need("pads")) if node.version < 11 else one(inputs, 1).ints("the pads of Pad")
    axes_operand = maybe(inputs, 3)
    axes = range(t.rank) if axes_operand is None else [normal_axis(a, t.rank) for a in axes_operand.const_ints("axes")]
    before: list[Size] = [0] * t.rank
    after: list[Size] = [0] * t.rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[len(axes) + i]
    if any(isinstance(p, Dim) and not dims.known_nonnegative(p) for p in (*before, *after)):
        raise UnsupportedError("pads of unknown sign")
    if node.attr("mode", "constant") == "constant":  # as much as is added on one side may go on the other, and more than there is
        cuts = [isinstance(b, int) and isinstance(a, int) and max(b, a) <= 0 for b, a in zip(before, after, strict=True)]
        t = _cropped(t, *([p if cut else 0 for p, cut in zip(side, cuts, strict=True)] for side in (before, after)))
        before, after = ([0 if cut else p for p, cut in zip(side, cuts, strict=True)] for side in (before, after))
    else:
        t = _cropped(t, before, after)
        for extent, *pair in zip(t.shape, before, after, strict=True):
            if any(isinstance(p, int) and p < 0 for p in pair):
                c.require(dims.lt(0, extent), "nothing is left to repeat")
        before, after = ([smax(0, p) if isinstance(p, int) else p for p in side] for side in (before, after))
    shape = tuple(b + n + a for b, n, a in zip(before, t.shape, after, strict=True))
    return in_order(order_of(t), _padded(c, t, before, shape, node, fill))


def _cropped(t: Tensor, before: list[Size], after: list[Size]) -> Tensor:
    """What negative pads leave."""
    starts = [-smin(0, b) if isinstance(b, int) else 0 for b in before]
    shape = [n - s + (smin(0, a) if isinstance(a, int) else 0) for n, s, a in zip(t.shape, starts, after, strict=True)]
    if any(isinstance(n, int) and n < 0 for n in shape):
        raise UnsupportedError("Pad removes more than there is")
    return t.slice(starts, [1] * t.rank, shape)


def _padded(c: Context, t: Tensor, before: list[Size], shape: tuple[Size, ...], node: Node, fill: Tensor | None) -> Tensor:
    mode = node.attr("mode", "constant")
    if mode == "constant":
        return _filled(t, before, shape, E.const(node.attr("value", 0.0), t.dtype), fill)
    index: list[Expr] = []
    for i, (b, n, whole) in enumerate(zip(before, t.shape, shape, strict=True)):
        position = E.call("sub", E.axis(i), E.size(b))
        if whole == n:
            position = E.axis(i)
        elif mode == "edge":
            c.require(dims.lt(0, n), "Pad: nothing to repeat")
            position = clamp_index(position, n)
        elif mode == "reflect":
            c.require(dims.both(dims.lt(b, n), dims.lt(whole - n - b, n)), "Pad: reflects more than there is")
            mirrored = E.call("abs", position)
            back = E.call("sub", E.size(2 * n - 2), mirrored)
            position = E.call("where", E.call("lt", mirrored, E.size(n)), mirrored, back)
        elif mode == "wrap":
            c.require(dims.lt(0, n), "Pad: nothing to repeat")
            position = E.call("mod", position, E.size(n))
        else:
            raise UnsupportedError(f"Pad mode {mode}")
        index.append(position)
    if shape == t.shape:
        return t
    return Tensor(shape, t.dtype, Map(inputs=(t,), body=E.load(0, *index, dtype=t.dtype)))


def _filled(t: Tensor, before: list[Size], shape: tuple[Size, ...], usual: Expr, fill: Tensor | None) -> Tensor:
    """``t`` within ``shape``, and around it what ``fill`` has, or is ``usual``."""
    if fill is None:
        return surrounded(t, before, shape, usual)
    if (scalar := fill.scalar()) is not None:
        return surrounded(t, before, shape, E.const(scalar, t.dtype))
    return surrounded(t, before, shape, E.load(1, *(E.const(0) for _ in fill.shape), dtype=t.dtype), [fill])


def _depth_to_space(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, block = one(inputs, 0), int(node.need("blocksize"))
    n, depth, h, w = t.shape
    inner = depth // (block * block)
    c.require(dims.eq(inner * block * block, depth), "DepthToSpace: the depth is no multiple of the block")
    if node.attr("mode", "DCR") == "DCR":
        moved = t.reshape((n, block, block, inner, h, w)).permute((0, 3, 4, 1, 5, 2))
    else:
        moved = t.reshape((n, inner, block, block, h, w)).permute((0, 1, 4, 2, 5, 3))
    return moved.reshape((n, inner, h * block, w * block))


def _space_to_depth(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, block = one(inputs, 0), int(node.need("blocksize"))
    n, depth, h, w = t.shape
    for extent in (h, w):
        c.require(dims.eq(extent // block * block, extent), "SpaceToDepth: a side is no multiple of the block")
    split = t.reshape((n, depth, h // block, block, w // block, block))
    moved = split.permute((0, 3, 5, 1, 2, 4) if node.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4))
    return moved.reshape((n, depth * block * block, h // block, w // block))


def _trilu(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, diagonal = one(inputs, 0), maybe(inputs, 1)
    k = 0 if diagonal is None else int(const_number(diagonal, "the diagonal of Trilu"))
    k = max(-FAR, min(FAR, k))  # beyond every corner is as far as it goes
    row, column = E.axis(t.rank - 2), E.axis(t.rank - 1)
    edge = E.call("add", row, E.const(k))
    kept = E.call("le", edge, column) if node.attr("upper", 1) else E.call("le", column, edge)
    value = E.load(0, *(E.axis(i) for i in range(t.rank)), dtype=t.dtype)
    return Tensor(t.shape, t.dtype, Map(inputs=(t,), body=E.call("where", kept, value, E.const(0, t.dtype))))


def _reverse_sequence(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, lengths = one(inputs, 0), one(inputs, 1)
    time, batch = int(node.attr("time_axis", 0)), int(node.attr("batch_axis", 1))
    c.require_equal(lengths.size, t.shape[batch], "one length for each batch is wanted")
    require_indices(c, lengths, [t.shape[time] + 1], "a length is not within the time axis", backwards=False)
    position, length = E.axis(time), E.load(1, E.axis(batch), dtype=lengths.dtype)
    turned = E.call("sub", E.call("sub", length, E.const(1)), position)
    index = [E.axis(i) for i in range(t.rank)]
    index[time] = E.call("where", E.call("lt", position, length), turned, position)
    return Tensor(t.shape, t.dtype, Map(inputs=(t, lengths), body=E.load(0, *index, dtype=t.dtype)))


_BLOCKS = takes("blocksize", mode=("DCR", "CRD"))

OPS = [
    OpSpec(name="Concat", lower=_concat, versions=(4, 13), inputs=None, attributes=takes("axis")),
    OpSpec(
        name="Split",
        lower=_split,
        versions=(2, 18),
        inputs=2,
        attributes=takes("axis", "num_outputs", "split"),
        types=(ALL, INDICES),
    ),
    OpSpec(
        name="Slice", lower=_slice, versions=(1, 13), inputs=5, attributes=takes("axes", "ends", "starts"), types=(ALL, INDICES)
    ),
    OpSpec(name="Tile", lower=_tile, versions=(6, 13), inputs=2, types=(ALL, INDICES)),
    OpSpec(
        name="Pad",
        lower=_pad,
        versions=(2, 25),
        inputs=4,
        attributes=takes("pads", "value", mode=("constant", "edge", "reflect", "wrap")),
        types=(ALL, INDICES, ALL, INDICES),
    ),
    OpSpec(name="DepthToSpace", lower=_depth_to_space, versions=(1, 28), attributes=_BLOCKS),
    OpSpec(name="SpaceToDepth", lower=_space_to_depth, versions=(1, 28), attributes=_BLOCKS),
    OpSpec(name="Trilu", lower=_trilu, versions=(1, 14), inputs=2, attributes=takes(upper=FLAG), types=(ALL, INDICES)),
    OpSpec(
        name="ReverseSequence",
        lower=_reverse_sequence,
        versions=(1, 28),
        inputs=2,
        attributes=takes("batch_axis", "time_axis"),
        types=(ALL, INDICES),
    ),
]
