"""Packing of a model's weights into panels, see `_weights.py`: rows of n become columns."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import GROUP, PackedWeights
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.variant import KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Var, binary, i64, index, loaded_type, lt


def pack(weights: PackedWeights, buffers: tuple[TempBuffer, ...], cost_ns: Size) -> KernelCall:
    """The call that fills ``buffers``: of the integers, the scales and, where there are any, the zero points."""
    return _Pack(weights).call(buffers, cost_ns)


class _Pack:
    def __init__(self, weights: PackedWeights) -> None:
        self.weights = weights
        self.op = weights.op
        self.columns = weights.tile.columns
        self.k = KernelBuilder(f"xy_gemm_pack_int{self.op.bits}x{self.op.block}_{self.columns}")
        self.k.note(f"k = {weights.depth}, n = {weights.columns}")

    def call(self, buffers: tuple[TempBuffer, ...], cost_ns: Size) -> KernelCall:
        k, weights = self.k, self.weights
        sources = self.op.inputs[1 : self.op.reads_directly]
        read = [k.buffer("from", source.dtype) for source in sources]
        dtypes = (weights.dtype, weights.scale_dtype, weights.zero_dtype)
        packed = [k.buffer("to", dtype, writable=True) for dtype in dtypes if dtype is not None]
        with k.units() as panel, k.loop("j", 0, self.columns) as j:
            n = k.let("n", panel * self.columns + j)
            inside = lt(n, weights.columns)
            row = k.let("row", n * inside)  # beyond the last one, any row will do
            self._integers(sources[0], read[0], packed[0], panel, j, row, inside)
            self._factors(sources[1], read[1], packed[1], panel, j, row, inside)
            if len(sources) > 2:
                self._factors(sources[2], read[2], packed[2], panel, j, row, inside)
        kernel, params = k.finish()
        values = tuple(ValueBuffer(value=source.value) for source in sources)
        return KernelCall(
            kernel=kernel,
            buffers=(*values, *buffers),
            params=params,
            units=weights.panels,
            cost_ns=cost_ns,
            phase=Phase.PREPARE,
        )

    def _integers(self, q: Operand, source: Var, target: Var, panel: Rvalue, j: Rvalue, row: Rvalue, inside: Rvalue) -> None:
        k, weights = self.k, self.weights
        first = k.let("first", address(k, q, [row]))
        start = k.let("start", panel * weights.of_panel + j)
        step = k.param(q.strides[1])
        with k.when(inside):
            if self.op.bits == 4:
                with k.loop("w", 0, weights.blocks * weights.groups_of_block) as w:
                    parts = [k.load(source, first + (w * (GROUP // 2) + i) * step) for i in range(GROUP // 2)]
                    word = parts[0]
                    for i, part in enumerate(parts[1:], start=1):
                        word = word | binary("shl", part, 8 * i)
                    k.store(target, start + w * self.columns, word)
            else:
                with k.loop("i", 0, weights.blocks * self.op.block) as place:
                    k.store(target, start + place * self.columns, k.load(source, first + place * step) - self.op.middle)
        with k.otherwise(), k.loop("w", 0, weights.of_panel // self.columns) as w:
            k.store(target, start + w * self.columns, Const(i64(1), 0))

    def _factors(self, given: Operand, source: Var, target: Var, panel: Rvalue, j: Rvalue, row: Rvalue, inside: Rvalue) -> None:
        """Scales or zero points."""
        k, weights = self.k, self.weights
        first = k.let("first", address(k, given, [row]))
        start = k.let("start", panel * weights.factors_of_panel + j)
        step = k.param(given.strides[1])
        with k.loop("block", 0, weights.blocks) as block:
            at = start + block * self.columns
            with k.when(inside):
                k.store(target, at, self._factor(given.dtype, source, first, block, step))
            with k.otherwise():
                k.store(target, at, Const(loaded_type(given.dtype, 1), 0))

    def _factor(self, dtype: DType, source: Var, first: Rvalue, block: Rvalue, step: Rvalue) -> Rvalue:
        k, bits = self.k, self.op.bits
        if dtype is not DType.U8:
            return k.load(source, first + block * step)
        of_byte = 8 // bits
        byte = k.load(source, first + block // index(of_byte) * step)
        return (binary("shr", byte, block % index(of_byte) * bits) & ((1 << bits) - 1)) - self.op.middle
