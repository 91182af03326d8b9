"""Packing of b into panels: [panel][k][columns of a panel], f32, columns past the end zero.

A tile then reads its panel front to back. Rows of b that are contiguous along n are copied; along k they are transposed in
registers, a square of vectors at a time; any other layout is gathered element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.cpu.gemm._columns import Panels
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Pointer,
    Rvalue,
    Shuffle,
    f32,
    index,
    lt,
    vmin,
)


def transposed(block: BlockBuilder, rows: Sequence[Rvalue]) -> list[Rvalue]:
    """The columns of a square of vectors: log2(lanes) rounds that swap the off-diagonal blocks of halving size."""
    lanes = len(rows)
    current = list(rows)
    distance = lanes // 2
    while distance:
        upper = tuple(i if not i & distance else lanes + i - distance for i in range(lanes))
        lower = tuple(i + distance if not i & distance else lanes + i for i in range(lanes))
        for i in range(lanes):
            if not i & distance:
                a, b = current[i], current[i + distance]
                current[i] = block.let("t", Shuffle(a, b, upper))
                current[i + distance] = block.let("t", Shuffle(a, b, lower))
        distance //= 2
    return current


def sums_of(block: BlockBuilder, rows: Sequence[Rvalue], width: int = 1) -> Rvalue:
    """The sum of each of a square of vectors, as the lanes of one: transposition and addition in one tree.

    Of n vectors, fewer than there are lanes: lane i has what vector i // width % n sums up over its lanes j with
    j % width == i % width in the same group of n * width lanes. So n vectors of width 1 and then lanes // n of width n give all.
    """
    lanes = rows[0].type.lanes
    current = list(rows)
    distance = len(rows) // 2
    while distance:
        step = distance * width
        upper = tuple(i if not i & step else lanes + i - step for i in range(lanes))
        lower = tuple(i + step if not i & step else lanes + i for i in range(lanes))
        pairs = zip(current[:distance], current[distance:], strict=True)
        current = [block.let("s", Shuffle(a, b, upper) + Shuffle(a, b, lower)) for a, b in pairs]
        distance //= 2
    return current[0]


def pack_panel(
    kernel: KernelBuilder,
    *,
    source: Pointer,
    strides: tuple[Size, Size],
    depth: Rvalue,
    valid: Rvalue,
    columns: int,
    lanes: int,
    panel: Pointer,
) -> None:
    """Emit the packing of one panel. ``source``: its element (0, 0), with ``strides`` along k and n; ``valid``: how many
    of its columns exist (may be more than ``columns``)."""
    k_stride, n_stride = (kernel.param(s) for s in strides)
    if lanes > 1 and n_stride == index(1):
        _copy_rows(kernel, source, k_stride, depth, valid, columns, lanes, panel)
    elif lanes > 1 and k_stride == index(1):
        _transpose_squares(kernel, source, n_stride, depth, valid, columns, lanes, panel)
    else:
        _gather(kernel, source, k_stride, n_stride, index(0), depth, valid, columns, panel)


def pack_operand(
    kernel: KernelBuilder, b: Operand, panels: Panels, panel: Rvalue, *, start: Rvalue, source: Pointer, target: Pointer
) -> None:
    """Emit the packing of panel number ``panel`` of the matrix [k, n] of ``b`` that starts at ``start`` of ``source``.
    ``target``: where its panels are to lie, one after the other."""
    column = kernel.let("column", panels.start(panel))
    depth, valid = kernel.param(b.shape[-2]), kernel.let("valid", kernel.param(b.shape[-1]) - column)
    first = kernel.pointer("from", source, start + column * kernel.param(b.strides[-1]))
    to = kernel.pointer("to", target, column * depth)

    def pack(vectors: int) -> None:
        pack_panel(
            kernel,
            source=first,
            strides=(b.strides[-2], b.strides[-1]),
            depth=depth,
            valid=valid,
            columns=vectors * panels.lanes,
            lanes=panels.lanes,
            panel=to,
        )

    panels.for_each_width(kernel, panel, pack)


def _copy_rows(
    kernel: KernelBuilder,
    source: Pointer,
    k_stride: Rvalue,
    end: Rvalue,
    valid: Rvalue,
    columns: int,
    lanes: int,
    panel: Pointer,
) -> None:
    def copy(whole: bool) -> None:
        with kernel.loop("k", 0, end) as k:
            for j in range(0, columns, lanes):
                row = kernel.load(source, k * k_stride + j, lanes, None if whole else valid - j)
                kernel.store(panel, k * columns + j, row)

    with kernel.when(lt(valid, columns)):
        copy(whole=False)
    with kernel.otherwise():
        copy(whole=True)


def _transpose_squares(
    kernel: KernelBuilder,
    source: Pointer,
    n_stride: Rvalue,
    end: Rvalue,
    valid: Rvalue,
    columns: int,
    lanes: int,
    panel: Pointer,
) -> None:
    whole = kernel.let("whole", end - end % lanes)
    zero = Const(f32(lanes), 0.0)
    with kernel.loop("n", 0, columns, lanes) as n:
        exist = kernel.let("exist", valid - n)
        with kernel.loop("k", 0, whole, lanes) as k:
            rows: list[Rvalue] = []
            for j in range(lanes):
                # The first row of a square exists more often than not, and its test costs nothing beside the transposition.
                row = kernel.variable("r", zero)
                with kernel.when(lt(index(j), exist)):
                    kernel.assign(row, kernel.load(source, (n + j) * n_stride + k, lanes))
                rows.append(row)
            for j, column in enumerate(transposed(kernel, rows)):
                kernel.store(panel, (k + j) * columns + n, column)
    if whole != end:
        _gather(kernel, source, index(1), n_stride, whole, end, valid, columns, panel)


def _gather(
    kernel: KernelBuilder,
    source: Pointer,
    k_stride: Rvalue,
    n_stride: Rvalue,
    begin: Rvalue,
    end: Rvalue,
    valid: Rvalue,
    columns: int,
    panel: Pointer,
) -> None:
    exist = kernel.let("exist", vmin(valid, columns))
    with kernel.loop("k", begin, end) as k:
        with kernel.loop("n", 0, exist) as n:
            kernel.store(panel, k * columns + n, kernel.load(source, k * k_stride + n * n_stride))
        with kernel.loop("n", exist, columns) as n:
            kernel.store(panel, k * columns + n, Const(f32(1), 0.0))
