"""What the GEMM variants ask about an op: its sizes, which batch axes are rows in disguise, and what it costs at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, product, symbols_of
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu._epilogue import Group
from xyntra_ep.tracea.kernels.cpu._gemm_columns import even_panels
from xyntra_ep.tracea.kernels.cpu._gemm_tile import Tile
from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa

_NEAR = 5  # how much faster than from memory data comes from L2, at least
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


def shape_of(op: Gemm) -> GemmShape:
    """Batch axes join m where b does not change along them and a and out step evenly across."""
    a, b = op.inputs[:2]
    domain, rank = op.domain, len(op.domain)
    a_form, out_form = dict(enumerate(a.strides[:-1])), dict(enumerate(op.output.strides))
    first = rank - 2
    rows = Group(axes=(first,), extents=(domain[first],))
    while first > 0 and _is_still(b.strides[first - 1], domain[first - 1]):
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


def own_batches(shape: GemmShape) -> list[Group]:
    """The batch axes along which b changes."""
    strides = shape.op.inputs[1].strides
    return [group for group in shape.batch if strides[group.axes[0]] != 0]


def _is_still(stride: Size, extent: Size) -> bool:
    return stride == 0 or extent == 1


def typical(size: Size) -> int:
    """``size`` with every symbol at a typical value."""
    return evaluate(size, dict.fromkeys(symbols_of(size), TYPICAL))


def product_ns(shape: GemmShape, caps: Capabilities, columns: Size | None = None) -> Size:
    """The arithmetic of the whole product on one core at its peak, in nanoseconds. ``columns``: those of whole tiles."""
    n = shape.n if columns is None else columns
    return (2 * shape.m * n * shape.depth * product(shape.batch_extents)) // max(1, int(caps.fma_gflops))


def padded_ns(shape: GemmShape, caps: Capabilities, columns: Size) -> float:
    """As ``product_ns`` at typical sizes, of ``columns`` in whole tiles; a single vector of them is bound by broadcasts of a."""
    bound = 1.15 if columns == caps.lanes else 1.0
    return bound * typical(product_ns(shape, caps, columns))


def weight_ns(shape: GemmShape, caps: Capabilities) -> Size:
    """Reading b once: from memory, or from L2 where it may stay between runs."""
    size = 4 * shape.n * shape.depth
    is_near = isinstance(size, int) and size <= caps.l2_bytes
    return size // max(1, int(caps.dram_gbs * (_NEAR if is_near else 1)))


@dataclass(frozen=True, slots=True)
class TileSize:
    """``speed``: part of the arithmetic peak that the tile reaches on a long k where no loads bound it."""

    rows: int
    columns: int
    speed: float = 1.0

    def steps(self, vectors: int) -> float:
        """What a tile of so many vectors takes, in products of one vector and one row: a step of k loads each vector, and an
        element for each row, at the pace of the products."""
        return max(self.rows * vectors, self.rows + vectors) / self.rows / self.speed


_TILES: Mapping[Isa, tuple[TileSize, ...]] = {
    # 24 sums leave room for a row of b. 16 columns are bound by the broadcasts and want many rows.
    Isa.AVX512: (TileSize(8, 48), TileSize(12, 32), TileSize(6, 64, 0.97), TileSize(16, 16)),
    Isa.AVX2: (TileSize(6, 16), TileSize(12, 8)),
    Isa.NEON: (TileSize(8, 12), TileSize(12, 8), TileSize(6, 16, 0.97), TileSize(16, 4)),
    Isa.SCALAR: (TileSize(4, 2), TileSize(4, 1)),
}


def tile_space(caps: Capabilities) -> tuple[Axis, Axis]:
    """The search space; every combination of rows and columns is legal."""
    tiles = _TILES[caps.isa]
    return (
        Axis(name="rows", values=tuple(sorted({t.rows for t in tiles}))),
        Axis(name="columns", values=tuple(sorted({t.columns for t in tiles}))),
    )


def best_tile(n: Size, caps: Capabilities) -> Config:
    """The tile that spends least on ``n`` columns in panels of its width; for an unknown ``n`` a narrow one."""
    tiles = _TILES[caps.isa]
    best = tiles[1] if len(tiles) > 2 else tiles[0]
    if isinstance(n, int):
        best = min(tiles, key=lambda t: -(-n // t.columns) * t.steps(t.columns // caps.lanes))
    return {"rows": best.rows, "columns": best.columns}


def best_even_tile(n: Size, caps: Capabilities) -> Config:
    """As ``best_tile``, in panels of nearly the same width; of tiles that spend the same, one of few panels and many rows."""
    if not isinstance(n, int):
        return best_tile(n, caps)

    def spent(size: TileSize) -> tuple[float, int, int]:
        panels = even_panels(n, Tile(rows=size.rows, vectors=size.columns // caps.lanes, lanes=caps.lanes))
        assert isinstance(panels.number, int)
        steps = panels.larger * size.steps(panels.least + 1) + (panels.number - panels.larger) * size.steps(panels.least)
        return steps, panels.number, -size.rows

    best = min(_TILES[caps.isa], key=spent)
    return {"rows": best.rows, "columns": best.columns}


def tile_of(config: Config, caps: Capabilities) -> Tile:
    """The tile of a configuration, one of the search space's."""
    return Tile(rows=config["rows"], vectors=config["columns"] // caps.lanes, lanes=caps.lanes)
