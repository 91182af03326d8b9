"""What clamped words of a convolution's weights leave out, so that the sums of a product are exact.

Which pairs are unsafe, and what is taken out of their first element, is said in gemm_integer/_excess.py. Here that stays where it
was in its word, with 0 beside it, so it is safe and multiplies the same word of x:

    panel   [words of k][vectors of channels][channels of a vector][4]     127 127 ...  ->  1 127 ...
    words   [vectors][number][channels of a vector][4]                     126 0 ...     of the words where one of them has it
    tables  [vectors][1 + stretches]                                       the words before each stretch of k, and all of them
            [vectors][number]                                              where in k each begins

A stretch is what a tile reads side by side: the channels of one tap, or a filled run of taps. After it a tile goes through the
stretch's excess, at the same pixels. So what lies outside x is left out once for both, and where nothing is unsafe there are
only empty loops. What is not used of the buffers is never written.

Each vector has words of its own, for fewer are wanted for 8 channels than for the 16 or more of a panel. Of bell-shaped weights
with one scale for all channels 1 pair in 1,400 is not safe, and 8 channels have 0.01 words more for each of their own; with a
scale for each channel it is 1 in 54, and 0.26 words; of weights of any size 1 in 4, and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._row import TapRun
from xyntra_ep.tracea.kernels.cpu.conv._tile import TileFunction
from xyntra_ep.tracea.kernels.cpu.conv_bf16._pack import WordRuns
from xyntra_ep.tracea.kernels.cpu.conv_bf16._words import multiply_word
from xyntra_ep.tracea.kernels.cpu.gemm_integer._excess import has_any, split
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Convert, Rvalue, i64, index


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessRuns:
    """``stretch``: elements of k. ``lanes``: channels of a vector."""

    runs: WordRuns
    stretch: int
    lanes: int

    @property
    def vectors(self) -> int:
        return self.runs.columns // self.lanes

    @property
    def stretches(self) -> int:
        return self.runs.depth // self.stretch

    @property
    def most(self) -> int:
        """Elements of the words of a vector of channels: each of its own may have an excess."""
        return self.runs.depth * self.lanes

    @property
    def table(self) -> int:
        """Elements of the table of a vector of channels."""
        return self.stretches + 1 + self.runs.depth // self.runs.words.depth

    @property
    def buffers(self) -> tuple[tuple[TempBuffer, DType], tuple[TempBuffer, DType]]:
        """(tables, words)."""
        size_bytes = self.runs.panels * self.vectors * self.table * DType.I32.bytes
        words = TempBuffer(name="excess", size_bytes=self.runs.size_bytes)
        return (TempBuffer(name="tables", size_bytes=size_bytes), DType.I32), (words, self.runs.words.right)

    def multiply(self, f: TileFunction, run: TapRun, at: Rvalue, start: Rvalue, depth: int) -> None:
        """acc += x[pixels of the run][at, at + depth) * the excess of [start, start + depth), which is whole stretches."""
        words, panel = self.runs.words, f.arg["panel"]
        x, stretch = f.pointer("x", f.code.x, at - start), f.let("stretch", start // self.stretch)
        tables, excess = f.code.beside
        of_panel = f.let("tables", panel // self.most * self.table)
        for j in range(self.vectors):
            table, more = f.pointer("table", tables, of_panel + j * self.table), f.pointer("more", excess, panel + j * self.most)
            first, stop = (f.let("excess", f.load(table, stretch + i)) for i in (0, depth // self.stretch))
            with f.loop("word", first, stop) as word:
                k = f.let("k", f.load(table, word + (self.stretches + 1)))
                b = f.let("b", f.load_words(more, word * (self.lanes * words.depth), self.lanes))
                multiply_word(words, f, run, x, k, {j: b})


def split_off(excess: ExcessRuns, packed: TempBuffer, context: BuildContext) -> KernelCall:
    """The call that takes it out of ``packed`` weights, a panel after the other."""
    runs, lanes, vectors = excess.runs, excess.lanes, range(excess.vectors)
    each = runs.words.depth
    k = KernelBuilder(f"xy_conv_{runs.words.name}_excess_{runs.columns}_{context.caps.isa}")
    target = k.buffer("packed", runs.words.right, writable=True)
    (tables, table_type), (words, word_type) = excess.buffers
    all_tables, all_words = k.buffer("tables", table_type, writable=True), k.buffer("excess", word_type, writable=True)
    with k.units() as panel:
        weights = k.pointer("panel", target, panel * (runs.depth * runs.columns))
        places = [k.let("vector", panel * excess.vectors + j) for j in vectors]
        table = [k.pointer("table", all_tables, place * excess.table) for place in places]
        more = [k.pointer("more", all_words, place * excess.most) for place in places]
        number = [k.variable("number", index(0)) for _ in vectors]
        with k.loop("stretch", 0, excess.stretches) as stretch:
            for j in vectors:
                k.store(table[j], stretch, Convert(i64(1), number[j]))
            with k.loop("word", 0, excess.stretch // each) as word:
                at = k.let("at", stretch * excess.stretch + word * each)
                for j in vectors:
                    place = at * runs.columns + j * (lanes * each)
                    safe, over = split(k, k.load_words(weights, place, lanes))
                    k.store_words(weights, place, safe)
                    with k.when(has_any([over])):
                        k.store_words(more[j], number[j] * (lanes * each), over)
                        k.store(table[j], number[j] + (excess.stretches + 1), Convert(i64(1), at))
                        k.assign(number[j], number[j] + 1)
        for j in vectors:
            k.store(table[j], excess.stretches, Convert(i64(1), number[j]))
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(packed, tables, words),
        params=params,
        units=runs.panels,
        cost_ns=runs.size_bytes // 4,
        phase=Phase.PREPARE,
    )
