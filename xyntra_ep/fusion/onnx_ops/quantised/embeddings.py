"""QEmbedLayerNormalization: the sum of rows of tables of bytes, normalised. Tables stay bytes."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, maybe, one
from xyntra_ep.fusion.onnx_ops.domains.contrib_embeddings import Lookup, embeddings
from xyntra_ep.fusion.onnx_ops.quantised._integers import dequantised, one_number
from xyntra_ep.fusion.op_spec import OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir.dtypes import DType

_BYTES = (DType.U8, DType.I8)
_IDS, _FLOAT = (DType.I32,), (DType.F32,)
_TABLES, _SCALES, _ZEROS = 2, 8, 13  # the first input of each kind, in one order: words, places, segments, scale, shift


def _q_embed_layer_normalization(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    tokens, segments = one(inputs, 0), maybe(inputs, 1)
    given = [maybe(inputs, i) for i in (1, _TABLES + 2, _SCALES + 2, _ZEROS + 2)]
    if any(t is None for t in given) and any(t is not None for t in given):
        raise UnsupportedError("segments without their table, scale or zero point, or the other way round")

    def parameters(i: int) -> list[Tensor]:
        return [one_number(one(inputs, first + i), what) for first, what in ((_SCALES, "a scale"), (_ZEROS, "a zero point"))]

    def lookup(ids: Tensor | None, i: int) -> Lookup:
        scale, zero = parameters(i)
        return Lookup(ids=ids, table=one(inputs, _TABLES + i), scale=scale, zero=zero)

    lookups = [lookup(tokens, 0), lookup(None, 1), *([] if segments is None else [lookup(segments, 2)])]
    gamma, beta = (dequantised(c, one(inputs, _TABLES + i), parameters(i), DType.F32, None) for i in (3, 4))
    return embeddings(c, node, lookups, gamma, beta, maybe(inputs, 7))


OPS = [
    OpSpec(
        name="com.microsoft.QEmbedLayerNormalization",
        lower=_q_embed_layer_normalization,
        inputs=18,
        attributes=takes("epsilon"),
        types=(_IDS, _IDS, *[_BYTES] * 5, _IDS, *[_FLOAT] * 5, *[_BYTES] * 5),
    )
]
