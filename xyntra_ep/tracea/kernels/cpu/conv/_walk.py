"""The walk of a channels-last convolution over its output: images, blocks of rows, panels of channels, tiles.

Within a unit a panel is used for all tiles before the next one, or, where all weights stay in L1, a tile for all panels.
A thread carries out neighbouring units, so their order decides what it reads again: units of one block of pixels side by side
keep x in the cache, units of one block of panels the weights. What is larger and does not stay in L2 is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._blocking import Blocking
from xyntra_ep.tracea.kernels.cpu.conv._edges import Edges, copy_function
from xyntra_ep.tracea.kernels.cpu.conv._halo import copy_with_halo
from xyntra_ep.tracea.kernels.cpu.conv._pack import STREAMED_BYTES, pack_weights, packed_bytes, panels
from xyntra_ep.tracea.kernels.cpu.conv._row import Segment, Tile, is_complete, kernel_rows, needs_halo, skips_taps, split_row
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, Line, moving_ns, typical
from xyntra_ep.tracea.kernels.cpu.conv._tile import AHEAD_UNIT, Accumulate, TileCode
from xyntra_ep.tracea.kernels.cpu.gemm._choice import peak_of
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BF16_PAIRS, BYTE_QUADS, I16_PAIRS
from xyntra_ep.tracea.kernels.shared.conv_taps import taps
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, is_rough
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Prefetching
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, index, vmax, vmin

_WORDS_OF = {words.right: words for words in (BF16_PAIRS, I16_PAIRS, BYTE_QUADS)}  # what weights of a type are packed in


def build_conv(
    name: str,
    shape: ConvShape,
    blocking: Blocking,
    context: BuildContext,
    accumulate: Accumulate,
    checks: bool = False,
    edges: Edges | None = None,
) -> list[KernelCall]:
    """Pack the weights, perhaps copy x with a halo, compute. ``checks``: ``accumulate`` knows tiles that check. ``edges``: the
    ends of rows are copied instead, and ``accumulate`` reads where a tile is told."""
    pack, packed = pack_weights(shape, blocking.vectors * context.caps.lanes, context.caps.lanes)
    x, dtype, copies = shape.op.inputs[0], DType.F32, []
    source: ValueBuffer | TempBuffer
    sparse = shape.x if skips_taps(shape.x) and not checks else None
    if edges is None and needs_halo(shape.x, checks):
        copy, source, shape = copy_with_halo(shape, context.caps)
        copies = [copy]
    else:
        source, dtype = ValueBuffer(value=x.value), x.dtype
    walk = walk_image(name, shape, blocking, context, accumulate, (source, dtype), (packed, DType.F32), edges, sparse)
    return [pack, *copies, walk]


def walk_image(
    name: str,
    shape: ConvShape,
    blocking: Blocking,
    context: BuildContext,
    accumulate: Accumulate,
    x: tuple[ValueBuffer | TempBuffer, DType],
    packed: tuple[TempBuffer, DType],
    edges: Edges | None = None,
    sparse: Line | None = None,
    filled_depth: int | None = None,
    beside: Sequence[tuple[TempBuffer, DType]] = (),
) -> KernelCall:
    """The call that computes all of ``shape.op`` from ``x`` and weights packed as [panel][depth][width], and from what is
    ``beside`` them."""
    types = [dtype for _, dtype in beside]
    walk = _Walk(name, shape, blocking, context, accumulate, x[1], packed[1], types, edges, sparse, filled_depth)
    return walk.call(x[0], packed[0], *(buffer for buffer, _ in beside))


class _Walk:
    """The kernel. A unit: some panels of output channels for a block of rows (or of tiles of a row) of one image."""

    def __init__(
        self,
        name: str,
        shape: ConvShape,
        blocking: Blocking,
        context: BuildContext,
        accumulate: Accumulate,
        x_dtype: DType,
        w_dtype: DType,
        beside: Sequence[DType],
        edges: Edges | None,
        sparse: Line | None,
        filled_depth: int | None,
    ) -> None:
        op, caps = shape.op, context.caps
        self.shape, self.blocking, self.caps, self.x_dtype = shape, blocking, caps, x_dtype
        words = _WORDS_OF.get(w_dtype)
        self.peak_gflops = peak_of(words, caps)
        tile = f"{blocking.pixels}x{blocking.vectors}"
        self.k = k = KernelBuilder(f"xy_{name}_{shape.y.kernel}x{shape.x.kernel}_{x_dtype}_{tile}")
        x, w = k.buffer("x", x_dtype), k.buffer("w", w_dtype)
        more = tuple(k.buffer("beside", dtype) for dtype in beside)
        out = k.buffer("out", op.output.dtype, writable=True)
        groups = shape.epilogue_groups()
        self.epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, lane_group=1, rough=is_rough(op))
        self.segments = split_row(shape.x, blocking.pixels)
        self.row_tiles: Size = self.segments[-1].ordinal + self.segments[-1].count if self.segments else 0
        self.panels = panels(shape, blocking.vectors * caps.lanes)
        self.code = TileCode(
            kernel=k, shape=shape, epilogue=self.epilogue, accumulate=accumulate, x=x, w=w, out=out,
            vectors=blocking.vectors, lanes=caps.lanes, ahead_rate=self._ahead_rate(),
            bursts=caps.prefetching is Prefetching.BURST, x_is_told=edges is not None,
            panels_within=self.panels_within, x_is_far=self._typical_x_bytes > caps.l2_bytes, sparse=sparse,
            sums=DType.F32 if words is None else words.sums, filled_depth=filled_depth, beside=more,
        )  # fmt: skip
        self.edges = edges
        self.copy = None if edges is None else copy_function(k, edges, x, x_dtype)

    def _ahead_rate(self) -> int | None:
        """See ``TileCode``: together the tiles that share a panel fetch the whole of the next one, each its share."""
        shape, blocking = self.shape, self.blocking
        if packed_bytes(shape, blocking.vectors * self.caps.lanes) < STREAMED_BYTES:
            return None
        rows, tiles = max(1, typical(shape.y.out)), max(1, typical(self.row_tiles))
        if not self.weights_first:
            rows, tiles = min(blocking.rows, rows), min(blocking.tiles, tiles)
        # At most a line per step: a cache has only so many reads from memory under way.
        return min(AHEAD_UNIT, -(-AHEAD_UNIT * blocking.vectors // (rows * tiles)))

    @property
    def _typical_x_bytes(self) -> int:
        """Of an image."""
        shape = self.shape
        return typical(shape.y.inside) * typical(shape.x.inside) * shape.channels * DType.F32.bytes

    @property
    def weights_first(self) -> bool:
        """Whether units go through all pixels of an image before the next panels."""
        shape = self.shape
        weights = packed_bytes(shape, self.blocking.vectors * self.caps.lanes)
        return weights > max(self._typical_x_bytes, self.caps.l2_bytes // 2)

    @property
    def panels_within(self) -> bool:
        """Whether a tile goes through all panels of its unit before the next one: their weights stay in L1, and pixels of the
        output are written whole, not a line of each at a time."""
        weights = packed_bytes(self.shape, self.blocking.vectors * self.caps.lanes)
        return self.shape.groups == 1 and not self.shape.depthwise and weights <= self.caps.l1d_bytes * 3 // 4

    def call(self, x: ValueBuffer | TempBuffer, *packed: TempBuffer) -> KernelCall:
        shape, blocking = self.shape, self.blocking
        pixels = (ceildiv(shape.y.out, blocking.rows), ceildiv(self.row_tiles, blocking.tiles))
        panel_blocks = ceildiv(self.panels, blocking.panels)
        grid: tuple[Size, ...] = (shape.batch, *pixels, panel_blocks)
        if self.weights_first:
            grid = (shape.batch, panel_blocks, *pixels)
        with self.k.units() as unit:
            if self.edges is not None:
                self.edge = self.k.array("edge", self.x_dtype, self.edges.elements)
            image, *place = self.k.split(unit, grid)
            if self.weights_first:
                place = [*place[1:], place[0]]
            self._unit(image, *place)
        kernel, params = self.k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(x, *packed, ValueBuffer(value=shape.op.output.value), *self.epilogue.buffers),
            params=params,
            units=product(grid),
            cost_ns=ceildiv(taps(shape.op) * 2, max(1, int(self.peak_gflops))) + moving_ns(shape),
        )

    def _block(self, stem: str, number: Rvalue, length: int, end: Size) -> tuple[Rvalue, Rvalue]:
        """Range of block ``number`` of ``length``; all of it when one block is enough."""
        if isinstance(end, int) and end <= length:
            return self.k.let(stem, 0), self.k.let(stem, end)
        first = self.k.let(f"{stem}_first", number * length)
        return first, self.k.let(f"{stem}_stop", vmin(first + length, self.k.param(end)))

    def _unit(self, image: Rvalue, row_block: Rvalue, tile_block: Rvalue, panel_block: Rvalue) -> None:
        k, shape = self.k, self.shape
        rows = self._block("row", row_block, self.blocking.rows, shape.y.out)
        tiles = self._block("tile", tile_block, self.blocking.tiles, self.row_tiles)
        x_image = k.let("x_image", k.param(shape.x_offset) + image * k.param(shape.x_strides[0]))
        panels = self._block("panel", panel_block, self.blocking.panels, self.panels)
        if self.panels_within:
            self.within = panels
            self._rows(rows, tiles, x_image, {"image": image})
            return
        with k.loop("panel", *panels) as panel:
            group = k.let("group", panel // (self.panels // shape.groups) if shape.groups > 1 else 0)
            here = {"image": image, **self._panel(panel, group)}
            x_group = k.let("x_group", x_image + (here["m"] if shape.depthwise else group * shape.cin))
            self._rows(rows, tiles, x_group, here)

    def _panel(self, panel: Rvalue, group: Rvalue) -> dict[str, Rvalue]:
        """What a panel's tiles are told of it."""
        k, shape, code = self.k, self.shape, self.code
        within = k.let("m", (panel - group * (self.panels // shape.groups)) * code.width)
        return {
            "panel": k.let("w_panel", panel * (code.depth * code.width)),
            "m": k.let("m", group * shape.cout + within),
            "left": k.let("left", shape.cout - within) if code.has_tail else within,
        }

    def _rows(self, rows: tuple[Rvalue, Rvalue], tiles: tuple[Rvalue, Rvalue], x_group: Rvalue, here: dict[str, Rvalue]) -> None:
        """The tiles of a unit, of one panel or of all."""
        k, shape, code = self.k, self.shape, self.code
        with k.loop("y", *rows) as y:
            start, first, stop = kernel_rows(k, shape.y, y)
            x_row = k.let("x_row", x_group + start * k.param(shape.x_strides[1]))
            here |= {"row": y, "first": first, "stop": stop}
            if code.ahead_rate is not None:
                # Tile t of those that share a panel fetches lines [t, t + 1) * depth * rate of the next one.
                tile = y * k.param(self.row_tiles) if self.weights_first else ((y - rows[0]) * k.param(self.row_tiles) - tiles[0])
                here["ahead"] = k.let("ahead", here["panel"] + code.depth * code.width + tile * self._share())
            for segment in self.segments:
                self._segment(segment, tiles, x_row, here)

    def _share(self) -> int:
        """Elements of the next panel that one tile fetches."""
        assert self.code.ahead_rate is not None
        return self.code.depth * self.code.ahead_rate // AHEAD_UNIT * 16

    def _segment(self, segment: Segment, tiles: tuple[Rvalue, Rvalue], x_row: Rvalue, here: dict[str, Rvalue]) -> None:
        """The tiles of a segment that are in the unit's range."""
        k, shape, code = self.k, self.shape, self.code
        ordinal = k.param(segment.ordinal)
        end = k.param(segment.ordinal + segment.count)
        with k.loop("t", vmax(ordinal, tiles[0]), vmin(end, tiles[1])) as t:
            pixel = k.let("pixel", k.param(segment.pixel) + (t - ordinal) * segment.tile.size)
            column = pixel * shape.x.stride - k.param(shape.x.pad)
            at = k.let("at", x_row + column * shape.x_strides[2])
            arguments = {**here, "at": at, "pixel": pixel}
            if code.ahead_rate is not None:
                arguments["ahead"] = k.let("ahead", here["ahead"] + t * self._share())
            if self.edges is not None:
                self._copied_at_edges(self.edges, segment.tile, column, arguments)
            elif shape.x.is_inside or shape.x.is_fixed:
                self._call(segment.tile, arguments)
            else:
                with k.when(is_complete(k, shape.x, segment.tile, pixel)):
                    self._call(segment.tile, arguments)
                with k.otherwise():
                    self._call(replace(segment.tile, is_checked=True), arguments)

    def _call(self, tile: Tile, arguments: dict[str, Rvalue]) -> None:
        """A tile of one panel, or of each one after the other."""
        if not self.panels_within:
            self.code.call(tile, arguments)
            return
        with self.k.loop("panel", *self.within) as panel:
            self.code.call(tile, {**arguments, **self._panel(panel, index(0))})

    def _copied_at_edges(self, edges: Edges, tile: Tile, column: Rvalue, arguments: dict[str, Rvalue]) -> None:
        """A tile that reads x, or a copy of what it reads: one function for both."""
        k, shape, code = self.k, self.shape, self.code
        assert self.copy is not None
        function, captured = self.copy
        with k.when(is_complete(k, shape.x, tile, arguments["pixel"])):
            step = k.param(shape.x_strides[1]) * shape.y.dilation
            self._call(tile, {**arguments, "x": code.x, "x_step": step})
        with k.otherwise():
            k.call(
                function, self.edge, arguments["at"], column, index(tile.size), arguments["first"], arguments["stop"], *captured
            )
            self._call(tile, {**arguments, "at": index(0), "x": self.edge, "x_step": index(edges.row)})
