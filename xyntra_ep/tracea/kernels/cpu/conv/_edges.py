"""The ends of rows whose length only a run knows: what the tiles there read is copied to the stack, with zeros for what lies
outside x. All other tiles read x where it lies.

Each panel of output channels copies again. With many of them, or many channels, a copy of the whole of x costs less
(`_halo.py`): a convolution of 16 channels to 32 is 5 % faster so, one of 256 to 512 would be 20 % slower.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._blocking import Blocking
from xyntra_ep.tracea.kernels.cpu.conv._halo import halo_ns
from xyntra_ep.tracea.kernels.cpu.conv._row import needs_halo
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, typical
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Const, Function, Pointer, PointerType, Var, f32, lt, vmax, vmin

_MOST_BYTES = 64 << 10  # on the stack, beside the tile's own
_BYTES_PER_NS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """``pixels``: of the largest tile. Kernel row ``ky`` of what a tile reads is at ``ky * row`` of the copy."""

    shape: ConvShape
    pixels: int
    lanes: int

    @property
    def row(self) -> int:
        """Elements, in whole vectors."""
        line = self.shape.x
        columns = (self.pixels - 1) * line.stride + (line.kernel - 1) * line.dilation + 1
        return -(-columns * self.shape.cin // self.lanes) * self.lanes

    @property
    def elements(self) -> int:
        """Zeros are written in whole vectors, too: those behind a row lie where the next one will be."""
        return self.shape.y.kernel * self.row + self.lanes

    def copies_ns(self, panels: int) -> float:
        """Estimated time of all copies: of the first and the last tile of each row."""
        rows = typical(self.shape.batch * self.shape.y.out)
        tiles = min(2, -(-typical(self.shape.x.out) // self.pixels))
        return rows * tiles * panels * self.elements * DType.F32.bytes / _BYTES_PER_NS


def edges_of(shape: ConvShape, blocking: Blocking, caps: Capabilities) -> Edges | None:
    """The copies at the ends of rows; None where rows have none, or a copy of x costs less."""
    one_run = shape.groups == 1 and not shape.depthwise and shape.x_strides[2] == shape.cin  # what a tile reads of a row of x
    if not needs_halo(shape.x) or shape.x.is_fixed or not one_run:
        return None
    edges = Edges(shape=shape, pixels=blocking.pixels, lanes=caps.lanes)
    panels = -(-shape.cout // (blocking.vectors * caps.lanes))
    fits = edges.elements * DType.F32.bytes <= _MOST_BYTES
    return edges if fits and edges.copies_ns(panels) < halo_ns(shape) else None


def ends_ns(shape: ConvShape, blocking: Blocking, caps: Capabilities) -> float:
    """Estimated time that the ends of rows take beside the multiplications."""
    edges = edges_of(shape, blocking, caps)
    return halo_ns(shape) if edges is None else edges.copies_ns(-(-shape.cout // (blocking.vectors * caps.lanes)))


def copy_function(k: KernelBuilder, edges: Edges, x: Pointer, dtype: DType) -> tuple[Function, tuple[Var, ...]]:
    """f(to, at, column, pixels, first, stop): copy what a tile of so many pixels reads in the kernel rows [first, stop). Its tap
    (0, 0) is at position ``at`` of x, in a column that may be outside."""
    shape, line, lanes = edges.shape, edges.shape.x, edges.lanes
    f = FunctionBuilder("copy_edge")
    to = f.argument("to", PointerType(dtype, writable=True))
    at, column, pixels, first, stop = (f.argument(name, INDEX) for name in ("at", "column", "pixels", "first", "stop"))
    span = (line.kernel - 1) * line.dilation + 1
    count = f.let("count", ((pixels - 1) * line.stride + span) * shape.cin)
    low = f.let("low", vmin(count, vmax(0, (0 - column) * shape.cin)))
    high = f.let("high", vmax(low, vmin(count, (k.param(line.inside) - column) * shape.cin)))
    whole = f.let("whole", high - (high - low) % lanes)
    zeros = Const(f32(lanes), 0.0)
    with f.loop("ky", first, stop) as ky:
        source = f.let("source", at + ky * (k.param(shape.x_strides[1]) * shape.y.dilation))
        row = f.let("row", ky * edges.row)
        with f.loop("i", 0, low, lanes) as i:
            f.store(to, row + i, zeros)
        with f.loop("i", low, whole, lanes) as i:
            f.store(to, row + i, f.load(x, source + i, lanes))
        with f.when(lt(whole, high)):
            left = f.let("left", high - whole)
            f.store(to, row + whole, f.load(x, source + whole, lanes, left), left)
        with f.loop("i", high, count, lanes) as i:
            f.store(to, row + i, zeros)
    captured = f.capture()
    return k.function(f.finish()), captured
