"""What the GEMM variants ask about an op: its sizes, which batch axes are rows in disguise, and what it costs at least."""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, product, symbols_of
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.capabilities import Capabilities, Isa
from xyntra_ep.tracea.kernels.cpu._epilogue import Group

TYPICAL = 128  # stands for a symbol where a number is needed to compare variants


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmShape:
    """``batch`` axes are looped over; ``rows`` are the axes counted as one row index, the last is m."""

    op: Gemm
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


def shape_of(op: Gemm, *, collapse: bool) -> GemmShape:
    """``collapse``: b does not change along batch axes that join m, and a and out step evenly across them."""
    a, b = op.inputs[:2]
    domain, rank = op.domain, len(op.domain)
    a_form, out_form = dict(enumerate(a.strides[:-1])), dict(enumerate(op.output.strides))
    first = rank - 2
    rows = Group(axes=(first,), extents=(domain[first],))
    while collapse and first > 0 and _is_still(b.strides[first - 1], domain[first - 1]):
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
        b_is_shared=all(_is_still(s, e) for s, e in zip(b.strides[: rank - 2], domain, strict=False)),
    )


def _is_still(stride: Size, extent: Size) -> bool:
    return stride == 0 or extent == 1


def typical(size: Size) -> int:
    """``size`` with every symbol at a typical value."""
    return evaluate(size, dict.fromkeys(symbols_of(size), TYPICAL))


def product_ns(shape: GemmShape, caps: Capabilities) -> Size:
    """The arithmetic of the whole product on one core at its peak, in nanoseconds."""
    return (2 * shape.m * shape.n * shape.depth * product(shape.batch_extents)) // max(1, int(caps.fma_gflops))


def weight_ns(shape: GemmShape, caps: Capabilities) -> Size:
    """Reading b once from memory."""
    return (4 * shape.n * shape.depth) // max(1, int(caps.dram_gbs))


def tile_sizes(caps: Capabilities) -> tuple[tuple[int, int], ...]:
    """(rows, columns) of the register tiles to choose from, the best first."""
    match caps.isa:
        case Isa.AVX512:
            # 24 sums leave room for a row of b; 16 columns are bound by the broadcasts, which want many rows.
            return ((8, 48), (12, 32), (6, 64), (16, 16))
        case Isa.AVX2:
            return ((6, 16), (12, 8))
        case Isa.NEON:
            return ((8, 12), (6, 16), (12, 8), (16, 4))
        case Isa.SCALAR:
            return ((4, 2), (4, 1))


def best_tile(n: Size, caps: Capabilities) -> tuple[int, int]:
    """The tile whose columns pad ``n`` least; the first among equals."""
    tiles = tile_sizes(caps)
    if not isinstance(n, int) or n == 0:
        return tiles[0]
    return min(tiles, key=lambda tile: -(-n // tile[1]) * tile[1])
