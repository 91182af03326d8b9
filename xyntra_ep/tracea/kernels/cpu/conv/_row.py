"""Cutting a row of output pixels into tiles that are computed in registers.

A tile knows at code-generation time which of its pixels each tap of a kernel row meets: pixels whose tap lies outside x are left
out. So padding costs no copy and no comparison, and what is not multiplied cannot turn into NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, product, smax
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, Line
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, index, le, vmax, vmin

_LONGEST_EDGE = 8  # taps in a row for which tiles at the edges get code of their own; more of them: a copy with a halo


@dataclass(frozen=True, slots=True)
class TapRun:
    """``count`` taps from ``first`` on, in which the pixels [low, high) of a tile take part."""

    first: int
    count: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Tile:
    """``size`` neighbouring pixels, computed together. ``is_checked``: each column of x may lie outside, which only a run knows;
    what does counts as 0."""

    size: int
    runs: tuple[TapRun, ...]
    is_checked: bool = False


@dataclass(frozen=True, slots=True)
class Segment:
    """``count`` equal tiles side by side: the first is number ``ordinal`` of its row and starts at ``pixel``."""

    tile: Tile
    ordinal: Size
    count: Size
    pixel: Size


def needs_halo(line: Line, checks: bool = False) -> bool:
    """Whether x must be copied to a buffer with zeros at both ends of each row. ``checks``: the kernel has tiles that check."""
    return not line.is_inside and (line.kernel > _LONGEST_EDGE or not (line.is_fixed or checks))


def is_complete(k: KernelBuilder, line: Line, tile: Tile, pixel: Rvalue) -> Rvalue:
    """Whether all that ``tile`` reads from ``pixel`` on is inside x."""
    first = pixel * line.stride - k.param(line.pad)
    end = first + ((tile.size - 1) * line.stride + (line.kernel - 1) * line.dilation + 1)
    return le(0, first) & le(end, k.param(line.inside))


def skips_taps(line: Line) -> bool:
    """Whether a tile may leave out a tap: they lie so far apart that whole tiles are beside x, and where a run tells."""
    return line.dilation > 1 and line.kernel > 1 and not (line.is_inside or line.is_fixed)


def kernel_columns(k: KernelBuilder, f: BlockBuilder, line: Line, tile: Tile, pixel: Rvalue) -> tuple[Rvalue, Rvalue]:
    """Range of the taps of a kernel row that meet x somewhere in ``tile``, which is at ``pixel``."""
    start = f.let("x_x", pixel * line.stride - k.param(line.pad))
    first = vmax(0, 0 - start - (tile.size - 1) * line.stride)
    stop = vmax(0, k.param(line.inside) - start)
    first, stop = ((bound + (line.dilation - 1)) // line.dilation for bound in (first, stop))
    return f.let("kx_first", first), f.let("kx_stop", vmin(line.kernel, stop))


def with_halo(shape: ConvShape) -> tuple[ConvShape, Size, Size]:
    """(shape over the copy, zero pixels before each row, and after it)."""
    line = shape.x
    after = smax(0, line.overrun)
    row = line.inside + line.pad + after
    channels = shape.channels
    strides = (product((shape.y.inside, row, channels)), row * channels, channels)
    inner = replace(line, inside=row, pad=0)
    return replace(shape, x=inner, x_offset=0, x_strides=strides), line.pad, after


def split_row(line: Line, largest: int) -> list[Segment]:
    """Tiles of at most ``largest`` pixels for one row: nearly equal ones when its length is known."""
    full = TapRun(0, line.kernel, 0, largest)
    if not isinstance(line.out, int):
        return _split_unknown(line.out, largest, full)
    count = max(1, -(-line.out // largest))
    size, longer = divmod(line.out, count)
    segments: list[Segment] = []
    if line.is_inside:
        for n, first, times in ((size + 1, 0, longer), (size, longer, count - longer)):
            if n and times:
                tile = Tile(n, (replace(full, high=n),))
                segments.append(Segment(tile, first, times, first * (size + 1)))
        return segments
    pixel = 0
    for ordinal in range(count if line.out else 0):
        n = size + (ordinal < longer)
        tile = Tile(n, _runs(line, pixel, n))
        if segments and segments[-1].tile == tile:
            segments[-1] = replace(segments[-1], count=segments[-1].count + 1)
        else:
            segments.append(Segment(tile, ordinal, 1, pixel))
        pixel += n
    return segments


def _split_unknown(out: Size, largest: int, full: TapRun) -> list[Segment]:
    """As many of the largest tiles as fit, then at most one each of 2^k, ..., 4, 2, 1 pixels."""
    segments = [Segment(Tile(largest, (full,)), 0, out // largest, 0)]
    rest = out % largest
    ordinal = out // largest
    size = 1 << max(0, (largest - 1).bit_length() - 1)
    while size and largest > 1:
        count = rest // size
        segments.append(Segment(Tile(size, (replace(full, high=size),)), ordinal, count, out - rest))
        ordinal, rest, size = ordinal + count, rest % size, size // 2
    return segments


def _runs(line: Line, pixel: int, size: int) -> tuple[TapRun, ...]:
    """The taps of a tile that starts at ``pixel`` of a row whose sizes are known."""
    assert isinstance(line.pad, int) and isinstance(line.inside, int)
    start = pixel * line.stride - line.pad  # in x, of the first pixel's tap 0
    if start >= 0 and start + (size - 1) * line.stride + (line.kernel - 1) * line.dilation < line.inside:
        return (TapRun(0, line.kernel, 0, size),)
    runs: list[TapRun] = []
    for tap in range(line.kernel):
        at = start + tap * line.dilation
        low = max(0, -(at // line.stride))
        high = min(size, -((at - line.inside) // line.stride))
        if low >= high:
            continue
        if runs and (runs[-1].low, runs[-1].high) == (low, high) and runs[-1].first + runs[-1].count == tap:
            runs[-1] = replace(runs[-1], count=runs[-1].count + 1)
        else:
            runs.append(TapRun(tap, 1, low, high))
    return tuple(runs)


def kernel_rows(k: KernelBuilder, line: Line, y: Rvalue) -> tuple[Rvalue, Rvalue, Rvalue]:
    """(row of x under the first kernel row, range of kernel rows inside x) for output row ``y``."""
    start = k.let("x_y", y * line.stride - k.param(line.pad))
    if line.is_inside:
        return start, index(0), index(line.kernel)
    first, stop = vmax(0, 0 - start), vmax(0, k.param(line.inside) - start)
    if line.dilation > 1:
        first, stop = ((bound + (line.dilation - 1)) // line.dilation for bound in (first, stop))
    return start, k.let("ky_first", first), k.let("ky_stop", vmin(line.kernel, stop))
