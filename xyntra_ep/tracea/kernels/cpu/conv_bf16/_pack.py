"""The weights of a convolution as panels of words: [panel][run of taps][words, filled up][channels of a panel][depth of a word].

A run is what lies side by side in memory: the channels of one tap, or of a whole kernel row where its taps are adjacent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BF16_PAIRS, Words
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import PackPairs
from xyntra_ep.tracea.semantic_ir.nodes import Const, Convert, Gather, Iota, Rvalue, binary, f32, i32, i64, index, splat, vmin


@dataclass(frozen=True, slots=True)
class WordRuns:
    """``length`` elements a run, filled up with zeros to a multiple of ``step``; panels of ``columns`` output channels."""

    shape: ConvShape
    step: int
    columns: int
    panels: int
    words: Words = BF16_PAIRS

    @property
    def whole_rows(self) -> bool:
        """Whether a run is a kernel row."""
        return self.shape.taps_are_adjacent

    @property
    def length(self) -> int:
        return self.shape.cin * (self.shape.x.kernel if self.whole_rows else 1)

    @property
    def padded(self) -> int:
        return -(-self.length // self.step) * self.step

    @property
    def count(self) -> int:
        return self.shape.y.kernel * (1 if self.whole_rows else self.shape.x.kernel)

    @property
    def depth(self) -> int:
        """Elements of k in a panel."""
        return self.count * self.padded

    @property
    def size_bytes(self) -> int:
        return self.panels * self.depth * self.columns * self.words.right.bytes


def pack_runs(runs: WordRuns, packed: TempBuffer, context: BuildContext) -> KernelCall:
    """A unit is one run of one panel. Lanes are output channels; those past the end repeat the last one, for nobody to store."""
    shape, lanes = runs.shape, min(context.caps.lanes, runs.columns)
    w = shape.op.inputs[1]
    k = KernelBuilder(f"xy_conv_{runs.words.name}_{w.dtype}_{shape.y.kernel}x{shape.x.kernel}_{runs.columns}_{context.caps.isa}")
    source, target = k.buffer("w", w.dtype), k.buffer("packed", runs.words.right, writable=True)
    m_step, c_step, *taps = (k.param(step) for step in w.strides)
    y_step, x_step = (index(0), *taps)[-2:]
    each = runs.words.depth
    whole, end, rest = runs.length // each, runs.padded // each, runs.length % each
    with k.units() as unit:
        panel, run = k.split(unit, (runs.panels, runs.count))
        place = run * y_step if runs.whole_rows else run // shape.x.kernel * y_step + run % shape.x.kernel * x_step
        start = k.let("start", place + k.param(w.offset))
        with k.loop("j", 0, runs.columns, lanes) as j:
            channel = splat(Convert(i64(1), panel * runs.columns + j), lanes) + Iota(i64(lanes))
            rows = k.let("rows", vmin(channel, shape.cout - 1) * Convert(i64(1), m_step))

            def element(q: Rvalue) -> Rvalue:
                at = start + q // shape.cin * x_step + q % shape.cin * c_step if runs.whole_rows else start + q * c_step
                return k.let("w", Gather(source, rows + Convert(i64(1), at)))

            to = k.let("to", unit * (runs.padded * runs.columns) + j * each)
            step = runs.columns * each
            with k.loop("word", 0, whole) as at:
                k.store_words(target, to + at * step, _word(runs.words, [element(at * each + i) for i in range(each)]))
            if rest:
                last = [element(index(whole * each + i)) for i in range(rest)]
                k.store_words(target, to + whole * step, _word(runs.words, last))
            with k.loop("word", whole + (rest > 0), end) as at:
                k.store_words(target, to + at * step, Const(i32(lanes), 0))
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=w.value), packed),
        params=params,
        units=runs.panels * runs.count,
        cost_ns=runs.size_bytes // 2,
        phase=Phase.PREPARE,
    )


def _word(words: Words, elements: Sequence[Rvalue]) -> Rvalue:
    """``elements`` side by side in a word, 0 for those that are missing."""
    lanes = elements[0].type.lanes
    if words.sums is DType.F32:
        low, high = (*elements, Const(f32(lanes), 0.0))[:2]
        return PackPairs(low, high)
    bits = 8 * words.right.bytes
    parts = [Convert(i32(lanes), e) & ((1 << bits) - 1) for e in elements]
    word = parts[0]
    for i, part in enumerate(parts[1:], start=1):
        word = word | binary("shl", part, Const(i32(lanes), bits * i))
    return word
