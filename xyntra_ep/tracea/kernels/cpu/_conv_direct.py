"""The sums of a direct convolution: ``size`` pixels times ``vectors`` vectors of output channels in registers.

for ky in [first, stop):                             # kernel rows inside x
  for each run of taps:                              # see `_conv_row.TapRun`
    for k:                                           # channels of adjacent taps are one long k
      b[j] = w[k][j];  for pixel i of the run: acc[i][j] += x[i][k] * b[j]
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu._conv_blocking import Blocking, work_steps
from xyntra_ep.tracea.kernels.cpu._conv_halo import halo_ns
from xyntra_ep.tracea.kernels.cpu._conv_pack import STREAMED_BYTES, packed_bytes
from xyntra_ep.tracea.kernels.cpu._conv_row import TapRun
from xyntra_ep.tracea.kernels.cpu._conv_shape import conv_shape
from xyntra_ep.tracea.kernels.cpu._conv_tile import TileFunction
from xyntra_ep.tracea.kernels.cpu._conv_walk import build_conv
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import Fma, Rvalue, binary, splat

_LINE = 64 // DType.F32.bytes  # elements of a cache line


def build_direct(op: Conv, blocking: Blocking, context: BuildContext) -> list[KernelCall]:
    """``op`` must pass ``why_not_channels_last``; any number of groups."""
    return build_conv("conv", conv_shape(op), blocking, context, accumulate)


def direct_ns(op: Conv, blocking: Blocking, caps: Capabilities) -> float:
    """Estimated time on one core."""
    shape = conv_shape(op)
    steps = work_steps(shape, blocking.pixels, blocking.vectors, caps)
    weights = packed_bytes(shape, blocking.vectors * caps.lanes)
    streamed_ns = weights / caps.dram_gbs if weights >= STREAMED_BYTES else 0.0
    return max(steps * caps.lanes * 2 / caps.fma_gflops, streamed_ns) + halo_ns(shape)


def accumulate(f: TileFunction) -> None:
    shape = f.code.shape
    step = shape.x.dilation * shape.x_strides[2]  # from tap to tap
    with f.loop("ky", f.arg["first"], f.arg["stop"]) as ky:
        x_row = f.let("x_row", f.arg["at"] + ky * f.x_row_step)
        for run in f.tile.runs:
            start = f.let("k0", ky * (shape.x.kernel * shape.cin) + run.first * shape.cin)
            if shape.taps_are_adjacent or run.count == 1:
                _multiply(f, run, x_row + run.first * step, start, run.count * shape.cin)
                continue
            with f.loop("kx", 0, run.count) as kx:
                at = f.let("x_tap", x_row + (kx + run.first) * step)
                _multiply(f, run, at, f.let("k0", start + kx * shape.cin), shape.cin)


def _multiply(f: TileFunction, run: TapRun, at: Rvalue, start: Rvalue, depth: int) -> None:
    """acc += x[pixels of the run][at, at + depth) * w[start, start + depth)."""
    code = f.code
    x = f.pointer("x", code.x, at)
    w = f.pointer("w", code.w, f.arg["panel"] + start * code.width)
    pixel_step = code.shape.x.stride * code.shape.x_strides[2]
    ahead, shift = w, code.ahead_shift
    if shift is not None:
        ahead = f.pointer("next", code.w, f.arg["ahead"] + binary("shr", start, shift) * _LINE)
    with f.loop("k", 0, depth) as k:
        b = [f.let("b", f.load(w, k * code.width + j * code.lanes, code.lanes)) for j in range(code.vectors)]
        for i in range(run.low, run.high):
            a = f.let("a", splat(f.load(x, k + i * pixel_step, 1), code.lanes))
            for j in range(code.vectors):
                f.assign(f.acc[i][j], Fma(a, b[j], f.acc[i][j]))
        if shift is not None:
            f.prefetch(ahead, binary("shr", k, shift) * _LINE)
