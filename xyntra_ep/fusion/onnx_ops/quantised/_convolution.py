"""Convolutions of integers.

Outside of x there is what stands for 0: its zero point. The kernels take 0 there, so an image whose zero point is another gets a
border of that, and the zero points become sums of whole windows:

    sum (x - zx) * (w - wz)  =  sum x * w  -  zx * sum w  -  wz * sum x  +  K * zx * wz
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._border import surrounded
from xyntra_ep.fusion.onnx_ops._window import channels_last, from_last, kernel_of, window, with_channels
from xyntra_ep.fusion.onnx_ops.quantised._integers import moved_bytes, named_after, sums_along
from xyntra_ep.fusion.tensor import ConvNode, Tensor, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr


def integer_convolution(
    c: Context,
    node: Node,
    x: Tensor,
    x_zero: Tensor | None,
    w: Tensor,
    w_zero: Tensor | None,
    of_outputs: Sequence[Tensor | None] = (),
) -> Tensor:
    """The i32 sums [N, spatial..., M], channels last, modulo 2^32, of ONNX Conv with the attributes of ``node``: x - x_zero (of
    rank 0) and w - w_zero (of rank 0, or [M]). ``of_outputs``: what the caller has one of for each output channel."""
    w = named_after(c, w, 0, [w_zero, *of_outputs], "bias must be a 1D tensor of size output_channels")
    strides, dilations, pads, out = window(c, node, x.shape[2:], kernel_of(node, x, w), must_fit=True)
    group = int(node.attr("group", 1))
    x = with_channels(c, x, w.shape[1] * group)
    x, x_zero = moved_bytes(c, x, x_zero, DType.U8)
    w, w_zero = moved_bytes(c, w, w_zero, DType.I8)
    x = channels_last(x)
    reach = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in zip(out, strides, w.shape[2:], dilations, strict=True)]
    if x_zero is not None and not all(p == 0 and r == e for p, r, e in zip(pads, reach, x.shape[2:], strict=True)):
        x, pads = _with_border(x, x_zero, pads, reach), [0] * len(pads)

    def convolved(weights: Tensor) -> Tensor:
        conv = ConvNode(x=x, w=weights, strides=tuple(strides), dilations=tuple(dilations), pads=tuple(pads), group=group)
        return Tensor((x.shape[0], *out, weights.shape[0]), DType.I32, conv)

    sums = convolved(w)
    operands, terms = [sums], []

    def also(t: Tensor) -> int:
        operands.append(t)
        return len(operands) - 1

    if x_zero is not None:
        terms.append(("sub", also(x_zero), also(sums_along(w, range(1, w.rank)).reshape(w.shape[:1]))))
    if w_zero is not None:
        terms.append(("sub", also(w_zero), also(convolved(_ones(w, group)))))
        if x_zero is not None:
            terms.append(("add", also(x_zero), also(w_zero)))
    taps = product(w.shape[1:])

    def body(total: Expr, *others: Expr) -> Expr:
        values = (total, *others)
        for sign, a, b in terms:
            term = E.call("mul", values[a], values[b])
            total = E.call(sign, total, E.call("mul", term, E.size(taps)) if sign == "add" else term)
        return E.call("wrap_i32", total)

    return c.map(operands, body, DType.I32).named(sums.shape) if terms else sums


def _ones(w: Tensor, group: int) -> Tensor:
    """Weights that sum up what each output of ``w`` sees: of one output for all, or of one for each."""
    shape = (group, *w.shape[1:])
    if any(isinstance(s, Dim) for s in shape) or group not in (1, w.shape[0]):
        raise UnsupportedError("weights in groups that have a zero point")
    return literal(np.ones([int(s) for s in shape if not isinstance(s, Dim)], np.int8), DType.I8)


def _with_border(x: Tensor, zero: Tensor, before: Sequence[Size], reach: Sequence[Size]) -> Tensor:
    """``x``, channels last, with ``zero`` around it as far as windows reach."""
    back = from_last(x.rank)
    stored = x.permute([back.index(i) for i in range(x.rank)])  # [N, spatial..., C]
    shape = (stored.shape[0], *reach, stored.shape[-1])
    begins = (0, *before[: len(reach)], 0)
    return surrounded(stored, begins, shape, E.load(1, dtype=zero.dtype), [zero.reshape(())]).permute(back)
