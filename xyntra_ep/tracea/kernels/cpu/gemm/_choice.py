"""Which register tile a matrix product takes, and what it costs at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._columns import even_panels
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile, Words, lines_of_iteration
from xyntra_ep.tracea.kernels.cpu.shared.streams import LINE_BYTES
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa, Prefetching

FEW_BLOCKS = 3  # of rows: that many, or fewer, fetch nothing ahead where bursts are wanted
_NEARLY = 1.05
_NEAR = 5  # how much faster than from memory data comes from L2, at least


def product_ns(shape: GemmShape, caps: Capabilities, columns: Size | None = None, words: Words | None = None) -> Size:
    """The arithmetic of the whole product on one core at its peak, in nanoseconds. ``columns``: those of whole tiles."""
    n = shape.n if columns is None else columns
    peak = peak_of(words, caps)
    return (2 * shape.m * n * shape.depth * product(shape.batch_extents)) // max(1, int(peak))


def peak_of(words: Words | None, caps: Capabilities) -> float:
    """Operations in a nanosecond on one core, by products of f32 or of ``words``."""
    if words is None:
        return caps.fma_gflops
    if words.sums is DType.F32:
        return caps.bf16_gflops
    return caps.fma_gflops * words.depth * (1.0 if caps.vnni else 0.5)  # with VNNI a product and its sum are one, as with f32


def tiles_peak_of(words: Words, caps: Capabilities) -> float:
    """The same by matrix tiles."""
    return caps.bf16_gflops if words.sums is DType.F32 else caps.int8_gops


def padded_ns(shape: GemmShape, caps: Capabilities, columns: Size) -> float:
    """As ``product_ns`` at typical sizes, of ``columns`` in whole tiles; a single vector of them is bound by broadcasts of a."""
    bound = 1.15 if columns == caps.lanes else 1.0
    return bound * typical(product_ns(shape, caps, columns))


def weight_ns(shape: GemmShape, caps: Capabilities, dtype: DType = DType.F32) -> Size:
    """Reading b, of ``dtype``, once: from memory, or from L2 where it may stay between runs."""
    size = dtype.bytes * shape.n * shape.depth
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
    # Of those with 12 sums, which 16 registers hold, 24 columns have fewest instructions beside the products: where a neighbour
    # shares the core they bound it (Zen 3: BERT 294 ms, ViT 34.4; by 6 x 16: 304 and 35.4).
    Isa.AVX2: (TileSize(4, 24), TileSize(6, 16), TileSize(12, 8)),
    Isa.NEON: (TileSize(8, 12), TileSize(12, 8), TileSize(6, 16, 0.97), TileSize(16, 4)),
    Isa.WASM: (TileSize(6, 8), TileSize(4, 12), TileSize(12, 4)),
    Isa.SCALAR: (TileSize(4, 2), TileSize(4, 1)),
}

# Without VNNI products of integers take a register for the product beside its sum: with 24 columns one value is in memory
# (Zen 4, 126 x 768 x 768, GOP/s: clamped quads 6 x 16 166, 4 x 24 159, 12 x 8 149; shorts 125, 121, 108).
_INTEGER_TILES: Mapping[Isa, tuple[TileSize, ...]] = {
    **_TILES,
    Isa.AVX2: (TileSize(4, 24, 0.96), TileSize(6, 16), TileSize(12, 8, 0.9)),
}


def tile_space(caps: Capabilities) -> tuple[Axis, Axis]:
    """The search space; every combination of rows and columns is legal, and `tile_refusal` says which are not worth trying."""
    tiles = _TILES[caps.isa]
    return (
        Axis(name="rows", values=tuple(sorted({t.rows for t in tiles}))),
        Axis(name="columns", values=tuple(sorted({t.columns for t in tiles}))),
    )


def tile_refusal(config: Config, caps: Capabilities) -> str:
    """Why a tile of the space is not worth trying: its sums, a row of b and an element of a do not fit in registers."""
    tile = tile_of(config, caps)
    wanted = (tile.rows + 1) * tile.vectors + 1
    return f"it wants {wanted} of {caps.vector_registers} registers" if wanted > caps.vector_registers else ""


def best_tile(n: Size, caps: Capabilities, of_integers: bool = False) -> Config:
    """The tile that spends least on ``n`` columns in panels of its width; for an unknown ``n`` a narrow one."""
    tiles = (_INTEGER_TILES if of_integers and not caps.vnni else _TILES)[caps.isa]
    best = tiles[1] if len(tiles) > 2 else tiles[0]
    if isinstance(n, int):
        best = min(tiles, key=lambda t: -(-n // t.columns) * t.steps(t.columns // caps.lanes))
    return {"rows": best.rows, "columns": best.columns}


def widest_tile(n: int, caps: Capabilities) -> Config:
    """The widest of the tiles that spend nearly least on ``n`` columns: what is read beside a panel is read for more of it."""
    spent = {tile: -(-n // tile.columns) * tile.steps(tile.columns // caps.lanes) for tile in _TILES[caps.isa]}
    near = [tile for tile, steps in spent.items() if steps <= _NEARLY * min(spent.values())]
    best = max(near, key=lambda tile: tile.columns)
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


def few_rows_tile(shape: GemmShape, caps: Capabilities) -> Config | None:
    """For few rows and weights that come from memory, where bursts are wanted. There a few blocks of rows fetch nothing: the
    first waits for the weights and the others have them from L2. So the rows should be one block, or blocks enough to fetch a
    whole panel ahead; a narrower panel takes fewer of them. None where no other tile makes that so, where sizes are not known
    and where weights stay near.

    A single vector of columns is no choice: it reads all rows of a for each, which lie in the same sets of L1 (Zen 4, AVX2,
    12 x 4096 x 4096: 10.7 ms, else 5.8).
    """
    rows, n, depth = shape.m, shape.n, shape.depth
    if not (isinstance(rows, int) and isinstance(n, int) and isinstance(depth, int)) or rows < 1 or shape.batch:
        return None
    if caps.prefetching is not Prefetching.BURST or 4 * n * depth <= caps.l2_bytes:
        return None

    def suits(tile: Tile) -> bool:
        blocks = -(-rows // tile.rows)
        return blocks == 1 or not are_few(tile, blocks)

    usual = best_even_tile(n, caps)
    if suits(tile_of(usual, caps)):
        return None
    sizes = [size for size in _TILES[caps.isa] if caps.lanes < size.columns < usual["columns"]]
    others = [config for size in sizes if suits(tile_of(config := {"rows": size.rows, "columns": size.columns}, caps))]
    return max(others, key=lambda config: config["columns"], default=None)


def are_few(tile: Tile, blocks: int) -> bool:
    """Whether so many blocks of rows fetch nothing of what follows, where bursts are wanted."""
    lines = lines_of_iteration(tile, LINE_BYTES // DType.F32.bytes)
    return lines <= -(-lines // blocks) * FEW_BLOCKS


def tile_of(config: Config, caps: Capabilities) -> Tile:
    """The tile of a configuration, one of the search space's."""
    return Tile(rows=config["rows"], vectors=config["columns"] // caps.lanes, lanes=caps.lanes)
