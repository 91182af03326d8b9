"""The weights of a convolution in the order in which its kernel reads them, made once when the session is created."""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import contiguous_strides
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape
from xyntra_ep.tracea.kernels.cpu.gemm._pack import transposed
from xyntra_ep.tracea.kernels.cpu.gemm._tile import as_float
from xyntra_ep.tracea.kernels.variant import KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, f32, index, lt, vmin

STREAMED_BYTES = 512 << 10  # weights from here on come from L3 or memory at every run
_SQUARES = 16  # per unit


def packed_bytes(shape: ConvShape, width: int) -> int:
    """Size of the packed weights."""
    return panels(shape, width) * _depth(shape) * width * DType.F32.bytes


def panels(shape: ConvShape, width: int) -> int:
    """Panels of ``width`` output channels, of all groups; no panel spans two groups."""
    return shape.groups * -(-shape.cout // width)


def _depth(shape: ConvShape) -> int:
    return shape.cin * shape.y.kernel * shape.x.kernel


def pack_weights(shape: ConvShape, width: int, lanes: int) -> tuple[KernelCall, TempBuffer]:
    """w as [panel][ky][kx][channel in][``width`` channels out], f32, zeros where a group's channels end."""
    w, depth, block = shape.op.inputs[1], _depth(shape), _SQUARES * lanes
    k = KernelBuilder(f"xy_conv_pack_{shape.y.kernel}x{shape.x.kernel}_{width}")
    k.note("a unit is one panel and a part of the rows of w")
    source, target = k.buffer("w", w.dtype), k.buffer("packed", DType.F32, writable=True)
    grid = (panels(shape, width), -(-depth // block))
    with k.units() as unit:
        panel, part = k.split(unit, grid)
        per_group = grid[0] // shape.groups
        within = k.let("m", (panel % per_group) * width)
        copy = _Panel(
            k=k,
            shape=shape,
            width=width,
            lanes=lanes,
            source=source,
            target=k.pointer("panel", target, panel * (depth * width)),
            first=k.let("m", (panel // per_group) * shape.cout + within),
            exist=k.let("exist", vmin(width, shape.cout - within)),
        )
        begin, end = k.let("begin", part * block), k.let("end", vmin(part * block + block, depth))
        if lanes > 1 and w.strides == contiguous_strides(w.shape):
            whole = k.let("whole", end - (end - begin) % lanes) if depth % lanes else end
            copy.squares(begin, whole)
            copy.elements(whole, end)
        else:
            copy.elements(begin, end)
    kernel, params = k.finish()
    temp = TempBuffer(name="packed", size_bytes=packed_bytes(shape, width))
    call = KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=w.value), temp),
        params=params,
        units=grid[0] * grid[1],
        cost_ns=packed_bytes(shape, width) // 4,
        phase=Phase.PREPARE,
    )
    return call, temp


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One panel being packed. A row of w counts (channel, ky, kx) as one index q; ``exist`` of ``width`` rows exist."""

    k: KernelBuilder
    shape: ConvShape
    width: int
    lanes: int
    source: Pointer
    target: Pointer
    first: Rvalue
    exist: Rvalue

    def _place(self, q: Rvalue) -> Rvalue:
        taps = self.shape.y.kernel * self.shape.x.kernel
        return ((q % taps) * self.shape.cin + q // taps) * self.width

    def squares(self, begin: Rvalue, end: Rvalue) -> None:
        """Transpose in registers, a square of vectors at a time."""
        k, w = self.k, self.shape.op.inputs[1]
        zero = Const(f32(self.lanes), 0.0)
        with k.loop("j", 0, self.width, self.lanes) as j, k.loop("q", begin, end, self.lanes) as q:
            rows: list[Rvalue] = []
            for i in range(self.lanes):
                row = k.variable("r", zero)
                at = k.param(w.offset) + (self.first + j + i) * k.param(w.strides[0]) + q
                with k.when(lt(j + i, self.exist)):
                    k.assign(row, as_float(k.load(self.source, at, self.lanes)))
                rows.append(row)
            for i, column in enumerate(transposed(k, rows)):
                k.store(self.target, self._place(q + i) + j, column)

    def elements(self, begin: Rvalue, end: Rvalue) -> None:
        """One by one, whatever the strides of w."""
        if begin == end:
            return
        k, w, columns = self.k, self.shape.op.inputs[1], self.shape.x.kernel
        m_step, c_step, *taps = (k.param(s) for s in w.strides)
        y_step, x_step = (index(0), *taps)[-2:]
        with k.loop("q", begin, end) as q:
            c, tap = q // (self.shape.y.kernel * columns), q % (self.shape.y.kernel * columns)
            place = k.let("to", self._place(q))
            start = k.param(w.offset) + self.first * m_step + c * c_step
            start = k.let("from", start + (tap // columns) * y_step + (tap % columns) * x_step)
            with k.loop("j", 0, self.exist) as j:
                k.store(self.target, place + j, as_float(k.load(self.source, start + j * m_step, 1)))
            if self.shape.cout % self.width:
                with k.loop("j", self.exist, self.width) as j:
                    k.store(self.target, place + j, Const(f32(1), 0.0))
