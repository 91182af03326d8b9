"""The tile of dot products: rows x columns sums of vectors along k.

    for part of k, for group of columns:
        for k in steps of a vector:  load a vector of each row and of each column, multiply and add rows x columns of them
        the sums' vectors added up to one for each row
    those of all groups added up to a vector of columns for each row

A sum is one chain per lane and a tree of the lanes at the end. The blocks of rows together fetch the next panel of columns;
where there is no other panel, each fetches the next block of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._pack import sums_of, transposed
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Offset, Pointer, Rvalue, Var, f32, index, lt, vmin

_SUMMING = 2.5  # what the sum of a vector's lanes takes, in products of a vector
_TURN = 40  # what the loop over k takes beside its steps: to begin, to end and to fill its pipelines again
_NEAR = 5120  # elements of a tile's rows that stay in L1 from group to group
_LEAST = 8  # sums that hide the latency of their additions


@dataclass(frozen=True, slots=True, kw_only=True)
class DotTile:
    """``rows``: at most; ``columns``: of a group, a divisor of ``lanes``."""

    rows: int
    columns: int
    lanes: int

    @property
    def groups(self) -> int:
        return self.lanes // self.columns


def dot_tiles(caps: Capabilities) -> tuple[DotTile, ...]:
    """By their columns: as many rows as the registers hold beside an operand of each row, no more than are of use."""
    widths = [columns for columns in (1, 2, 4, 8) if columns <= caps.lanes]
    most = {columns: min((caps.vector_registers - 1) // (columns + 1), 8) for columns in widths}
    return tuple(DotTile(rows=max(1, most[columns]), columns=columns, lanes=caps.lanes) for columns in widths)


def dot_tile_of(rows: int, caps: Capabilities) -> DotTile:
    """The one for so many rows that reads rows and columns least often."""
    fitting = [tile for tile in dot_tiles(caps) if tile.rows >= rows]
    return max(fitting, key=lambda tile: tile.columns, default=dot_tiles(caps)[0])


def dots_ns(shape: GemmShape, caps: Capabilities, tile: DotTile) -> float:
    """The arithmetic of a whole product, on one core."""
    m, n = typical(shape.m), typical(shape.n)
    steps = -(-typical(shape.depth) // tile.lanes)
    blocks, groups = -(-m // tile.rows), -(-n // tile.columns)
    rows = m / max(1, blocks)
    of_rows = rows if typical(shape.a_row) % tile.lanes == 0 else 2 * rows  # a vector lies across two lines
    step = max(rows * tile.columns, of_rows + tile.columns, _LEAST)
    step += of_rows / 4 + tile.columns  # columns come from L2
    parts = -(-rows * typical(shape.depth) // _NEAR) if isinstance(shape.depth, int) else 1
    one = steps * step + parts * (_SUMMING * rows * tile.columns + _TURN)
    batches = typical(product(shape.batch_extents))
    return batches * blocks * groups * one * 2 * tile.lanes / caps.fma_gflops


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """Rows or columns that a tile fetches: ``share`` of the ``number`` that follow each other from ``first`` on, in each of its
    groups. ``done``: groups before this tile that do the same."""

    first: tuple[Pointer, Rvalue]
    number: int
    share: int
    done: Rvalue

    def starts(self, block: BlockBuilder, group: Rvalue) -> list[Offset]:
        """Where those of ``group`` start; what is behind the last is the last once more."""
        start = block.let("share", (self.done + group) * self.share)
        pointer, stride = self.first
        return [block.pointer("next", pointer, vmin(start + i, self.number - 1) * stride) for i in range(self.share)]


def column_sums(
    block: BlockBuilder,
    tile: DotTile,
    rows: int,
    a: tuple[Pointer, Rvalue],
    b: tuple[Pointer, Rvalue],
    depth: Rvalue,
    exist: Rvalue,
    ahead: Ahead | None,
    *,
    all_groups: bool = False,
) -> list[Rvalue]:
    """Emit the products of ``rows`` rows of a and a vector of columns of b, of which the first ``exist`` are there; a vector for
    each row. ``a``, ``b``: (the first, from one to the next). ``all_groups``: those without a column that is there, too."""
    lanes, columns = tile.lanes, tile.columns
    zero: Rvalue = Const(f32(lanes), 0.0)
    groups = index(tile.groups) if all_groups else block.let("groups", (exist + (columns - 1)) // columns)
    parts, length = _parts(depth, rows, lanes)
    scratch = block.array("dots", DType.F32, rows * tile.groups * lanes)
    if parts > 1 or groups != index(tile.groups):
        with block.loop("at", 0, rows * tile.groups * lanes, lanes) as at:
            block.store(scratch, at, zero)
    whole = block.let("whole", depth - depth % lanes)

    def add_part(begin: Rvalue, end: Rvalue) -> None:
        """The steps [begin, end) of k, whole vectors but at its end."""
        with block.loop("g", 0, groups) as g:
            first = block.let("first", g * columns)
            # What is beyond the last column is the last one once more.
            here = [block.pointer("column", b[0], vmin(first + j, exist - 1) * b[1]) for j in range(columns)]
            following = [] if ahead is None else ahead.starts(block, g)
            sums = [[block.variable("c", zero) for _ in range(columns)] for _ in range(rows)]
            with block.loop("k", begin, whole if parts == 1 else vmin(end, whole), lanes) as k:
                _step(block, a, here, sums, k, lanes, None)
                for pointer in following:
                    block.prefetch(pointer, k)
            if whole != depth:
                with block.when(lt(whole, end)):
                    _step(block, a, here, sums, whole, lanes, block.let("rest", depth - whole))
            for i, row in enumerate(sums):
                at, total = (g + i * tile.groups) * lanes, sums_of(block, row)
                block.store(scratch, at, total if parts == 1 else block.load(scratch, at, lanes) + total)

    if parts == 1:
        add_part(index(0), depth)
    else:
        with block.loop("begin", 0, depth, length) as begin:
            add_part(begin, block.let("end", vmin(begin + length, depth)))
    return [
        sums_of(block, [block.load(scratch, (i * tile.groups + g) * lanes, lanes) for g in range(tile.groups)], columns)
        for i in range(rows)
    ]


def _parts(depth: Rvalue, rows: int, lanes: int) -> tuple[int, int]:
    """(parts of k, elements of each), whole vectors, so that ``rows`` stay near; one of a depth known only at run time."""
    most = _NEAR // rows
    if not isinstance(depth, Const) or depth.value <= most:
        return 1, 0
    length = -(-int(depth.value) // -(-int(depth.value) // most) // lanes) * lanes
    return -(-int(depth.value) // length), length


def _step(
    block: BlockBuilder,
    a: tuple[Pointer, Rvalue],
    columns: list[Offset],
    sums: list[list[Var]],
    k: Rvalue,
    lanes: int,
    count: Rvalue | None,
) -> None:
    xs = [block.let("x", block.load(a[0], index(i) * a[1] + k, lanes, count)) for i in range(len(sums))]
    for j, column in enumerate(columns):
        y = block.let("y", block.load(column, k, lanes, count))
        for x, row in zip(xs, sums, strict=True):
            block.assign(row[j], Fma(x, y, row[j]))


def copy_columns(
    kernel: KernelBuilder,
    *,
    source: Pointer,
    row: Rvalue,
    depth: Rvalue,
    exist: Rvalue,
    lanes: int,
    target: Pointer,
    column: Rvalue,
) -> None:
    """Emit a copy along k of ``exist`` (at most ``lanes``) columns of ``depth`` elements, whose rows start ``row`` apart, to
    ``target``, ``column`` apart; behind the depth up to a whole vector zeros."""
    zero = Const(f32(lanes), 0.0)
    with kernel.loop("k", 0, depth, lanes) as k:
        rows: list[Rvalue] = []
        for i in range(lanes):
            vector = kernel.variable("r", zero)
            with kernel.when(lt(k + i, depth)):
                kernel.assign(vector, kernel.load(source, (k + i) * row, lanes, exist))
            rows.append(vector)
        for j, along in enumerate(transposed(kernel, rows)):
            with kernel.when(lt(index(j), exist)):
                kernel.store(target, index(j) * column + k, along)
