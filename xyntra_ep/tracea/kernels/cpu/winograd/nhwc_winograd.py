"""3x3 convolution with stride 1 over channels-last images by Winograd's minimal filtering: about half the time of the direct
sum, as accurate, but NaN and infinity spread over the tile they are in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from xyntra_ep.tracea.core_ir.dims import Size, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape, why_not_channels_last
from xyntra_ep.tracea.kernels.cpu.conv._tile import AHEAD_UNIT, BURST_RATE
from xyntra_ep.tracea.kernels.cpu.winograd._functions import all_of, call, input_transform, multiply, output_transform
from xyntra_ep.tracea.kernels.cpu.winograd._pack import transform_weights
from xyntra_ep.tracea.kernels.cpu.winograd._shape import WinogradShape, choose_winograd
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.variant import (
    Axis,
    BuildContext,
    Config,
    KernelCall,
    TempBuffer,
    ValueBuffer,
    Variant,
)
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Prefetching
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, index, le, lt, vmax, vmin

_LEAST_CHANNELS = 16  # with fewer the transforms outweigh what they save


def admits(op: Conv, context: BuildContext) -> str | None:
    if context.strict:
        return "its transforms would spread NaN and Inf (fp32_strict)"
    if op.inputs[1].shape[2:] != (3, 3):
        return "the kernel is not 3x3"
    if op.strides != (1, 1) or op.dilations != (1, 1):
        return "strides or dilations"
    if 0 in op.domain[2:]:
        return "there are no outputs"
    if (why := why_not_channels_last(op, context)) is not None:
        return why
    few = min(conv_shape(op).cin, conv_shape(op).cout)
    return None if few >= _LEAST_CHANNELS else f"{few} channels" + (" in a group" if op.group > 1 else "")


def build(op: Conv, config: Config, context: BuildContext) -> list[KernelCall]:
    plan = WinogradShape.of(conv_shape(op), config, context.caps)
    weights, u = transform_weights(plan)
    if not plan.shared and plan.fits_stack:
        return [weights, _Kernel(plan, context, "conv_winograd").whole(u)]
    v = TempBuffer(name="v", size_bytes=product((*plan.images, plan.blocks, plan.v_elements * DType.F32.bytes)))
    return [
        weights,
        _Kernel(plan, context, "conv_winograd_input").input(v),
        _Kernel(plan, context, "conv_winograd_output").output(u, v),
    ]


class _Kernel:
    """One of the launches, being built."""

    def __init__(self, plan: WinogradShape, context: BuildContext, name: str) -> None:
        self.plan, self.context = plan, context
        self.k = KernelBuilder(f"xy_{name}_{plan.outputs}x{plan.outputs}_f32_{plan.tiles}x{plan.vectors}")
        self.by_panel = plan.panels_first(context.caps)
        self.buffers: list[ValueBuffer | TempBuffer] = []

    def whole(self, u: TempBuffer) -> KernelCall:
        """A unit: one block of tiles, all channels; V and M on the stack."""
        k, plan = self.k, self.plan
        self._declare_input()
        self._declare_output(u)
        with k.units() as unit:
            *image, block = k.split(unit, (*plan.images, plan.blocks))
            v = k.array("v", DType.F32, plan.v_elements)
            m = k.array("m", DType.F32, plan.m_elements)
            first = self._first_tile(block)
            with k.loop("tile", 0, self._tiles_of_block(first)) as tile:
                self._input_tile(image, first + tile, k.pointer("v_tile", v, tile * plan.row))
            with k.loop("panel", 0, plan.panels) as panel:
                self._panel(image, block, panel, v, m)
        return self._finish(product((*plan.images, plan.blocks)), 1.0)

    def input(self, v: TempBuffer) -> KernelCall:
        """A unit: V of one tile."""
        k, plan = self.k, self.plan
        self._declare_input()
        target = k.buffer("v", DType.F32, writable=True)
        self.buffers.append(v)
        grid: tuple[Size, ...] = (*plan.images, plan.blocks, plan.block_tiles)
        with k.units() as unit:
            *image, block, tile = k.split(unit, grid)
            at = self._v_block(image, block) + tile * plan.row
            number = self._first_tile(block) + tile
            with nullcontext() if plan.is_fixed else k.when(lt(number, k.param(plan.image_tiles))):
                self._input_tile(image, number, k.pointer("v_tile", target, at))
        return self._finish(product(grid), 0.1)

    def output(self, u: TempBuffer, v: TempBuffer) -> KernelCall:
        """A unit: one panel of output channels for one block of tiles."""
        k, plan = self.k, self.plan
        source = k.buffer("v", DType.F32)
        self.buffers.append(v)
        self._declare_output(u)
        within = (plan.panels, plan.blocks) if self.by_panel else (plan.blocks, plan.panels)
        grid: tuple[Size, ...] = (*plan.images, *within)
        with k.units() as unit:
            *image, outer, inner = k.split(unit, grid)
            panel, block = (outer, inner) if self.by_panel else (inner, outer)
            m = k.array("m", DType.F32, plan.m_elements)
            at = self._v_block(image, block)
            self._panel(image, block, panel, k.pointer("v_block", source, at), m)
        return self._finish(product(grid), 0.9)

    def _declare_input(self) -> None:
        k, plan, op = self.k, self.plan, self.plan.shape.op
        x = k.buffer("x", op.inputs[0].dtype)
        self.buffers.append(ValueBuffer(value=op.inputs[0].value))
        self.inside = input_transform(k, plan, x, at_edge=False)
        self.at_edge = input_transform(k, plan, x, at_edge=True)

    def _declare_output(self, u: TempBuffer) -> None:
        k, plan, op = self.k, self.plan, self.plan.shape.op
        u_pointer = k.buffer("u", DType.F32)
        out = k.buffer("out", op.output.dtype, writable=True)
        groups = plan.shape.epilogue_groups()
        epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, lane_group=1)
        self.buffers += [u, ValueBuffer(value=op.output.value), *epilogue.buffers]
        caps = self.context.caps
        self.rows = plan.row_tiles(caps)
        sizes = set(self.rows) if plan.is_fixed else range(1, max(self.rows) + 1)
        # The rows of a product share in fetching the next one's U. No further ahead: what waits for its turn takes room in L2.
        self.lines = AHEAD_UNIT * plan.width // 16 if plan.is_streamed else 0
        self.rate = -(-self.lines // plan.shares(caps))
        bursts = 0 < self.rate <= BURST_RATE and caps.prefetching is Prefetching.BURST
        self.multiply = {n: multiply(k, plan, u_pointer, n, self.rate, bursts) for n in sorted(sizes)}
        self.complete = output_transform(k, plan, epilogue, out, at_edge=False)
        self.cut = None
        if not all(plan.divides(line.out) for line in (plan.shape.y, plan.shape.x)):
            self.cut = output_transform(k, plan, epilogue, out, at_edge=True)

    def _first_tile(self, block: Rvalue) -> Rvalue:
        """The last block of an image ends with it; of an image whose size only a run knows it has fewer tiles instead."""
        k, plan = self.k, self.plan
        first = block * k.param(plan.block_tiles)
        return k.let("first", vmin(first, k.param(plan.image_tiles - plan.tiles)) if plan.is_fixed else first)

    def _tiles_of_block(self, first: Rvalue) -> Rvalue | int:
        k, plan = self.k, self.plan
        if plan.is_fixed:
            return plan.tiles
        return k.let("tiles", vmin(k.param(plan.block_tiles), k.param(plan.image_tiles) - first))

    def _v_block(self, image: Sequence[Rvalue], block: Rvalue) -> Rvalue:
        """Where the V of a block begins."""
        number = image[0]
        for i, extent in enumerate(self.plan.images[1:], 1):
            number = number * self.k.param(extent) + image[i]
        return (number * self.k.param(self.plan.blocks) + block) * self.plan.v_elements

    def _input_tile(self, image: Sequence[Rvalue], tile: Rvalue, v: Pointer) -> None:
        k, plan, shape = self.k, self.plan, self.plan.shape
        size, columns = plan.matrices.inputs, k.param(plan.grid[1])
        y = k.let("y", (tile // columns) * plan.outputs - k.param(shape.y.pad))
        x = k.let("x", (tile % columns) * plan.outputs - k.param(shape.x.pad))
        at = k.param(shape.x_offset) + image[0] * k.param(shape.x_strides[0])
        for group in image[1:]:
            at = at + group * shape.cin
        at = k.let("at", at + y * k.param(shape.x_strides[1]) + x * shape.x_strides[2])
        inside = [le(0, start) for start in (y, x)]
        inside += [le(s + size, k.param(line.inside)) for line, s in ((shape.y, y), (shape.x, x))]
        with k.when(all_of(inside)):
            call(k, self.inside, at, y, x, v)
        with k.otherwise():
            call(k, self.at_edge, at, y, x, v)

    def _panel(self, image: Sequence[Rvalue], block: Rvalue, panel: Rvalue, v: Pointer, m: Pointer) -> None:
        k, plan = self.k, self.plan
        first, columns = self._first_tile(block), k.param(plan.grid[1])
        step = plan.shape.cin * plan.width
        tiles = self._tiles_of_block(first)
        rate: Rvalue = index(self.rate)
        if not isinstance(tiles, int):  # cut into as few products as can be, of nearly the same size
            most = max(self.multiply)
            count = k.let("count", (tiles + (most - 1)) // most)
            size = k.let("size", tiles // count)
            longer = k.let("longer", tiles - size * count)
            rate = k.let("rate", (self.lines + count - 1) // count)
        share = k.let("share", plan.shape.cin * rate // AHEAD_UNIT * 16)

        def rows(n: int, row: Rvalue | int, ordinal: Rvalue | int) -> None:
            call(
                k,
                self.multiply[n],
                k.pointer("v_rows", v, e * plan.v_step + row * plan.row),
                u_at,
                k.pointer("m_rows", m, (e * plan.tiles + row) * plan.width),
                k.let("ahead", u_at + (step + ordinal * share)),
                *([] if plan.is_fixed else [rate]),
            )

        with k.loop("e", 0, plan.products) as e:
            of_all = panel
            for group in image[1:]:
                of_all = group * plan.panels + panel
            u_at = k.let("u_at", (of_all * plan.products + e) * step)
            if isinstance(tiles, int):
                for ordinal, n in enumerate(self.rows):
                    rows(n, sum(self.rows[:ordinal]), ordinal)
            else:
                with k.loop("i", 0, count) as i:
                    row = k.let("row", i * size + vmin(i, longer))
                    height = k.let("height", size + vmin(1, vmax(0, longer - i)))
                    self._of_size(height, list(self.multiply), lambda n: rows(n, row, i))
        # Tiles before the block's own were the previous block's.
        with k.loop("tile", k.let("skip", block * k.param(plan.block_tiles) - first), tiles) as tile:
            number = k.let("number", first + tile)
            y, x = (number // columns) * plan.outputs, (number % columns) * plan.outputs
            self._outputs(k.pointer("m_tile", m, tile * plan.width), image, panel * plan.width, k.let("y", y), k.let("x", x))

    def _of_size(self, n: Rvalue, sizes: Sequence[int], body: Callable[[int], None]) -> None:
        """Emit ``body`` for each of ``sizes``; the one that equals ``n`` is carried out."""
        if len(sizes) == 1:
            body(sizes[0])
            return
        half = len(sizes) // 2
        with self.k.when(lt(n, sizes[half])):
            self._of_size(n, sizes[:half], body)
        with self.k.otherwise():
            self._of_size(n, sizes[half:], body)

    def _outputs(self, m: Pointer, image: Sequence[Rvalue], channel: Rvalue, y: Rvalue, x: Rvalue) -> None:
        k, plan = self.k, self.plan
        if self.cut is None:
            call(k, self.complete, m, *image, channel, y, x)
            return
        ends = [(plan.shape.y.out, y), (plan.shape.x.out, x)]
        with k.when(all_of([le(first + plan.outputs, k.param(n)) for n, first in ends if not plan.divides(n)])):
            call(k, self.complete, m, *image, channel, y, x)
        with k.otherwise():
            call(k, self.cut, m, *image, channel, y, x)

    def _finish(self, units: Size, share: float) -> KernelCall:
        kernel, params = self.k.finish()
        image_ns = self.plan.image_ns(self.context.caps) * share
        tiles = self.plan.image_tiles
        of_image = round(image_ns) if isinstance(tiles, int) else tiles * round(image_ns / max(1, typical(tiles)))
        cost_ns = self.plan.shape.batch * of_image
        return KernelCall(kernel=kernel, buffers=tuple(self.buffers), params=params, units=units, cost_ns=cost_ns)


def space(op: Conv, context: BuildContext) -> list[Axis]:
    default = choose_winograd(conv_shape(op), context.caps)
    tiles = {t for t in (4, 6, 7, 8, 12, 14, 16) if t <= default["tiles"] * 2}
    return [
        Axis(name="outputs", values=(2, 4)),
        Axis(name="tiles", values=tuple(sorted({default["tiles"], *tiles}))),
        Axis(name="vectors", values=(1, 2, 3)),
        Axis(name="shared", values=(0, 1)),
    ]


VARIANTS = [
    Variant(
        name="conv.nhwc_winograd",
        op=Conv,
        admits=admits,
        space=space,
        default=lambda op, context: choose_winograd(conv_shape(op), context.caps),
        cost_ns=lambda op, config, context: WinogradShape.of(conv_shape(op), config, context.caps).cost_ns(context.caps),
        build=build,
        rank=20,
    )
]
