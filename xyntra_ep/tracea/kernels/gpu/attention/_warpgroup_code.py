"""A fused attention by warpgroups: one thread copies tiles of q, k and v, the other warpgroups multiply them and make weights.

Each warpgroup has 64 rows of q. While it makes the weights of a tile, the products of the tile before with v are under way; the
products of q with the next k are begun before these (Shah et al., "FlashAttention-3", 2024, section 3.2). Weights go from scores
to the second product in registers. Where warpgroups begin their products in turns (section 3.1), one makes weights while the
others multiply.

mbarriers are as in `tensor_cores/_wgmma_product.py`: for q and for each slot of k and of v, *full* waits for the bytes of a tile
and *empty* for the warps that have read it. Tiles of all blocks of rows are counted through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention, Operand
from xyntra_ep.tracea.kernels.gpu.attention._fragment_share import FragmentShare
from xyntra_ep.tracea.kernels.gpu.attention._softmax import OnlineSoftmax
from xyntra_ep.tracea.kernels.gpu.attention._space import blocks_of, bounds_of, flops_of, sure_mask_of
from xyntra_ep.tracea.kernels.gpu.attention._warpgroup_tiles import ALIGNMENT, BYTES, PANEL, HeadTile, Panels
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.tensors import coordinate, moving, tensor_view
from xyntra_ep.tracea.kernels.shared.sight import Sight
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TensorView
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import SIDE
from xyntra_ep.tracea.semantic_ir.gpu.nodes import Slot
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import DEPTH, ROWS, WARPGROUP, WARPS
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Var, binary, f32, index, lt, vmin

# Registers of a thread, by how many warpgroups multiply: who copies leaves most of its own to the others.
REGISTERS = {2: (40, 232), 3: (32, 160)}


class _Ring:
    """Tiles of one operand in slots, and who waits for whom."""

    def __init__(self, b: WarpgroupBuilder, stem: str, operand: Operand, panels: Panels, slots: int, readers: int) -> None:
        tensor = b.tensor(stem, operand.dtype, (PANEL, panels.rows, *(1 for _ in moving(operand.strides[:2]))))
        self._b, self._operand, self._tensor, self._panels, self._slots = b, operand, tensor, panels, slots
        self.array = b.shared("tile", operand.dtype, panels.all, slots, alignment=ALIGNMENT * BYTES)
        self._full = b.mbarriers("full", slots, arrivals=1)
        self._empty = b.mbarriers("empty", slots, arrivals=WARPS * readers)

    def fill(self, number: Rvalue, batch: Sequence[Rvalue], first: Rvalue) -> None:
        """Copy tile ``number``, rows from ``first`` on, when its slot is free."""
        b, panels, slot = self._b, self._panels, number % self._slots
        full = b.slot(self._full, slot)
        b.wait_at(b.slot(self._empty, slot), 1 - number // self._slots % 2)
        b.expect(full, panels.all * BYTES)
        strides = self._operand.strides[:2]
        others = [coordinate(b, batch[i], strides[i]) for i in moving(strides)]
        for panel in range(panels.count):
            to = b.pointer("to", b.slot(self.array, slot), index(panel * panels.each))
            b.copy_tensor(to, self._tensor, (index(panel * PANEL), first, *others), full)

    def wait(self, number: Rvalue) -> Slot:
        """Where tile ``number`` is, when it is there."""
        b, slot = self._b, self._b.let("slot", number % self._slots)
        b.wait_at(b.slot(self._full, slot), number // self._slots % 2)
        return b.slot(self.array, slot)

    def free(self, number: Rvalue) -> None:
        """The warpgroup has read tile ``number``."""
        b = self._b
        b.arrive(b.slot(self._empty, b.let("read", number % self._slots)))


class WarpgroupCode:
    """See the module's docstring."""

    def __init__(self, op: Attention, tile: HeadTile, context: BuildContext) -> None:
        self.op, self.tile, self._gpu = op, tile, gpu_of(context)
        self.dtype: DType = op.inputs[0].dtype
        name = f"xy_attention_{self.dtype}_wgmma_{tile.rows}x{tile.columns}{'_turns' if tile.turns else ''}"
        self.b = b = WarpgroupBuilder(name, 1 + tile.groups)
        for letter, operand in zip("qkv", op.inputs, strict=False):
            b.buffer(letter, operand.dtype)
        out = b.buffer("out", op.output.dtype, writable=True)
        self.softmax = OnlineSoftmax(b, op, out, tile.rows, tile.columns, FragmentShare.exponential)
        mask = sure_mask_of(op, context)
        self._skips = mask is not None
        self._sight = Sight(b, op, bounds_of(mask), tile.columns)
        operands, panels, slots = op.inputs[:3], (tile.q, tile.k, tile.v), (1, tile.slots, tile.slots)
        self._q, self._k, self._v = (
            _Ring(b, *of, readers=tile.groups) for of in zip("qkv", operands, panels, slots, strict=True)
        )
        self._mine = b.mbarriers("mine", tile.groups, arrivals=WARPS) if tile.turns else None

    def call(self, gflops: float) -> KernelCall:
        """The kernel's launch, of which products are made at such a rate."""
        blocks = blocks_of(self.op, self.tile.rows)
        # Where blocks of rows take differently long, whoever is free takes the next one.
        launched = blocks if self._skips else smin(blocks, self._gpu.units)
        self._emit(blocks, launched)
        kernel, params = self.b.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(*self.softmax.buffers, *self._sight.buffers),
            params=params,
            units=launched,
            cost_ns=flops_of(self.op) // max(1, int(gflops)) + LAUNCH_NS,
            tensors=tuple(
                tensor_view(
                    o, place, o.shape[3], o.shape[2], o.strides[2], [(o.shape[i], o.strides[i]) for i in moving(o.strides[:2])]
                )
                for place, o in enumerate(self.op.inputs[:3])
            ),
        )

    def _emit(self, blocks: Size, launched: Size) -> None:
        b, tile, softmax = self.b, self.tile, self.softmax
        every = b.param(launched)
        turns = b.rounds("turns", index(1) if self._skips else (b.param(blocks) - b.block + (every - 1)) // every)
        self._from: Rvalue = index(0)
        end = b.param(ceildiv(softmax.columns, tile.columns))
        if self._skips:
            self._from, end = softmax.tiles_in_sight(self._sight, *softmax.place(b.block))
        steps = b.rounds("steps", end - self._from)
        copying, multiplying = REGISTERS[tile.groups]
        with b.role("copies", 1, copying), b.once(), b.loop("turn", 0, turns) as turn:
            batch, first = softmax.place(b.let("block", b.block + turn * every))
            self._q.fill(turn, batch, first)
            before = b.let("before", turn * steps)
            with b.loop("step", 0, steps) as step:
                number, column = b.let("number", before + step), b.let("column", (self._from + step) * tile.columns)
                self._k.fill(number, batch, column)
                self._v.fill(number, batch, column)
        with b.role("multiplies", tile.groups, multiplying) as group:
            self._group = group
            lane = b.let("lane", b.thread % 32)
            row = b.let("row", group * ROWS + b.thread % WARPGROUP // 32 * 16 + lane // 4)
            self._share = share = FragmentShare(b, row, b.let("pair", lane % 4 * 2), tile.columns, tile.width, SIDE)
            with b.loop("turn", 0, turns) as turn:
                batch, first = softmax.place(b.let("block", b.block + turn * every))
                softmax.begin(share, batch, first)
                self._rows_of(turn, steps)
                softmax.store()

    def _rows_of(self, turn: Rvalue, steps: Rvalue) -> None:
        """What all tiles of k and v make of the warpgroup's rows of the block's ``turn``-th rows of q."""
        b, tile, softmax = self.b, self.tile, self.softmax
        q = self._q.wait(turn)
        before = b.let("before", turn * steps)
        dots = [b.variable("dot", Const(f32(1), 0.0)) for _ in range(tile.columns // 2)]
        pairs = self._share.new_pairs()

        def keep(weights: list[list[Rvalue]]) -> None:
            self._share.pack(pairs, weights, self.dtype)

        with b.when(lt(0, steps)):
            with self._in_turn(before):
                self._multiply(dots, q, before)
            b.wait_products(0, dots)
            self._k.free(before)
            softmax.weigh(softmax.scores(self._by_row(dots), self._from * tile.columns, lambda row, factor: None), keep)
            with b.loop("step", 1, steps) as step:
                number = b.let("number", before + step)
                with self._in_turn(number):
                    self._multiply(dots, q, number)
                    self._weigh(pairs, number - 1)
                b.wait_products(1, dots)
                self._k.free(number)
                factors = [b.variable("factor", Const(f32(1), 1.0)) for _ in range(2)]

                def grown(row: int, factor: Rvalue, factors: Sequence[Var] = factors) -> None:
                    b.assign(factors[row], factor)

                scores = softmax.scores(self._by_row(dots), b.let("column", (self._from + step) * tile.columns), grown)
                b.wait_products(0, self._sums)
                self._v.free(number - 1)
                for row, factor in enumerate(factors):
                    with b.when(binary("lt", factor, 1.0)):
                        softmax.scale(row, factor)
                softmax.weigh(scores, keep)
            self._q.free(turn)
            last = b.let("last", before + (steps - 1))
            self._weigh(pairs, last)
            b.wait_products(0, self._sums)
            self._v.free(last)
        with b.otherwise():
            self._q.free(turn)

    @contextmanager
    def _in_turn(self, number: Rvalue) -> Iterator[None]:
        """Products of tile ``number`` are begun when the warpgroup before has begun its own."""
        b, groups = self.b, self.tile.groups
        if self._mine is None:
            yield
            return
        first = 1 - vmin(self._group, 1)  # who need not wait for its first turn
        b.wait_at(b.slot(self._mine, self._group), (number + first) % 2)
        yield
        b.arrive(b.slot(self._mine, b.let("next", (self._group + 1) % groups)))

    def _multiply(self, dots: Sequence[Var], q: Slot, number: Rvalue) -> None:
        """Begin q times k of tile ``number``."""
        b, tile, k = self.b, self.tile, self._k.wait(number)
        b.fence_products()
        for d in tile.steps:
            a = tile.q.along(q, self._group * ROWS, d)
            b.warpgroup_dot(dots, a, tile.k.along(k, index(0), d), self.dtype, fresh=d == 0)
        b.commit_products()

    def _weigh(self, pairs: Sequence[Var], number: Rvalue) -> None:
        """Begin to add v of tile ``number`` by its weights."""
        b, tile, v = self.b, self.tile, self._v.wait(number)
        b.fence_products()
        for t in range(0, tile.columns, DEPTH):
            b.warpgroup_dot(self._sums, pairs[t // 4 : (t + DEPTH) // 4], tile.v.across(v, t), self.dtype)
        b.commit_products()

    def _by_row(self, dots: Sequence[Var]) -> list[list[Var]]:
        return [[dots[4 * j + 2 * row + i] for j in range(len(dots) // 4) for i in range(2)] for row in range(2)]

    @property
    def _sums(self) -> list[Var]:
        """The results as a product has them."""
        sums = self.softmax.sums
        return [sums[row][2 * j + i] for j in range(len(sums[0]) // 2) for row in range(2) for i in range(2)]


def _view(operand: Operand, place: int) -> TensorView:
    others = [(operand.shape[i], operand.strides[i]) for i in moving(operand.strides[:2])]
    return tensor_view(operand, place, operand.shape[3], operand.shape[2], operand.strides[2], others)
