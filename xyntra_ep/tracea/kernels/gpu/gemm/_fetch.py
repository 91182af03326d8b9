"""Code that brings an operand's tiles from global memory into shared memory, through registers, one step ahead of their use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Operand
from xyntra_ep.tracea.kernels.gpu.gemm._tiles import PACKET, Fetch, GemmTile
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Slot
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, Var, binary, f32, index, lt


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One operand as a matrix: ``across`` is its extent in the product (m or n), ``depth`` along k, with the strides of both;
    ``others``: all that is added to its addresses besides."""

    operand: Operand
    across: Size
    depth: Size
    across_stride: Size
    depth_stride: Size
    others: Sequence[Size]

    def fetch(self, tile: GemmTile, extent: int) -> Fetch:
        """Along what is contiguous, in packets where everything is aligned to them."""
        along_k = self.depth_stride == 1 or self.across_stride != 1
        length, apart = (self.depth, self.across_stride) if along_k else (self.across, self.depth_stride)
        contiguous = (self.depth_stride if along_k else self.across_stride) == 1
        aligned = contiguous and all(is_multiple(s, PACKET) for s in (length, apart, self.operand.offset, *self.others))
        return Fetch(tile, extent, along_k, PACKET if aligned else 1)

    def start(self, b: GpuBuilder, data: Pointer, batch: Sequence[Rvalue], first: Rvalue, k: Rvalue) -> Pointer:
        """``data`` at row (or column) ``first`` of the matrix of a ``batch``, and at ``k``."""
        at = b.param(self.operand.offset) + first * b.param(self.across_stride) + k * b.param(self.depth_stride)
        for coordinate, stride in zip(batch, self.others, strict=True):
            at = at + coordinate * b.param(stride)
        return b.pointer("start", data, at)


def blocks(shape: GemmShape, rows: int, columns: int) -> Size:
    """How many blocks compute the result in tiles of so many rows and columns."""
    return product(shape.batch_extents) * ceildiv(shape.m, rows) * ceildiv(shape.n, columns)


def sides_of(op: Gemm, shape: GemmShape) -> tuple[Side, Side]:
    """a, then b."""
    a, b = op.inputs[:2]
    axes = [group.axes[0] for group in shape.batch]
    return (
        Side(
            operand=a,
            across=shape.m,
            depth=shape.depth,
            across_stride=shape.a_row,
            depth_stride=shape.a_k,
            others=[a.strides[i] for i in axes],
        ),
        Side(
            operand=b,
            across=shape.n,
            depth=shape.depth,
            across_stride=b.strides[-1],
            depth_stride=b.strides[-2],
            others=[b.strides[i] for i in axes],
        ),
    )


class Fetcher:
    """The tiles of one operand. ``data``: at the first element of the block's rows (or columns), of which ``first`` is the
    number; ``depth``: what there is of k from there."""

    def __init__(self, b: GpuBuilder, side: Side, fetch: Fetch, axis: str, data: Pointer, first: Rvalue, depth: Rvalue) -> None:
        self._b = b
        self._side = side
        self._fetch = fetch
        self._data = data
        self._depth = depth
        self.layout = fetch.layout(axis)
        self.shared = b.shared(f"tile_{axis}", DType.F32, self.layout.elements, slots=2)
        place = fetch.lanes().emit(b, b.thread)
        self._o, self._k = place["o"], place["k"]
        zero = Const(f32(1), 0.0)
        self._values = [[b.variable("r", zero) for _ in range(fetch.packet)] for _ in fetch.rounds()]
        self._left = None if is_multiple(side.across, fetch.extent) else b.let("left", b.param(side.across) - first)

    def load(self, step: Rvalue | int) -> None:
        """Tile ``step`` of k into registers; what is outside of the matrix is 0."""
        b, side, fetch = self._b, self._side, self._fetch
        begin = b.let("begin", step * index(fetch.tile.depth))
        end = None if is_multiple(side.depth, fetch.tile.depth) else b.let("end", self._depth - begin)
        for values, (more_o, more_k) in zip(self._values, fetch.rounds(), strict=True):
            o, k = self._o + more_o, self._k + more_k
            at = b.let("from", o * b.param(side.across_stride) + (begin + k) * b.param(side.depth_stride))
            inside = _both(None if self._left is None else lt(o, self._left), None if end is None else lt(k, end))
            if inside is None:
                self._take(values, at)
                continue
            for value in values:
                b.assign(value, 0.0)
            with b.when(inside):
                self._take(values, at)

    def _take(self, values: Sequence[Var], at: Rvalue) -> None:
        for value, loaded in zip(values, self._b.load_packet("x", self._data, at, len(values)), strict=True):
            self._b.assign(value, loaded)

    def store(self, slot: Slot) -> None:
        """What the registers hold into a slot of shared memory."""
        b = self._b
        for values, (more_o, more_k) in zip(self._values, self._fetch.rounds(), strict=True):
            o, k = self._o + more_o, self._k + more_k
            if not self._fetch.along_k:
                b.store_packet(slot, self.layout.emit(b, k, o), values)
                continue
            for i, value in enumerate(values):
                b.store(slot, self.layout.emit(b, k + i, o), value)


def _both(a: Rvalue | None, b: Rvalue | None) -> Rvalue | None:
    if a is None or b is None:
        return b if a is None else a
    return binary("and", a, b)
