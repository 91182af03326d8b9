"""Scaled dot product attention, and its gradient.

Forward and backward agree on what lies between them: the logarithm of the sum of exponentials of each row of scores.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch.fx import Node as FxNode

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.torch.aten._arguments import arguments, is_used
from xyntra_ep.frameworks.torch.conversion import AtenRow, Conversion, Result, meta
from xyntra_ep.tracea.core_ir.dtypes import DType


def _scores(c: Conversion, args: dict[str, Any]) -> tuple[str, float]:
    """Scaled products of queries and keys, masked; and the scale."""
    if args["dropout_p"] != 0:
        raise UnsupportedError("attention with dropout")
    q, k = (meta(args[name]).shape for name in ("query", "key"))
    if str(q[1]) != str(k[1]):
        raise UnsupportedError("attention of grouped heads")
    scale = args["scale"]
    scale = 1 / math.sqrt(q[3]) if scale is None else float(scale)
    query, key = c.value(args["query"]), c.value(args["key"])
    found = c.node("MatMul", query, c.node("Transpose", key, perm=[0, 1, 3, 2]))
    found = c.node("Mul", found, c.number(scale, found))
    if args["attn_mask"] is not None:
        mask = c.value(args["attn_mask"])
        if c.draft.dtype(mask) is DType.BOOL:
            mask = c.node("Where", mask, c.number(0, found), c.number(-math.inf, found), dtype=c.draft.dtype(found))
        found = c.node("Add", found, c.cast(mask, c.draft.dtype(found)))
    if args["is_causal"]:
        found = c.node("Add", found, _causal(c, q[2], k[2], found))
    return found, scale


def _is_onnx(args: dict[str, Any]) -> bool:
    """Whether a mask is as wide as there are keys, as ONNX wants it."""
    mask = args["attn_mask"]
    if mask is None:
        return True
    return str(meta(mask).shape[-1]) == str(meta(args["key"]).shape[2]) and not args["is_causal"]


def _causal(c: Conversion, rows: Any, columns: Any, like: str) -> str:
    """0 where a key is not behind its query, minus infinity elsewhere."""
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= 128:
        return c.draft.constant(np.triu(np.full((rows, columns), -np.inf), 1), c.draft.dtype(like))
    zero, one = (c.draft.constant(n, DType.I64) for n in (0, 1))
    places = [
        c.node("Range", zero, c.node("Reshape", c.sizes.vector([n]), c.draft.ints()), one, dtype=DType.I64)
        for n in (rows, columns)
    ]
    row = c.node("Unsqueeze", places[0], c.draft.ints(1))
    seen = c.node("LessOrEqual", places[1], row, dtype=DType.BOOL)
    return c.node("Where", seen, c.number(0, like), c.number(-math.inf, like), dtype=c.draft.dtype(like))


def _attention(c: Conversion, node: FxNode) -> Result:
    args = arguments(node)
    if not is_used(node, 1) and not args["dropout_p"] and _is_onnx(args):
        q, mask = meta(args["query"]).shape, args["attn_mask"]
        operands = [c.value(args[name]) for name in ("query", "key", "value")]
        scale = 1 / math.sqrt(q[3]) if args["scale"] is None else float(args["scale"])
        return c.node(
            "Attention", *operands, *([c.value(mask)] if mask is not None else []), is_causal=int(args["is_causal"]), scale=scale
        ), None
    scores, _ = _scores(c, args)
    result = c.node("MatMul", c.node("Softmax", scores, axis=3), c.value(args["value"]))
    total = None
    if is_used(node, 1):
        total = c.node("ReduceLogSumExp", scores, c.draft.ints(3), keepdims=0)
    return result, total


def _attention_backward(c: Conversion, node: FxNode) -> Result:
    args = arguments(node)
    scores, scale = _scores(c, args)
    q, k, v, out, grad = (c.value(args[name]) for name in ("query", "key", "value", "out", "grad_out"))
    total = c.node("Unsqueeze", c.cast(c.value(args["logsumexp"]), c.draft.dtype(scores)), c.draft.ints(3))
    # exp(-inf - -inf) of a row that sees nothing would be NaN; PyTorch has zeros there
    weights = c.node("Exp", c.node("Sub", scores, total))
    turned = [0, 1, 3, 2]
    by_value = c.node("MatMul", c.node("Transpose", weights, perm=turned), grad)
    by_weights = c.node("MatMul", grad, c.node("Transpose", v, perm=turned))
    share = c.node("ReduceSum", c.node("Mul", grad, out), c.draft.ints(3), keepdims=1)
    by_scores = c.node("Mul", weights, c.node("Sub", by_weights, share))
    by_scores = c.node("Mul", by_scores, c.number(scale, by_scores))
    by_query = c.node("MatMul", by_scores, k)
    by_key = c.node("MatMul", c.node("Transpose", by_scores, perm=turned), q)
    return by_query, by_key, by_value


_NAME = "aten._scaled_dot_product_flash_attention_for_cpu"

ROWS = [
    AtenRow(name=f"{_NAME}.default", convert=_attention),
    AtenRow(name=f"{_NAME}_backward.default", convert=_attention_backward),
]
