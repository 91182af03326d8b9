"""Conv: a product of matrices whose left factor is gathered from the image (implicit GEMM); of narrow groups, a sum per result.

pixels   n and the output's spatial axes     x channels of a group     the tile of a program
k        input channels of a group and taps                           the sum
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.frameworks.triton.expressions import Bodies, Running, Space
from xyntra_ep.frameworks.triton.kernel_text import KernelText, operand, python_size
from xyntra_ep.frameworks.triton.kinds.pointwise import flat
from xyntra_ep.frameworks.triton.kinds.products import LEAST, LEAST_BYTES, add_bytes, block_of, dot_type
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import BYTES
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.shared.index import Group

NARROW = 16  # channels of a group, below which tl.dot has nothing to multiply


def conv(op: Conv) -> KernelText:
    channels = op.inputs[1].shape[0]
    assert isinstance(channels, int)
    return _direct(op) if channels // op.group < NARROW and op.group > 1 else _implicit(op)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reads:
    """The elements of x and w that are multiplied, and where x has them: ``conditions``."""

    x: Expr
    conditions: tuple[Expr, ...]
    w: Expr


def _reads(op: Conv, group: Expr, k_axes: Sequence[int]) -> _Reads:
    """``k_axes``: those that count the input channel of a group, then the taps."""
    x, w = op.inputs[:2]
    channel = axis(k_axes[0])
    if op.group > 1:
        channel = call("add", call("mul", group, size(w.shape[1])), channel)
    indices, conditions = [axis(0), channel], []
    spatial = zip(op.strides, op.dilations, op.pads, x.shape[2:], w.shape[2:], op.domain[2:], strict=True)
    for i, (stride, dilation, pad, extent, taps, outputs) in enumerate(spatial):
        at = call("mul", axis(2 + i), const(stride))
        if taps != 1:
            at = call("add", at, call("mul", axis(k_axes[1 + i]), const(dilation)))
        if pad != 0:
            at = call("sub", at, size(pad))
        if pad != 0:
            conditions.append(call("le", const(0), at))
        if not (pad == 0 and _fits(extent, outputs, stride, taps, dilation)):
            conditions.append(call("lt", at, size(extent)))
        indices.append(at)
    return _Reads(
        x=load(0, *indices, dtype=x.dtype),
        conditions=tuple(conditions),
        w=load(1, axis(1), *map(axis, k_axes), dtype=w.dtype),
    )


def _fits(extent: Size, outputs: Size, stride: int, taps: Size, dilation: int) -> bool:
    """Whether the last output reads nothing behind the image's end."""
    last = (outputs - 1) * stride + (taps - 1) * dilation
    return isinstance(last, int) and isinstance(extent, int) and last < extent


def _k_group(op: Conv, first: int) -> tuple[Group, tuple[int, ...]]:
    """The axes of the sum from number ``first`` on: the channel is counted last where neighbours in memory differ in it."""
    x, w = op.inputs[:2]
    numbers = tuple(range(first, first + len(w.shape) - 1))
    last = x.strides[1] == 1
    order = (*numbers[1:], numbers[0]) if last else numbers
    extents = dict(zip(numbers, w.shape[1:], strict=True))
    return Group(axes=order, extents=tuple(extents[i] for i in order)), numbers


def _implicit(op: Conv) -> KernelText:
    kernel = KernelText()
    x, w = op.inputs[:2]
    in_bytes = x.dtype in BYTES
    rank = len(op.domain)
    pixels, depth = product((op.domain[0], *op.domain[2:])), product(w.shape[1:])
    channels = w.shape[0] // op.group
    pointers = {0: kernel.pointer(x, "x"), 1: kernel.pointer(w, "w")}
    block_p = kernel.constexpr("BLOCK_P", block_of(pixels, 64))
    block_m = kernel.constexpr("BLOCK_M", block_of(channels, 64))
    block_k = kernel.constexpr("BLOCK_K", block_of(depth, 32, LEAST_BYTES if in_bytes else LEAST))
    sizes = kernel.blocks
    grid = [f"triton.cdiv({python_size(pixels)}, {sizes[block_p]})", f"triton.cdiv({python_size(channels)}, {sizes[block_m]})"]
    kernel.line(f"pixels = tl.program_id(0) * {block_p} + tl.arange(0, {block_p})")
    pixels_mask = kernel.let("pixels_mask", f"pixels < {operand(kernel.size(pixels))}")
    kernel.line(f"m = tl.program_id(1) * {block_m} + tl.arange(0, {block_m})")
    m_mask = "" if channels % sizes[block_m] == 0 else kernel.let("m_mask", f"m < {kernel.size(channels)}")
    groups: list[Running] = []
    if op.group > 1:
        kernel.line("group = tl.program_id(2)")
        kernel.line(f"m += group * {kernel.size(channels)}")
        grid.append(str(op.group))
    kernel.grid = tuple(grid)
    spatial = (0, *range(2, rank))
    extents = tuple(op.domain[i] for i in spatial)
    k_group, k_axes = _k_group(op, rank)
    group_axis = rank + len(k_axes)
    if op.group > 1:
        groups = [Running(group=Group(axes=(group_axis,), extents=(op.group,)), name="group", is_block=False)]
    of_pixels = Running(group=Group(axes=spatial, extents=extents), name="pixels[:, None]", mask="pixels_mask[:, None]")
    of_m = Running(
        group=Group(axes=(1,), extents=(op.domain[1],)), name="m[None, :]", mask=f"{m_mask}[None, :]" if m_mask else ""
    )
    reads = _reads(op, axis(group_axis), k_axes)
    domain = (*op.domain, *w.shape[1:], op.group)
    outer = Space(kernel, domain, [*groups, of_pixels, of_m])
    assert pixels_mask == "pixels_mask"
    cast, more = dot_type(op.product, x, w)
    kernel.line(f"acc = tl.zeros([{block_p}, {block_m}], tl.{'int32' if in_bytes else 'float32'})")
    with kernel.block(f"for start in range(0, {kernel.size(depth)}, {block_k}):"):
        kernel.line(f"k = start + tl.arange(0, {block_k})")
        k_mask = ""
        if not isinstance(depth, int) or depth % sizes[block_k]:
            k_mask = kernel.let("k_mask", f"k < {operand(kernel.size(depth))}")
        k = Running(group=k_group, name="k", mask=k_mask)
        alike = in_bytes or x.dtype is w.dtype
        in_x = outer.within(_spread(k, "[None, :]"))
        in_w = outer.within(_spread(k, "[:, None]"))
        a = Bodies(in_x, op.inputs, reads.conditions, pointers).load(
            reads.x, reads.conditions, as_stored=alike, whole=(*spatial, *k_axes)
        )
        b = Bodies(in_w, op.inputs, [], pointers).load(reads.w, as_stored=alike, whole=(1, *k_axes))
        if in_bytes:
            add_bytes(kernel, (a, x.dtype), (b, w.dtype), block_k)
        else:
            kernel.line(f"acc = tl.dot({a}{cast}, {b}{cast}, acc{more})")
    bodies = Bodies(outer, op.inputs, [op.epilogue], pointers, {0: "acc"})
    value = bodies.write(op.epilogue)
    bodies.store(op.output, kernel.pointer(op.output, "out"), value)
    return kernel


def _spread(running: Running, lanes: str) -> Running:
    return Running(group=running.group, name=f"{running.name}{lanes}", mask=f"{running.mask}{lanes}" if running.mask else "")


def _direct(op: Conv) -> KernelText:
    """A block of results for each program, one product after the other."""
    kernel = KernelText()
    x, w = op.inputs[:2]
    rank = len(op.domain)
    pointers = {0: kernel.pointer(x, "x"), 1: kernel.pointer(w, "w")}
    space = flat(kernel, op.domain)
    channels = w.shape[0] // op.group
    group = axis(1) if channels == 1 else call("div", axis(1), size(channels))
    k_group, k_axes = _k_group(op, rank)
    reads = _reads(op, group, k_axes)
    depth = product(w.shape[1:])
    in_bytes = x.dtype in BYTES
    kernel.line(f"acc = tl.zeros([BLOCK], tl.{'int32' if in_bytes else 'float32'})")
    with kernel.block(f"for k in range({kernel.size(depth)}):"):
        inner = space.within(Running(group=k_group, name="k", is_block=False), w.shape[1:])
        a = Bodies(inner, op.inputs, reads.conditions, pointers).load(reads.x, reads.conditions)
        b = Bodies(inner, op.inputs, [], pointers).load(reads.w)
        kernel.line(f"acc += {a} * {b}")  # in f32: more digits than a narrower product has
    bodies = Bodies(space, op.inputs, [op.epilogue], pointers, {0: "acc"})
    value = bodies.write(op.epilogue)
    bodies.store(op.output, kernel.pointer(op.output, "out"), value)
    return kernel
