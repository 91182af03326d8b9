"""The kernel of a convolution to few channels: lanes are channels of x, and a sum's lanes are added up at its end.

for strip of as many pixels as there are lanes:              # a copy with zeros where it reaches beyond a row of x
  for panel of output channels:
    for tile of pixels of the strip:
      for ky in [first, stop), k of the row's taps and channels in steps of a vector:
        x[i] = vector of pixel i;  acc[i][m] += x[i] * w[ky][k][m]
      sums = acc
    for m: one vector of pixels = the sums' lanes, added up in a tree; epilogue; store

A vector of output channels would be all but empty: of 16 lanes, 3 are at work in a convolution to 3 channels.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._edges import Edges, copy_function
from xyntra_ep.tracea.kernels.cpu.conv._row import kernel_rows
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, typical
from xyntra_ep.tracea.kernels.cpu.gemm._pack import sums_of
from xyntra_ep.tracea.kernels.shared.conv_taps import taps
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Fma,
    Function,
    Pointer,
    PointerType,
    Rvalue,
    Select,
    Shuffle,
    Var,
    f32,
    index,
    le,
    lt,
    vmin,
)

_UNIT_NS = 10_000
_IN_FLIGHT = 8  # sums that a step must have, or it waits for those of the step before
# In multiplications of a vector:
_TILE = 15  # to begin and end a tile's loops
_RESULT = 60  # to add up the lanes of a vector of results, and to finish and store it
_CHAIN = 512  # longer chains of additions are cut: their rounding errors grow with them
_LEAST_CHAIN = 64  # steps between two additions to the sums in memory

Callee = tuple[Function, tuple[Var, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """``pixels`` (a divisor of ``lanes``) x ``outputs``: the sums in registers."""

    shape: ConvShape
    pixels: int
    outputs: int
    lanes: int

    @property
    def adjacent(self) -> bool:
        """Whether all taps of a kernel row are one run."""
        return self.shape.taps_are_adjacent or self.shape.x.kernel == 1

    @property
    def runs(self) -> int:
        """Runs of neighbouring elements of x that a pixel meets in a kernel row."""
        return 1 if self.adjacent else self.shape.x.kernel

    @property
    def length(self) -> int:
        """Elements of a run."""
        return self.shape.cin * (self.shape.x.kernel if self.adjacent else 1)

    @property
    def steps(self) -> int:
        """Vectors of a run."""
        return -(-self.length // self.lanes)

    @property
    def panels(self) -> int:
        return -(-self.shape.cout // self.outputs)

    @property
    def panel_size(self) -> int:
        return self.shape.y.kernel * self.runs * self.steps * self.outputs * self.lanes

    @property
    def strips(self) -> Size:
        return ceildiv(self.shape.x.out, self.lanes)

    @property
    def edges(self) -> Edges:
        return Edges(shape=self.shape, pixels=self.lanes, lanes=self.lanes)

    def strip_ns(self, caps: Capabilities) -> float:
        """Estimated time of a strip, on one core."""
        step = max(self.pixels * self.outputs, self.pixels + self.outputs + 1, _IN_FLIGHT)
        steps = self.shape.y.kernel * self.runs * self.steps
        tiles = self.lanes // self.pixels * (steps * step + _TILE)
        return self.panels * (tiles + self.outputs * _RESULT) * self.lanes * 2 / caps.fma_gflops

    def cost_ns(self, caps: Capabilities) -> float:
        rows = typical(self.shape.batch) * typical(self.shape.y.out)
        return rows * typical(self.strips) * self.strip_ns(caps) + self.edges.copies_ns(1)


def most_outputs(pixels: int, caps: Capabilities) -> int:
    """Output channels whose sums fit in the registers beside a vector of each pixel and one of w, or the other way round."""
    free = caps.vector_registers - 1
    return max(m for m in range(1, free) if pixels * m + min(pixels, m) <= free)


def build_dots(dots: Dots, context: BuildContext) -> list[KernelCall]:
    """Pack the weights, compute."""
    pack, packed = _pack(dots)
    return [pack, _Kernel(dots, context).call(packed)]


def _pack(dots: Dots) -> tuple[KernelCall, TempBuffer]:
    """w as [panel][ky][run][step][output][lane], zeros where a vector meets no new elements of a run, and for outputs that do not
    exist."""
    shape, w = dots.shape, dots.shape.op.inputs[1]
    k = KernelBuilder(f"xy_conv_dots_pack_{shape.y.kernel}x{shape.x.kernel}_{dots.outputs}")
    k.note("a unit is one output channel")
    source, target = k.buffer("w", w.dtype), k.buffer("packed", DType.F32, writable=True)
    m_step, c_step, *tap_steps = (k.param(s) for s in w.strides)
    y_step, x_step = (index(0), *tap_steps)[-2:]
    units = dots.panels * dots.outputs
    with k.units() as m:
        to = k.let("to", m // dots.outputs * dots.panel_size + m % dots.outputs * dots.lanes)
        start = k.let("from", k.param(w.offset) + m * m_step)
        whole, beyond = dots.length - dots.length % dots.lanes, -dots.length % dots.lanes
        with k.loop("run", 0, shape.y.kernel * dots.runs) as run, k.loop("i", 0, dots.steps * dots.lanes) as i:
            value = k.variable("value", Const(f32(1), 0.0))
            # The last vector of a run ends where the run does, see `_step`.
            place = k.let("place", Select(lt(i, whole), i, i - beyond)) if beyond else i
            with k.when(lt(m, shape.cout) & (lt(i, whole) | le(whole, place)) if beyond else lt(m, shape.cout)):
                tap, channel = k.let("tap", place // shape.cin), k.let("channel", place % shape.cin)
                ky = run if dots.adjacent else run // dots.runs
                kx = tap if dots.adjacent else run % dots.runs
                at = start + channel * c_step + ky * y_step + kx * x_step
                k.assign(value, k.load(source, k.let("at", at)))
            step = run * dots.steps + i // dots.lanes
            k.store(target, to + step * (dots.outputs * dots.lanes) + i % dots.lanes, value)
    kernel, params = k.finish()
    packed = TempBuffer(name="packed", size_bytes=dots.panels * dots.panel_size * DType.F32.bytes)
    call = KernelCall(
        kernel=kernel, buffers=(ValueBuffer(value=w.value), packed), params=params, units=units,
        cost_ns=packed.size_bytes, phase=Phase.PREPARE,
    )  # fmt: skip
    return call, packed


class _Kernel:
    """A unit: a part of a row of one image, all its output channels."""

    def __init__(self, dots: Dots, context: BuildContext) -> None:
        self.dots, self.caps, shape = dots, context.caps, dots.shape
        op = shape.op
        self.x_dtype = op.inputs[0].dtype
        size = f"{dots.pixels}x{dots.outputs}"
        self.k = k = KernelBuilder(f"xy_conv_dots_{shape.y.kernel}x{shape.x.kernel}_{self.x_dtype}_{size}")
        self.x, self.w = k.buffer("x", self.x_dtype), k.buffer("w", DType.F32)
        self.out = k.buffer("out", op.output.dtype, writable=True)
        groups = shape.epilogue_groups()
        self.epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, lane_group=len(groups) - 1)

    def call(self, packed: TempBuffer) -> KernelCall:
        shape, dots = self.dots.shape, self.dots
        length = max(1, round(_UNIT_NS / dots.strip_ns(self.caps)))
        grid = (shape.batch, shape.y.out, ceildiv(dots.strips, length))
        copy, strip = copy_function(self.k, dots.edges, self.x, self.x_dtype), self._strip()
        with self.k.units() as unit:
            edge = self.k.array("edge", self.x_dtype, dots.edges.elements)
            image, y, part = self.k.split(unit, grid)
            self._row((image, y), (part, length), edge, copy, strip)
        kernel, params = self.k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(
                ValueBuffer(value=shape.op.inputs[0].value), packed, ValueBuffer(value=shape.op.output.value),
                *self.epilogue.buffers,
            ),
            params=params,
            units=product(grid),
            cost_ns=ceildiv(taps(shape.op) * 2, max(1, int(self.caps.fma_gflops))),
        )  # fmt: skip

    def _row(self, at: tuple[Rvalue, Rvalue], part: tuple[Rvalue, int], edge: Var, copy: Callee, strip: Callee) -> None:
        k, dots, shape = self.k, self.dots, self.dots.shape
        image, y = at
        line, lanes = shape.x, dots.lanes
        start, first, stop = kernel_rows(k, shape.y, y)
        row_step = k.param(shape.x_strides[1])
        x_row = k.let("x_row", k.param(shape.x_offset) + image * k.param(shape.x_strides[0]) + start * row_step)
        begin = k.let("begin", part[0] * part[1])
        end = k.let("end", vmin(begin + part[1], k.param(dots.strips)))
        with k.loop("strip", begin, end) as number:
            pixel = k.let("pixel", number * lanes)
            count = k.let("count", vmin(lanes, k.param(line.out) - pixel))
            tiles = k.let("tiles", (count + (dots.pixels - 1)) // dots.pixels)
            column = k.let("column", pixel * line.stride - k.param(line.pad))
            place = k.let("at", x_row + column * shape.x_strides[2])
            reach = (tiles * dots.pixels - 1) * line.stride + ((line.kernel - 1) * line.dilation + 1)
            where = [first, stop, tiles, image, y, pixel, count]
            with k.when(le(0, column) & le(column + reach, k.param(line.inside))):
                k.call(strip[0], self.x, place, row_step * shape.y.dilation, *where, *strip[1])
            with k.otherwise():
                k.call(copy[0], edge, place, column, tiles * dots.pixels, first, stop, *copy[1])
                k.call(strip[0], edge, index(0), index(dots.edges.row), *where, *strip[1])

    # -- the functions

    def _strip(self) -> Callee:
        """f(x, at, from kernel row to kernel row, kernel rows inside, tiles, where the results belong)."""
        dots, lanes = self.dots, self.dots.lanes
        tile, finish = self._tile(), self._finish()
        f = FunctionBuilder("strip")
        x = f.argument("x", PointerType(self.x_dtype))
        at, x_step, first, stop, tiles = (f.argument(n, INDEX) for n in ("at", "x_step", "first", "stop", "tiles"))
        image, row, pixel, count = (f.argument(n, INDEX) for n in ("image", "row", "pixel", "count"))
        sums = f.array("sums", DType.F32, dots.outputs * lanes * lanes)
        pixels_step = dots.pixels * dots.shape.x.stride * dots.shape.x_strides[2]
        # What the next strip reads and no row before has read: the last kernel row's.
        ahead = lanes // dots.pixels * pixels_step
        newest = f.pointer(
            "newest",
            x,
            at + (stop - 1) * x_step + (ahead + (dots.shape.x.kernel - 1) * dots.shape.x.dilation * dots.shape.x_strides[2]),
        )
        with f.loop("line", 0, ahead, 16) as line:
            f.prefetch(newest, line)
        with f.loop("panel", 0, dots.panels) as panel:
            w = f.let("w", panel * dots.panel_size)
            with f.loop("tile", 0, tiles) as number:
                to = f.pointer("to", sums, number * (dots.pixels * dots.outputs * lanes))
                f.call(tile[0], x, f.let("from", at + number * pixels_step), x_step, first, stop, w, to, *tile[1])
            m = f.let("m", panel * dots.outputs)
            f.call(finish[0], sums, image, m, row, pixel, count, *finish[1])
        captured = f.capture()
        return self.k.function(f.finish()), captured

    def _tile(self) -> Callee:
        """f(x, at, from kernel row to kernel row, kernel rows inside, w, sums): the sums of a tile, [pixel][output][lane]."""
        dots, lanes, shape = self.dots, self.dots.lanes, self.dots.shape
        f = FunctionBuilder(f"tile_{dots.pixels}x{dots.outputs}")
        x = f.argument("x", PointerType(self.x_dtype))
        at, x_step, first, stop, panel = (f.argument(n, INDEX) for n in ("at", "x_step", "first", "stop", "panel"))
        sums = f.argument("sums", PointerType(DType.F32, writable=True))
        zero = Const(f32(lanes), 0.0)
        acc = [[f.variable("acc", zero) for _ in range(dots.outputs)] for _ in range(dots.pixels)]
        deep = shape.y.kernel * dots.runs * dots.steps > _CHAIN
        if deep:
            with f.loop("i", 0, dots.pixels * dots.outputs * lanes, lanes) as i:
                f.store(sums, i, zero)
        with f.loop("ky", first, stop) as ky:
            row = f.let("row", at + ky * x_step)
            w = f.pointer("w_row", self.w, panel + ky * (dots.panel_size // shape.y.kernel))
            with f.loop("run", 0, dots.runs) as run:
                here = f.pointer("x_run", x, row + run * (shape.x.dilation * shape.x_strides[2]))
                there = f.pointer("w_run", w, run * (dots.steps * dots.outputs * lanes))
                self._run(f, acc, here, there, sums if deep else None)
        self._keep(f, acc, sums, deep)
        captured = f.capture()
        return self.k.function(f.finish()), captured

    def _keep(self, f: FunctionBuilder, acc: list[list[Var]], sums: Pointer, more: bool) -> None:
        """sums = acc, or += where there are some."""
        lanes = self.dots.lanes
        for i, row in enumerate(acc):
            for m, value in enumerate(row):
                at = (i * self.dots.outputs + m) * lanes
                f.store(sums, at, f.load(sums, at, lanes) + value if more else value)

    def _run(self, f: FunctionBuilder, acc: list[list[Var]], x: Pointer, w: Pointer, sums: Pointer | None) -> None:
        """acc += x * w over one run. ``sums``: acc is added to them now and then, and begins anew."""
        dots, lanes = self.dots, self.dots.lanes
        whole = dots.length - dots.length % lanes

        def loop(begin: Rvalue, end: Rvalue) -> None:
            with f.loop("k", begin, end, lanes) as k:
                self._step(f, acc, x, w, k, None)

        if sums is None or dots.steps < _LEAST_CHAIN:
            loop(index(0), index(whole))
        else:
            part = -(-dots.steps // max(1, dots.steps // (2 * _LEAST_CHAIN))) * lanes
            with f.loop("begin", 0, whole, part) as begin:
                loop(begin, f.let("end", vmin(begin + part, whole)))
                self._keep(f, acc, sums, more=True)
                for value in (value for row in acc for value in row):
                    f.assign(value, Const(f32(lanes), 0.0))
        if whole < dots.length:
            self._step(f, acc, x, w, index(whole), dots.length - whole)

    def _step(self, f: FunctionBuilder, acc: list[list[Var]], x: Pointer, w: Pointer, k: Rvalue, new: int | None) -> None:
        """acc += x * w for a vector from ``k`` on. ``new``: only so many of its elements are left in the run. What is before them
        is loaded again, which no mask is needed for, and replaced by zeros."""
        dots, lanes = self.dots, self.dots.lanes
        pixel_step = dots.shape.x.stride * dots.shape.x_strides[2]

        def of_x(i: int) -> Rvalue:
            if new is None:
                return f.let("x", f.load(x, k + i * pixel_step, lanes))
            value = f.let("last", f.load(x, k + (i * pixel_step + new - lanes), lanes))
            return f.let(
                "x", Shuffle(value, Const(f32(lanes), 0.0), tuple(j if j >= lanes - new else lanes + j for j in range(lanes)))
            )

        def of_w(m: int) -> Rvalue:
            return f.let("w", f.load(w, k * dots.outputs + m * lanes, lanes))

        # The fewer operands stay in registers.
        if dots.outputs <= dots.pixels:
            ws = [of_w(m) for m in range(dots.outputs)]
            for i, row in enumerate(acc):
                a = of_x(i)
                for m, value in enumerate(row):
                    f.assign(value, Fma(a, ws[m], value))
            return
        xs = [of_x(i) for i in range(dots.pixels)]
        for m in range(dots.outputs):
            b = of_w(m)
            for i, row in enumerate(acc):
                f.assign(row[m], Fma(xs[i], b, row[m]))

    def _finish(self) -> Callee:
        """f(sums, image, output channel, row, pixel, pixels): add up, epilogue, store."""
        dots, lanes, shape = self.dots, self.dots.lanes, self.dots.shape
        f = FunctionBuilder("finish")
        sums = f.argument("sums", PointerType(DType.F32, writable=True))
        image, m, row, pixel, count = (f.argument(n, INDEX) for n in ("image", "m", "row", "pixel", "count"))
        with f.loop(
            "j", 0, dots.outputs if shape.cout % dots.outputs == 0 else f.let("end", vmin(dots.outputs, shape.cout - m))
        ) as j:
            rows = [f.let("sum", f.load(sums, j * lanes + i * (dots.outputs * lanes), lanes)) for i in range(lanes)]
            total = f.let("total", sums_of(f, rows))
            at = shape.point(image, f.let("channel", m + j), row, pixel)
            with f.when(le(lanes, count)):
                self._store(f, at, total, None)
            with f.otherwise():
                self._store(f, at, total, count)
        captured = f.capture()
        return self.k.function(f.finish()), captured

    def _store(self, f: FunctionBuilder, at: list[Rvalue], total: Rvalue, count: Rvalue | None) -> None:
        here = self.epilogue.at(f)
        here.store(self.dots.shape.op.output, self.out, at, here.value(at, total, self.dots.lanes, count), count)
