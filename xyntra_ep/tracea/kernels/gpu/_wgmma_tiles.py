"""Block tiles of a product by warpgroups: sizes, who computes what, and where operands lie in shared memory.

A block computes ``rows`` x ``columns``, 64 rows a warpgroup, in steps of 64 of k; one warpgroup more copies. Operands stay as
they lie in memory: a tile is of rows of 128 bytes along what is contiguous there, as tensor copies put them down.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.kernels.variant import Axis, Config
from xyntra_ep.tracea.semantic_ir.warpgroup_nodes import DEPTH, ROW_BYTES, ROWS, SWIZZLED_ROWS

BYTES = 2
STEP = ROW_BYTES // BYTES  # of k, and elements of a row
_ROWS = (64, 128)
_COLUMNS = (128, 256)
_SLOTS = (3, 4, 5, 6)
SPACE = (Axis(name="rows", values=_ROWS), Axis(name="columns", values=_COLUMNS), Axis(name="slots", values=_SLOTS))
# Registers of a thread, where three warpgroups share those of a multiprocessor: who copies leaves most of its own to the others.
_COPYING, _MULTIPLYING = 40, 232


@dataclass(frozen=True, slots=True)
class WarpgroupTile:
    """A configuration. ``slots``: steps of k in shared memory at a time."""

    rows: int
    columns: int
    slots: int

    @property
    def consumers(self) -> int:
        return self.rows // ROWS

    @property
    def threads(self) -> int:
        return (1 + self.consumers) * 128

    @property
    def registers(self) -> tuple[int, int]:
        """Of a thread that copies, and of one that multiplies; 0: as many as the kernel begins with."""
        return (_COPYING, _MULTIPLYING) if self.consumers > 1 else (0, 0)

    @property
    def step_bytes(self) -> int:
        """Of both operands' tiles for one step."""
        return (self.rows + self.columns) * ROW_BYTES

    @property
    def shared_bytes(self) -> int:
        return self.slots * (self.step_bytes + 2 * 16)


def tile_of(config: Config) -> WarpgroupTile:
    return WarpgroupTile(config["rows"], config["columns"], config["slots"])


def all_tiles() -> list[WarpgroupTile]:
    """The search space."""
    return [WarpgroupTile(m, n, slots) for m in _ROWS for n in _COLUMNS for slots in _SLOTS]


@dataclass(frozen=True, slots=True)
class Panels:
    """How an operand's tile of ``extent`` rows (or columns) of the product lies in its slot. ``across``: its memory is contiguous
    along these, so that the tile is in panels of 64, each with a row for every k; else it is one panel with a row for each."""

    extent: int
    across: bool

    @property
    def count(self) -> int:
        return self.extent // STEP if self.across else 1

    @property
    def box(self) -> tuple[int, int]:
        """What a tensor copy brings, one panel: (elements of a row, rows)."""
        return STEP, STEP if self.across else self.extent

    @property
    def elements(self) -> int:
        """Of a panel."""
        return self.box[0] * self.box[1]

    def start(self, first: int, k: int) -> int:
        """Where the matrix from row (or column) ``first`` and ``k`` of the tile on begins, in elements from the slot on."""
        assert first % (STEP if self.across else SWIZZLED_ROWS) == 0 and k % DEPTH == 0
        return first // STEP * self.elements + k * STEP if self.across else first * STEP + k

    @property
    def apart(self) -> int:
        """Bytes from one panel to the next."""
        return self.elements * BYTES if self.across else 0
