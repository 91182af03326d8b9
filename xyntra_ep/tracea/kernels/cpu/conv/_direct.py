"""The sums of a direct convolution: ``size`` pixels times ``vectors`` vectors of output channels in registers.

for ky in [first, stop):                             # kernel rows inside x
  for each run of taps:                              # see `_conv_row.TapRun`
    for k:                                           # channels of adjacent taps are one long k
      b[j] = w[k][j];  for pixel i of the run: acc[i][j] += x[i][k] * b[j]

A rounding error grows with the length of its chain of additions, so deep sums are sums of sums: after ``_CHAIN`` steps the
accumulators are added to totals in memory. That costs 1 % and halves the error at a depth of 1000.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.given_size import decided_by
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._blocking import Blocking, work_steps
from xyntra_ep.tracea.kernels.cpu.conv._edges import edges_of, ends_ns
from xyntra_ep.tracea.kernels.cpu.conv._pack import STREAMED_BYTES, packed_bytes
from xyntra_ep.tracea.kernels.cpu.conv._row import TapRun, kernel_columns
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape, overlapped
from xyntra_ep.tracea.kernels.cpu.conv._tile import AHEAD_UNIT, BURST_RATE, TileFunction, lines_until, unroll_of
from xyntra_ep.tracea.kernels.cpu.conv._walk import build_conv
from xyntra_ep.tracea.kernels.cpu.shared.streams import LINE_BYTES, fetch_burst
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Rvalue, f32, lt, splat, vmin

_LINE = 64 // DType.F32.bytes  # elements of a cache line
_CHAIN = 128


def build_direct(op: Conv, blocking: Blocking, context: BuildContext) -> list[KernelCall]:
    """``op`` must pass ``why_not_channels_last``; any number of groups."""
    shape = conv_shape(op)
    return build_conv("conv", shape, blocking, context, accumulate, edges=edges_of(shape, blocking, context.caps))


def direct_ns(op: Conv, blocking: Blocking, caps: Capabilities) -> float:
    """Estimated time on one core."""
    shape = conv_shape(op)
    steps = work_steps(shape, blocking.pixels, blocking.vectors, caps)
    weights = packed_bytes(shape, blocking.vectors * caps.lanes)
    streamed_ns = weights / caps.dram_gbs if weights >= STREAMED_BYTES else 0.0
    return overlapped(steps * caps.lanes * 2 / caps.fma_gflops, streamed_ns) + ends_ns(shape, blocking, caps)


Multiply = Callable[[TileFunction, TapRun, Rvalue, Rvalue, int], None]


def accumulate(f: TileFunction) -> None:
    totals = _Totals(f) if f.code.depth >= 2 * _CHAIN else None
    shape = f.code.shape
    if totals is None and shape.y.kernel == shape.x.kernel == 1:
        each_run(f, _multiply_and_fetch)
        return
    f.fetch_outputs()
    each_run(f, partial(_multiply, totals))
    if totals is not None:
        totals.finish()


def each_run(f: TileFunction, multiply: Multiply) -> None:
    """Emit ``multiply(f, run, position in x of its first pixel, first k, steps of k)`` for what lies side by side."""
    shape, sparse = f.code.shape, f.code.sparse
    step = shape.x.dilation * shape.x_strides[2]  # from tap to tap
    columns = sparse and kernel_columns(f.code.kernel, f, sparse, f.tile, f.arg["pixel"])
    with f.loop("ky", f.arg["first"], f.arg["stop"]) as ky:
        x_row = f.let("x_row", f.arg["at"] + ky * f.x_row_step)
        for run in f.tile.runs:
            start = f.let("k0", ky * (shape.x.kernel * shape.cin) + run.first * shape.cin)
            if shape.taps_are_adjacent or run.count == 1:
                multiply(f, run, x_row + run.first * step, start, run.count * shape.cin)
                continue
            with f.loop("kx", *(columns or (0, run.count))) as kx:
                at = f.let("x_tap", x_row + (kx + run.first) * step)
                multiply(f, run, at, f.let("k0", start + kx * shape.cin), shape.cin)


class _Totals:
    """Sums of the accumulators of a tile, in memory."""

    def __init__(self, f: TileFunction) -> None:
        self.f, self.lanes, self.width = f, f.code.lanes, f.code.width
        self.array = f.array("total", DType.F32, f.tile.size * self.width)
        for at in range(0, f.tile.size * self.width, self.lanes):
            f.store(self.array, at, Const(f32(self.lanes), 0.0))

    def add(self, pixels: range) -> None:
        """totals += acc; acc = 0."""
        for i in pixels:
            for j, acc in enumerate(self.f.acc[i]):
                at = i * self.width + j * self.lanes
                self.f.store(self.array, at, self.f.load(self.array, at, self.lanes) + acc)
                self.f.assign(acc, Const(f32(self.lanes), 0.0))

    def finish(self) -> None:
        """acc += totals."""
        for i, row in enumerate(self.f.acc):
            for j, acc in enumerate(row):
                self.f.assign(acc, acc + self.f.load(self.array, i * self.width + j * self.lanes, self.lanes))


Steps = Callable[[Rvalue | int, Rvalue | int], None]


def _steps(f: TileFunction, run: TapRun, at: Rvalue, start: Rvalue, unroll: int) -> Steps:
    """``steps(begin, end)`` emits acc += x[pixels of the run][at + begin, at + end) * w[start + begin, start + end); ``unroll``
    divides end - begin."""
    code = f.code
    x = f.pointer("x", f.x, at)
    w = f.pointer("w", code.w, f.arg["panel"] + start * code.width)
    pixel_step = code.shape.x.stride * code.shape.x_strides[2]
    ahead, rate = w, code.ahead_rate
    if rate is not None:
        ahead = f.pointer("next", code.w, f.arg["ahead"] + start * rate // AHEAD_UNIT * _LINE)

    def step(k: Rvalue) -> None:
        b = [f.let("b", f.load(w, k * code.width + j * code.lanes, code.lanes)) for j in range(code.vectors)]
        for i in range(run.low, run.high):
            a = f.let("a", splat(f.load(x, k + i * pixel_step, 1), code.lanes))
            for j in range(code.vectors):
                f.assign(f.acc[i][j], Fma(a, b[j], f.acc[i][j]))

    bursts = rate is not None and code.bursts and rate <= BURST_RATE

    def steps(begin: Rvalue | int, end: Rvalue | int) -> None:
        if rate is not None and bursts:
            fetch_burst(f, ahead, lines_until(begin, rate), lines_until(end, rate))
        with f.loop("k", begin, end, unroll) as k:
            for u in range(unroll):
                step(k + u)
                if rate is not None and not bursts and u % _steps_of_a_line(rate) == 0:
                    f.prefetch(ahead, lines_until(k + u, rate) * _LINE)

    return steps


def _steps_of_a_line(rate: int) -> int:
    """How many steps pass, at least, before the next line is wanted: a power of 2."""
    return 1 << ((AHEAD_UNIT // rate).bit_length() - 1)


def _multiply_and_fetch(f: TileFunction, run: TapRun, at: Rvalue, start: Rvalue, depth: int) -> None:
    """Few multiplications for each output: its lines are asked for one pixel after another, or they would keep what the
    multiplications wait for out of the few buffers between the caches."""
    unroll = unroll_of(f.tile.size * f.code.vectors, depth)
    steps = _steps(f, run, at, start, unroll)
    length = -(-depth // (f.tile.size * unroll)) * unroll
    with f.loop("i", 0, f.tile.size) as i:
        f.fetch_pixel(i)
        if f.code.x_is_far and f.code.shape.cout <= f.code.width:  # else another panel has read it just before
            fetch_next_pixel(f, at, i, depth)
        begin = f.let("begin", i * length)
        steps(begin, f.let("end", vmin(begin + length, depth)))


def fetch_next_pixel(f: TileFunction, at: Rvalue, i: Rvalue, depth: int) -> None:
    """Ask for pixel ``i`` of the next tile, whose first one follows the last one of this tile. A tile reads one line of each of
    its pixels after another: processors see no stream in that."""
    step = f.code.shape.x.stride * f.code.shape.x_strides[2]
    line = LINE_BYTES // f.code.shape.op.inputs[0].dtype.bytes
    first = f.let("next", at + (i + f.tile.size) * step)
    for k in range(0, depth, line):
        f.prefetch(f.x, first + k, locality=2)


def _multiply(totals: _Totals | None, f: TileFunction, run: TapRun, at: Rvalue, start: Rvalue, depth: int) -> None:
    """acc += x[pixels of the run][at, at + depth) * w[start, start + depth)."""
    unroll = unroll_of(f.tile.size * f.code.vectors, depth)
    steps = _steps(f, run, at, start, unroll)
    if totals is None or depth < _CHAIN // 2:
        steps(0, depth)
        return
    length = -(-depth // (max(1, decided_by("chains", round(depth / _CHAIN), depth)) * unroll)) * unroll
    with f.loop("begin", 0, depth, length) as begin:
        end = f.let("end", vmin(begin + length, depth) if depth % length else begin + length)
        steps(begin, end)
        # The last chain of all stays in registers.
        with f.when(lt(end, depth)) if depth == f.code.depth else nullcontext():
            totals.add(range(run.low, run.high))
