"""The form of a Winograd convolution: how an image is cut into tiles and blocks, and which form is cheapest.

    for block of ``tiles`` tiles of m x m outputs:             # of an image, and of a group of its channels
        V[e][tile][cin] = Bt d B                                   # lanes are channels; e = (m + 2)^2 products
        for panel of output channels:
            M[e][tile][panel] = V[e] x U[panel][e][cin][panel]     # for each e a small matrix product
            out = epilogue(At M A)

Small blocks keep V on the stack of the unit that uses it. Where V outgrows that, an image has too few blocks for many threads,
or U does not stay in L2 from block to block, V is made by a launch of its own; the units of the second launch share it by panels.
Then blocks are large: the U of a product comes to L1 once for all rows of the block (256 channels, 14 x 14 pixels: one block of
49 tiles takes 0.70 ms where five of 10 take 0.84).

Rounding errors come from the sums over channels: split into short chains (sums of sums) they halve, and F(4 x 4) is then as
accurate as a direct sum of 9 * channels terms in one chain (rms 5.2e-7 of the output for 64 to 256 channels, direct 3.0e-7 to
6.3e-7, F(2 x 2) 2.1e-7 to 4.0e-7; random data after a ReLU).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, expected, plausible, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.conv._blocking import largest_tile
from xyntra_ep.tracea.kernels.cpu.conv._pack import STREAMED_BYTES
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, overlapped, typical
from xyntra_ep.tracea.kernels.cpu.winograd._matrices import Winograd, winograd
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

_STACK_BYTES = 192 << 10  # for V and M together
_LEAST_TILES = 6  # with fewer rows the products wait for U
_MOST_TILES = 16
_LEAST_SHARED = 8  # units of the second launch
_M_BYTES = 128 << 10  # of a block, where V is made before
_LEAST_UNITS = 12  # with fewer, threads would be idle
_TRANSFORM = {2: 5, 4: 7}  # of an element of a tile and back, each, by outputs: in multiplications by a vector
_CHAIN_COST = 2  # what ending a chain costs an accumulator, likewise
_SETUP_NS = 2000.0
_CHAIN = {2: 64, 4: 16}  # longest sum over channels in one accumulator, by outputs
_LARGER = 8  # tiles of the largest image over those of a usual one, where only a run knows
# By which F(4x4) must win: its U takes four times the memory of the weights. It wins by more than is estimated, where U comes
# from memory (Zen 4, 256 channels of 14 x 14 pixels: estimated 1.06 times, measured 1.17 and in AVX2 1.17).
_LARGE_TILES_GAIN = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class WinogradShape:
    """``tiles``: of a block; of an image whose size only a run knows, the most that it may have. ``vectors``: width of a panel
    in vectors. ``shared``: V is made by a launch of its own."""

    shape: ConvShape
    outputs: int
    tiles: int
    vectors: int
    shared: int
    lanes: int
    matrices: Winograd = field(compare=False)

    @classmethod
    def of(cls, shape: ConvShape, config: Mapping[str, int], caps: Capabilities) -> WinogradShape:
        return cls(shape=shape, lanes=caps.lanes, matrices=winograd(config["outputs"]), **config)

    @property
    def images(self) -> tuple[Size, ...]:
        """Images, and the groups of channels of each where there are several: what shares neither x nor U."""
        return (self.shape.batch, self.shape.groups) if self.shape.groups > 1 else (self.shape.batch,)

    @property
    def grid(self) -> tuple[Size, Size]:
        """Tiles down and across an image."""
        return ceildiv(self.shape.y.out, self.outputs), ceildiv(self.shape.x.out, self.outputs)

    @property
    def image_tiles(self) -> Size:
        return self.grid[0] * self.grid[1]

    @property
    def block_tiles(self) -> Size:
        """Tiles of a block, but of the last one. A run chooses as `choose_winograd` does for a size that it knows: as many as
        leave enough units, and as nearly the same in all blocks as can be."""
        if self.is_fixed:
            return self.tiles
        wanted = -(-_LEAST_SHARED // self.panels) if self.shared else _LEAST_UNITS
        blocks = -(-wanted // self.shape.groups)
        most: Size = self.tiles
        if blocks > 1:
            most = smin(most, smax(min(_LEAST_TILES, self.tiles), (self.image_tiles - 1) // (blocks - 1)))
        return ceildiv(self.image_tiles, ceildiv(self.image_tiles, most))

    @property
    def blocks(self) -> Size:
        """Of an image. Where tiles do not divide evenly, the last one overlaps the one before it, or has fewer."""
        return ceildiv(self.image_tiles, self.block_tiles)

    @property
    def is_fixed(self) -> bool:
        """Whether the size of the image is known."""
        return isinstance(self.image_tiles, int)

    def divides(self, extent: Size) -> bool:
        """Whether tiles divide this extent of the image evenly, whatever it is."""
        return isinstance(extent, int) and extent % self.outputs == 0

    @property
    def usual_blocks(self) -> int:
        return typical(self.blocks)

    @property
    def products(self) -> int:
        return self.matrices.inputs**2

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def panels(self) -> int:
        return -(-self.shape.cout // self.width)

    @property
    def row(self) -> int:
        """Elements of a tile in V: channels, in whole vectors."""
        return -(-self.shape.cin // self.lanes) * self.lanes

    @property
    def v_step(self) -> int:
        """From product to product in V; not a power of two, or all of them would meet in one set of L1."""
        return self.tiles * self.row + 16

    @property
    def v_elements(self) -> int:
        return self.products * self.v_step

    @property
    def m_elements(self) -> int:
        return self.products * self.tiles * self.width

    @property
    def chain(self) -> int:
        return _CHAIN[self.outputs]

    @property
    def fits_stack(self) -> bool:
        return (self.v_elements + self.m_elements) * DType.F32.bytes <= _STACK_BYTES

    @property
    def u_bytes(self) -> int:
        """Of all groups."""
        return self.shape.groups * self.group_bytes

    @property
    def group_bytes(self) -> int:
        """U of one group."""
        return self.panels * self.products * self.shape.cin * self.width * DType.F32.bytes

    @property
    def is_streamed(self) -> bool:
        return self.u_bytes >= STREAMED_BYTES

    def u_fits(self, caps: Capabilities) -> bool:
        """Whether U stays in L2 from one block of tiles to the next."""
        return self.group_bytes <= caps.l2_bytes * 3 // 4

    def panels_first(self, caps: Capabilities) -> bool:
        """Whether units go through all blocks before the next panel: where that reads less from beyond L2."""
        v_bytes = self.usual_blocks * self.v_elements * DType.F32.bytes
        less = v_bytes <= caps.l2_bytes // 2 or self.panels * v_bytes <= self.usual_blocks * self.group_bytes
        return bool(self.shared) and not self.u_fits(caps) and less

    def row_tiles(self, caps: Capabilities) -> list[int]:
        """The rows of a block's products, cut into register tiles of nearly the same size, where all blocks have as many."""
        count = -(-self.tiles // largest_tile(self.vectors, caps))
        size, longer = divmod(self.tiles, count)
        return [size + (i < longer) for i in range(count)]

    def shares(self, caps: Capabilities) -> int:
        """How many register tiles share in fetching the next product's U: those of a block of the smallest image that is
        expected."""
        tiles = self.tiles if self.is_fixed else min(plausible(self.block_tiles))
        return max(1, -(-tiles // largest_tile(self.vectors, caps)))

    def image_ns(self, caps: Capabilities) -> float:
        """Estimated time of one image of the usual size on one core: arithmetic, or the stream of U."""
        tiles = self.usual_blocks * self.tiles if self.is_fixed else typical(self.image_tiles)
        channels = self.row // self.lanes + self.panels * self.vectors
        steps = tiles * self.products * self.shape.cin * self.panels * self.vectors * (1 + _CHAIN_COST / self.chain)
        steps += tiles * self.products * channels * _TRANSFORM[self.outputs]
        work_ns = 2 * self.lanes * steps * self.shape.groups / caps.fma_gflops
        stream_ns = self.u_bytes / caps.dram_gbs if self.is_streamed else 0.0
        return overlapped(work_ns, stream_ns) + _SETUP_NS

    def cost_ns(self, caps: Capabilities) -> float:
        return typical(self.shape.batch) * self.image_ns(caps)


def choose_winograd(shape: ConvShape, caps: Capabilities) -> dict[str, int]:
    """The analytic default."""
    small, large = (_choose_tiles(shape, outputs, caps) for outputs in (2, 4))
    small_ns, large_ns = (expected(partial(WinogradShape.of(shape, config, caps).cost_ns, caps)) for config in (small, large))
    is_fixed = isinstance(shape.y.out, int) and isinstance(shape.x.out, int)
    # With the image grows what is lost without it: up to a half, where it loses a fifth on the smallest.
    return large if large_ns * (_LARGE_TILES_GAIN if is_fixed else 1.0) < small_ns else small


def _choose_tiles(shape: ConvShape, outputs: int, caps: Capabilities) -> dict[str, int]:
    vectors = usual = 1 if shape.cout <= caps.lanes else min((2, 3), key=lambda v: -(-shape.cout // (v * caps.lanes)) * v)
    if caps.halves:  # which load as fast as they multiply: the U of narrow panels stays in L1 (Zen 4: 3 to 7 % faster)
        vectors = 1

    def config(tiles: int, shared: int) -> dict[str, int]:
        return {"outputs": outputs, "tiles": tiles, "vectors": vectors, "shared": shared}

    def plan(tiles: int) -> WinogradShape:
        return WinogradShape.of(shape, config(tiles, 0), caps)

    # Alone, with V on the stack, where that leaves enough units; the most tiles that fit read U the fewest times.
    count = max(1, typical(plan(1).image_tiles))
    most = count if plan(1).is_fixed else count * _LARGER
    alone = [
        n
        for n in range(_LEAST_TILES, _MOST_TILES + 1)
        if plan(n).fits_stack and plan(n).usual_blocks * shape.groups >= _LEAST_UNITS
    ]
    if alone and plan(1).u_fits(caps):
        return config(-(-count // plan(alone[-1]).usual_blocks) if plan(1).is_fixed else alone[-1], 0)
    sizes = range(min(_LEAST_TILES, most), most + 1)
    m_bytes = plan(1).m_elements // vectors * usual * DType.F32.bytes  # V grows with the tiles, whatever the panels are
    fit = sizes[: max(1, _M_BYTES // m_bytes - sizes[0] + 1)]
    if not plan(1).is_fixed:
        return config(fit[-1], 1)
    enough = [n for n in fit if plan(n).usual_blocks * plan(n).panels * shape.groups >= _LEAST_SHARED] or [fit[0]]
    return config(-(-most // -(-most // enough[-1])), 1)
