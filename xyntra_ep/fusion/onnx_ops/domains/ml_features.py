"""ai.onnx.ml: what prepares features. A row of the input is one sample; an input of one axis is one of them.

All of it follows ONNX Runtime where the specification is silent, or says something else. Its kernels take further axes for more
columns, or fail: those stay with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.frames import cast_expr
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, all_of, f, float_input, one, require_indices, wrapped
from xyntra_ep.fusion.onnx_ops.movement.gather import gather
from xyntra_ep.fusion.onnx_ops.movement.movement import concat
from xyntra_ep.fusion.onnx_ops.rows.reduction import absolute, square
from xyntra_ep.fusion.op_spec import INDICES, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, RowNode, Tensor, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import eq, lt, product, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage

SINGLE = (DType.F32,)
FEATURES = (DType.F32, *INDICES)  # double stays with ONNX Runtime


def samples(t: Tensor) -> Tensor:
    """``t`` [N, F] or [F] as [N, F]."""
    if t.rank not in (1, 2):
        raise UnsupportedError(f"samples of {t.rank} axes")
    return t.reshape((1, *t.shape)) if t.rank == 1 else t


def as_single(c: Context, t: Tensor) -> Tensor:
    """``t`` as f32."""
    return t if t.dtype is DType.F32 else c.map([t], lambda v: cast_expr(v, t.dtype, DType.F32), DType.F32)


def numbers(node: Node, name: str) -> list[float]:
    """The attribute, a list of floats; empty where it is left out."""
    return [float(v) for v in node.attr(name) or ()]


def _scaler(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """(x - offset) * scale, one of each for every column or for all."""
    x = one(inputs, 0)
    width = samples(x).shape[-1]
    offset, scale = numbers(node, "offset"), numbers(node, "scale")
    if not scale or len(offset) != len(scale):
        raise UnsupportedError("a scale and an offset are wanted for each column, or one for all")
    if len(scale) > 1:
        c.require_equal(width, len(scale), "Either both scale and offset can be of feature size or 1")
    offsets, scales = (literal(np.array(v, np.float32), DType.F32) for v in (offset, scale))
    return c.map([as_single(c, x), offsets, scales], lambda v, o, s: E.call("mul", E.call("sub", v, o), s), DType.F32)


def _normalizer(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """Each row over its largest element, the sum of its absolutes, or the root of that of its squares; over 0 it stays as it is.

    Absolutes and squares of integers are of their type, as in ONNX Runtime: they wrap round.
    """
    t, norm = one(inputs, 0), str(node.attr("norm", "MAX"))
    samples(t)
    raw = E.load(0, *(E.axis(i) for i in range(t.rank)), dtype=t.dtype)
    x = cast_expr(raw, t.dtype, DType.F32)
    if norm == "MAX":  # NaN is never the largest, and no row has a smaller largest element than this
        least = f(-DType.F32.largest)
        stage = Stage(kind=ReduceKind.MAX, body=E.call("where", E.call("isnan", x), least, E.call("max", x, least)))
        part = x
    else:
        term = cast_expr(wrapped(t.dtype, absolute(raw) if norm == "L1" else square(raw)), t.dtype, DType.F32)
        stage = Stage(kind=ReduceKind.SUM, body=term)
        part = x if norm == "L1" else term
    norms, share = E.acc(0), E.call("div", part, E.acc(0))
    if norm == "L2":
        root = E.call("sqrt", share)
        share = E.call("where", E.call("lt", x, f(0)), E.call("neg", root), root)
    body = E.call("where", E.call("eq", norms, f(0)), x, share)
    row = RowNode(outer=t.shape[:-1], inner=t.shape[-1:], inputs=(t,), stages=(stage,), outputs=((body, False),))
    return Tensor(t.shape, DType.F32, row)


def _imputer(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """One value replaced by that of its column; where there is not one for each, by the first."""
    x = one(inputs, 0)
    width = samples(x).shape[-1]
    kind, other = ("float", "int64") if x.dtype.is_float else ("int64", "float")
    values, replaced = node.attr(f"imputed_value_{kind}s") or (), node.attr(f"replaced_value_{kind}", 0)
    if not values or node.attr(f"imputed_value_{other}s"):
        raise UnsupportedError("values of one type, that of the input, are wanted")
    table = literal(np.array(values, x.dtype.numpy), x.dtype)
    here = [E.axis(i) for i in range(x.rank)]
    column = E.call("mul", here[-1], E.size(eq(width, len(values))))
    v = E.load(0, *here, dtype=x.dtype)
    missing = E.call("isnan", v) if replaced != replaced else E.call("eq", v, E.const(replaced, x.dtype))
    body = E.call("where", missing, E.load(1, column, dtype=x.dtype), v)
    return Tensor(x.shape, x.dtype, Map(inputs=(x, table), body=body))


def _binarizer(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, threshold = float_input(inputs, 0), f(node.attr("threshold", 0.0))
    c.require_data(x, lambda v, _: E.call("isnan", v), "Input data is NaN")
    return c.map([x], lambda v: E.call("where", E.call("lt", threshold, v), f(1), f(0)), DType.F32)


def _array_feature_extractor(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """Columns by their numbers, which count from the front only."""
    t, indices = one(inputs, 0), one(inputs, 1)
    if t.rank == 0:
        raise UnsupportedError("columns of a scalar")
    t, indices = t.reshape((1, *t.shape)) if t.rank == 1 else t, indices.reshape((indices.size,))
    c.require(lt(0, indices.size), "num_indices = 0")
    require_indices(c, indices, [t.shape[-1]], "index is out of range", backwards=False)
    return gather(c, t, indices, t.rank - 1)


def _feature_vectorizer(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """The inputs side by side, each cut to the number of columns that it is said to have, or filled up with zeros."""
    widths: Sequence[int] = node.attr("inputdimensions") or ()
    if len(widths) != len(inputs) or min(widths) < 0:
        raise UnsupportedError("a number of columns is wanted for each input")
    parts = [_of_width(c, t, int(width)) for t, width in zip(all_of(inputs), widths, strict=True)]
    for t in parts[1:]:
        c.require_equal(t.shape[0], parts[0].shape[0], "All inputs to FeatureVectorizer must have the same batch size")
    return concat(c, parts, 1)


def _of_width(c: Context, t: Tensor, width: int) -> Tensor:
    if t.rank == 0:
        raise UnsupportedError("columns of a scalar")
    t = as_single(c, t)
    t = samples(t) if t.rank == 1 else t.reshape((t.shape[0], product(t.shape[1:])))
    have = t.shape[1]
    if have == width:
        return t
    column: Expr = E.call("max", E.call("min", E.axis(1), E.size(smax(have, 1) - 1)), E.const(0))
    inside = E.call("lt", E.axis(1), E.size(smin(have, width)))
    body = E.call("where", inside, E.load(0, E.axis(0), column, dtype=t.dtype), f(0))
    return Tensor((t.shape[0], width), t.dtype, Map(inputs=(t,), body=body))


OPS = [
    OpSpec(name="ai.onnx.ml.Scaler", lower=_scaler, attributes=takes("offset", "scale"), types=(FEATURES,)),
    OpSpec(name="ai.onnx.ml.Normalizer", lower=_normalizer, attributes=takes(norm=("MAX", "L1", "L2")), types=(FEATURES,)),
    OpSpec(
        name="ai.onnx.ml.Imputer",
        lower=_imputer,
        attributes=takes("imputed_value_floats", "imputed_value_int64s", "replaced_value_float", "replaced_value_int64"),
        types=((DType.F32, DType.I64),),
    ),
    OpSpec(name="ai.onnx.ml.Binarizer", lower=_binarizer, attributes=takes("threshold"), types=(SINGLE,)),
    OpSpec(name="ai.onnx.ml.ArrayFeatureExtractor", lower=_array_feature_extractor, inputs=2, types=(FEATURES, (DType.I64,))),
    OpSpec(
        name="ai.onnx.ml.FeatureVectorizer",
        lower=_feature_vectorizer,
        inputs=None,
        attributes=takes("inputdimensions"),
        types=(FEATURES,),
    ),
]
