"""Packing of b into panels of 8-bit integers, [panel][k][columns of a panel], with one f32 scale for each column.

    scale[n] = max |b[:, n]| / 127        q[k, n] = rint(b[k, n] / scale[n])        b ~ q * scale

A column is read twice, for its largest element and for its integers, in pieces that stay in the cache. A column of zeros has
scale 0; one with a NaN or an infinity has scale NaN, and so has all that comes of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.cpu.gemm._pack import pack_panel
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.variant import KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import Const, Convert, Rvalue, Select, Unary, Var, binary, f32, i32, lt, vmax, vmin

LEVELS = 127.0
_PIECE = 256  # rows of b that are packed as f32 at a time


def quantise(b: Operand, tile: Tile, weights: TempBuffer, scales: TempBuffer, caps: Capabilities, cost_ns: Size) -> KernelCall:
    """The call that packs ``b`` [..., k, n] (sizes known); ``scales`` are in the order of the panels' columns."""
    depth, n = b.shape[-2:]
    assert isinstance(depth, int) and isinstance(n, int)
    k = KernelBuilder(f"xy_gemm_quantise_{b.dtype}_{tile.columns}_{caps.isa}")
    k.note(f"k = {depth}, n = {n}")
    source = k.buffer("b", b.dtype)
    packed, scale_of = k.buffer("panels", DType.I8, writable=True), k.buffer("scales", DType.F32, writable=True)
    piece = k.array("piece", DType.F32, _PIECE * tile.columns)
    largest = k.array("largest", DType.F32, tile.columns)
    broken = k.array("broken", DType.F32, tile.columns)
    with k.units() as panel:
        column = k.let("column", panel * tile.columns)
        for j in _vectors(tile):
            k.store(largest, j, Const(f32(tile.lanes), 0.0))
            k.store(broken, j, Const(f32(tile.lanes), 0.0))
        with k.loop("turn", 0, 2) as turn:
            with k.loop("first", 0, depth, _PIECE) as first:
                rows = k.let("rows", vmin(depth - first, _PIECE))
                start = k.param(b.offset) + column * k.param(b.strides[-1]) + first * k.param(b.strides[-2])
                pack_panel(
                    k,
                    source=k.pointer("from", source, start),
                    strides=(b.strides[-2], b.strides[-1]),
                    depth=rows,
                    valid=k.let("valid", n - column),
                    columns=tile.columns,
                    lanes=tile.lanes,
                    panel=k.pointer("to", piece, 0),
                )
                with k.when(lt(turn, 1)):
                    _measure(k, tile, piece, rows, largest, broken)
                with k.otherwise():
                    _divide(k, tile, piece, rows, largest, packed, (panel * depth + first) * tile.columns)
            with k.when(lt(turn, 1)):
                for j in _vectors(tile):
                    scale = k.load(largest, j, tile.lanes) * (1.0 / LEVELS) + k.load(broken, j, tile.lanes)
                    k.store(scale_of, column + j, scale)
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=b.value), weights, scales),
        params=params,
        units=ceildiv(n, tile.columns),
        cost_ns=cost_ns,
        phase=Phase.PREPARE,
    )


def _vectors(tile: Tile) -> Iterator[int]:
    yield from range(0, tile.columns, tile.lanes)


def _measure(k: KernelBuilder, tile: Tile, piece: Var, rows: Rvalue, largest: Var, broken: Var) -> None:
    """``broken`` stays 0 as long as a column is finite."""
    for j in _vectors(tile):
        most = k.variable("most", k.load(largest, j, tile.lanes))
        wrong = k.variable("wrong", k.load(broken, j, tile.lanes))
        with k.loop("k", 0, rows) as row:
            x = k.let("x", k.load(piece, row * tile.columns + j, tile.lanes))
            k.assign(most, vmax(Unary("abs", x), most))
            k.assign(wrong, wrong + x * 0.0)
        k.store(largest, j, most)
        k.store(broken, j, wrong)


def _divide(k: KernelBuilder, tile: Tile, piece: Var, rows: Rvalue, largest: Var, packed: Var, at: Rvalue) -> None:
    """In f32 the quotient of the largest may exceed its 127 by a rounding, which the rounding to integers takes away."""
    for j in _vectors(tile):
        scale = k.let("scale", k.load(largest, j, tile.lanes) * (1.0 / LEVELS))
        divisor = k.let("divisor", Select(binary("lt", 0.0, scale), scale, Const(scale.type, 1.0)))
        with k.loop("k", 0, rows) as row:
            level = Unary("rint", k.load(piece, row * tile.columns + j, tile.lanes) / divisor)
            bounded = k.let("level", vmax(vmin(LEVELS, level), -LEVELS))
            k.store(packed, at + row * tile.columns + j, Convert(i32(tile.lanes), bounded))
