"""Scan and TopK: a whole row for each program."""

from __future__ import annotations

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.triton.expressions import Bodies, Running, Space
from xyntra_ep.frameworks.triton.kernel_text import KernelText, python_size
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, call, const, load, rewrite, size
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Scan, TopK
from xyntra_ep.tracea.kernels.shared.index import Group

LONGEST = 1 << 17  # of a row that one program holds


def _row(kernel: KernelText, shape: tuple[Size, ...], what: str) -> Space:
    """Variables of a program that has one row of ``shape``, whose columns are its last axis."""
    columns = shape[-1]
    if not isinstance(columns, int):
        raise UnsupportedError(f"{what} along an axis whose length only a run knows")
    if columns > LONGEST:
        raise UnsupportedError(f"{what} along {columns} elements; a program holds {LONGEST}")
    kernel.constexpr("BLOCK", 1 << (max(columns, 1) - 1).bit_length())
    kernel.grid = (python_size(product(shape[:-1])),)
    kernel.line("row = tl.program_id(0)")
    kernel.line("cols = tl.arange(0, BLOCK)")
    mask = "" if columns == kernel.blocks["BLOCK"] else kernel.let("cols_mask", f"cols < {columns}")
    last = len(shape) - 1
    running = [
        Running(group=Group(axes=tuple(range(last)), extents=shape[:-1]), name="row", is_block=False),
        Running(group=Group(axes=(last,), extents=(columns,)), name="cols", mask=mask),
    ]
    return Space(kernel, shape, running if last else running[1:])


def scan(op: Scan) -> KernelText:
    kernel = KernelText()
    space = _row(kernel, op.output.shape, "a scan")
    last, extent = len(op.output.shape) - 1, op.output.shape[-1]
    nothing = 0 if op.kind is ReduceKind.SUM else 1
    body = op.body
    if op.exclusive:  # each sees the sum before it: the row moved by one
        step = 1 if op.reverse else -1
        moved = call("add", axis(last), const(step))
        inside = call("lt", moved, size(extent)) if op.reverse else call("le", const(0), moved)
        shifted = rewrite(body, lambda e: moved if e is axis(last) else None)
        body = call("where", inside, shifted, const(float(nothing)) if body.dtype is DType.F32 else const(nothing))
    bodies = Bodies(space, op.inputs, [body], {})
    value = bodies.write(body)
    masks = space.masks([last])
    if masks:
        value = f"tl.where({masks[0]}, {value}, {nothing})"
    function = "cumsum" if op.kind is ReduceKind.SUM else "cumprod"
    kernel.line(f"y = tl.{function}({value}, axis=0{', reverse=True' if op.reverse else ''})")
    bodies.store(op.output, kernel.pointer(op.output, "out"), "y")
    return kernel


def top_k(op: TopK) -> KernelText:
    """The best of those that are left, k times; NaN counts as the largest, and of equals the first is taken."""
    kernel = KernelText()
    x = op.inputs[0]
    space = _row(kernel, x.shape, "the k best")
    last = len(x.shape) - 1
    bodies = Bodies(space, op.inputs, [], {})
    value = bodies.load(load(0, *map(axis, range(len(x.shape))), dtype=x.dtype))
    is_float = x.dtype.is_float
    worst = 'float("-inf")' if op.largest else 'float("inf")'
    if not is_float:
        worst = str(-(2**63) if op.largest else 2**63 - 1)
        kernel.line(f"key = {value}.to(tl.int64)")
    else:
        kernel.line(f'key = tl.where({value} != {value}, float("inf"), {value})')
    masks = space.masks([last])
    kernel.line(f"left = {masks[0] if masks else 'cols >= 0'}")
    best = "max" if op.largest else "min"
    with kernel.block(f"for i in range({op.k}):"):
        kernel.line(f"best = tl.{best}(tl.where(left, key, {worst}), axis=0)")
        kernel.line("place = tl.min(tl.where(left & (key == best), cols, BLOCK), axis=0)")
        kernel.line("taken = cols == place")
        picked = f"tl.sum(tl.where(taken, {value}, 0), axis=0)"
        each = Running(group=Group(axes=(last,), extents=(op.k,)), name="i", is_block=False)
        out = Space(kernel, (*x.shape[:-1], op.k), [*space.running[:-1], each])
        writer = Bodies(out, op.inputs, [], {})
        writer.store(op.values, kernel.pointer(op.values, "values"), picked)
        writer.store(op.indices, kernel.pointer(op.indices, "indices"), "place")
        kernel.line("left = left & ~taken")
    return kernel
