"""What the GEMM variants ask about an op: its sizes, and which batch axes are rows in disguise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.ops import BlockGemm, Gemm
from xyntra_ep.tracea.kernels.shared.index import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmShape:
    """``batch`` axes are looped over; ``rows`` are the axes counted as one row index, the last is m."""

    op: Gemm | BlockGemm
    depth: Size
    batch: tuple[Group, ...]
    rows: Group
    columns: Group
    a_row: Size
    b_is_shared: bool

    @property
    def groups(self) -> tuple[Group, ...]:
        return (*self.batch, self.rows, self.columns)

    @property
    def m(self) -> Size:
        return product(self.rows.extents)

    @property
    def n(self) -> Size:
        return self.columns.extents[0]

    @property
    def a_k(self) -> Size:
        return self.op.inputs[0].strides[-1]

    @property
    def batch_extents(self) -> list[Size]:
        return [group.extents[0] for group in self.batch]


def shape_of(op: Gemm | BlockGemm) -> GemmShape:
    """Batch axes join m where b does not change along them and a and out step evenly across."""
    a = op.inputs[0]
    domain, rank = op.domain, len(op.domain)
    b_strides: Sequence[Size] = op.inputs[1].strides if isinstance(op, Gemm) else (0,) * rank  # blocks have no batch
    a_form, out_form = dict(enumerate(a.strides[:-1])), dict(enumerate(op.output.strides))
    first = rank - 2
    rows = Group(axes=(first,), extents=(domain[first],))
    while first > 0 and _is_still(b_strides[first - 1], domain[first - 1]):
        longer = Group(axes=tuple(range(first - 1, rank - 1)), extents=tuple(domain[first - 1 : rank - 1]))
        if longer.merged(a_form) is None or longer.merged(out_form) is None:
            break
        first, rows = first - 1, longer
    step = rows.merged(a_form)
    assert step is not None
    return GemmShape(
        op=op,
        depth=a.shape[-1],
        batch=tuple(Group(axes=(i,), extents=(domain[i],)) for i in range(first)),
        rows=rows,
        columns=Group(axes=(rank - 1,), extents=(domain[-1],)),
        a_row=step,
        b_is_shared=all(_is_still(s, e) for s, e in zip(b_strides[: rank - 2], domain, strict=False)),
    )


def own_batches(shape: GemmShape) -> list[Group]:
    """The batch axes along which b changes."""
    strides = shape.op.inputs[1].strides
    return [group for group in shape.batch if strides[group.axes[0]] != 0]


def _is_still(stride: Size, extent: Size) -> bool:
    return stride == 0 or extent == 1
