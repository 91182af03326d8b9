"""What all register tiles of channels-last convolutions have in common: their functions, arguments, epilogue and stores.

A kernel is a walk over tiles (`_walk.py`); `TileCode` is what its tiles share. ``call`` makes a function of each distinct
tile, so that registers are allocated for it alone. How a tile is computed is up to `_direct.py` and the
variants whose lanes are channels of x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, walk
from xyntra_ep.tracea.core_ir.ops import Product
from xyntra_ep.tracea.kernels.cpu.conv._row import Tile
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, Line
from xyntra_ep.tracea.kernels.cpu.gemm._tile import as_float
from xyntra_ep.tracea.kernels.shared.epilogue import Column, Epilogue
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Convert,
    Function,
    Pointer,
    Rvalue,
    Var,
    as_rvalue,
    binary,
    f32,
    i32,
    index,
    le,
    lt,
)

_SHALLOW = 256  # steps of k
AHEAD_UNIT = 256
# Steps of tiles with few sums, where counting them weighs: 5 to 8 % of ResNet-50 (Zen 3, AVX2). With four, gcc 12 kept sums of
# 6 x 2 in memory wherever a depth of 256 and more is cut in chains: 79 GFLOP/s for 114 (Zen 4, AVX2).
_UNROLL = 2
_FEW_SUMS = 16
BURST_RATE = 64  # lines per ``AHEAD_UNIT`` steps: with more, there is one to fetch every few steps of k


@dataclass(frozen=True, slots=True, kw_only=True)
class TileCode:
    """``accumulate(function)`` emits the sums of a tile, by pixel and vector, and says when to fetch what the outputs need.
    ``ahead_rate``: cache lines of the next panel that a tile fetches while it computes, per ``AHEAD_UNIT`` steps; None where the
    weights stay in the cache anyway. ``bursts``: it does between its loops, see `Prefetching`. ``x_is_told``: calls say where a
    tile reads x, there or in a copy with other rows. ``panels_within``: other panels of the same pixels come next.
    ``x_is_far``: an image of x is larger than L2.
    ``sparse``: the rows of x itself, where tiles leave out taps that meet nothing of it. ``sums``: the type of the sums.
    ``filled_depth``: steps of k in a panel whose runs of taps are filled up. ``beside``: more that ``accumulate`` reads."""

    kernel: KernelBuilder
    shape: ConvShape
    epilogue: Epilogue
    accumulate: Accumulate
    x: Pointer
    w: Pointer
    out: Pointer
    vectors: int
    lanes: int
    ahead_rate: int | None = None
    bursts: bool = False
    x_is_told: bool = False
    panels_within: bool = False
    x_is_far: bool = False
    sparse: Line | None = None
    sums: DType = DType.F32
    filled_depth: int | None = None
    beside: tuple[Pointer, ...] = ()
    functions: dict[Tile, tuple[Function, tuple[Var, ...]]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Output channels of a panel."""
        return self.vectors * self.lanes

    @property
    def depth(self) -> int:
        """Steps of k in a panel."""
        return self.filled_depth or self.shape.y.kernel * self.shape.x.kernel * self.shape.cin

    @property
    def has_tail(self) -> bool:
        """Whether the last panel of a group is not full."""
        return self.shape.cout % self.width != 0

    def argument_names(self) -> list[str]:
        """``at``: position in x of tap (0, 0) of the first pixel, in the padding for some; ``panel``, ``ahead``: positions in
        the packed weights; ``image`` ... ``pixel``: indices of the first output; ``first``, ``stop``: kernel rows inside x;
        ``left``: channels from m on; ``x``, ``x_step``: where ``at`` counts from, and from kernel row to kernel row."""
        names = ["at", "panel", "image", "m", "row", "pixel", "first", "stop"]
        names += ["left"] * self.has_tail + ["ahead"] * (self.ahead_rate is not None)
        return names + ["x", "x_step"] * self.x_is_told

    def call(self, tile: Tile, arguments: Mapping[str, Rvalue]) -> None:
        """Emit the computation of one tile."""
        if tile not in self.functions:
            f = TileFunction(self, tile, len(self.functions))
            captured = f.capture()
            self.functions[tile] = (self.kernel.function(f.finish()), captured)
        function, captured = self.functions[tile]
        self.kernel.call(function, *(arguments[name] for name in self.argument_names()), *captured)


class TileFunction(FunctionBuilder):
    """The function of one tile: sums, epilogue, stores."""

    def __init__(self, code: TileCode, tile: Tile, number: int) -> None:
        super().__init__(f"tile{number}_{tile.size}x{code.vectors}")
        self.code = code
        self.tile = tile
        kinds = {"x": code.x.vtype}
        self.arg = {name: self.argument(name, kinds.get(name, INDEX)) for name in code.argument_names()}
        self.x: Pointer = code.x
        self.x_row_step = code.kernel.param(code.shape.x_strides[1]) * code.shape.y.dilation
        if code.x_is_told:
            self.x, self.x_row_step = self.arg["x"], self.arg["x_step"]
        zero = Const(f32(code.lanes), 0.0) if code.sums is DType.F32 else Const(i32(code.lanes), 0)
        self.acc = [[self.variable("acc", zero) for _ in range(code.vectors)] for _ in range(tile.size)]
        self._lines = self._output_lines()
        code.accumulate(self)
        if not code.has_tail:
            self._store(range(code.vectors), None)
            return
        with self.when(le(code.width, self.arg["left"])):
            self._store(range(code.vectors), None)
        with self.otherwise():
            for j in range(code.vectors):
                with self.when(lt(j * code.lanes, self.arg["left"])):
                    self._store([j], self.let("count", self.arg["left"] - j * code.lanes))

    def each_width(self, body: Callable[[Rvalue | None], None]) -> None:
        """Emit ``body`` for a full vector of channels (None), and for the last one where only so many exist."""
        if not self.code.has_tail:
            body(None)
            return
        with self.when(lt(self.arg["left"], self.code.lanes)):
            body(self.arg["left"])
        with self.otherwise():
            body(None)

    def columns(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """Columns of x, counted from tap 0 of the first pixel, each with the pairs of a pixel and a tap that meet there."""
        line = self.code.shape.x
        found: dict[int, list[tuple[int, int]]] = {}
        for run in self.tile.runs:
            for kx in range(run.first, run.first + run.count):
                for i in range(run.low, run.high):
                    found.setdefault(i * line.stride + kx * line.dilation, []).append((i, kx))
        return sorted(found.items())

    def column(self, x: Pointer, column: int, count: Rvalue | None) -> Rvalue:
        """A vector of channels of column ``column`` of x, whose column 0 is at ``x``."""
        code, line = self.code, self.code.shape.x
        at = index(column * code.shape.x_strides[2])
        if not self.tile.is_checked:
            return self.let("a", as_float(self.load(x, at, code.lanes, count)))
        value = self.variable("a", Const(f32(code.lanes), 0.0))
        place = self.arg["pixel"] * line.stride + (column - code.kernel.param(line.pad))
        with self.when(le(0, place) & lt(place, code.kernel.param(line.inside))):
            self.assign(value, as_float(self.load(x, at, code.lanes, count)))
        return value

    def fetch_outputs(self) -> None:
        """Ask for all cache lines of residuals, and of outputs that follow few multiplications, long before their use."""
        for i in range(self.tile.size):
            self.fetch_pixel(i)

    def fetch_pixel(self, i: Rvalue | int) -> None:
        """Ask for those of pixel ``i``."""
        pointers, first, step = self._lines
        for pointer in pointers:
            for j in range(0, self.code.width, 64 // self.code.shape.op.output.dtype.bytes):
                self.prefetch(pointer, first + (i * step + j), locality=3, write=pointer is self.code.out)

    def _output_lines(self) -> tuple[list[Pointer], Rvalue, Rvalue]:
        """(what to fetch from, position of the first pixel, from pixel to pixel)."""
        code, out, arg = self.code, self.code.shape.op.output, self.arg
        wanted = residuals(code) + [code.out] * (code.depth <= _SHALLOW)
        if not wanted:
            return [], index(0), index(0)
        image_step, _, *steps = (code.kernel.param(s) for s in out.strides)
        first = code.kernel.param(out.offset) + arg["image"] * image_step + arg["m"]
        if code.shape.row_axes:
            first = first + arg["row"] * steps[0]
        # Of the next tile where other panels come between: one alone is too short to wait for memory.
        pixel = arg["pixel"] + self.tile.size if code.panels_within else arg["pixel"]
        return wanted, self.let("first_out", first + pixel * steps[-1]), steps[-1]

    def _store(self, vectors: range | list[int], count: Rvalue | None) -> None:
        code, arg = self.code, self.arg
        pixels = range(self.tile.size)
        columns = []
        for j in vectors:
            m = arg["m"] + j * code.lanes
            totals: list[Rvalue] = [self.acc[i][j] for i in pixels]
            if code.sums is DType.F32 and code.shape.op.product is Product.I32:  # integers, and small enough to be exact
                totals = [Convert(i32(code.lanes), total) for total in totals]
            points = [code.shape.point(arg["image"], m, arg["row"], arg["pixel"] + i) for i in pixels]
            columns.append(Column(points=points, accs=totals, count=count))
        code.epilogue.at(self).finish(code.shape.op.output, code.out, code.lanes, columns)


Accumulate = Callable[[TileFunction], None]


def unroll_of(sums: int, depth: int) -> int:
    """Steps of k in an iteration of the loop over ``depth`` of them."""
    return _UNROLL if sums <= _FEW_SUMS and depth % _UNROLL == 0 else 1


def lines_until(step: Rvalue | int, rate: Rvalue | int) -> Rvalue:
    """How many cache lines are fetched before ``step`` of k, at ``rate`` per ``AHEAD_UNIT`` steps."""
    return binary("shr", as_rvalue(step, INDEX) * rate, AHEAD_UNIT.bit_length() - 1)


def residuals(code: TileCode) -> list[Pointer]:
    """What the epilogue adds that has the output's shape, layout and type."""
    op = code.shape.op
    here = tuple(axis(i) for i in range(len(op.domain)))
    found = {e.attr for e in walk(op.epilogue) if e.kind == "load" and e.args == here}
    out = op.output
    alike = [j for j in sorted(found) if replace(op.inputs[j], value=out.value) == out]
    return [code.epilogue.pointer(op.inputs[j]) for j in alike]
