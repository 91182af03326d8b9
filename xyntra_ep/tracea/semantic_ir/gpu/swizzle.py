"""Where the elements of a tile lie in shared memory, so that the threads of a warp meet different banks.

Row r, column c of a tile is at r * columns + (c ^ s(r)), where s is linear over GF(2): the XOR of one mask for each set bit of r.
Everything is a power of two, so the way from a thread's number to its word's address is linear over GF(2) too, and a phase of an
access (the threads that are served together) reaches the span of a few vectors. It is free of conflicts exactly if different
words of that span are in different banks: if the span's image in the bits of the bank has the rank of its image in the bits of
the address. `choose` looks for the masks with the fewest bits for which that holds of all accesses; `banks.py` counts the
conflicts of what was chosen without any algebra.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.gpu.banks import BANK_BYTES, BANKS, lanes_of_phase
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import LaneMap
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, binary, index


@dataclass(frozen=True, slots=True)
class TileLayout:
    """``rows`` x ``columns`` elements (powers of two) of ``element_bytes``; ``masks[i]`` moves the columns of rows with bit i."""

    rows: int
    columns: int
    element_bytes: int
    masks: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        return self.rows * self.columns

    @property
    def period(self) -> int:
        """Rows after which columns are moved alike."""
        return 1 << len(self.masks)

    def swizzle(self, row: int) -> int:
        total = 0
        for i, mask in enumerate(self.masks):
            total ^= mask if row >> i & 1 else 0
        return total

    def offset(self, row: int, column: int) -> int:
        """In elements."""
        return row * self.columns + (column ^ self.swizzle(row))

    def emit(self, b: BlockBuilder, row: Rvalue | int, column: Rvalue) -> Rvalue:
        """``offset`` as code."""
        if isinstance(row, int):
            row = index(row)
        return row * self.columns + (binary("xor", column, s) if (s := self._swizzle_code(row)) is not None else column)

    def _swizzle_code(self, row: Rvalue) -> Rvalue | None:
        shifts: dict[int, int] = {}  # bits of the row that move by so much
        for i, mask in enumerate(self.masks):
            for j in range(mask.bit_length()):
                if mask >> j & 1:
                    shifts[j - i] = shifts.get(j - i, 0) | 1 << i
        total: Rvalue | None = None
        for shift, bits in sorted(shifts.items()):
            part = binary("and", row, bits)
            if shift:
                part = binary("shl" if shift > 0 else "shr", part, abs(shift))
            total = part if total is None else binary("xor", total, part)
        return total


@dataclass(frozen=True, slots=True)
class TileAccess:
    """One access of all threads to a tile: where thread 0 would start is moved by ``lanes`` (axes ``row`` and ``column``), and
    ``packet`` neighbours of a row are moved at a time."""

    lanes: LaneMap
    row: str
    column: str
    packet: int = 1


def choose(rows: int, columns: int, element_bytes: int, accesses: Sequence[TileAccess]) -> TileLayout | None:
    """The layout with the fewest moved bits that is free of conflicts for all ``accesses``; None when there is none."""
    grain = max((a.packet for a in accesses), default=1)
    reach = min(columns, BANKS * BANK_BYTES // element_bytes)
    bits = rows.bit_length() - 1
    candidates = sorted(range(0, reach, grain), key=lambda mask: (mask.bit_count(), mask))
    spans = [_span(a, element_bytes) for a in accesses]

    def extend(masks: tuple[int, ...]) -> tuple[int, ...] | None:
        layout = TileLayout(rows, columns, element_bytes, masks)
        # Vectors within the rows whose masks are known: a part of a span with a conflict is a conflict of the whole.
        known = ([v for v in span if v[0] >> len(masks) == 0] for span in spans)
        if not all(_is_free(vectors, layout) for vectors in known):
            return None
        if len(masks) == bits:
            return masks
        for mask in candidates:
            if (found := extend((*masks, mask))) is not None:
                return found
        return None

    found = extend(())
    if found is None:
        return None
    while found and found[-1] == 0:
        found = found[:-1]
    return TileLayout(rows, columns, element_bytes, found)


def _span(access: TileAccess, element_bytes: int) -> list[tuple[int, int]]:
    """Vectors (row, column) that a phase of ``access`` is spanned by: one for each bit of a lane, and of a packet."""
    vectors = []
    for bit in range(min(lanes_of_phase(access.packet * element_bytes), access.lanes.threads).bit_length() - 1):
        place = access.lanes.at(1 << bit)
        vectors.append((place.get(access.row, 0), place.get(access.column, 0)))
    return vectors + [(0, 1 << j) for j in range(access.packet.bit_length() - 1)]


def _is_free(vectors: Iterable[tuple[int, int]], layout: TileLayout) -> bool:
    words = [layout.offset(row, column) * layout.element_bytes // BANK_BYTES for row, column in vectors]
    return _rank(words) == _rank(w % BANKS for w in words)


def _rank(vectors: Iterable[int]) -> int:
    """Of vectors over GF(2), as bits of integers."""
    basis: list[int] = []
    for v in vectors:
        for known in basis:
            v = min(v, v ^ known)
        if v:
            basis.append(v)
    return len(basis)
