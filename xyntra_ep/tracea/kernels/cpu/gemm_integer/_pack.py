"""Packing of b into panels of words: [panel][k / depth of a word][columns of a panel][depth], zeros behind both.

b is packed when the session is created where it is constant, else in each run. Rows of b that are contiguous along n are put
together byte by byte in registers: a word of column n is b[k, n] | b[k + 1, n] << 8 | ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Words
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, own_batches
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Convert, Pointer, Rvalue, binary, i32, index, le, vmax, vmin


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPanels:
    """``steps``: words along k."""

    words: Words
    panels: Size
    steps: Size
    columns: int

    @property
    def step(self) -> Size:
        """Elements of one panel."""
        return self.steps * self.words.depth * self.columns

    @property
    def size_bytes(self) -> Size:
        """Of the panels of one matrix."""
        return self.panels * self.step * self.words.right.bytes


def panels_of(shape: GemmShape, words: Words, columns: int) -> WordPanels:
    """Those of b, for a tile of so many columns."""
    return WordPanels(words=words, panels=ceildiv(shape.n, columns), steps=ceildiv(shape.depth, words.depth), columns=columns)


def pack_words(shape: GemmShape, weights: TempBuffer, panels: WordPanels, context: BuildContext) -> KernelCall:
    """The call that packs b, a matrix after the other along the batch axes in which it changes."""
    b, words, lanes = shape.op.inputs[1], panels.words, context.caps.lanes
    k = KernelBuilder(f"xy_gemm_{words.name}_pack_{b.dtype}_{panels.columns}_{context.caps.isa}")
    source, packed = k.buffer("b", b.dtype), k.buffer("panels", words.right, writable=True)
    batches = own_batches(shape)
    extents = [group.extents[0] for group in batches]
    with k.units() as unit:
        *batch, panel = k.split(unit, [*extents, panels.panels])
        at: list[Rvalue] = [index(0)] * len(shape.batch)
        for group, coordinate in zip(batches, batch, strict=True):
            at[shape.batch.index(group)] = coordinate
        column = k.let("column", panel * panels.columns)
        valid = k.let("valid", vmax(vmin(k.param(shape.n) - column, panels.columns), 0))
        start = address(k, b, at) + column * k.param(b.strides[-1])
        _Panel(
            k,
            source=k.pointer("from", source, start),
            strides=(k.param(b.strides[-2]), k.param(b.strides[-1])),
            depth=k.param(shape.depth),
            panels=panels,
            lanes=lanes,
            target=k.pointer("to", packed, unit * k.param(panels.step)),
        ).pack(valid)
    kernel, params = k.finish()
    number = product(extents)
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=b.value), weights),
        params=params,
        units=number * panels.panels,
        cost_ns=number * panels.size_bytes // 2,
        phase=Phase.PREPARE if context.is_constant(b.value) else Phase.RUN,
    )


class _Panel:
    """Emits the packing of one panel. ``source``: its element (0, 0); ``strides``: along k and n."""

    def __init__(
        self,
        kernel: KernelBuilder,
        *,
        source: Pointer,
        strides: tuple[Rvalue, Rvalue],
        depth: Rvalue,
        panels: WordPanels,
        lanes: int,
        target: Pointer,
    ) -> None:
        self.k = kernel
        self.source = source
        self.k_stride, self.n_stride = strides
        self.depth = depth
        self.panels = panels
        self.words = panels.words
        self.lanes = lanes
        self.target = target

    def pack(self, valid: Rvalue) -> None:
        """``valid``: how many of its columns exist."""
        k, each = self.k, self.words.depth
        whole = k.let("whole", self.depth // each)
        wide = self.n_stride == index(1) and self.lanes > 1
        with k.loop("step", 0, whole) as step:
            first = k.let("first", step * each * self.k_stride)
            rows = [first + i * self.k_stride for i in range(each)]
            if wide:
                with k.when(le(self.panels.columns, valid)):
                    for j in range(0, self.panels.columns, self.lanes):
                        self._store(step, index(j), rows, index(j), self.lanes)
                with k.otherwise():
                    self._columns(step, rows, valid)
            else:
                self._columns(step, rows, valid)
        with k.loop("step", whole, k.param(self.panels.steps)) as step:  # k ends within this one
            first = k.let("first", step * each * self.k_stride)
            left = k.let("left", self.depth - step * each)
            with k.loop("n", 0, valid) as n:
                word = k.variable("word", Const(i32(1), 0))
                for i in range(each - 1):
                    with k.when(le(i + 1, left)):
                        k.assign(word, word | self._part(first + i * self.k_stride + n * self.n_stride, i, 1))
                k.store_words(self.target, self._at(step, n), word)
            self._zeros(step, valid)

    def _columns(self, step: Rvalue, rows: Sequence[Rvalue], valid: Rvalue) -> None:
        """One column after the other."""
        with self.k.loop("n", 0, valid) as n:
            self._store(step, n, rows, self.k.let("at", n * self.n_stride), 1)
        self._zeros(step, valid)

    def _zeros(self, step: Rvalue, valid: Rvalue) -> None:
        with self.k.loop("n", valid, self.panels.columns) as n:
            self.k.store_words(self.target, self._at(step, n), Const(i32(1), 0))

    def _store(self, step: Rvalue, n: Rvalue, rows: Sequence[Rvalue], at: Rvalue, lanes: int) -> None:
        """Words of ``lanes`` columns from ``n`` on, which lie ``at`` after the beginning of each of the ``rows``."""
        word = self._part(rows[0] + at, 0, lanes)
        for i, row in enumerate(rows[1:], start=1):
            word = word | self._part(row + at, i, lanes)
        self.k.store_words(self.target, self._at(step, n), word)

    def _part(self, at: Rvalue, i: int, lanes: int) -> Rvalue:
        """Elements from ``at`` on as they lie in their words, of which they are number ``i``."""
        bits = 8 * self.words.right.bytes
        value = Convert(i32(lanes), self.k.load(self.source, at, lanes))
        last = i == self.words.depth - 1
        kept = value if last else value & ((1 << bits) - 1)
        return binary("shl", kept, Const(i32(lanes), bits * i)) if i else kept

    def _at(self, step: Rvalue, n: Rvalue) -> Rvalue:
        return (step * self.panels.columns + n) * self.words.depth
