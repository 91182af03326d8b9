"""Shared memory: the simulator on known accesses, and swizzles, found by algebra, that it finds no fault with."""

from __future__ import annotations

import itertools

import pytest

from xyntra_ep.tracea.semantic_ir.gpu.banks import conflicts
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout, choose
from xyntra_ep.tracea.semantic_ir.nodes import BLOCK, THREAD, Binary, Const, Rvalue, Var


def bank_conflicts(access: TileAccess, layout: TileLayout) -> int:
    """Of all warps of an access."""
    total = 0
    for first in range(0, access.lanes.threads, 32):
        places = [access.lanes.at(t) for t in range(first, min(first + 32, access.lanes.threads))]
        at = [layout.offset(p.get(access.row, 0), p.get(access.column, 0)) * layout.element_bytes for p in places]
        total += conflicts(at, access.packet * layout.element_bytes)
    return total


@pytest.mark.parametrize(
    ("addresses", "size", "expected"),
    [
        ([4 * t for t in range(32)], 4, 0),
        ([0] * 32, 4, 0),  # one word for all
        ([8 * t for t in range(32)], 4, 1),  # every second bank, two words each
        ([128 * t for t in range(32)], 4, 31),  # a column of 32 floats
        ([132 * t for t in range(32)], 4, 0),  # the same with a padded row
        ([2 * t for t in range(32)], 2, 0),  # two halves of a word
        ([16 * t for t in range(32)], 16, 0),  # four phases of eight
        ([128 * t for t in range(32)], 16, 28),
        ([8 * t for t in range(32)], 8, 0),
    ],
)
def test_known_accesses(addresses: list[int], size: int, expected: int) -> None:
    assert conflicts(addresses, size) == expected


def test_a_swizzle_makes_rows_and_columns_free() -> None:
    by_rows = TileAccess(LaneMap((Digit("c", 32), Digit("r", 32))), "r", "c")
    by_columns = TileAccess(LaneMap((Digit("r", 32), Digit("c", 32))), "r", "c")
    plain = TileLayout(32, 32, 4)
    assert bank_conflicts(by_rows, plain) == 0
    assert bank_conflicts(by_columns, plain) == 32 * 31
    layout = choose(32, 32, 4, [by_rows, by_columns])
    assert layout is not None
    assert bank_conflicts(by_rows, layout) == bank_conflicts(by_columns, layout) == 0
    assert layout.masks == (1, 2, 4, 8, 16)


def test_nothing_is_moved_that_need_not_be() -> None:
    by_rows = TileAccess(LaneMap((Digit("c", 32), Digit("r", 8))), "r", "c")
    layout = choose(32, 64, 4, [by_rows])
    assert layout is not None and layout.masks == ()


def test_what_cannot_be_free_is_said() -> None:
    # Packets of 4 stay together, so columns of single elements have 8 places to go to.
    by_rows = TileAccess(LaneMap((Digit("c", 8, step=4), Digit("r", 32))), "r", "c", packet=4)
    by_columns = TileAccess(LaneMap((Digit("r", 32), Digit("c", 32))), "r", "c")
    assert choose(32, 32, 4, [by_rows, by_columns]) is None


def test_the_algebra_agrees_with_the_simulator() -> None:
    """For many maps of a warp onto a tile: a layout is found exactly if some layout with single moved bits would be free."""
    for element_bytes, columns in itertools.product((2, 4), (16, 32, 64)):
        for row_bits, packet in itertools.product(range(6), (1, 2, 4)):
            maps = LaneMap((Digit("r", 1 << row_bits), Digit("c", 1 << (5 - row_bits), step=packet)))
            if packet * (1 << (5 - row_bits)) > columns:
                continue
            access = TileAccess(maps, "r", "c", packet)
            layout = choose(32, columns, element_bytes, [access])
            if layout is not None:
                assert bank_conflicts(access, layout) == 0, (access, layout)
            plain = TileLayout(32, columns, element_bytes)
            assert layout is not None or bank_conflicts(access, plain) > 0


def test_a_layout_reaches_every_place_once() -> None:
    layout = TileLayout(8, 16, 4, (1, 6, 8))
    assert sorted(layout.offset(r, c) for r in range(8) for c in range(16)) == list(range(128))


def test_code_and_simulation_are_one() -> None:
    lanes = LaneMap((Digit("k", 4, step=4), Digit("m", 8), Digit("k", 2), Digit("m", 4, step=8)))
    layout = TileLayout(32, 32, 4, (4, 0, 24, 8, 1))
    b = GpuBuilder("k", lanes.threads)
    place = lanes.emit(b, THREAD)
    offset = layout.emit(b, place["k"], place["m"])
    lets = {s.var.name: s.value for s in b.body}  # type: ignore[attr-defined]  # all are Let
    for thread in range(lanes.threads):
        at = lanes.at(thread)
        assert value(offset, lets, thread) == layout.offset(at["k"], at["m"])


def value(e: Rvalue, lets: dict[str, Rvalue], thread: int) -> int:
    """An index expression, evaluated."""
    match e:
        case Const():
            return int(e.value)
        case Var():
            assert e != BLOCK
            return thread if e == THREAD else value(lets[e.name], lets, thread)
        case Binary():
            a, b = value(e.a, lets, thread), value(e.b, lets, thread)
            return {"add": a + b, "mul": a * b, "and": a & b, "xor": a ^ b, "shl": a << b, "shr": a >> b}[e.op]
    raise AssertionError(e)
