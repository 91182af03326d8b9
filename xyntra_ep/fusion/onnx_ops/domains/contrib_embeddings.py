"""What ONNX Runtime's transformer optimizer writes in place of the embeddings before the first layer, of floats and of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, clamp_index, maybe, one, require_indices, wanted_outputs, wrapped
from xyntra_ep.fusion.onnx_ops.rows.normalization import layer_norm
from xyntra_ep.fusion.onnx_ops.rows.reduction import per_row, rows
from xyntra_ep.fusion.op_spec import FLOATS, INDICES, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, either, eq, le
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage

_EPSILON = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Rows of ``table`` at ``ids``; None: at each token's place. ``scale`` and ``zero``, one number each: rows are bytes that
    stand for floats, and only those that are looked up are made floats."""

    ids: Tensor | None
    table: Tensor
    scale: Tensor | None = None
    zero: Tensor | None = None


def embeddings(
    c: Context, node: Node, lookups: Sequence[Lookup], gamma: Tensor, beta: Tensor, mask: Tensor | None
) -> Sequence[Tensor]:
    """``lookups``: of the tokens, the places and perhaps the segments. Outputs: their sum with its rows normalised [B, S, H], how
    many tokens of a row are none of the padding [B], the sum."""
    words, places, *_ = lookups
    tokens = words.ids
    assert tokens is not None
    if any(t.rank != 2 for lookup in lookups for t in (lookup.ids, lookup.table) if t is not None):
        raise UnsupportedError(f"{node.op_type} of another rank than 2")
    batch, length = tokens.shape
    width = words.table.shape[1]
    for lookup in lookups:
        c.require_equal(lookup.table.shape[1], width, "the tables have different widths")
        if lookup.ids is None:
            c.require(le(length, lookup.table.shape[0]), "input index out of range")
            continue
        if lookup is not places:
            _require_shape(c, lookup.ids, tokens.shape, "segment_ids")
        elif lookup.ids.shape[0] != 1:  # for one batch or for all
            c.require(either(eq(lookup.ids.shape[0], 1), eq(lookup.ids.shape[0], batch)), "position_ids of another batch")
        c.require_equal(lookup.ids.shape[1], length, "input_ids and position_ids have different lengths")
        require_indices(c, lookup.ids, [lookup.table.shape[0]], "input index out of range", backwards=False)
    if mask is not None:
        _require_shape(c, mask, tokens.shape, "mask")
    for p in (gamma, beta):
        _require_shape(c, p, [width], "scale or shift")
    operands: list[Tensor] = []

    def load(t: Tensor, *at: Expr) -> Expr:
        operands.append(t)
        return E.load(len(operands) - 1, *at, dtype=t.dtype)

    def row(lookup: Lookup) -> Expr:
        ids, table = lookup.ids, lookup.table
        index = E.axis(1) if ids is None else load(ids, _place(c, ids, batch), E.axis(1))
        element = load(table, clamp_index(index, table.shape[0]), E.axis(2))
        if lookup.scale is None:
            return element
        level = element if lookup.zero is None else E.call("sub", element, load(lookup.zero))
        return E.call("mul", E.call("to_f", level), load(lookup.scale))

    total = row(words)
    for lookup in lookups[1:]:
        total = E.call("add", total, row(lookup))
    dtype = gamma.dtype
    summed = Tensor((batch, length, width), dtype, Map(inputs=tuple(operands), body=wrapped(dtype, total)))
    (result,) = layer_norm(c, summed, gamma, beta, 2, float(node.attr("epsilon", _EPSILON)))
    found = [result]
    if wanted_outputs(node) > 1:
        found.append(_ones_of_rows(c, tokens, mask))
    return [*found, summed] if wanted_outputs(node) > 2 else found


def _require_shape(c: Context, t: Tensor, shape: Sequence[Size], what: str) -> None:
    if t.rank != len(shape):
        raise UnsupportedError(f"{what} of rank {t.rank}")
    for have, want in zip(t.shape, shape, strict=True):
        c.require_equal(have, want, f"the {what} has another shape than the tokens or the tables")


def _place(c: Context, ids: Tensor, batch: Size) -> Expr:
    """Where in ``ids`` a batch has its own: there may be one row for all."""
    return E.axis(0) if c.checks.same(ids.shape[0], batch) else clamp_index(E.axis(0), ids.shape[0])


def _ones_of_rows(c: Context, tokens: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return Tensor((tokens.shape[0],), DType.I32, Map(inputs=(), body=E.const(0, DType.I64)))
    one_at = c.map([mask], lambda m: E.call("where", E.call("eq", m, E.const(1)), E.const(1), E.const(0)), DType.I32)
    _, _, _, x = rows(one_at, [1])
    stage = Stage(kind=ReduceKind.SUM, body=x, dtype=DType.I64)
    return per_row(one_at, [1], [stage], E.acc_int(0), False, DType.I32)


def _embed_layer_normalization(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    segments, kinds = maybe(inputs, 1), maybe(inputs, 4)
    lookups = [Lookup(ids=one(inputs, 0), table=one(inputs, 2)), Lookup(ids=maybe(inputs, 8), table=one(inputs, 3))]
    if segments is not None and kinds is not None:
        lookups.append(Lookup(ids=segments, table=kinds))
    elif kinds is not None:
        c.require_equal(kinds.shape[1], lookups[0].table.shape[1], "the tables have different widths")
    return embeddings(c, node, lookups, one(inputs, 5), one(inputs, 6), maybe(inputs, 7))


OPS = [
    OpSpec(
        name="com.microsoft.EmbedLayerNormalization",
        lower=_embed_layer_normalization,
        inputs=9,
        attributes=takes("epsilon", mask_index_type=(1,)),
        types=(INDICES, INDICES, FLOATS, FLOATS, FLOATS, FLOATS, FLOATS, INDICES, INDICES),
    ),
]
