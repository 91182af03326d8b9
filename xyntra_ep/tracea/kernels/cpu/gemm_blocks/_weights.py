"""Packed weights: where a panel's integers, scales and zero points lie, and how vectors of them become floats.

    4 bits    words  [panel][k / 8][columns]    eight integers of one column in an i32, the first in its lowest bits
    8 bits    bytes  [panel][k][columns]        less the middle of their range, which makes them signed
    scales           [panel][block][columns]    in the model's type
    zero points      the same: floats in the model's type, integers in bytes, less the middle

k is padded to whole blocks and n to whole panels, whose scales are 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import BlockGemm
from xyntra_ep.tracea.kernels.cpu.gemm._tile import NEAR, Tile
from xyntra_ep.tracea.kernels.cpu.shared.streams import elements_of_a_line
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nibble_nodes import NIBBLES, Nibble
from xyntra_ep.tracea.semantic_ir.nodes import Convert, Fma, Pointer, Rvalue, binary, f32, i32

GROUP = NIBBLES  # steps of k that are read together: those of a word
_SIGNS = 0x88888888 - (1 << 32)  # of eight integers of four bits: less 8 is another sign bit


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Where a panel's integers, scales and zero points are."""

    integers: Pointer
    scales: Pointer
    zeros: Pointer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Of a block, for each vector of a panel: a weight is (integer - ``zero``) * ``scale``. No zeros: all are 0."""

    scales: tuple[Rvalue, ...]
    zeros: tuple[Rvalue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedWeights:
    """Those of ``op``, whose sizes are known, in panels as wide as ``tile``."""

    op: BlockGemm
    tile: Tile

    @property
    def depth(self) -> int:
        assert isinstance(self.op.depth, int)
        return self.op.depth

    @property
    def columns(self) -> int:
        n = self.op.domain[-1]
        assert isinstance(n, int)
        return n

    @property
    def panels(self) -> int:
        return -(-self.columns // self.tile.columns)

    @property
    def blocks(self) -> int:
        return -(-self.depth // self.op.block)

    @property
    def groups_of_block(self) -> int:
        return self.op.block // GROUP

    # -- types and sizes

    @property
    def dtype(self) -> DType:
        return DType.I32 if self.op.bits == 4 else DType.I8

    @property
    def scale_dtype(self) -> DType:
        return self.op.inputs[2].dtype

    @property
    def zero_dtype(self) -> DType | None:
        """None where there are no zero points."""
        zeros = self.op.zeros
        return None if zeros is None else DType.I8 if zeros.dtype is DType.U8 else zeros.dtype

    @property
    def of_group(self) -> int:
        """Elements of ``dtype`` of a panel, for one group of steps."""
        return self.tile.columns * (1 if self.op.bits == 4 else GROUP)

    @property
    def of_panel(self) -> int:
        return self.blocks * self.groups_of_block * self.of_group

    @property
    def factors_of_panel(self) -> int:
        return self.blocks * self.tile.columns

    @property
    def bytes(self) -> int:
        """Of all panels, with their scales and zero points."""
        factor = self.scale_dtype.bytes + (0 if self.zero_dtype is None else self.zero_dtype.bytes)
        return self.panels * (self.of_panel * self.dtype.bytes + self.factors_of_panel * factor)

    # -- reading

    @property
    def is_unsigned(self) -> bool:
        """Whether integers as they are stored are not less their middle."""
        return self.op.bits == 4

    def steps(self, b: BlockBuilder, panel: Pointer, group: Rvalue, number: int = GROUP) -> Iterator[list[Rvalue]]:
        """The integers of the first ``number`` steps of a group less their middle, as vectors of floats."""
        if self.op.bits == 8:
            yield from self._bytes(b, panel, group, number)
            return
        words = [b.let("word", word ^ _SIGNS) for word in self.words(b, panel, group)]
        for step in range(number):
            yield [b.let("q", Nibble(word, step)) for word in words]

    def in_place(self, b: BlockBuilder, panel: Pointer, group: Rvalue) -> Iterator[list[Rvalue]]:
        """The integers of each step of a group as they are stored, as vectors of floats; step i of words times ``power(i)``."""
        if self.op.bits == 8:
            yield from self._bytes(b, panel, group, GROUP)
            return
        kind = f32(self.tile.lanes)
        words = self.words(b, panel, group)
        for step in range(GROUP - 1):
            yield [b.let("q", Convert(kind, word & (15 << 4 * step))) for word in words]
        yield [b.let("q", Convert(kind, binary("shr", word, 28) & 15)) for word in words]  # in its place it would be a sign

    @staticmethod
    def power(step: int) -> float:
        """See ``in_place``."""
        return 16.0**step if step < GROUP - 1 else 1.0

    def words(self, b: BlockBuilder, panel: Pointer, group: Rvalue) -> list[Rvalue]:
        """A group's eight integers of each column, of 4 bits."""
        lanes, at = self.tile.lanes, b.let("group_at", group * self.of_group)
        starts = range(0, self.tile.columns, lanes)
        return [b.let("word", Convert(i32(lanes), b.load(panel, at + j, lanes))) for j in starts]

    def _bytes(self, b: BlockBuilder, panel: Pointer, group: Rvalue, number: int) -> Iterator[list[Rvalue]]:
        lanes, at = self.tile.lanes, b.let("group_at", group * self.of_group)
        for step in range(number):
            row = at + step * self.tile.columns
            yield [b.let("q", Convert(f32(lanes), b.load(panel, row + j, lanes))) for j in range(0, self.tile.columns, lanes)]

    def fetch(self, b: BlockBuilder, panel: Pointer, group: Rvalue) -> None:
        """Ask for a group that is used soon."""
        line = elements_of_a_line(panel)
        ahead = group * self.of_group + NEAR * self.tile.lanes * line
        for i in range(max(1, self.of_group // line)):
            b.prefetch(panel, ahead + i * line)

    def factors(self, b: BlockBuilder, scales: Pointer, zeros: Pointer | None, block: Rvalue) -> Factors:
        """``scales`` and ``zeros``: of a panel."""
        lanes = self.tile.lanes
        row = b.let("factors_at", block * self.tile.columns)
        at = [row + j for j in range(0, self.tile.columns, lanes)]
        scale = tuple(b.let("scale", b.load(scales, place, lanes)) for place in at)
        if zeros is None:
            return Factors(scales=scale, zeros=())
        read = [b.load(zeros, place, lanes) for place in at]
        if self.zero_dtype is DType.I8:
            return Factors(scales=scale, zeros=tuple(b.let("zero", Convert(f32(lanes), z)) for z in read))
        return Factors(scales=scale, zeros=tuple(b.let("zero", z - float(self.op.middle)) for z in read))


@dataclass(frozen=True, slots=True, kw_only=True)
class Widening:
    """How integers of one block become weights: q * scale - zero * scale."""

    scales: tuple[Rvalue, ...]
    offsets: tuple[Rvalue, ...]

    @staticmethod
    def of(b: BlockBuilder, factors: Factors) -> Widening:
        pairs = zip(factors.scales, factors.zeros, strict=False)
        offsets = tuple(b.let("offset", -(zero * scale)) for scale, zero in pairs)
        return Widening(scales=factors.scales, offsets=offsets)

    def weights(self, b: BlockBuilder, integers: list[Rvalue]) -> list[Rvalue]:
        """A vector of each."""
        if not self.offsets:
            return [b.let("w", q * scale) for q, scale in zip(integers, self.scales, strict=True)]
        each = zip(integers, self.scales, self.offsets, strict=True)
        return [b.let("w", Fma(q, scale, offset)) for q, scale, offset in each]
