"""gemm.low_rank: a product with constant weights, packed as `gemm.packed_b` has them, whose sums a second one goes on with.

    run       for panel: for block of rows: tile over all of k, the second tile over the rank onto the same sums, epilogue, store

So what a low-rank product adds costs its arithmetic alone: no result is stored, read and added in between. Its left side, of a
few columns, was made before by a product of its own: here each panel would make it anew. Its right side is packed when it is
constant, else read in place: it is used as often as there are blocks of rows, which do not pay for packing when they are few.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import LowRankGemm, Operand
from xyntra_ep.tracea.kernels.cpu.gemm import packed_b
from xyntra_ep.tracea.kernels.cpu.gemm._choice import tile_of, tile_refusal
from xyntra_ep.tracea.kernels.cpu.gemm._columns import PanelLayout, Panels, even_panels
from xyntra_ep.tracea.kernels.cpu.gemm._left import LeftRows
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import SecondProduct, multiply
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, ValueBuffer, Variant


def admits(op: LowRankGemm, context: BuildContext) -> str | None:
    left, right = op.inputs[2:4]
    if not all(operand.dtype is DType.F32 for operand in op.inputs[:4]):
        return "not all factors are f32"
    if not isinstance(op.rank, int) or not op.rank:
        return "the rank is known only at run time"
    if left.strides[-1] != op.inputs[0].strides[-1]:
        return "the columns of the two left sides are not equally far apart"
    if (why := packed_b.admits(op, context)) is not None:
        return why
    shape = shape_of(op)
    if shape.rows.merged(dict(enumerate(left.strides[:-1]))) is None:
        return "rows of the second left side do not follow one another as those of a"
    if any(right.strides[axis] for group in (*shape.batch, shape.rows) for axis in group.axes if axis < len(right.shape) - 2):
        return "the second right side differs between batches"
    if not _is_packed(op, context) and right.strides[-1] != 1:
        return "columns of the second right side are not neighbours"
    return None


def cost_ns(op: LowRankGemm, config: Config, context: BuildContext) -> float:
    """In proportion to the depth."""
    shape = shape_of(op)
    assert isinstance(shape.depth, int)
    assert isinstance(op.rank, int)
    return packed_b.cost_ns(op, config, context) * (1.0 + op.rank / max(1, shape.depth))


def build(op: LowRankGemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    tile = tile_of(config, context.caps)
    panels = even_panels(shape.n, tile)
    weights, layout = packed_b.packed("panels", panels, shape.depth, shape)
    packing = [packed_b.pack(op.inputs[1], shape, panels, weights, context)]
    assert isinstance(op.rank, int)
    right = _in_place(op.inputs[3], panels, shape)
    if _is_packed(op, context):
        factors, right = packed_b.packed("factors", panels, op.rank, shape)
        packing.append(packed_b.pack(op.inputs[3], shape, panels, factors, context))
    second = SecondProduct(rows=_rows(op.inputs[2], shape), b=right, steps=op.rank)
    return [*packing, multiply(shape, tile, layout, context, second=second)]


def _is_packed(op: LowRankGemm, context: BuildContext) -> bool:
    """Whether the second right side is, when the session is created."""
    right = op.inputs[3]
    known: Sequence[Size] = (*right.shape[-2:], *right.strides[-2:], right.offset)
    return context.is_constant(right.value) and all(isinstance(size, int) for size in known)


def _rows(left: Operand, shape: GemmShape) -> LeftRows:
    row = shape.rows.merged(dict(enumerate(left.strides[:-1])))
    assert row is not None
    strides = tuple(left.strides[group.axes[0]] for group in shape.batch)
    return LeftRows(buffer=ValueBuffer(value=left.value), offset=left.offset, batch_strides=strides, row=row)


def _in_place(right: Operand, panels: Panels, shape: GemmShape) -> PanelLayout:
    return PanelLayout(
        panels=panels,
        buffer=ValueBuffer(value=right.value),
        dtype=DType.F32,
        offset=right.offset,
        batch_strides=(0,) * len(shape.batch),
        column=1,
        row=right.strides[-2],
        padded=False,
        fetch=False,
    )


VARIANTS = [
    Variant(
        name="gemm.low_rank",
        op=LowRankGemm,
        admits=admits,
        space=packed_b.space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=packed_b.default,
        cost_ns=cost_ns,
        build=build,
    )
]
