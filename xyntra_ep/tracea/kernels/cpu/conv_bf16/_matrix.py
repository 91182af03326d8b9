"""The kernel of a convolution in matrix tiles: two runs of at most 16 neighbouring pixels times 32 output channels.

    for each run of taps, k step of 16 words:  load two tiles of w (16 words x 16 each), for each of two tiles of x
                                               (16 x 16 words): load it, two products

A row of a tile is a part of a pixel, so the rows of x lie one pixel step apart, whatever the stride. The two tiles of x are
neighbours in the image: the next pixels of a row, or the beginning of the next row. The sums go through a scratch in L1, from
where the epilogue takes them as vectors between the steps of the next block (_waiting_sums).

A row of outputs is cut into tiles of equal height (or all rows as one, where they are much shorter than a tile: what is computed
between them is not stored); the last one starts as many pixels earlier as it would reach beyond the end,
and leaves to the tile before what both have computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, smin
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, typical
from xyntra_ep.tracea.kernels.cpu.conv_bf16._pack import WordRuns
from xyntra_ep.tracea.kernels.cpu.gemm._choice import tiles_peak_of
from xyntra_ep.tracea.kernels.cpu.shared.row_units import equal_part
from xyntra_ep.tracea.kernels.cpu.shared.streams import elements_of_a_line, fetch_beside
from xyntra_ep.tracea.kernels.cpu.shared.waiting_sums import WaitingSums
from xyntra_ep.tracea.kernels.shared.conv_taps import taps
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, is_rough
from xyntra_ep.tracea.kernels.shared.words import as_words
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import TILE_ROW_BYTES, TILE_ROWS, PairDot, QuadDot, TileDot, TileZero
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Function,
    Offset,
    Pointer,
    PointerType,
    Rvalue,
    Select,
    Var,
    index,
    le,
    lt,
    vmax,
    vmin,
)

TILE_CHANNELS = TILE_ROW_BYTES // 4  # sums in a row of a tile
CHANNELS = 2 * TILE_CHANNELS
BLOCK_PIXELS = 2 * TILE_ROWS
_SUMS_OF_BLOCK = BLOCK_PIXELS * CHANNELS
_SUMS, _X, _W = ((0, 1), (2, 3)), (4, 5), (6, 7)  # tile registers
_PLACE = ("height", "image", "m", "row_upper", "first_upper", "skip_upper", "row_lower", "first_lower", "skip_lower")
_UNITS = 32  # enough for 16 threads to be busy to the end
_LEAST_BLOCKS = 4  # of a unit
_FLAT_PAYS = 0.8  # a pixel costs a division then

Callee = tuple[Function, tuple[Var, ...]]


def multiply_tiles(
    shape: ConvShape, x: ValueBuffer | TempBuffer, runs: WordRuns, weights: TempBuffer, context: BuildContext
) -> KernelCall:
    """The call that computes all of ``shape.op`` from ``x``, of which no tap is outside."""
    return _Matrix(shape, x, runs, weights, context).call()


def _is_flat(shape: ConvShape) -> bool:
    """Whether rows are counted as one, with what lies between them, because that takes clearly fewer tiles (rows of 7 pixels)."""
    if not shape.row_axes or (shape.x.stride, shape.y.stride) != (1, 1):
        return False
    if shape.x_strides[1] != shape.x.inside * shape.x_strides[2]:
        return False
    rows, pixels, pitch = typical(shape.y.out), typical(shape.x.out), typical(shape.x.inside)
    flat = -(-((rows - 1) * pitch + pixels) // TILE_ROWS)
    return flat <= _FLAT_PAYS * rows * -(-pixels // TILE_ROWS)


class _Matrix:
    def __init__(
        self, shape: ConvShape, x: ValueBuffer | TempBuffer, runs: WordRuns, weights: TempBuffer, context: BuildContext
    ) -> None:
        self.shape, self.x_buffer, self.runs, self.weights, self.caps = shape, x, runs, weights, context.caps
        words = runs.words
        assert words.dot is PairDot or words.dot is QuadDot
        self.words, self.dot = words, words.dot
        self.lanes = context.caps.lanes
        self.panels = -(-shape.cout // CHANNELS)
        self.step = CHANNELS * runs.depth
        self.flat = _is_flat(shape)
        self.rows, self.pixels = shape.y.out, shape.x.out
        if self.flat:
            self.rows, self.pixels = 1, (shape.y.out - 1) * shape.x.inside + shape.x.out
        out = shape.op.output
        k = KernelBuilder(f"xy_conv_tiles_{words.name}_{shape.y.kernel}x{shape.x.kernel}_{out.dtype}_{context.caps.isa}")
        self.k = k
        self.x, self.w = k.buffer("x", words.left), k.buffer("w", words.right)
        self.out = k.buffer("out", out.dtype, writable=True)
        op, groups = shape.op, shape.epilogue_groups()
        self.epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, lane_group=1, rough=is_rough(op))
        self.fetch = runs.size_bytes > min(context.caps.l2_bytes // 2, self._streamed_bytes())

    def _streamed_bytes(self) -> int:
        """What goes by once: the result, and operands of the epilogue that have its size."""
        op = self.shape.op
        accesses = self.epilogue.nest.table.accesses
        like_it = (accesses[k] for k in self.epilogue.reads if len(self.epilogue.groups_of(k)) > 1)
        widths: int = op.output.dtype.bytes + sum(access.dtype.bytes for access in like_it)
        return typical(product(op.domain)) * widths

    def call(self) -> KernelCall:
        shape = self.shape
        tiles = self.rows * ceildiv(self.pixels, TILE_ROWS)
        chunks, groups = self._chunks(ceildiv(tiles, 2))
        self._units(tiles, chunks, groups)
        kernel, params = self.k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(self.x_buffer, self.weights, ValueBuffer(value=shape.op.output.value), *self.epilogue.buffers),
            params=params,
            units=product((shape.batch, groups, chunks)),
            cost_ns=ceildiv(taps(shape.op) * 3, max(1, int(tiles_peak_of(self.words, self.caps)))),
        )

    def _chunks(self, blocks: Size) -> tuple[Size, Size]:
        """(parts of an image's blocks, groups of panels): enough units for all threads, but none too small.

        Weights that do not stay in L2 are read once an image: a unit has one panel. Else it has few pixels and many panels, so
        that whole rows of the result, and of what the epilogue reads, come one after another."""
        if self.fetch:
            return smax(1, smin(-(-_UNITS // self.panels), blocks // _LEAST_BLOCKS)), self.panels
        chunks = smax(1, smin(_UNITS, blocks))
        return chunks, smin(self.panels, ceildiv(_UNITS, chunks))

    # -- the loops over images, panels, chunks and blocks

    def _units(self, tiles: Size, chunks: Size, groups: Size) -> None:
        k, shape = self.k, self.shape
        pixels = k.param(self.pixels)
        across = k.let("across", vmax((pixels + (TILE_ROWS - 1)) // TILE_ROWS, 1))
        height = k.let("height", vmax((pixels + across - 1) // across, 1))
        number, blocks = k.param(tiles), k.let("blocks", (k.param(tiles) + 1) // 2)
        function, captured = self._function()
        lines = CHANNELS * self.words.tile_depth // elements_of_a_line(self.w)
        share = vmax(blocks, 1)
        rate = k.let("rate", (share + (lines - 1)) // share)
        wide = TILE_ROW_BYTES
        of_tiles = [*[(height, wide)] * 4, *[(height, wide)] * 2, *[(index(TILE_ROWS), wide)] * 2]
        scratch = k.array("scratch", self.words.sums, 2 * _SUMS_OF_BLOCK)
        waiting = WaitingSums(k, scratch, _SUMS_OF_BLOCK, len(_PLACE))
        within = (groups, chunks) if self.fetch else (chunks, groups)
        with k.tiles(of_tiles), k.units() as unit:
            image, outer, inner = k.split(unit, (shape.batch, *within))
            group, chunk = (outer, inner) if self.fetch else (inner, outer)
            first, last = equal_part(k, group, self.panels, groups)
            x_image = k.let("x_image", k.param(shape.x_offset) + image * k.param(shape.x_strides[0]))
            with k.loop("block", *equal_part(k, chunk, blocks, chunks)) as block:
                upper = self._place(x_image, block * 2, across, height)
                lower = self._place(x_image, vmin(block * 2 + 1, number - 1), across, height)
                # An odd number of tiles: the last block computes one twice and stores it once.
                past = k.let("past", Select(lt(block * 2 + 1, number), lower[3], height))
                with k.loop("panel", first, last) as panel:
                    w_at = k.let("w_at", panel * self.step)
                    arguments: list[Rvalue] = [Offset(self.x, upper[0]), Offset(self.x, lower[0]), Offset(self.w, w_at)]
                    if self.fetch:
                        arguments += [
                            Offset(self.w, w_at + self.step),
                            block * rate * (self.runs.depth // self.words.tile_depth),
                            rate,
                        ]
                    k.call(function, *arguments, waiting.free, *waiting.arguments, *captured)
                    waiting.replace([height, image, panel * CHANNELS, *upper[1:], *lower[1:3], past])
        function, captured = self._last()
        k.call(function, *waiting.arguments, *captured)

    def _place(self, x_image: Rvalue, tile: Rvalue, across: Rvalue, height: Rvalue) -> tuple[Rvalue, Rvalue, Rvalue, Rvalue]:
        """(position in x, row, first pixel, how many of its pixels the tile before has) of a tile."""
        k, shape = self.k, self.shape
        row, wanted = k.let("row", tile // across), k.let("wanted", tile % across * height)
        pixel = k.let("pixel", vmin(wanted, k.param(self.pixels) - height))
        at = x_image + row * shape.y.stride * k.param(shape.x_strides[1]) + pixel * (shape.x.stride * shape.x_strides[2])
        return k.let("at", at), row, pixel, k.let("skip", wanted - pixel)

    # -- the block

    def _function(self) -> Callee:
        """f(x of the upper and the lower tile, w, [what to fetch, lines a step], where the sums go, the block that waits)."""
        f = FunctionBuilder("block")
        x_tiles = [f.argument(name, PointerType(self.words.left)) for name in ("upper", "lower")]
        of_w, tile_depth = PointerType(self.words.right), self.words.tile_depth
        w = f.argument("w", of_w)
        ahead = (f.argument("following", of_w), f.argument("fetched", INDEX), f.argument("rate", INDEX)) if self.fetch else None
        sums = f.argument("sums", self._scratch)
        waiting = self._waiting(f)
        for register in (*_SUMS[0], *_SUMS[1]):
            f.emit(TileZero(register))
        steps = self.runs.padded // tile_depth
        rows_in_step = -(-BLOCK_PIXELS // (self.runs.count * steps))
        shape = self.shape
        y_step = self.k.param(shape.x_strides[1]) * shape.y.dilation
        with f.loop("run", 0, self.runs.count) as run:
            tap = run * y_step
            if not self.runs.whole_rows:
                columns = shape.x.kernel
                tap = run // columns * y_step + run % columns * (shape.x.dilation * shape.x_strides[2])
            tap = f.let("tap", tap)
            with f.loop("step", 0, steps) as step:
                k_step = f.let("k_step", run * steps + step)
                for i, x in enumerate(x_tiles):
                    f.tile_load(_X[i], x, tap + step * tile_depth, shape.x.stride * shape.x_strides[2])
                    for j, register in enumerate(_SUMS[i]):
                        if i == 0:
                            at = k_step * (tile_depth * TILE_CHANNELS) + j * TILE_CHANNELS * self.runs.depth
                            f.tile_load(_W[j], w, at, tile_depth)
                        f.emit(TileDot(register, _X[i], _W[j], self.dot))
                if ahead is not None:
                    fetch_beside(f, ahead[0], self.step, ahead[1] + k_step * ahead[2], ahead[2])
                first = f.let("first", vmin(k_step * rows_in_step, BLOCK_PIXELS))
                self._finish(f, waiting, first, f.let("next", vmin(first + rows_in_step, BLOCK_PIXELS)))
        for i in range(2):
            for j, register in enumerate(_SUMS[i]):
                f.tile_store(register, sums, i * TILE_ROWS * CHANNELS + j * TILE_CHANNELS, CHANNELS)
        captured = f.capture()
        return self.k.function(f.finish()), captured

    def _last(self) -> Callee:
        """The epilogue of a block that none follows."""
        f = FunctionBuilder("last")
        self._finish(f, self._waiting(f), index(0), index(BLOCK_PIXELS))
        captured = f.capture()
        return self.k.function(f.finish()), captured

    @property
    def _scratch(self) -> PointerType:
        return PointerType(self.words.sums, writable=True)

    def _waiting(self, f: FunctionBuilder) -> tuple[Var, ...]:
        return f.argument("ready", self._scratch), *(f.argument(name, INDEX) for name in _PLACE)

    def _finish(self, f: FunctionBuilder, waiting: Sequence[Var], begin: Rvalue, end: Rvalue) -> None:
        """Epilogue and stores of pixels [begin, end) of the block that waits, those of the upper tile first."""
        sums, height, image, channel, *tiles = waiting
        with f.loop("i", begin, end) as i:
            is_upper = lt(i, TILE_ROWS)
            row, first, skip = (f.let("of", Select(is_upper, a, b)) for a, b in zip(tiles[:3], tiles[3:], strict=True))
            within = f.let("within", i % TILE_ROWS)
            with f.when(le(skip, within) & lt(within, height)):
                pixel, pointer = f.let("pixel", first + within), f.pointer("sums_at", sums, i * CHANNELS)
                if not self.flat:
                    self._finish_pixel(f, pointer, (image, channel, row, pixel))
                    return
                pitch = self.k.param(self.shape.x.inside)
                row, pixel = f.let("row", pixel // pitch), f.let("column", pixel % pitch)
                with f.when(lt(pixel, self.k.param(self.shape.x.out))):
                    self._finish_pixel(f, pointer, (image, channel, row, pixel))

    def _finish_pixel(self, f: FunctionBuilder, sums: Pointer, at: Sequence[Rvalue]) -> None:
        if self.shape.cout % CHANNELS == 0:
            self._store(f, sums, at, None)
            return
        left = f.let("left", self.shape.cout - at[1])
        with f.when(le(CHANNELS, left)):
            self._store(f, sums, at, None)
        with f.otherwise():
            self._store(f, sums, at, left)

    def _store(self, f: FunctionBuilder, sums: Pointer, at: Sequence[Rvalue], left: Rvalue | None) -> None:
        """A pixel's ``left`` channels, or all."""
        image, channel, row, pixel = at
        here = self.epilogue.at(f)
        for j in range(0, CHANNELS, self.lanes):
            count = None if left is None else f.let("count", left - j)
            point = self.shape.point(image, channel + j, row, pixel)
            acc = f.let("acc", as_words(f.load(sums, j, self.lanes)))
            here.store(self.shape.op.output, self.out, point, here.value(point, acc, self.lanes, count), count)
