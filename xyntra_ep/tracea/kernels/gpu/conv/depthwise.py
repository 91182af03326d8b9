"""conv.depthwise: convolutions of one channel each, where channels are neighbours in memory. A thread computes a packet of
channels for a few neighbours of the last axis, and reads what their taps have in common once.

It is bound by memory, so nothing is shared: what neighbouring threads read of x twice comes from the first-level cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct, product_of, why_no_product
from xyntra_ep.tracea.kernels.gpu.conv._store import Results
from xyntra_ep.tracea.kernels.gpu.gemm._tiles import PACKET
from xyntra_ep.tracea.kernels.gpu.shared.launch import estimate_ns, gpu_of, steps_ns
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.packing import pack, temporary
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.conv_taps import taps, why_not_floats
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.magic_division import split
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Pointer, Rvalue, Var, binary, f32, index, lt

_THREADS = 128
SPACE = (Axis(name="pixels", values=(1, 2, 4)),)


def _admits(op: Conv, context: BuildContext) -> str | None:
    if gpu_of(context).is_cpu:
        return "a CPU has no threads to read side by side"
    if (why := why_not_floats(op, context) or why_no_product(op)) is not None:
        return why
    shape = product_of(op)
    if shape.depth_channels != 1 or shape.channels != 1 or op.group == 1:
        return "channels are summed"
    if not shape.channels_last or not shape.along_depth:
        return "channels are not neighbours in memory"
    return None


def _space(op: Conv, context: BuildContext) -> Sequence[Axis]:
    return SPACE


def _default(op: Conv, context: BuildContext) -> Config:
    return {"pixels": 4 if op.strides[-1] == 1 else 2}


def _cost_ns(op: Conv, config: Config, context: BuildContext) -> float:
    return estimate_ns(taps(op), gpu_of(context)) / config["pixels"]


def _whole(op: Conv) -> ConvProduct:
    """All channels beside each other, as one group has them."""
    return replace(product_of(op), channels=op.group, depth_channels=op.group)


def _build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, run = _whole(op), config["pixels"]
    x, w, out = op.inputs[0], op.inputs[1], op.output
    k = GpuBuilder(f"xy_conv{len(shape.taps)}d_{x.dtype}_depthwise", _THREADS)
    x_data, w_data = k.buffer("x", x.dtype), k.buffer("w", w.dtype)
    target = k.buffer("out", out.dtype, writable=True)
    groups = shape.groups()
    epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, lane_group=len(groups) - 1)

    images, _, *outer_extents, last_extent = op.domain
    aligned = Results(k, shape, epilogue, op.output, target, None if shape.together else index(0), index(0)).width == PACKET
    width = PACKET if aligned and shape.has_channels_in_packets(PACKET) else 1
    extents = [images, *outer_extents, ceildiv(last_extent, run), shape.channels // width]
    number = k.let("packet", k.block * _THREADS + k.thread)
    with k.when(lt(number, k.param(product(extents)))):
        image, *outer, part, packet = split(k, number, extents)
        results = Results(k, shape, epilogue, op.output, target, None if shape.together else image, index(0))
        channel, first = k.let("channel", packet * width), k.let("first", part * run)
        start = k.pointer("start", x_data, address(k, x, [image, channel]))
        sums = _sum(k, shape, run, width, start, k.pointer("start", w_data, channel), outer, first)
        line: Rvalue = image if shape.together else index(0)
        for at, extent in zip(outer, outer_extents, strict=True):
            line = line * k.param(extent) + at
        line = k.let("line", line * k.param(last_extent))
        for i, totals in enumerate(sums):
            at = k.let("at", first + i)
            with nullcontext() if is_multiple(last_extent, run) else k.when(lt(at, k.param(last_extent))):
                results.put(results.here(), line + at, channel, totals)
    kernel, params = k.finish()
    pack = _pack(op, shape, context)
    return [
        pack,
        KernelCall(
            kernel=kernel,
            buffers=(ValueBuffer(value=x.value), pack.buffers[1], ValueBuffer(value=out.value), *epilogue.buffers),
            params=params,
            units=ceildiv(product(extents), _THREADS),
            cost_ns=steps_ns(taps(op), gpu_of(context)),
        ),
    ]


def _sum(
    k: GpuBuilder,
    shape: ConvProduct,
    run: int,
    width: int,
    data: Pointer,
    weights: Pointer,
    outer: Sequence[Rvalue],
    first: Rvalue,
) -> list[list[Var]]:
    """The sums by pixel and channel. Taps outside of x are left out."""
    op, x, last = shape.op, shape.op.inputs[0], len(shape.taps) - 1
    stride, dilation, taps = op.strides[last], op.dilations[last], shape.taps[last]
    sums = [[k.variable("sum", Const(f32(1), 0.0)) for _ in range(width)] for _ in range(run)]
    begin = k.let("begin", first * stride - k.param(op.pads[last]))
    # Which pixels and taps have a column of x.
    uses: dict[int, list[tuple[int, int]]] = {}
    for pixel in range(run):
        for tap in range(taps):
            uses.setdefault(pixel * stride + tap * dilation, []).append((pixel, tap))
    ragged = shape.padded(last) or not is_multiple(op.domain[-1], run)
    with k.loop("row", 0, k.param(product(shape.taps[:last]))) as row:
        line: Rvalue = index(0)
        inside: Rvalue | None = None
        for axis, (tap_at, at) in enumerate(zip(split(k, row, shape.taps[:last]), outer, strict=True)):
            place = k.let("at", at * op.strides[axis] - k.param(op.pads[axis]) + tap_at * op.dilations[axis])
            line = line + place * k.param(x.strides[2 + axis])
            if shape.padded(axis):
                fits = _within(k, place, x.shape[2 + axis])
                inside = fits if inside is None else binary("and", inside, fits)
        with _when(k, inside):
            line = k.let("line", line)
            row_weights = k.let("taps", row * (taps * shape.channels))
            by_tap = [k.load_packet("w", weights, row_weights + tap * shape.channels, width) for tap in range(taps)]
            for column, users in sorted(uses.items()):
                at = k.let("column", begin + column)
                with _when(k, _within(k, at, x.shape[-1]) if ragged else None):
                    values = k.load_packet("x", data, line + at * k.param(x.strides[-1]), width)
                    for pixel, tap in users:
                        for value, weight, total in zip(values, by_tap[tap], sums[pixel], strict=True):
                            k.assign(total, Fma(value, weight, total))
    return sums


def _within(k: GpuBuilder, at: Rvalue, extent: Size) -> Rvalue:
    return binary("and", lt(-1, at), lt(at, k.param(extent)))


def _when(k: GpuBuilder, condition: Rvalue | None) -> AbstractContextManager[None]:
    return nullcontext() if condition is None else k.when(condition)


def _pack(op: Conv, shape: ConvProduct, context: BuildContext) -> KernelCall:
    """The weights as [taps][channels], so that channels are neighbours as they are in x."""
    w, extents = op.inputs[1], (*shape.taps, shape.channels)

    def place(k: GpuBuilder, at: Sequence[Rvalue]) -> tuple[Sequence[Rvalue], Rvalue]:
        *taps, channel = at
        return (channel, index(0), *taps), index(1)

    return pack("xy_conv_pack_taps", w, temporary("weights", extents, w.dtype), extents, w.dtype, place, context)


VARIANTS = [
    Variant(
        name="conv.depthwise",
        op=Conv,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
