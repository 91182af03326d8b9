"""Elements at a constant distance, picked out of whole vectors: pixels that become planes, every n-th one of a row."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, permuted, pointwise, special_floats
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64
from xyntra_ep.tracea.core_ir.expr import axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.kernels.cpu.pointwise.vector import VARIANTS
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]


def planes(channels: int, dtype: DType = DType.F32) -> Program:
    """The last plane ends at the last element of the buffer."""
    p = ProgramBuilder()
    x = permuted(p.input("n", "h", 20, channels, dtype=dtype), (0, 3, 1, 2))
    return pointwise(x.shape, [x], here(x, 0), p, dtype)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_pixels_become_planes(channels: int, caps: Capabilities) -> None:
    for images, rows in ((1, 1), (2, 7), (3, 0), (1, 600)):  # the last one in several blocks
        data = special_floats((images, rows, 20, channels))
        check_program(planes(channels), [data], [], caps, 0.0, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_halves(dtype: DType, caps: Capabilities) -> None:
    data = from_float64(np.random.default_rng(0).standard_normal((2, 3, 20, 3)), dtype)
    check_program(planes(3, dtype), [data], [], caps, 0.0, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("step", [2, 3, 4])
def test_every_one_of_a_row(step: int, caps: Capabilities) -> None:
    for count in (1, 7, 8, 16, 17, 33):
        for first in (0, step - 1):
            p = ProgramBuilder()
            x = p.input(2, (count - 1) * step + 1 + first)
            body = load(0, axis(0), call("add", call("mul", axis(1), const(step)), const(first)), dtype=DType.F32)
            check_program(pointwise((2, count), [x], body, p), [special_floats(x.shape)], [], caps, 0.0, variants=VARIANTS)  # type: ignore[arg-type]  # its sizes are numbers


def test_they_are_picked_where_they_are_near() -> None:
    assert "every" in plan_for(planes(4), AVX2, VARIANTS).kernels[0].text
    assert "gather" in plan_for(planes(5), AVX2, VARIANTS).kernels[0].text
