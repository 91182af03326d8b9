"""Tiles of a fused attention by warpgroups: sizes, and how q, k and v lie in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.kernels.gpu.attention._fetch import whole
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import DEPTH, ROW_BYTES, ROWS, SWIZZLED_ROWS, WARPGROUP, SharedMatrix
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, index

BYTES = 2
PANEL = ROW_BYTES // BYTES  # elements of a row of a panel
ALIGNMENT = SWIZZLED_ROWS * PANEL  # elements after which a swizzle repeats
_OTHERS = 32  # registers of a thread for what is neither a score, nor a weight, nor a result


@dataclass(frozen=True, slots=True)
class Panels:
    """``rows`` of so many ``elements``, in panels of 64 of these: a row of one is 128 bytes, as a tensor copy puts it down."""

    rows: int
    elements: int

    @property
    def count(self) -> int:
        return whole(self.elements, PANEL) // PANEL

    @property
    def each(self) -> int:
        """Elements of a panel."""
        return self.rows * PANEL

    @property
    def all(self) -> int:
        return self.count * self.each

    def along(self, pointer: Pointer, first: Rvalue, at: int) -> SharedMatrix:
        """Rows from ``first`` on are rows (or columns) of the product, which goes along their elements, from ``at`` on."""
        return SharedMatrix(pointer, first * PANEL + (at // PANEL * self.each + at % PANEL), across=False)

    def across(self, pointer: Pointer, first: int) -> SharedMatrix:
        """The product goes over rows from ``first`` on; their elements are its columns."""
        return SharedMatrix(pointer, index(first * PANEL), across=True, apart=self.each * BYTES)


@dataclass(frozen=True, slots=True)
class HeadTile:
    """A configuration, of heads of ``depth`` (q and k) and ``width`` (v) elements: ``groups`` warpgroups have 64 rows of q each,
    k and v come in tiles of so many ``columns``, ``slots`` of them at a time. ``turns``: whether warpgroups begin their products
    in turns."""

    groups: int
    columns: int
    depth: int
    width: int
    slots: int
    turns: bool

    @property
    def rows(self) -> int:
        return ROWS * self.groups

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.groups)

    @property
    def q(self) -> Panels:
        return Panels(self.rows, self.depth)

    @property
    def k(self) -> Panels:
        return Panels(self.columns, self.depth)

    @property
    def v(self) -> Panels:
        return Panels(self.columns, self.width)

    @property
    def steps(self) -> range:
        """Through a head of q and k."""
        return range(0, whole(self.depth, DEPTH), DEPTH)

    @property
    def registers(self) -> int:
        """About what a thread needs: scores, the weights of the tile before, results, and others."""
        return self.columns // 2 + self.columns // 4 + self.width // 2 + _OTHERS

    @property
    def shared_bytes(self) -> int:
        barriers = 16 * (2 + 4 * self.slots + self.groups)
        return BYTES * (self.q.all + self.slots * (self.k.all + self.v.all)) + barriers
