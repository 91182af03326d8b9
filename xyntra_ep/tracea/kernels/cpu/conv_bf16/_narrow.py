"""x of a convolution of words: read where it lies, or copied once to an image of their elements with a border of zeros.

image   [batch][pad + rows + overrun][pad + pixels + overrun][channels], and zeros for what a run reads too far
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, product, smax
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, Line
from xyntra_ep.tracea.kernels.shared.words import as_words
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, binary, f32, i32, index, le, lt, vmin

_BYTES_PER_NS = 8


def is_narrow(shape: ConvShape, step: int, dtype: DType = DType.BF16) -> bool:
    """Whether x can be read where it lies, in runs of ``step`` elements none of which ends beyond its pixel or kernel row."""
    run = shape.cin * (shape.x.kernel if shape.taps_are_adjacent else 1)
    inside = shape.x.is_inside and shape.y.is_inside
    return shape.op.inputs[0].dtype is dtype and inside and run % step == 0


def narrow_ns(shape: ConvShape, step: int, elements: int, dtype: DType = DType.BF16) -> float:
    """Estimated time of the copy of an image of ``elements``."""
    return 0.0 if is_narrow(shape, step, dtype) else elements * dtype.bytes * 2 / _BYTES_PER_NS


def narrow_image(
    shape: ConvShape, step: int, context: BuildContext, dtype: DType = DType.BF16
) -> tuple[list[KernelCall], ValueBuffer | TempBuffer, ConvShape]:
    """(the copy, where it goes, the convolution over that), for runs that are read in steps of ``step`` elements of
    ``dtype``."""
    x = shape.op.inputs[0]
    if is_narrow(shape, step, dtype):
        return [], ValueBuffer(value=x.value), shape
    y, y_before = _bordered(shape.y)
    line, x_before = _bordered(shape.x)
    channels = shape.channels
    row = line.inside * channels
    inner = replace(shape, y=y, x=line, x_offset=0, x_strides=(y.inside * row, row, channels))
    images = product((shape.batch, y.inside, row))
    image = TempBuffer(name="image", size_bytes=(images + step) * dtype.bytes)
    return [_copy(shape, inner, (y_before, x_before), step, image, context, dtype)], image, inner


def _bordered(line: Line) -> tuple[Line, Size]:
    """(the axis of the copy, zeros before it)."""
    inside = line.inside + line.pad + smax(0, line.overrun)
    return replace(line, inside=inside, pad=0), line.pad


def _copy(
    shape: ConvShape,
    inner: ConvShape,
    before: Sequence[Size],
    step: int,
    image: TempBuffer,
    context: BuildContext,
    dtype: DType,
) -> KernelCall:
    """A unit is one row of one image."""
    x, lanes, channels = shape.op.inputs[0], context.caps.lanes, shape.channels
    k = KernelBuilder(f"xy_conv_narrow_{x.dtype}_{context.caps.isa}")
    source, target = k.buffer("x", x.dtype), k.buffer("image", dtype, writable=True)
    units = shape.batch * inner.y.inside
    y_before, x_before = (k.param(n) for n in before)
    row = k.param(inner.x_strides[1])
    adjacent = shape.x_strides[2] == channels

    zero = Const(f32(lanes), 0.0) if dtype.is_float else Const(i32(lanes), 0)

    def elements(at: Rvalue, left: Rvalue | None) -> Rvalue:
        found = k.load(source, at, lanes, left)
        return as_words(found)

    def zeros(begin: Rvalue, end: Rvalue) -> None:
        with k.loop("i", begin, end, lanes) as i:
            k.store(target, i, zero, k.let("left", vmin(lanes, end - i)))

    def copy(to: Rvalue, start: Rvalue, count: Rvalue) -> None:
        whole = k.let("whole", count - count % lanes)
        with k.loop("i", 0, whole, lanes) as i:
            k.store(target, to + i, elements(start + i, None))
        with k.when(lt(whole, count)):
            left = k.let("left", count - whole)
            k.store(target, to + whole, elements(start + whole, left), left)

    with k.units() as unit:
        n, y = k.split(unit, (shape.batch, inner.y.inside))
        to = k.let("to", unit * row)
        source_y = k.let("source_y", y - y_before)
        with k.when(le(0, source_y) & lt(source_y, k.param(shape.y.inside))):
            start = k.param(shape.x_offset) + n * k.param(shape.x_strides[0]) + source_y * k.param(shape.x_strides[1])
            start = k.let("from", start)
            first = k.let("first", to + x_before * channels)
            pixels = k.param(shape.x.inside)
            zeros(to, first)
            if adjacent:
                copy(first, start, pixels * channels)
            else:
                with k.loop("pixel", 0, pixels) as pixel:
                    place = k.let("place", first + pixel * channels)
                    copy(place, k.let("at", start + pixel * shape.x_strides[2]), index(channels))
            zeros(k.let("behind", first + pixels * channels), k.let("end", to + row))
        with k.otherwise():
            zeros(to, k.let("end", to + row))
        with k.when(binary("eq", unit, k.param(units) - 1)):
            end = k.let("end", to + row)
            zeros(end, end + step)
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=x.value), image),
        params=params,
        units=units,
        cost_ns=image.size_bytes // _BYTES_PER_NS,
    )
