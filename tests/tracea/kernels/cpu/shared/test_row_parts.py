from __future__ import annotations

import pytest

from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.kernels.cpu.shared.row_parts import STEP, part_sizes


@pytest.mark.parametrize("most", [1, 3, 4, 6, 8, 12, 14])
def test_every_block_is_a_large_part_and_a_rest(most: int) -> None:
    sizes = part_sizes(symbol("m"), most)
    assert sizes[0] == most and sizes == sorted(sizes, reverse=True)
    for rows in range(1, most + 1):
        large = next((n for n in sizes if STEP <= n <= rows), 0)
        assert rows == large or rows - large in sizes


def test_a_known_number_of_rows_needs_only_its_own_parts() -> None:
    assert part_sizes(128, 12) == [12, 8]
    assert part_sizes(11, 12) == [8, 3]
    assert part_sizes(24, 12) == [12]
    assert len(part_sizes(symbol("m"), 12)) == 6
