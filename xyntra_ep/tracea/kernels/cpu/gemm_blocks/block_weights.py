"""gemm.block_weights: a matrix product whose constant weights stay integers of 4 or 8 bits, scaled in blocks along k.

    prepare   rows of n -> panels [k][columns] of integers, [block][columns] of scales and zero points
    run       out = epilogue(a . ((integers - zeros) * scales)), in f32; many rows in bfloat16 or bytes where asked for, and fast

Half a byte for a weight: where weights come from memory for every row (a decoder's step), an eighth of the time. With many rows
it costs what f32 or bfloat16 costs, and saves memory only.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, le, select, typical
from xyntra_ep.tracea.core_ir.ops import BlockGemm
from xyntra_ep.tracea.kernels.cpu.gemm._choice import peak_of, product_ns, tile_of, tile_refusal, tile_space, widest_tile
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BYTE_QUADS
from xyntra_ep.tracea.kernels.cpu.gemm_blocks import generic
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._multiply import DIRECT, multiplies_bytes, multiplies_pairs, multiply
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._pack import pack
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import PackedWeights
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, TempBuffer, Variant

# Tiles have two sums for each vector.
_BYTE_TILES = {32: ((4, 48), (6, 32), (3, 64)), 16: ((2, 24), (3, 16), (6, 8))}  # by registers: rows and columns
_OF_BYTE_LOOP = 0.8  # of the loop of products is left where each block's are scaled
_NEAR = 5  # how much faster than from memory data comes from L2, at least
_PACKING = 8  # what packing costs, in readings of what is packed


def admits(op: BlockGemm, context: BuildContext) -> str | None:
    for what, operand in zip(("q", "the scales", "the zero points"), op.inputs[1 : op.reads_directly], strict=False):
        if not context.is_constant(operand.value):
            return f"{what} are not constant" if what != "q" else "q is not a constant"
    if not all(isinstance(size, int) for o in op.inputs[1 : op.reads_directly] for size in (*o.shape, *o.strides, o.offset)):
        return "the size of q is known only at run time"
    if not (isinstance(op.depth, int) and isinstance(op.domain[-1], int)):
        return "the size of q is known only at run time"
    return generic.admits(op, context)


def space(op: BlockGemm, context: BuildContext) -> Sequence[Axis]:
    if not multiplies_bytes(op, context.caps):
        return tile_space(context.caps)
    rows, columns = (tuple(sorted(sizes)) for sizes in zip(*_BYTE_TILES[context.caps.vector_registers], strict=True))
    return Axis(name="rows", values=rows), Axis(name="columns", values=columns)


def refusal(op: BlockGemm, config: Config, context: BuildContext) -> str:
    if not multiplies_bytes(op, context.caps):
        return tile_refusal(config, context.caps)
    tile, registers = tile_of(config, context.caps), context.caps.vector_registers
    wanted = (2 * tile.rows + 1) * tile.vectors + 1
    return f"it wants {wanted} of {registers} registers" if wanted > registers else ""


def default(op: BlockGemm, context: BuildContext) -> Config:
    n = op.domain[-1]
    assert isinstance(n, int)
    if not multiplies_bytes(op, context.caps):
        return widest_tile(n, context.caps)
    tiles = _BYTE_TILES[context.caps.vector_registers]
    rows, columns = min(tiles, key=lambda tile: -(-n // tile[1]) * tile[1])  # the first of equals
    return {"rows": rows, "columns": columns}


def cost_ns(op: BlockGemm, config: Config, context: BuildContext) -> float:
    weights, shape = PackedWeights(op=op, tile=tile_of(config, context.caps)), shape_of(op)
    return typical(_run_ns(weights, shape, context)) + 100.0


def _run_ns(weights: PackedWeights, shape: GemmShape, context: BuildContext) -> Size:
    """The products, and beside them the widening of every weight, which is as much work as a product of one row."""
    caps = context.caps
    widening = 2 * weights.depth * weights.columns // max(1, int(caps.fma_gflops))
    multiplying = product_ns(shape, caps)
    peak = 0.0
    if multiplies_pairs(weights.op, caps):
        peak = caps.bf16_gflops
    elif multiplies_bytes(weights.op, caps):
        peak = _OF_BYTE_LOOP * peak_of(BYTE_QUADS, caps)
    if peak:
        in_words = multiplying * int(caps.fma_gflops) // max(1, int(peak))
        multiplying = select(le(shape.m, DIRECT * weights.tile.rows), multiplying, in_words)
    return multiplying + max(widening, _memory_ns(weights, context))


def _memory_ns(weights: PackedWeights, context: BuildContext) -> int:
    near = weights.bytes <= context.caps.l2_bytes
    return weights.bytes // max(1, int(context.caps.dram_gbs * (_NEAR if near else 1)))


def build(op: BlockGemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, weights = shape_of(op), PackedWeights(op=op, tile=tile_of(config, context.caps))
    sizes = [("panels", weights.of_panel * weights.dtype.bytes)]
    sizes.append(("scales", weights.factors_of_panel * weights.scale_dtype.bytes))
    if weights.zero_dtype is not None:
        sizes.append(("zeros", weights.factors_of_panel * weights.zero_dtype.bytes))
    buffers = tuple(TempBuffer(name=name, size_bytes=weights.panels * size) for name, size in sizes)
    return [
        pack(weights, buffers, _PACKING * _memory_ns(weights, context)),
        *multiply(shape, weights, buffers, _run_ns(weights, shape, context), context),
    ]


VARIANTS = [
    Variant(
        name="gemm.block_weights",
        op=BlockGemm,
        admits=admits,
        space=space,
        refuses=refusal,
        default=default,
        cost_ns=cost_ns,
        build=build,
        rank=-1,
    )
]
