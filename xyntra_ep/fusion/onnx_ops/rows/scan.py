"""What runs along one axis in order: cumulative sums and products, and the k best."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, Lower, const_number, normal_axis, one
from xyntra_ep.fusion.op_spec import FLAG, INDICES, NUMBERS, OpSpec, takes
from xyntra_ep.fusion.tensor import ScanNode, Tensor, TopKNode
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir.dims import le
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import ReduceKind


def _to_last(rank: int, axis: int) -> list[int]:
    """The permutation that moves ``axis`` to the end."""
    return [i for i in range(rank) if i != axis] + [axis]


def _back(rank: int, axis: int) -> list[int]:
    order = _to_last(rank, axis)
    return [order.index(i) for i in range(rank)]


def _scan(kind: ReduceKind) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        t = one(inputs, 0)
        if t.dtype is DType.BOOL:
            raise UnsupportedError("dtype bool")
        axis = normal_axis(int(const_number(one(inputs, 1), "the axis")), t.rank)
        moved = t.permute(_to_last(t.rank, axis))
        scan = ScanNode(x=moved, kind=kind, exclusive=bool(node.attr("exclusive", 0)), reverse=bool(node.attr("reverse", 0)))
        return Tensor(moved.shape, t.dtype, scan).permute(_back(t.rank, axis))

    return lower


def _top_k(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    t = one(inputs, 0)
    k = int(node.need("k") if node.version < 10 else const_number(one(inputs, 1), "k"))
    axis = normal_axis(int(node.attr("axis", -1)), t.rank)
    c.require(le(k, t.shape[axis]), "TopK: k is larger than the axis")
    moved = t.permute(_to_last(t.rank, axis))
    best = TopKNode(x=moved, k=k, largest=bool(node.attr("largest", 1)))
    shape, back = (*moved.shape[:-1], k), _back(t.rank, axis)
    return [Tensor(shape, dtype, best, output=i).permute(back) for i, dtype in enumerate((t.dtype, DType.I64))]


_CUMULATIVE = takes(exclusive=FLAG, reverse=FLAG)

OPS = [
    OpSpec(
        name="CumSum", lower=_scan(ReduceKind.SUM), versions=(1, 14), inputs=2, attributes=_CUMULATIVE, types=(NUMBERS, INDICES)
    ),
    OpSpec(
        name="CumProd", lower=_scan(ReduceKind.PROD), versions=(1, 26), inputs=2, attributes=_CUMULATIVE, types=(NUMBERS, INDICES)
    ),
    OpSpec(
        name="TopK",
        lower=_top_k,
        versions=(1, 24),
        inputs=2,
        attributes=takes("axis", "k", largest=FLAG, sorted=FLAG),  # sorted is one of the orders that unsorted allows
        types=(NUMBERS, INDICES),
        note="of constant k",
    ),
]
