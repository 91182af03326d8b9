"""Pooling: a reduction over a window, channels last inside where they come that way or rows are short, else plane by plane."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, f, float_input, one, wanted_outputs, within, wrapped
from xyntra_ep.fusion.onnx_ops._window import channels_last, from_last, window
from xyntra_ep.fusion.onnx_ops.quantised._integers import dequantised
from xyntra_ep.fusion.onnx_ops.quantised._made_of import quantised
from xyntra_ep.fusion.onnx_ops.rows.reduction import absolute, count, per_row, rows, square
from xyntra_ep.fusion.op_spec import AUTO_PAD, FLAG, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Expand, Permute, RowNode, Slice, Tensor, View
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, either, eq, lt, product, smin
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage

_SHORT = 4  # results of a row: fewer leave most of a vector empty
_WIDE, _FAR = 32, 4  # taps of a window's row, columns to the next one: beyond, channels make better neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """The windows of one node over ``x`` [N, C, spatial...]; ``planes``: that is how the result is stored, not channels last."""

    x: Tensor
    planes: bool
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[Size]
    out: list[Size]

    def reduce(self, kind: ReduceKind, outside: Expr, before: Callable[[Expr], Expr], finish: Callable[[Expr], Expr]) -> Tensor:
        """finish(reduction of the floats before(x)) for each window; ``outside`` stands for the padding."""
        x, rank = self.x if self.planes else channels_last(self.x), len(self.kernel)
        outer = (x.shape[0], x.shape[1], *self.out) if self.planes else (x.shape[0], *self.out, x.shape[1])
        inside: Expr = E.const(True)
        at: list[Expr] = []
        for i in range(rank):
            tap = E.call("mul", E.axis(len(outer) + i), E.const(self.dilations[i]))
            position = E.call("add", self.start(i), tap)
            at.append(position)
            if not self._stays_inside(i, self._reach(i)):
                legal = within(position, x.shape[2 + i])
                inside = legal if inside is E.const(True) else E.call("and", inside, legal)
        channel = E.axis(1 if self.planes else 1 + rank)
        value = before(E.load(0, E.axis(0), channel, *at, dtype=x.dtype))
        stage = Stage(kind=kind, body=E.call("where", inside, value, outside))
        body = wrapped(x.dtype, finish(E.acc(0)))
        inner = tuple(map(self._reach, range(rank)))
        node = RowNode(outer=outer, inner=inner, inputs=(x,), stages=(stage,), outputs=((body, True),))
        result = Tensor(outer, x.dtype, node)
        return result if self.planes else result.permute(from_last(x.rank))

    def start(self, i: int) -> Expr:
        """Where the window of output axis ``i`` begins."""
        at = E.axis((2 if self.planes else 1) + i)
        return E.call("sub", E.call("mul", at, E.const(self.strides[i])), E.size(self.pads[i]))

    def _reach(self, i: int) -> int:
        """Taps that can lie inside for some window: an exporter's "global" pool may be far larger than its image."""
        extent, pad = self.x.shape[2 + i], self.pads[i]
        if not isinstance(extent, int) or not isinstance(pad, int):
            return self.kernel[i]
        return min(self.kernel[i], max(1, (extent - 1 + pad) // self.dilations[i] + 1))

    def _stays_inside(self, i: int, taps: int) -> bool:
        last = (self.out[i] - 1) * self.strides[i] + (taps - 1) * self.dilations[i]
        extent = self.x.shape[2 + i]
        return self.pads[i] == 0 and isinstance(last, int) and isinstance(extent, int) and last < extent

    @property
    def never_padded(self) -> bool:
        return all(self._stays_inside(i, taps) for i, taps in enumerate(self.kernel))

    def share(self, ends: Sequence[Size] | None) -> Expr:
        """One by how many elements of the window lie inside; with ``ends``, inside the padded extent up to there. Axis by axis:
        each factor is the same for a whole row, or a whole column, of windows."""
        total: Expr = f(1)
        for inside in self._inside(ends):
            total = E.call("mul", total, E.call("div", f(1), inside))
        return total

    def number(self) -> Expr:
        """How many elements of the window lie inside."""
        total: Expr = f(1)
        for inside in self._inside(None):
            total = E.call("mul", total, inside)
        return total

    def _inside(self, ends: Sequence[Size] | None) -> Iterator[Expr]:
        for i, taps in enumerate(self.kernel):
            d, start = self.dilations[i], self.start(i)

            def reached(bound: Expr, start: Expr = start, d: int = d) -> Expr:
                # taps below bound: ceil((bound - start) / d); division rounds towards zero, and below zero any value will do
                free = E.call("sub", bound, start)
                return free if d == 1 else E.call("div", E.call("add", free, E.const(d - 1)), E.const(d))

            first = E.call("max", reached(E.const(0)), E.const(0)) if ends is None else E.const(0)
            past = E.call("min", reached(E.size(self.x.shape[2 + i] if ends is None else ends[i])), E.const(taps))
            yield E.call("to_f", E.call("max", E.call("sub", past, first), E.const(0)))


def _require_elements(c: Context, x: Tensor) -> None:
    for extent in x.shape[1:]:
        c.require(either(lt(0, extent), eq(x.shape[0], 0)), "Invalid input shape. Only N can be zero")


def _pool(c: Context, node: Node, x: Tensor) -> _Pool:
    _require_elements(c, x)
    kernel = [int(k) for k in node.need("kernel_shape")]
    strides, dilations, pads, out = window(c, node, x.shape[2:], kernel, bool(node.attr("ceil_mode", 0)))
    is_row = kernel[-1] <= _WIDE and strides[-1] <= _FAR and not (isinstance(out[-1], int) and out[-1] < _SHORT)
    planes = x.dtype.is_float and is_row and _lies_in_rows(x)
    return _Pool(x=x, planes=planes, kernel=kernel, strides=strides, dilations=dilations, pads=pads, out=out)


def _lies_in_rows(t: Tensor) -> bool:
    """Whether neighbours along the last axis of ``t`` are neighbours in memory."""
    while isinstance(t.node, View):
        step = t.node.step
        if isinstance(step, Permute) and step.perm[-1] != t.rank - 1:
            return False
        if (isinstance(step, Slice) and step.steps[-1] != 1) or (isinstance(step, Expand) and step.factors[-1] != 1):
            return False
        t = t.node.base
    return True


def _same(v: Expr) -> Expr:
    return v


def _above_lowest(v: Expr) -> Expr:
    """ORT's maximum starts there, so that a window of -inf or of NaN alone has it."""
    return E.call("max", v, f(-DType.F32.largest))


def max_pool(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = one(inputs, 0)
    if wanted_outputs(node) > 1:
        raise UnsupportedError("MaxPool with indices")
    if (found := _of_levels(c, node, x)) is not None:
        return found
    pool = _pool(c, node, x)
    if x.dtype.is_float:
        return pool.reduce(ReduceKind.ANY_NAN_MAX, f(-math.inf), _same, _above_lowest)
    if x.dtype not in BYTES:
        raise UnsupportedError(f"dtype {x.dtype}")
    limits = np.iinfo(x.dtype.numpy)
    low, high = f(limits.min), f(limits.max)
    return pool.reduce(  # a float holds every byte, and vectors of floats have a maximum on every machine
        ReduceKind.ANY_NAN_MAX,
        low,
        lambda v: E.call("to_f", v),
        lambda acc: E.call("to_i", E.call("quantise", acc, f(1), f(0), low, high)),
    )


def _of_levels(c: Context, node: Node, x: Tensor) -> Tensor | None:
    """The floats that the largest bytes of windows stand for, where ``x`` stands for bytes of one positive scale; else None."""
    made_of = quantised(x)
    if made_of is None or made_of.axis is not None or made_of.q.dtype not in BYTES:
        return None
    scale = made_of.scale.scalar()
    if scale is None or not 0 < scale < math.inf:
        return None
    parameters = [t for t in (made_of.scale, made_of.zero) if t is not None]
    return dequantised(c, max_pool(c, node, [made_of.q]), parameters, x.dtype, None)


def _average_pool(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = float_input(inputs, 0)
    _need_no_crop(node)
    pool = _pool(c, node, x)
    rank = len(pool.kernel)
    fitted = node.attr("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER")
    trailing = [int(p) for p in node.attr("pads") or [0] * (2 * rank)][rank:]
    ends = [n + p for n, p in zip(x.shape[2:], trailing, strict=True)]
    padded, ceil = bool(node.attr("count_include_pad", 0)), bool(node.attr("ceil_mode", 0))
    # Before opset 19 ONNX Runtime counts all of a window, also what is beyond the padding.
    if pool.never_padded or (padded and (fitted or (node.version < 19 and not ceil))):
        share: Expr = f(1 / math.prod(pool.kernel))
    elif padded and not ceil:
        # A window goes beyond the padding only where it is larger than all there is, and then it is the only one.
        reached = (ceildiv(end + first, d) for end, first, d in zip(ends, pool.pads, pool.dilations, strict=True))
        number = E.call("to_f", E.size(product(smin(k, n) for k, n in zip(pool.kernel, reached, strict=True))))
        share = E.call("div", f(1), number)
    elif padded:
        share = pool.share(ends)
    else:
        share = pool.share(None)
    return pool.reduce(ReduceKind.SUM, f(0), _same, lambda acc: E.call("mul", acc, share))


def quantised_average(c: Context, node: Node, x: Tensor) -> Tensor:
    """The mean of each window, as ONNX Runtime takes it of dequantised bytes: divided by the whole window's number of elements
    where padding counts, however far beyond it the window reaches."""
    _need_no_crop(node)
    pool = _pool(c, node, x)
    is_whole = pool.never_padded or bool(node.attr("count_include_pad", 0))
    number = f(math.prod(pool.kernel)) if is_whole else pool.number()
    return pool.reduce(ReduceKind.SUM, f(0), _same, lambda acc: E.call("div", acc, number))


def _power_sum(node: Node) -> tuple[Callable[[Expr], Expr], Callable[[Expr], Expr]]:
    """(term, root) of the Lp norm that ``node`` asks for."""
    p = int(node.attr("p", 2))
    if p == 1:
        return absolute, _same
    if p == 2:
        return square, lambda acc: E.call("sqrt", acc)
    return lambda v: E.call("pow", absolute(v), f(p)), lambda acc: E.call("pow", acc, f(1 / p))


def _need_no_crop(node: Node) -> None:
    """ORT crops at the front where a stride leaves gaps and ``auto_pad`` asks for less than no padding; but MaxPool refuses."""
    if node.attr("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        strides = [int(s) for s in node.attr("strides") or [1]]
        if any(s > int(k) for s, k in zip(strides, node.need("kernel_shape"), strict=False)):
            raise UnsupportedError(f"{node.op_type} of kernels shorter than their strides with auto_pad")


def _lp_pool(c: Context, node: Node, inputs: Inputs) -> Tensor:
    term, root = _power_sum(node)
    _need_no_crop(node)
    return _pool(c, node, float_input(inputs, 0)).reduce(ReduceKind.SUM, f(0), term, root)


def _global(
    c: Context, x: Tensor, kind: ReduceKind, term: Callable[[Expr], Expr], finish: Callable[[Expr, Expr], Expr]
) -> Tensor:
    axes = list(range(2, x.rank))
    _, inner, _, value = rows(x, axes)
    _require_elements(c, x)
    return per_row(x, axes, [Stage(kind=kind, body=term(value))], finish(E.acc(0), count(inner)), True, x.dtype)


def _global_average_pool(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return _global(c, float_input(inputs, 0), ReduceKind.SUM, _same, lambda acc, n: E.call("div", acc, n))


def _global_max_pool(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return _global(c, float_input(inputs, 0), ReduceKind.ANY_NAN_MAX, _same, lambda acc, n: _above_lowest(acc))


def _global_lp_pool(c: Context, node: Node, inputs: Inputs) -> Tensor:
    term, root = _power_sum(node)
    return _global(c, float_input(inputs, 0), ReduceKind.SUM, term, lambda acc, n: root(acc))


_WINDOW = takes("dilations", "kernel_shape", "pads", "strides", auto_pad=AUTO_PAD, ceil_mode=FLAG)

OPS = [
    OpSpec(
        name="MaxPool",
        lower=max_pool,
        versions=(1, 22),
        attributes={**_WINDOW, **takes("storage_order")},  # of the indices
        types=((*FLOATS, DType.I8, DType.U8),),
        note="without indices as a result",
    ),
    OpSpec(
        name="AveragePool",
        lower=_average_pool,
        versions=(7, 22),
        attributes={**_WINDOW, **takes(count_include_pad=FLAG)},
        types=(FLOATS,),
    ),
    OpSpec(name="LpPool", lower=_lp_pool, versions=(2, 22), attributes={**_WINDOW, **takes("p")}, types=(FLOATS,)),
    OpSpec(name="GlobalAveragePool", lower=_global_average_pool, versions=(1, 22), types=(FLOATS,)),
    OpSpec(name="GlobalMaxPool", lower=_global_max_pool, versions=(1, 22), types=(FLOATS,)),
    OpSpec(name="GlobalLpPool", lower=_global_lp_pool, versions=(2, 22), attributes=takes("p"), types=(FLOATS,)),
]
