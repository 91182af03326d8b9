"""ai.onnx.ml: linear models, as products with the weights that their attributes hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, f, float_input, one
from xyntra_ep.fusion.onnx_ops.domains.ml_features import FEATURES, SINGLE, as_single, numbers, samples
from xyntra_ep.fusion.onnx_ops.products.linear import matmul
from xyntra_ep.fusion.onnx_ops.rows.reduction import full_rows, per_row, rows
from xyntra_ep.fusion.onnx_ops.rows.softmax import softmax
from xyntra_ep.fusion.op_spec import OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import le
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage

NO_ZERO = 1e-7  # to SOFTMAX_ZERO, what is no larger counts as zero
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


def _scores(c: Context, x: Tensor, node: Node, targets: int, intercepts: Sequence[float]) -> Tensor:
    """x [N, F] times the coefficients [targets, F], with an intercept for each target.

    As many columns as the input has are taken for a row of the coefficients, which may be longer: so does ONNX Runtime.
    """
    coefficients = numbers(node, "coefficients")
    if targets < 1 or not coefficients:
        raise UnsupportedError("targets and coefficients are wanted")
    features = c.checks.root(x.shape[-1])
    wanted = features * targets
    c.require(le(wanted, len(coefficients)), "there are less coefficients than targets times features")
    flat = literal(np.array(coefficients, np.float32), DType.F32)
    weights = flat.slice([0], [1], [wanted]).reshape((targets, features)).permute((1, 0))
    found = matmul(c, x, weights)
    if not intercepts:
        return found
    return c.map([found, literal(np.array(intercepts, np.float32), DType.F32)], lambda v, w: E.call("add", v, w), DType.F32)


def _softmax_zero(t: Tensor) -> Tensor:
    """A softmax over rows in which zeros stay zeros. NaN counts as one."""
    axes = [t.rank - 1]
    _, _, _, x = rows(t, axes)
    counts = E.call("or", E.call("lt", f(NO_ZERO), x), E.call("lt", x, f(-NO_ZERO)))
    weight = E.call("exp", E.call("sub", x, E.acc(0)))
    least = f(-DType.F32.largest)
    stages = [
        Stage(kind=ReduceKind.MAX, body=E.call("where", E.call("isnan", x), least, E.call("max", x, least))),
        Stage(kind=ReduceKind.SUM, body=E.call("where", counts, weight, f(0))),
    ]
    zero = E.call("mul", x, E.call("exp", E.call("neg", E.acc(0))))
    return full_rows(t, axes, [t], stages, E.call("div", E.call("where", counts, weight, zero), E.acc(1)))


def _transformed(c: Context, scores: Tensor, how: str) -> Tensor:
    """Of several targets."""
    if how == "SOFTMAX":
        return softmax(scores, [1])
    if how == "SOFTMAX_ZERO":
        return _softmax_zero(scores)
    return c.map([scores], lambda v: E.call("sigmoid", v), DType.F32) if how == "LOGISTIC" else scores


def _linear_regressor(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, targets = samples(float_input(inputs, 0)), int(node.attr("targets", 1))
    intercepts = numbers(node, "intercepts")
    scores = _scores(c, x, node, targets, intercepts if len(intercepts) == targets else [])
    return scores if targets == 1 else _transformed(c, scores, str(node.attr("post_transform", "NONE")))


def _linear_classifier(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    """(labels [N], scores [N, classes]). One row of coefficients decides between two classes."""
    x, how = samples(as_single(c, one(inputs, 0))), str(node.attr("post_transform", "NONE"))
    labels = [int(v) for v in node.attr("classlabels_ints") or ()]
    intercepts = numbers(node, "intercepts")
    if node.attr("classlabels_strings"):
        raise UnsupportedError("labels that are strings")
    if not intercepts or len(labels) != max(2, len(intercepts)) or len(numbers(node, "coefficients")) % len(intercepts):
        raise UnsupportedError("a label, an intercept and a row of coefficients are wanted for each class")
    scores = _scores(c, x, node, len(intercepts), intercepts)
    if len(intercepts) == 1:
        return _of_two(c, scores, labels, how)
    _, _, _, score = rows(scores, [1])
    stage = Stage(kind=ReduceKind.ARGMAX, body=score, dtype=DType.I64)
    best = per_row(scores, [1], [stage], E.acc_int(0), False, DType.I64)
    if labels != list(range(len(labels))):
        table = literal(np.array(labels, np.int64), DType.I64)
        body = E.load(1, E.load(0, E.axis(0), dtype=DType.I64), dtype=DType.I64)
        best = Tensor(best.shape, DType.I64, Map(inputs=(best, table), body=body))
    return [best, _transformed(c, scores, how)]


def _of_two(c: Context, scores: Tensor, labels: Sequence[int], how: str) -> Sequence[Tensor]:
    """The class by the sign of the score [N, 1], and the scores of both."""
    n = scores.shape[0]
    first, second = (E.const(v) for v in labels)
    label = c.map([scores.reshape((n,))], lambda v: E.call("where", E.call("lt", f(0), v), second, first), DType.I64)
    v = E.load(0, E.axis(0), E.const(0), dtype=DType.F32)

    def of_second(v: Expr) -> Expr:
        return E.call("sigmoid", v) if how == "LOGISTIC" else v

    of_first = E.call("sigmoid", E.call("neg", v)) if how == "LOGISTIC" else E.call("sub", f(1), v)
    body = E.call("where", E.call("eq", E.axis(1), E.const(0)), of_first, of_second(v))
    return [label, Tensor((n, 2), DType.F32, Map(inputs=(scores,), body=body))]


OPS = [
    OpSpec(
        name="ai.onnx.ml.LinearRegressor",
        lower=_linear_regressor,
        attributes=takes("coefficients", "intercepts", "targets", post_transform=POST_TRANSFORMS),
        types=(SINGLE,),
    ),
    OpSpec(
        name="ai.onnx.ml.LinearClassifier",
        lower=_linear_classifier,
        attributes=takes(
            "classlabels_ints",
            "classlabels_strings",
            "coefficients",
            "intercepts",
            "multi_class",
            post_transform=POST_TRANSFORMS,
        ),
        types=(FEATURES,),
        note="with labels that are integers",
    ),
]
