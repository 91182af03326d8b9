"""The register tile of a direct convolution: ``size`` pixels times ``vectors`` vectors of output channels.

    for ky in [first, stop):                             # kernel rows inside x
      for each run of taps:                              # see `_conv_row.TapRun`
        for k:                                           # channels of adjacent taps are one long k
          b[j] = w[k][j];  for pixel i of the run: acc[i][j] += x[i][k] * b[j]
    out[i][j] = epilogue(acc[i][j])

`TileCode` is what the tiles of one kernel share; ``call`` makes a function of each distinct tile, so that its registers are
allocated for it alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu._conv_row import TapRun, Tile
from xyntra_ep.tracea.kernels.cpu._conv_shape import ConvShape
from xyntra_ep.tracea.kernels.cpu._epilogue import Epilogue
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Fma,
    Function,
    Pointer,
    Rvalue,
    Var,
    binary,
    f32,
    le,
    lt,
    splat,
)

_LINE = 64 // DType.F32.bytes  # elements of a cache line


@dataclass(frozen=True, slots=True, kw_only=True)
class TileCode:
    """``ahead_shift``: while it computes, a tile fetches one cache line of the next panel per 2^shift steps of k; None
    where the weights stay in the cache anyway."""

    kernel: KernelBuilder
    shape: ConvShape
    epilogue: Epilogue
    x: Pointer
    w: Pointer
    out: Pointer
    vectors: int
    lanes: int
    ahead_shift: int | None = None
    functions: dict[Tile, tuple[Function, tuple[Var, ...]]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def depth(self) -> int:
        """Steps of k in a panel."""
        return self.shape.y.kernel * self.shape.x.kernel * self.shape.cin

    @property
    def has_tail(self) -> bool:
        """Whether the last panel of a group is not full."""
        return self.shape.cout % self.width != 0

    def argument_names(self) -> list[str]:
        """``at``: position in x of tap (0, 0) of the first pixel, in the padding for some; ``panel``, ``ahead``: positions in
        the packed weights; ``image`` ... ``pixel``: indices of the first output; ``first``, ``stop``: kernel rows inside x;
        ``left``: channels from m on."""
        names = ["at", "panel", "image", "m", "row", "pixel", "first", "stop"]
        return names + ["left"] * self.has_tail + ["ahead"] * (self.ahead_shift is not None)

    def call(self, tile: Tile, **arguments: Rvalue) -> None:
        """Emit the computation of one tile."""
        if tile not in self.functions:
            f = _Function(self, tile, len(self.functions))
            captured = f.capture()
            self.functions[tile] = (self.kernel.function(f.finish()), captured)
        function, captured = self.functions[tile]
        self.kernel.call(function, *(arguments[name] for name in self.argument_names()), *captured)


class _Function(FunctionBuilder):
    def __init__(self, code: TileCode, tile: Tile, number: int) -> None:
        super().__init__(f"tile{number}_{tile.size}x{code.vectors}")
        self.code = code
        self.tile = tile
        self.arg = {name: self.argument(name, INDEX) for name in code.argument_names()}
        zero = Const(f32(code.lanes), 0.0)
        self.acc = [[self.variable("acc", zero) for _ in range(code.vectors)] for _ in range(tile.size)]
        row_step = code.kernel.param(code.shape.x_strides[1]) * code.shape.y.dilation
        with self.loop("ky", self.arg["first"], self.arg["stop"]) as ky:
            x_row = self.let("x_row", self.arg["at"] + ky * row_step)
            for run in tile.runs:
                self._run(run, ky, x_row)
        self._finish()

    def _run(self, run: TapRun, ky: Rvalue, x_row: Rvalue) -> None:
        shape = self.code.shape
        step = shape.x.dilation * shape.x_strides[2]  # from tap to tap
        start = self.let("k0", ky * (shape.x.kernel * shape.cin) + run.first * shape.cin)
        if shape.taps_are_adjacent or run.count == 1:
            self._product(run, x_row + run.first * step, start, run.count * shape.cin)
            return
        with self.loop("kx", 0, run.count) as kx:
            at = self.let("x_tap", x_row + (kx + run.first) * step)
            self._product(run, at, self.let("k0", start + kx * shape.cin), shape.cin)

    def _product(self, run: TapRun, at: Rvalue, start: Rvalue, depth: int) -> None:
        """acc += x[pixels of the run][at, at + depth) * w[start, start + depth)."""
        code = self.code
        x = self.pointer("x", code.x, at)
        w = self.pointer("w", code.w, self.arg["panel"] + start * code.width)
        pixel_step = code.shape.x.stride * code.shape.x_strides[2]
        shift = code.ahead_shift
        ahead = code.w
        if shift is not None:
            ahead = self.pointer("next", code.w, self.arg["ahead"] + binary("shr", start, shift) * _LINE)
        with self.loop("k", 0, depth) as k:
            b = [self.let("b", self.load(w, k * code.width + j * code.lanes, code.lanes)) for j in range(code.vectors)]
            for i in range(run.low, run.high):
                a = self.let("a", splat(self.load(x, k + i * pixel_step, 1), code.lanes))
                for j in range(code.vectors):
                    self.assign(self.acc[i][j], Fma(a, b[j], self.acc[i][j]))
            if shift is not None:
                self.prefetch(ahead, binary("shr", k, shift) * _LINE)

    def _finish(self) -> None:
        """Epilogue and stores: whole vectors where all channels exist."""
        if not self.code.has_tail:
            self._store(range(self.code.vectors), None)
            return
        with self.when(le(self.code.width, self.arg["left"])):
            self._store(range(self.code.vectors), None)
        with self.otherwise():
            for j in range(self.code.vectors):
                with self.when(lt(j * self.code.lanes, self.arg["left"])):
                    self._store([j], self.let("count", self.arg["left"] - j * self.code.lanes))

    def _store(self, vectors: range | list[int], count: Rvalue | None) -> None:
        code, arg = self.code, self.arg
        here = code.epilogue.at(self)
        for j in vectors:
            for i in range(self.tile.size):
                m, pixel = arg["m"] + j * code.lanes, arg["pixel"] + i
                at = code.shape.point(arg["image"], m, arg["row"], pixel)
                value = here.value(at, self.acc[i][j], code.lanes, count)
                here.store(code.shape.op.output, code.out, at, value, count)
