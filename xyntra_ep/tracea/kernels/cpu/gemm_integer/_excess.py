"""What clamped words of b leave out, so that the sums of a product are exact.

vpmaddubsw clamps a sum of two products to 16 bits. Whatever the unsigned bytes are, these hold 255 times 128: a pair of weights
is safe if their sum is at most 128 in size, as it is where they differ in sign. Of another pair the first keeps what is safe. The
rest, its excess, has the same sign and is no larger; and being the first's it multiplies an even element of a row:

    panel    [k / 4][columns of a panel][4]     127 127 ...  ->  1 127 ...
    words    [number][columns of a panel][4]    126 ...          of two steps of the panel, where a column has an excess there
    offsets  [1 + number]                       the number; where in a row of ``halves`` each step begins
    halves   [batch][m][k / 2, rounded up]      the even elements of a

Neighbours of the excess may not be safe either. Their own excess is a step by itself, and safe, since beside each of its weights
is a 0. So there are up to as many of these steps as the panel has; what is not used of the buffer is never written.

A step is for all columns of a panel, so a few unsafe pairs make many of them. Of bell-shaped weights 768 x 768 with one scale
for all columns 1 pair in 1,400 is not safe, and a panel has 0.02 steps more for each of its own; with a scale for each column it
is 1 in 54, and 0.35 steps; of weights of any size 1 in 4, and 0.58. gemm.shorts is as fast as this with 0.35.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xyntra_ep.tracea.core_ir.dims import ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._columns import ExcessPanels
from xyntra_ep.tracea.kernels.cpu.gemm._left import LeftRows
from xyntra_ep.tracea.kernels.cpu.gemm_integer._pack import WordPanels
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Convert,
    Reduce,
    Rvalue,
    Shuffle,
    binary,
    i64,
    index,
    vmax,
    vmin,
)

SAFE = 128  # of a pair of weights: 255 * 128 has 16 bits
_SECONDS = 0xFF00FF00 - (1 << 32)  # of each pair in a word


def excess_of(shape: GemmShape, panels: WordPanels) -> ExcessPanels:
    """The buffers."""
    halves = _pairs_of_steps(panels)
    extents = shape.batch_extents
    row = halves * panels.words.depth
    strides = tuple(product(extents[i + 1 :]) * shape.m * row for i in range(len(extents)))
    buffer = TempBuffer(name="halves", size_bytes=product(extents) * shape.m * row)
    most = 2 * halves
    return ExcessPanels(
        offsets=TempBuffer(name="offsets", size_bytes=panels.panels * (most + 1) * DType.I32.bytes),
        words=TempBuffer(name="excess", size_bytes=panels.panels * most * panels.columns * panels.words.depth),
        most=most,
        rows=LeftRows(buffer=buffer, offset=0, batch_strides=strides, row=row),
    )


def _pairs_of_steps(panels: WordPanels) -> int:
    pairs = ceildiv(panels.steps, 2)
    assert isinstance(pairs, int)
    return pairs


def split_off(panels: WordPanels, weights: TempBuffer, excess: ExcessPanels, context: BuildContext) -> KernelCall:
    """The call that takes it out of packed ``weights``, a panel after the other."""
    words, lanes, depth = panels.words, context.caps.lanes, panels.words.depth
    row = panels.columns * depth
    k = KernelBuilder(f"xy_gemm_{words.name}_excess_{panels.columns}_{context.caps.isa}")
    packed = k.buffer("panels", words.right, writable=True)
    offsets, more = k.buffer("offsets", DType.I32, writable=True), k.buffer("excess", words.right, writable=True)
    places = [depth * j for j in range(0, panels.columns, lanes)]  # of vectors in a row
    with k.units() as unit:
        panel = k.pointer("panel", packed, unit * k.param(panels.step))
        table = k.pointer("table", offsets, unit * (excess.most + 1))
        to = k.pointer("to", more, unit * (excess.most * row))
        number = k.variable("number", index(0))

        def keep(pair: Rvalue, vectors: list[Rvalue]) -> None:
            """A step of ``vectors``, unless they are 0."""
            with k.when(has_any(vectors)):
                for at, vector in zip(places, vectors, strict=True):
                    k.store_words(to, number * row + at, vector)
                k.store(table, number + 1, Convert(i64(1), pair * depth))
                k.assign(number, number + 1)

        def two_steps(pair: Rvalue, steps: int) -> None:
            left: list[Rvalue] = []
            for at in places:
                parts: list[Rvalue] = []
                for i in range(steps):
                    step = k.let("step", pair * 2 + i)
                    safe, over = split(k, k.load_words(panel, step * row + at, lanes))
                    k.store_words(panel, step * row + at, safe)
                    parts.append(_halves(over))
                left.append(k.let("left", parts[0] if steps == 1 else parts[0] | _shl(parts[1], 16)))
            again = [split(k, vector) for vector in left]
            keep(pair, [safe for safe, _ in again])
            keep(pair, [over for _, over in again])

        steps = panels.steps
        assert isinstance(steps, int)
        with k.loop("pair", 0, steps // 2) as pair:
            two_steps(pair, 2)
        if steps % 2:
            two_steps(index(steps // 2), 1)
        k.store(table, 0, Convert(i64(1), number))
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(weights, excess.offsets, excess.words),
        params=params,
        units=panels.panels,
        cost_ns=panels.size_bytes // 4,
        phase=Phase.PREPARE,
    )


def has_any(vectors: Sequence[Rvalue]) -> Rvalue:
    """Whether a bit is set in any of ``vectors``."""
    found = reduce(lambda a, b: a | b, vectors)
    return binary("ne", Convert(i64(1), Reduce("or", found)), Const(i64(1), 0))


def split(k: KernelBuilder, word: Rvalue) -> tuple[Rvalue, Rvalue]:
    """Words of what is safe and of the excess."""
    word = k.let("word", word)
    safe: Rvalue = word & _SECONDS
    left: list[Rvalue] = []
    for bits in (0, 16):
        first, second = (k.let("w", binary("shr", _shl(word, 24 - at), Const(word.type, 24))) for at in (bits, bits + 8))
        total = k.let("total", first + second)
        over = k.let("over", vmax(total - SAFE, 0) + vmin(total + SAFE, 0))
        safe = safe | _shl((first - over) & 255, bits)
        left.append(_shl(over & 255, bits))
    return k.let("safe", safe), k.let("left", left[0] | left[1])


def _shl(value: Rvalue, bits: int) -> Rvalue:
    return binary("shl", value, Const(value.type, bits)) if bits else value


def _halves(word: Rvalue) -> Rvalue:
    """The even bytes of words, in their low bits."""
    return (word & 0xFF) | (binary("shr", word, Const(word.type, 8)) & 0xFF00)


def even_elements(
    shape: GemmShape, panels: WordPanels, rows: LeftRows, excess: ExcessPanels, context: BuildContext
) -> KernelCall:
    """The call that makes ``halves`` of rows of whole words."""
    words, lanes, depth = panels.words, context.caps.lanes, panels.words.depth
    k = KernelBuilder(f"xy_gemm_{words.name}_halves_{context.caps.isa}")
    source, target = k.buffer("a", words.left), k.buffer("halves", words.left, writable=True)
    steps = panels.steps
    assert isinstance(steps, int)
    pairs = steps // 2
    whole = pairs - pairs % lanes if lanes > 1 else 0
    with k.units() as unit:
        *batch, row = k.split(unit, [*shape.batch_extents, shape.m])
        start = k.let("from", rows.start(k, batch, row))
        to = k.let("to", unit * k.param(excess.rows.row))
        with k.loop("pair", 0, whole, lanes) as pair:
            low, high = (k.let("w", k.load_words(source, start + (pair * 2 + i) * depth, lanes)) for i in (0, lanes))
            even, odd = (k.let("w", Shuffle(low, high, tuple(range(i, 2 * lanes, 2)))) for i in (0, 1))
            k.store_words(target, to + pair * depth, _halves(even) | _shl(_halves(odd), 16))
        with k.loop("pair", whole, pairs) as pair:
            low, high = (k.let("w", k.load_words(source, start + (pair * 2 + i) * depth)) for i in (0, 1))
            k.store_words(target, to + pair * depth, _halves(low) | _shl(_halves(high), 16))
        if steps % 2:
            last = k.let("w", k.load_words(source, start + (steps - 1) * depth))
            k.store_words(target, to + pairs * depth, _halves(last))
    kernel, params = k.finish()
    number = product(shape.batch_extents) * shape.m
    return KernelCall(
        kernel=kernel,
        buffers=(rows.buffer, excess.rows.buffer),
        params=params,
        units=number,
        cost_ns=number * (5 + steps // 16),
    )
