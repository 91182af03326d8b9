"""Programs of one reduction over the windows of images, as pooling has them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, rows
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.ops import Operand, Program, ReduceKind, Stage, ValueKind

NEUTRAL = {ReduceKind.SUM: 0.0, ReduceKind.PROD: 1.0, ReduceKind.ANY_NAN_MAX: float("-inf")}


def windows(
    shape: Sequence[int | str],
    kernel: Sequence[int],
    stride: int = 1,
    dilation: int = 1,
    pad: int = 0,
    kind: ReduceKind = ReduceKind.ANY_NAN_MAX,
    dtype: DType = DType.F32,
    over: int = 0,
    mean: bool = False,
    residual: bool = False,
    other: float | None = None,
) -> Program:
    """Over [N, C, spatial...], all axes alike; ``over``: windows more than fit, as a ceiling has them. ``mean``: the sum by the
    number of columns inside of the image, which depends on the window's place in its row."""
    p = ProgramBuilder()
    x = p.input(*shape, dtype=dtype)
    n, c, *image = x.shape
    reach = [(k - 1) * dilation + 1 for k in kernel]
    made = [(e + 2 * pad - r) // stride + 1 + over for e, r in zip(image, reach, strict=True)]
    outer, rank = (n, c, *made), len(kernel)
    inside: Expr = const(True)
    at = []
    for i, extent in enumerate(image):
        start = call("sub", call("mul", axis(2 + i), const(stride)), const(pad))
        at.append(call("add", start, call("mul", axis(2 + rank + i), const(dilation))))
        both = call("and", call("le", const(0), at[-1]), call("lt", at[-1], size(extent)))
        inside = both if inside.kind == "const" else call("and", inside, both)
    value = load(0, axis(0), axis(1), *at, dtype=DType.F32)
    if pad or over:
        value = call("where", inside, value, const(NEUTRAL[kind] if other is None else other))
    result: Expr = acc(0)
    if mean:
        start = call("sub", call("mul", axis(1 + rank), const(stride)), const(pad))
        past = call("min", call("sub", size(image[-1]), start), const(kernel[-1]))
        first = call("max", call("sub", const(0), start), const(0))
        result = call("div", result, call("to_f", call("max", call("sub", past, first), const(1))))
    inputs: list[Operand] = [x]
    if residual:
        inputs.append(p.value(ValueKind.INPUT, *outer))
        result = call("add", result, here(inputs[1], 1))
    return rows(outer, kernel, inputs, [Stage(kind=kind, body=value)], [(result, True)], p, dtype)
