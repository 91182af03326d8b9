"""The sums of a direct convolution by products of words: neighbours along k, channels of a tap or of a kernel row.

for each run of taps:
  for word:
    b[j] = w[word][j];  for pixel i of the run: acc[i][j] += sum over the word of x[i][word] * b[j]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xyntra_ep.tracea.kernels.cpu.conv._direct import Multiply, each_run
from xyntra_ep.tracea.kernels.cpu.conv._row import TapRun
from xyntra_ep.tracea.kernels.cpu.conv._tile import AHEAD_UNIT, TileFunction
from xyntra_ep.tracea.kernels.cpu.conv_bf16._pack import WordRuns
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Words
from xyntra_ep.tracea.kernels.cpu.shared.streams import LINE_BYTES
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, binary, splat


def accumulate_words(
    words: Words, filled: WordRuns | None = None, also: Multiply | None = None
) -> Callable[[TileFunction], None]:
    """What a tile sums up. Without ``filled``, runs are whole words: those of each tap. With it they are filled up, and every
    tile reads all of them, from an image that has a border. ``also``: what follows each of them."""

    def multiply(f: TileFunction, run: TapRun, at: Rvalue, start: Rvalue, depth: int) -> None:
        _multiply(words, f, run, at, start, depth)
        if also is not None:
            also(f, run, at, start, depth)

    def accumulate(f: TileFunction) -> None:
        f.fetch_outputs()
        if filled is None:
            each_run(f, multiply)
        else:
            _each_filled_run(f, multiply, filled)

    return accumulate


def _each_filled_run(f: TileFunction, multiply: Multiply, runs: WordRuns) -> None:
    shape = f.code.shape
    step = shape.x.dilation * shape.x_strides[2]  # from tap to tap
    [run] = f.tile.runs
    columns = 1 if runs.whole_rows else shape.x.kernel
    with f.loop("ky", f.arg["first"], f.arg["stop"]) as ky:
        x_row = f.let("x_row", f.arg["at"] + ky * f.x_row_step)
        with f.loop("kx", 0, columns) as kx:
            at, start = f.let("x_tap", x_row + kx * step), f.let("k0", (ky * columns + kx) * runs.padded)
            multiply(f, run, at, start, runs.padded)


def _multiply(words: Words, f: TileFunction, run: TapRun, at: Rvalue, start: Rvalue, depth: int) -> None:
    """acc += x[pixels of the run][at, at + depth) * w[start, start + depth)."""
    code, each = f.code, words.depth
    line = LINE_BYTES // words.right.bytes
    x = f.pointer("x", code.x, at)
    w = f.pointer("w", code.w, f.arg["panel"] + start * code.width)
    ahead, rate = w, code.ahead_rate
    if rate is not None:
        ahead = f.pointer("next", code.w, f.arg["ahead"] + start // each * rate // AHEAD_UNIT * line)
    with f.loop("word", 0, depth // each) as word:
        places = [(word * code.width + j * code.lanes) * each for j in range(code.vectors)]
        b = [f.let("b", f.load_words(w, place, code.lanes)) for place in places]
        multiply_word(words, f, run, x, word * each, dict(enumerate(b)))
        if rate is not None:
            f.prefetch(ahead, binary("shr", word * rate, AHEAD_UNIT.bit_length() - 1) * line)


def multiply_word(words: Words, f: TileFunction, run: TapRun, x: Pointer, at: Rvalue, b: Mapping[int, Rvalue]) -> None:
    """acc += the words ``at`` of ``x`` and of the other pixels of the run, times ``b`` by vector of channels."""
    code = f.code
    pixel_step = code.shape.x.stride * code.shape.x_strides[2]
    for i in range(run.low, run.high):
        a = f.let("a", splat(f.load_words(x, at + i * pixel_step), code.lanes))
        for j, w in b.items():
            f.assign(f.acc[i][j], words.dot(a, w, f.acc[i][j]))
