"""The three inner functions of a Winograd kernel: transform a tile of x, multiply, transform and store a tile of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import reduce
from math import gcd

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._tile import AHEAD_UNIT, lines_until, unroll_of
from xyntra_ep.tracea.kernels.cpu.shared.streams import fetch_burst
from xyntra_ep.tracea.kernels.cpu.winograd._matrices import both_sides
from xyntra_ep.tracea.kernels.cpu.winograd._shape import WinogradShape
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Fma,
    Function,
    Pointer,
    PointerType,
    Rvalue,
    Var,
    f32,
    le,
    lt,
    splat,
    vmin,
)

_LINE = 64 // DType.F32.bytes
_READ, _WRITE = PointerType(DType.F32), PointerType(DType.F32, writable=True)
Callee = tuple[Function, tuple[Var, ...]]


def call(k: KernelBuilder, callee: Callee, *arguments: Rvalue) -> None:
    function, captured = callee
    k.call(function, *arguments, *captured)


def _close(k: KernelBuilder, f: FunctionBuilder) -> Callee:
    captured = f.capture()
    return k.function(f.finish()), captured


def input_transform(k: KernelBuilder, plan: WinogradShape, x: Pointer, at_edge: bool) -> Callee:
    """f(at, y, x, v): V of the tile whose first input is (y, x), at position ``at``, to v. ``at_edge``: it may be outside."""
    shape, size = plan.shape, plan.matrices.inputs
    f = FunctionBuilder("input_at_edge" if at_edge else "input")
    at, y0, x0 = (f.argument(name, INDEX) for name in ("at", "y", "x"))
    v = f.argument("v", _WRITE)
    rows: list[Rvalue] = []
    columns: list[Rvalue] = []
    if at_edge:
        for line, start, inside in ((shape.y, y0, rows), (shape.x, x0, columns)):
            end = k.param(line.inside)
            inside += [f.let("in", le(0, start + i) & lt(start + i, end)) for i in range(size)]
    y_step, x_step = k.param(shape.x_strides[1]), shape.x_strides[2]
    with f.loop("c", 0, shape.cin, plan.lanes) as c:
        count = f.let("count", vmin(plan.lanes, shape.cin - c)) if shape.cin % plan.lanes else None

        def element(row: int, column: int) -> Rvalue:
            value = f.load(x, at + row * y_step + column * x_step + c, plan.lanes, count)
            if not at_edge:
                return f.let("d", value)
            d = f.variable("d", Const(f32(plan.lanes), 0.0))
            with f.when(rows[row] & columns[column]):
                f.assign(d, value)
            return d

        inputs = [[element(row, column) for column in range(size)] for row in range(size)]
        for row, values in enumerate(both_sides(f, plan.matrices.bt, inputs)):
            for column, value in enumerate(values):
                f.store(v, (row * size + column) * plan.v_step + c, value)
    return _close(k, f)


def multiply(k: KernelBuilder, plan: WinogradShape, u: Pointer, rows: int, rate: int, bursts: bool) -> Callee:
    """f(v, u_at, m, ahead): rows of M = rows of V times one U. Meanwhile cache lines from ``ahead`` on are fetched, ``rate``
    of them per ``AHEAD_UNIT`` steps; ``bursts``: between the loops, see `Prefetching`. Where blocks have as many tiles as a run
    says, the rate is the function's last argument, and ``rate`` the highest that is expected.

    No sum runs over more than ``plan.chain`` channels; sums of sums are made in M.
    """
    f = FunctionBuilder(f"multiply{rows}x{plan.vectors}")
    v, u_at = f.argument("v", _READ), f.argument("u_at", INDEX)
    m, ahead = f.argument("m", _WRITE), f.argument("ahead", INDEX)
    told: Rvalue | int = rate if plan.is_fixed else f.argument("rate", INDEX)
    cin, length = plan.shape.cin, min(plan.chain, plan.shape.cin)
    unroll = unroll_of(rows * plan.vectors, gcd(cin, length))
    with f.loop("first", 0, cin, length) as first:
        acc = [[f.variable("acc", Const(f32(plan.lanes), 0.0)) for _ in range(plan.vectors)] for _ in range(rows)]
        end = vmin(first + length, cin) if cin % length else first + length
        end = f.let("end", end)
        if bursts:
            fetch_burst(f, f.pointer("next", u, ahead), lines_until(first, told), lines_until(end, told))
        with f.loop("k", first, end, unroll) as turn:
            for step in (turn + i for i in range(unroll)):
                at = u_at + step * plan.width
                b = [f.let("b", f.load(u, at + j * plan.lanes, plan.lanes)) for j in range(plan.vectors)]
                for i in range(rows):
                    a = f.let("a", splat(f.load(v, step + i * plan.row, 1), plan.lanes))
                    for j in range(plan.vectors):
                        f.assign(acc[i][j], Fma(a, b[j], acc[i][j]))
            line = f.let("line", lines_until(turn, told)) if rate and not bursts else turn
            for i in range(0 if bursts else -(-rate * unroll // AHEAD_UNIT)):
                f.prefetch(u, ahead + (line + i) * _LINE)
        places = [(i * plan.width + j * plan.lanes, acc[i][j]) for i in range(rows) for j in range(plan.vectors)]
        with f.when(lt(0, first)):
            for to, total in places:
                f.store(m, to, f.load(m, to, plan.lanes) + total)
        with f.otherwise():
            for to, total in places:
                f.store(m, to, total)
    return _close(k, f)


def output_transform(k: KernelBuilder, plan: WinogradShape, epilogue: Epilogue, out: Pointer, at_edge: bool) -> Callee:
    """f(m, image, [group], channel, y, x): the outputs of one tile whose first one is (y, x), for one panel, which begins with
    this channel of the group. ``at_edge``: the image may end within the tile."""
    shape, size, outputs = plan.shape, plan.matrices.inputs, plan.outputs
    f = FunctionBuilder("output_at_edge" if at_edge else "output")
    m = f.argument("m", _READ)
    names = ("image", *(["group"] * (shape.groups > 1)), "channel", "y", "x")
    image, *group, channel, y, x = (f.argument(name, INDEX) for name in names)
    last = plan.width if shape.cout % plan.width == 0 else f.let("last", vmin(plan.width, shape.cout - channel))
    # A loop over the vectors of a panel: the transform is long enough as it is.
    with f.loop("j", 0, last, plan.lanes) as j:
        at = f.let("channel", channel + j)
        count = f.let("count", vmin(plan.lanes, shape.cout - at)) if shape.cout % plan.lanes else None
        of_all = f.let("of_all", group[0] * shape.cout + at) if group else at
        step = plan.tiles * plan.width
        inputs = [
            [f.let("m", f.load(m, (row * size + column) * step + j, plan.lanes)) for column in range(size)] for row in range(size)
        ]
        results = both_sides(f, plan.matrices.at, inputs)
        here = epilogue.at(f)
        for row in range(outputs):
            for column in range(outputs):
                conditions = [
                    lt(start + i, k.param(n))
                    for start, i, n in ((y, row, shape.y.out), (x, column, shape.x.out))
                    if at_edge and i and not plan.divides(n)
                ]
                point = shape.point(image, of_all, y + row, x + column)
                with f.when(all_of(conditions)) if conditions else nullcontext():
                    there = epilogue.at(f) if conditions else here
                    value = there.value(point, results[row][column], plan.lanes, count)
                    there.store(shape.op.output, out, point, value, count)
    return _close(k, f)


def all_of(conditions: Sequence[Rvalue]) -> Rvalue:
    return reduce(lambda a, b: a & b, conditions)
