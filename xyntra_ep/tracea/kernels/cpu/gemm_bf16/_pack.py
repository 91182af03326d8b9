"""Packing of b into panels of pairs for products in bfloat16: [panel][k / 2][columns of a panel][2].

Sixteen pair rows of sixteen columns are one matrix tile, a pair row of any width the operand of products of pairs. k is filled
up with zeros to ``depth``, columns past the end too.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.cpu.gemm._pack import transposed
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import PackPairs
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, f32, i32, index, lt, vmin


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPanels:
    """``depth``: even, no less than the k of b."""

    panels: Size
    depth: int
    columns: int

    @property
    def step(self) -> int:
        """Elements of one panel."""
        return self.depth * self.columns

    @property
    def size_bytes(self) -> Size:
        return self.panels * self.step * DType.BF16.bytes


def pack_pairs(b: Operand, weights: TempBuffer, panels: PairPanels, context: BuildContext) -> KernelCall:
    """The call that packs the constant ``b`` [..., k, n], the same in all batches."""
    lanes = context.caps.lanes
    k = KernelBuilder(f"xy_gemm_pairs_{b.dtype}_{panels.columns}_{context.caps.isa}")
    source, packed = k.buffer("b", b.dtype), k.buffer("panels", DType.BF16, writable=True)
    depth = b.shape[-2]
    assert isinstance(depth, int)
    with k.units() as panel:
        column = k.let("column", panel * panels.columns)
        _Panel(
            k,
            source=k.pointer("from", source, k.param(b.offset) + column * k.param(b.strides[-1])),
            k_stride=k.param(b.strides[-2]),
            n_stride=k.param(b.strides[-1]),
            count=depth,
            valid=k.let("valid", k.param(b.shape[-1]) - column),
            shape=panels,
            lanes=lanes,
            target=k.pointer("to", packed, panel * panels.step),
        ).pack()
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=b.value), weights),
        params=params,
        units=panels.panels,
        cost_ns=panels.size_bytes // max(1, int(context.caps.dram_gbs)),
        phase=Phase.PREPARE,
    )


class _Panel:
    """Emits the packing of one panel. ``source``: its element (0, 0); ``count``: the k that b has; ``valid``: how many of its
    columns exist, or more."""

    def __init__(
        self,
        kernel: KernelBuilder,
        *,
        source: Pointer,
        k_stride: Rvalue,
        n_stride: Rvalue,
        count: int,
        valid: Rvalue,
        shape: PairPanels,
        lanes: int,
        target: Pointer,
    ) -> None:
        self.k = kernel
        self.source = source
        self.k_stride, self.n_stride = k_stride, n_stride
        self.count = count
        self.valid = valid
        self.shape = shape
        self.lanes = lanes
        self.target = target

    def pack(self) -> None:
        pairs, packed = self.count // 2, 0
        if self.n_stride == index(1):
            packed = pairs
            self._rows(pairs)
        elif self.k_stride == index(1):
            packed = self.count // self.lanes * self.lanes // 2
            self._squares(2 * packed)
        self._elements(packed, pairs)
        if self.count % 2:
            self._elements(pairs, pairs + 1, single=True)
        self._zeros(pairs + self.count % 2)

    def _store(self, pair: Rvalue, column: Rvalue | int, value: Rvalue) -> None:
        self.k.store_words(self.target, (pair * self.shape.columns + column) * 2, value)

    def _rows(self, pairs: int) -> None:
        """Two rows of b, contiguous along n, become one of pairs."""

        def copy(whole: bool) -> None:
            k = self.k
            with k.loop("pair", 0, pairs) as pair:
                first = k.let("first", pair * 2 * self.k_stride)
                for j in range(0, self.shape.columns, self.lanes):
                    left = None if whole else self.valid - j
                    low = k.load(self.source, first + j, self.lanes, left)
                    high = k.load(self.source, first + self.k_stride + j, self.lanes, left)
                    self._store(pair, j, PackPairs(low, high))

        with self.k.when(lt(self.valid, self.shape.columns)):
            copy(whole=False)
        with self.k.otherwise():
            copy(whole=True)

    def _squares(self, end: int) -> None:
        """b contiguous along k: squares of vectors are transposed."""
        k, lanes = self.k, self.lanes
        with k.loop("n", 0, self.shape.columns, lanes) as n:
            exist = k.let("exist", self.valid - n)
            with k.loop("k", 0, end, lanes) as at:
                rows: list[Rvalue] = []
                for j in range(lanes):
                    row = k.variable("r", Const(f32(lanes), 0.0))
                    with k.when(lt(index(j), exist)):
                        k.assign(row, k.load(self.source, (n + j) * self.n_stride + at, lanes))
                    rows.append(row)
                columns = transposed(k, rows)
                for j in range(0, lanes, 2):
                    self._store(at // 2 + j // 2, n, PackPairs(columns[j], columns[j + 1]))

    def _elements(self, begin: int, end: int, single: bool = False) -> None:
        """One pair at a time, for any strides. ``single``: k ends within the pair."""
        if begin == end:
            return
        k, zero = self.k, Const(f32(1), 0.0)
        exist = k.let("exist", vmin(self.valid, self.shape.columns))
        with k.loop("pair", begin, end) as pair:
            with k.loop("n", 0, exist) as n:
                first = k.let("first", pair * 2 * self.k_stride + n * self.n_stride)
                high = zero if single else k.load(self.source, first + self.k_stride)
                self._store(pair, n, PackPairs(k.load(self.source, first), high))
            with k.loop("n", exist, self.shape.columns) as n:
                self._store(pair, n, Const(i32(1), 0))

    def _zeros(self, begin: int) -> None:
        with self.k.loop("pair", begin, self.shape.depth // 2) as pair:
            for j in range(0, self.shape.columns, self.lanes):
                self._store(pair, j, Const(i32(self.lanes), 0))
