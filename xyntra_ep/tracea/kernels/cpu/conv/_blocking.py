"""How large the register tiles of a direct convolution are, and what one unit of work holds.

A unit is a block of pixels (whole rows, or a part of one long row) times some panels of output channels. Within it a panel is
used for all pixels of the block before the next one is touched: the block of x should stay in L2 and the panel in L1 or L2.
In a depthwise convolution a panel reads a vector of each pixel: where that is half a line, the block should stay in L1 until the
panel beside it reads the other half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from xyntra_ep.tracea.core_ir.dims import expected
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, Line, moving_ns, typical
from xyntra_ep.tracea.kernels.cpu.shared.loops_cost import lines_held
from xyntra_ep.tracea.kernels.cpu.shared.streams import LINE_BYTES
from xyntra_ep.tracea.kernels.variant import Axis
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

# (units, least time of one): few threads share even a short convolution, or its input would lie in the wrong core's cache when
# the next one reads it; 32 are enough for 16 threads to be busy to the end, if units are still so long that they reuse weights.
_UNITS = ((8, 1_000), (32, 10_000))
_LARGE_PANEL = 1.03
_SET_PERIOD = 4096  # bytes after which addresses meet in the same set of L1
_CROWDED = 0.1
_EVICTED = 2  # what a block as large as L1 costs, in times that all of x is read
_MOST_ROWS, _MOST_TILES = 16, 8  # of a block in L1
_LANES_FROM_L2 = 3.2  # of a panel that come while one vector is multiplied: a vector of 16 lanes takes 5 steps, one of 8 half
_IN_FLIGHT = 8  # sums that a step must have, or it waits for those of the step before: two units, four cycles
_OUTPUT_COST = 4  # in multiplications by a vector: what it takes to finish and store a vector of outputs


UNIT_SIZES = ("rows", "tiles", "panels")  # what of a `Blocking` no code depends on


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocking:
    """``pixels`` x ``vectors``: the register tile. ``rows``, ``tiles``, ``panels``: what a unit holds."""

    pixels: int
    vectors: int
    rows: int
    tiles: int
    panels: int

    @classmethod
    def of(cls, config: Mapping[str, int]) -> Blocking:
        return cls(**config)

    def config(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in ("pixels", "vectors", "rows", "tiles", "panels")}


def largest_tile(vectors: int, caps: Capabilities) -> int:
    """Pixels that fit in the registers beside ``vectors`` of weights and one of x."""
    most = (caps.vector_registers - vectors - 1) // vectors
    # More than 12 rows gain nothing and meet in the same sets of L1 when pixels lie 2 or 4 KB apart.
    return max(1, min(12, most))


def tile_steps(pixels: int, vectors: int, lanes: int) -> float:
    """Time per step of k of a tile, in multiplications by a vector: registers, loads, the panel's way from L2, or the sums'
    latency."""
    return max(pixels * vectors, pixels + vectors + 1, vectors * lanes / _LANES_FROM_L2, _IN_FLIGHT)


def row_steps(line: Line, pixels: int, vectors: int, depth: int, lanes: int) -> float:
    """Time for one row of pixels and one panel."""
    out = typical(line.out)
    count = max(1, -(-out // pixels))
    size, longer = divmod(out, count)
    tiles = [(size + 1, longer), (size, count - longer)]
    if not isinstance(line.out, int):  # as `_conv_row` cuts it then
        tiles = [(pixels, out // pixels), *((1 << i, out % pixels >> i & 1) for i in range(pixels.bit_length()))]
    return sum(times * (tile_steps(n, vectors, lanes) * depth + n * vectors * _OUTPUT_COST + 20) for n, times in tiles)


def work_steps(shape: ConvShape, pixels: int, vectors: int, caps: Capabilities) -> float:
    """Time for the whole convolution, in multiplications by a vector."""
    panels = shape.groups * -(-shape.cout // (vectors * caps.lanes))
    depth = shape.y.kernel * shape.x.kernel * shape.cin
    rows = typical(shape.batch) * typical(shape.y.out)
    steps = panels * rows * row_steps(shape.x, pixels, vectors, depth, caps.lanes)
    # A panel that crowds x out of L2 is read from further away.
    is_large = depth * vectors * caps.lanes * DType.F32.bytes > caps.l2_bytes / 4
    return steps * _crowding(shape, pixels, caps) * (_LARGE_PANEL ** (vectors - 1) if is_large else 1)


def _crowding(shape: ConvShape, pixels: int, caps: Capabilities) -> float:
    """What it costs that pixels which lie a multiple of 4 KB apart share a set of L1: nothing while they leave half of it to
    others (Zen 4, strides of 4 KB: 6 pixels of 12 vectors 78 to 100 GFLOP/s, 4 of them 105; of 24 vectors 12 100, 6 110)."""
    if shape.depthwise or shape.x.stride * shape.x_strides[2] * DType.F32.bytes % _SET_PERIOD:
        return 1.0
    out, half = max(1, typical(shape.x.out)), max(1, caps.l1d_bytes // _SET_PERIOD // 2)
    together = -(-out // -(-out // pixels))
    return 1 + _CROWDED * max(0, together - half) / half


def choose_blocking(shape: ConvShape, caps: Capabilities) -> Blocking:
    """The analytic default."""
    pixels, vectors = _choose_tile(shape, caps)
    rows, row_tiles = max(1, typical(shape.y.out)), max(1, -(-typical(shape.x.out) // pixels))
    panels = shape.groups * -(-shape.cout // (vectors * caps.lanes))
    width_bytes = vectors * caps.lanes * DType.F32.bytes
    panel_bytes = shape.y.kernel * shape.x.kernel * shape.cin * width_bytes
    row_bytes = typical(shape.x.inside) * shape.channels * DType.F32.bytes
    block = Blocking(pixels=pixels, vectors=vectors, rows=rows, tiles=row_tiles, panels=panels)
    if shape.depthwise and width_bytes < LINE_BYTES:
        block = _block_in_l1(shape, block, caps)

    # A batch that is not known is 1 more often than not, and must not leave threads idle then.
    images = shape.batch if isinstance(shape.batch, int) else 1

    def units(b: Blocking) -> int:
        return images * -(-rows // b.rows) * -(-row_tiles // b.tiles) * -(-panels // b.panels)

    total_ns = work_steps(shape, pixels, vectors, caps) * caps.lanes * 2 / caps.fma_gflops + typical(moving_ns(shape))
    total_ns *= images / max(1, typical(shape.batch))
    x_bytes = typical(shape.y.inside) * row_bytes
    # Lanes of a depthwise convolution see nothing of each other: only neighbouring rows share anything.
    least_rows = 2 * shape.y.kernel if shape.depthwise else 1
    # First until a block of x stays in L2 from panel to panel.
    while x_bytes * block.rows * block.tiles / (rows * row_tiles) > caps.l2_bytes / 2:
        smaller = _fewer_pixels(block, least_rows)
        if smaller == block:
            break
        block = smaller
    # Then until there is enough to share out: panels where weights weigh more than x and than L2 spares for them, else pixels,
    # which the next convolution will want in the same core.
    panels_first = panel_bytes * panels > max(x_bytes, caps.l2_bytes / 4)
    for wanted, least_ns in _UNITS:
        while 0 < units(block) < wanted and total_ns / units(block) > 2 * least_ns:
            ways = [_fewer_pixels(block, least_rows), _fewer_panels(block)]
            smaller = next((b for b in (reversed(ways) if panels_first else ways) if b != block), block)
            if smaller == block:
                break
            block = smaller
    return block


def _choose_tile(shape: ConvShape, caps: Capabilities) -> tuple[int, int]:
    if shape.depthwise:
        # The weights of a kernel row are in registers, and a column of x. Shuffled, it wants one more, and compilers another.
        most = 14 if shape.cin == 1 else 12
        return max(1, min(most, caps.vector_registers - 2 - min(8, shape.x.kernel))), 1
    tiles = [(largest_tile(v, caps), v) for v in (2, 3, 4, 1)]
    if not isinstance(shape.x.out, int):  # whose tiles cannot be made nearly equal: those are best that rows are multiples of
        tiles = [(n, v) for most, v in tiles for n in range(most, most // 2, -1)]
    return min(tiles, key=lambda t: expected(partial(work_steps, shape, t[0], t[1], caps)))


def _block_in_l1(shape: ConvShape, whole: Blocking, caps: Capabilities) -> Blocking:
    """The rows and tiles that cost the least: small blocks read more of their neighbours' pixels, of large ones L1 has lost lines
    when the next panel reads them. Pixels that lie a power of 2 apart meet in few sets. (AVX2 on Zen 4, 18 depthwise layers: 0.90
    times as long as blocks of 7 whole rows, 0.48 to 1.07 in memory, to 1.14 in L2.)"""
    room = lines_held(caps.l1d_bytes, shape.channels * DType.F32.bytes)
    out = max(1, typical(shape.x.out))
    size = -(-out // whole.tiles)
    seen = [(n, _span(shape.y, n)) for n in _cuts(whole.rows, _MOST_ROWS)]

    def blocks() -> Iterator[tuple[float, int, int]]:
        for tiles in _cuts(whole.tiles, _MOST_TILES):
            columns = min(tiles * size, out)
            width = _span(shape.x, columns)
            for rows, height in seen:
                read, outputs = height * width, rows * columns
                borders = read / (outputs * shape.y.stride * shape.x.stride)
                yield borders + _EVICTED * (read + outputs) / room, rows, tiles

    _, rows, tiles = min(blocks())
    return replace(whole, rows=rows, tiles=tiles)


def _cuts(whole: int, most: int) -> list[int]:
    """Sizes up to ``most`` of nearly equal parts of ``whole``."""
    return sorted({-(-whole // -(-whole // n)) for n in range(1, min(whole, most) + 1)})


def _span(line: Line, outputs: int) -> int:
    """How much of x so many neighbouring outputs see."""
    return min((outputs - 1) * line.stride + (line.kernel - 1) * line.dilation + 1, typical(line.inside))


def _fewer_pixels(b: Blocking, least_rows: int) -> Blocking:
    rows, tiles = (-(-b.rows // 2), b.tiles) if b.rows > 1 else (1, -(-b.tiles // 2))
    if rows < min(b.rows, least_rows):
        return b
    return replace(b, rows=rows, tiles=tiles)


def _fewer_panels(b: Blocking) -> Blocking:
    return replace(b, panels=-(-b.panels // 2))


def blocking_space(shape: ConvShape, caps: Capabilities) -> list[Axis]:
    """What tuning may try; `blocking_refusal` says what of it is not worth that."""
    default = choose_blocking(shape, caps)

    def around(value: int) -> tuple[int, ...]:
        return tuple(sorted({max(1, value // 2), value, value * 2}))

    return [
        Axis(name="pixels", values=tuple(sorted({4, 6, 8, 9, 12, 14, default.pixels}))),
        Axis(name="vectors", values=(1,) if shape.depthwise else (1, 2, 3, 4)),
        *(Axis(name=name, values=around(default.config()[name])) for name in ("rows", "tiles", "panels")),
    ]


def blocking_refusal(shape: ConvShape, config: Mapping[str, int], caps: Capabilities) -> str:
    """Why a point of the space is not worth trying; it is right all the same."""
    block = Blocking.of(config)
    if not shape.depthwise and (block.pixels + 1) * block.vectors + 1 > caps.vector_registers:
        return f"{block.pixels} x {block.vectors} sums and what they are made of do not fit in {caps.vector_registers} registers"
    whole = {
        "rows": typical(shape.y.out),
        "tiles": -(-typical(shape.x.out) // block.pixels),
        "panels": shape.groups * -(-shape.cout // (block.vectors * caps.lanes)),
    }
    beyond = [name for name, size in whole.items() if config[name] > 1 and config[name] // 2 >= size]
    return f"half of {config[beyond[0]]} {beyond[0]} is all that there is" if beyond else ""
