"""QAttention: queries, keys and values are a product of bytes, the rest is attention in floats."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, maybe, one
from xyntra_ep.fusion.onnx_ops.domains.contrib_attention import attention_of
from xyntra_ep.fusion.onnx_ops.quantised._integers import one_number
from xyntra_ep.fusion.onnx_ops.quantised.products import Bytes, scaled_product
from xyntra_ep.fusion.op_spec import FLAG, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir.dtypes import DType

_BYTES = (DType.U8, DType.I8)
_FLOAT = (DType.F32,)


def _qattention(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    x, weights, bias = one(inputs, 0), one(inputs, 1), one(inputs, 2)
    if x.rank != 3 or weights.rank != 2:
        raise UnsupportedError(f"QAttention of rank {x.rank} with weights of rank {weights.rank}")
    a = Bytes(q=x, scale=one_number(one(inputs, 3), "the input's scale"), zero=maybe(inputs, 6))
    b = Bytes(q=weights, scale=one(inputs, 4), zero=maybe(inputs, 7))
    c.require_equal(bias.size, weights.shape[1], "'bias' should have same length as dimension 1 of 'weights'")
    return attention_of(c, node, scaled_product(c, a, b, bias), maybe(inputs, 5), maybe(inputs, 8))


OPS = [
    OpSpec(
        name="com.microsoft.QAttention",
        lower=_qattention,
        inputs=9,
        attributes=takes(
            "mask_filter_value", "num_heads", "scale", do_rotary=(0,), past_present_share_buffer=(0,), unidirectional=FLAG
        ),
        types=(_BYTES, _BYTES, _FLOAT, _FLOAT, _FLOAT, (DType.I32,), _BYTES, _BYTES, _FLOAT),
    )
]
