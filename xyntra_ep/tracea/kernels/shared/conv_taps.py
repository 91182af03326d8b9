"""The sum of a convolution for one output, tap by tap: what needs no blocking, on any target."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops import Conv, Product
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Const, Convert, Fma, Pointer, Rvalue, i32, loaded_type, vmax, vmin


def why_not_floats(op: Conv, context: BuildContext) -> str | None:
    """None where all that is multiplied and stored is."""
    is_float = all(o.dtype.is_float for o in (*op.inputs[:2], op.output)) and op.product is not Product.I32
    return None if is_float else "x, w and the output must be floating point"


def why_no_sum(op: Conv, context: BuildContext) -> str | None:
    """None where ``accumulate`` knows the types."""
    return None if op.product is Product.I32 else why_not_floats(op, context)


def taps(op: Conv) -> Size:
    """Multiplications of the whole op, those with the padding included."""
    return product(op.domain) * product(op.inputs[1].shape[1:])


def accumulate(k: KernelBuilder, op: Conv, pointers: Sequence[Pointer], at: Sequence[Rvalue]) -> Rvalue:
    """The sum for one output, of integers modulo 2^32. Taps outside x are left out, not multiplied by zero."""
    x, w = op.inputs[:2]
    image, channel, *position = at
    m_group, c_group = op.domain[1] // op.group, w.shape[1]
    group = k.let("g", channel // k.param(m_group)) if op.group > 1 else Const(INDEX, 0)
    total = k.variable("acc", Const(loaded_type(x.dtype, 1), 0))
    starts, ranges = [], []
    for axis, o in enumerate(position):
        begin, tap_range = _tap_range(k, op, axis, o)
        starts.append(begin)
        ranges.append(tap_range)
    with k.loop("c", 0, k.param(c_group)) as c:
        x_at = [image, group * k.param(c_group) + c]
        w_at: list[Rvalue] = [channel, c]

        def nest(axis: int) -> None:
            if axis < len(position):
                with k.loop("t", *ranges[axis]) as tap:
                    x_at.append(starts[axis] + tap * op.dilations[axis])
                    w_at.append(tap)
                    nest(axis + 1)
                return
            a = k.let("a", k.load(pointers[0], address(k, x, x_at)))
            b = k.let("b", k.load(pointers[1], address(k, w, w_at)))
            k.assign(total, Fma(a, b, total))

        nest(0)
    return Convert(i32(1), total) if op.product is Product.I32 else total


def _tap_range(k: KernelBuilder, op: Conv, axis: int, o: Rvalue) -> tuple[Rvalue, tuple[Rvalue, Rvalue]]:
    """(coordinate in x of tap 0, the range of taps inside x) for output ``o`` of a spatial axis."""
    dilation = op.dilations[axis]
    begin = k.let("i", o * op.strides[axis] - k.param(op.pads[axis]))
    inside = k.param(op.inputs[0].shape[2 + axis])
    count = k.param(op.inputs[1].shape[2 + axis])
    first = vmax(0, Const(INDEX, 0) - begin)
    stop = vmax(0, inside - begin)
    if dilation > 1:
        first, stop = ((bound + (dilation - 1)) // dilation for bound in (first, stop))
    return begin, (k.let("t", first), k.let("t", vmin(count, stop)))
