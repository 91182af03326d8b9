"""gemm.block_generic: any strides, any float types, one element of the result at a time. The variant that is always legal."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import BlockGemm, Operand
from xyntra_ep.tracea.kernels.cpu.gemm._choice import product_ns
from xyntra_ep.tracea.kernels.cpu.gemm.generic import SLOWDOWN
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Convert, Fma, Pointer, Rvalue, binary, f32, index


def admits(op: BlockGemm, context: BuildContext) -> str | None:
    a = op.inputs[0].dtype
    return None if a.is_float else f"a is {a}, not a float"


def cost_ns(op: BlockGemm, config: Config, context: BuildContext) -> float:
    return SLOWDOWN * float(typical(product_ns(shape_of(op), context.caps))) + 1000.0


def build(op: BlockGemm, config: Config, context: BuildContext) -> list[KernelCall]:
    """A unit is one row of the result."""
    shape = shape_of(op)
    a, out = op.inputs[0], op.output
    k = KernelBuilder(f"xy_gemm_{a.dtype}_int{op.bits}x{op.block}_generic")
    read = [k.buffer("in", operand.dtype) for operand in op.inputs[: op.reads_directly]]
    out_data = k.buffer("out", out.dtype, writable=True)
    epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, shape.groups, len(shape.groups) - 1)
    with k.units() as unit:
        *batch, row = k.split(unit, [*shape.batch_extents, shape.m])
        a_row = k.pointer("a_row", read[0], address(k, a, batch) + row * k.param(shape.a_row))
        with k.loop("n", 0, k.param(shape.n)) as n:
            rows = [k.pointer("row", p, address(k, o, [n])) for p, o in zip(read[1:], op.inputs[1:], strict=False)]
            total = k.variable("total", Const(f32(1), 0.0))
            with k.loop("i", 0, k.param(shape.depth)) as i:
                x = k.load(a_row, i * k.param(shape.a_k))
                k.assign(total, Fma(x, _weight(k, op, rows, i), total))
            here = epilogue.at(k)
            here.store(out, out_data, [*batch, row, n], here.value([*batch, row, n], total, 1))
    kernel, params = k.finish()
    values = [operand.value for operand in (*op.inputs[: op.reads_directly], out)]
    return [
        KernelCall(
            kernel=kernel,
            buffers=(*(ValueBuffer(value=value) for value in values), *epilogue.buffers),
            params=params,
            units=product([*shape.batch_extents, shape.m]),
            cost_ns=SLOWDOWN * product_ns(shape, context.caps),
        )
    ]


def _weight(k: KernelBuilder, op: BlockGemm, rows: Sequence[Pointer], i: Rvalue) -> Rvalue:
    """Number ``i`` of a column, of whose q, scales and zero points ``rows`` are."""
    block = k.let("block", i // index(op.block))
    scale = k.load(rows[1], block * k.param(op.inputs[2].strides[1]))
    zero: Rvalue | float = float(op.middle)
    if op.zeros is not None:
        zero = _element(k, op.zeros, rows[2], block, op.bits)
    return k.let("w", (_element(k, op.inputs[1], rows[0], i, op.bits) - zero) * scale)


def _element(k: KernelBuilder, operand: Operand, row: Pointer, i: Rvalue, bits: int) -> Rvalue:
    """Number ``i`` of a row, of floats or of integers in bytes."""
    step = k.param(operand.strides[1])
    if operand.dtype is not DType.U8:
        return k.load(row, i * step)
    of_byte = index(8 // bits)
    byte = k.load(row, i // of_byte * step)
    return Convert(f32(1), binary("shr", byte, i % of_byte * bits) & ((1 << bits) - 1))


VARIANTS = [
    Variant(
        name="gemm.block_generic",
        op=BlockGemm,
        admits=admits,
        cost_ns=cost_ns,
        build=build,
        rank=FALLBACK_RANK,
    )
]
