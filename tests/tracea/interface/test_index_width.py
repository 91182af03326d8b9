"""What is too large to be counted in 32 bits does not reach a device."""

from __future__ import annotations

import pytest

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Program, Value, ValueKind
from xyntra_ep.tracea.interface.index_width import MOST_ELEMENTS, limit_elements


def program_of(*shapes: tuple[Size, ...]) -> Program:
    return Program(values=[Value(kind=ValueKind.TEMP, dtype=DType.F32, shape=shape) for shape in shapes])


def test_what_is_too_large_in_every_run_is_not_taken() -> None:
    limit_elements(program_of((1 << 10, 1 << 20)))
    with pytest.raises(UnsupportedError, match="a tensor of 1073742848 elements is too large for a device"):
        limit_elements(program_of((4, 4), (1 << 10, (1 << 20) + 1)))


def test_what_a_run_makes_too_large_fails_it() -> None:
    n = symbol("n")
    program = program_of((n, 1024), (2, n, 512), (n, 7), (3,))
    limit_elements(program)
    assert len(program.checks) == 2, "each size once"

    def passes(rows: int) -> bool:
        return all(evaluate(size, {"n": rows}) for size, _ in program.checks)

    assert passes(0) and passes(MOST_ELEMENTS // 1024) and not passes(MOST_ELEMENTS // 1024 + 1)
