"""Conv of any rank, layout, grouping and storage type: one multiplication at a time, always legal."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, evaluate, product, symbols_of
from xyntra_ep.tracea.core_ir.ops import Conv, Operand
from xyntra_ep.tracea.kernels.cpu._epilogue import Epilogue, Group
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Fma,
    Pointer,
    Rvalue,
    f32,
    vmax,
    vmin,
)

# Measured on AVX-512 machines: one FMA chain per output, a load or two per step.
_NS_PER_TAP = 1.1
_TYPICAL = 32  # what a symbol is taken for where a number is needed


def admits(op: Conv, context: BuildContext) -> str | None:
    if not all(o.dtype.is_float for o in (*op.inputs[:2], op.output)):
        return "x, w and the output must be floating point"
    return None


def taps(op: Conv) -> Size:
    """Multiplications of the whole op, those with the padding included."""
    return product(op.domain) * product(op.inputs[1].shape[1:])


def _cost_ns(op: Conv, config: Config, context: BuildContext) -> float:
    count = taps(op)
    return _NS_PER_TAP * evaluate(count, dict.fromkeys(symbols_of(count), _TYPICAL))


def build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    """A unit is one row: the outputs along the last axis for one image, channel and position elsewhere."""
    k = KernelBuilder(f"xy_conv{len(op.strides)}d_generic")
    x, w, out = op.inputs[0], op.inputs[1], op.output
    pointers: list[Pointer] = [k.buffer("x", x.dtype), k.buffer("w", w.dtype)]
    target = k.buffer("out", out.dtype, writable=True)
    rows, last = tuple(range(len(op.domain) - 1)), len(op.domain) - 1
    groups = [Group(axes=rows, extents=op.domain[:-1]), Group(axes=(last,), extents=op.domain[-1:])]
    epilogue = Epilogue(k, context.program, op.epilogue, op.inputs, op.domain, groups, lane_group=1)
    with k.units() as unit:
        outer = k.split(unit, op.domain[:-1])
        with k.loop("o", 0, k.param(op.domain[-1])) as o:
            acc = _accumulate(k, op, pointers, [*outer, o])
            here = epilogue.at(k)
            here.store(out, target, [unit, o], here.value([unit, o], acc, 1))
    kernel, params = k.finish()
    buffers = (*(ValueBuffer(value=o.value) for o in (x, w, out)), *epilogue.buffers)
    units = product(op.domain[:-1])
    cost_ns = ceildiv(taps(op) * round(_NS_PER_TAP * 16), 16)
    return [KernelCall(kernel=kernel, buffers=buffers, params=params, units=units, cost_ns=cost_ns)]


def _address(k: KernelBuilder, operand: Operand, at: Sequence[Rvalue]) -> Rvalue:
    place = k.param(operand.offset)
    for i, stride in zip(at, operand.strides, strict=True):
        place = place + i * k.param(stride)
    return place


def _accumulate(k: KernelBuilder, op: Conv, pointers: Sequence[Pointer], at: Sequence[Rvalue]) -> Rvalue:
    """The sum for one output. Taps outside x are left out, not multiplied by zero."""
    x, w = op.inputs[:2]
    image, channel, *position = at
    m_group, c_group = op.domain[1] // op.group, w.shape[1]
    group = k.let("g", channel // k.param(m_group)) if op.group > 1 else Const(INDEX, 0)
    total = k.variable("acc", Const(f32(1), 0.0))
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
            a = k.let("a", k.load(pointers[0], _address(k, x, x_at)))
            b = k.let("b", k.load(pointers[1], _address(k, w, w_at)))
            k.assign(total, Fma(a, b, total))

        nest(0)
    return total


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


VARIANTS = [
    Variant(
        name="conv.generic",
        op=Conv,
        admits=admits,
        space=lambda op, context: (),
        default=lambda op, context: {},
        cost_ns=_cost_ns,
        build=build,
        rank=100,
    )
]
