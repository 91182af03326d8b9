"""row_reduce.windows against the interpreter: windows over planes of all strides, dilations, paddings and sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import rows, special_floats
from tests.support.run_program import check_program, plan_for
from tests.tracea.kernels.cpu.rows.window_programs import NEUTRAL, windows
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64
from xyntra_ep.tracea.core_ir.expr import acc, axis, call, load
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, ReduceKind, Stage
from xyntra_ep.tracea.kernels.cpu.rows.column_reduce import VARIANTS as COLUMNS
from xyntra_ep.tracea.kernels.cpu.rows.windows import VARIANTS
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]


def check(program: Program, inputs: Sequence[np.ndarray], caps: Capabilities, max_err: float = 2e-6) -> None:
    check_program(program, inputs, [], caps, max_err, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize(
    "geometry",
    [
        ((3, 3), 2, 1, 1, 0),
        ((2, 2), 2, 1, 0, 0),
        ((3, 3), 1, 1, 1, 0),
        ((5, 3), 1, 2, 2, 0),
        ((3, 4), 3, 1, 2, 1),
        ((2, 5), 4, 3, 1, 0),
        ((1, 1), 2, 1, 0, 0),
        ((3, 7), 2, 2, 3, 1),
        ((6, 5), 1, 1, 2, 0),  # more lines than are written out
        ((2, 3), 2, 1, 40, 0),  # padding wider than vectors and than the image: windows of nothing
    ],
    ids=str,
)
def test_geometries(geometry: tuple[tuple[int, int], int, int, int, int], caps: Capabilities) -> None:
    kernel, stride, dilation, pad, over = geometry
    for kind in NEUTRAL:
        program = windows(("n", "c", "h", "w"), kernel, stride, dilation, pad, kind, over=over)
        for shape in ((2, 3, 9, 17), (1, 2, 20, 40), (1, 1, 13, 13)):
            check(program, [random_like(shape, DType.F32, 0)], caps)
            check(windows(shape, kernel, stride, dilation, pad, kind, over=over), [random_like(shape, DType.F32, 1)], caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_every_width_up_to_several_lines(stride: int, caps: Capabilities) -> None:
    program = windows((1, 2, 4, "w"), (2, 3), stride, 1, 1)
    for width in (*range(1, 36), 63, 64, 65, 255, 256, 257, 258, 259, 300, 511, 513, 1100):
        check(program, [random_like((1, 2, 4, width), DType.F32, width)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_every_height(caps: Capabilities) -> None:
    """Rows are filled some at a time."""
    program = windows((2, 3, "h", 10), (3, 3), 1, 1, 1, ReduceKind.SUM, mean=True)
    for height in (*range(1, 19), 40):
        check(program, [random_like((2, 3, height, 10), DType.F32, height)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_nan_and_infinities(caps: Capabilities) -> None:
    for pad in (0, 1):
        data = special_floats((2, 3, 11, 37))
        data[0, 0] = np.nan
        data[0, 1] = -np.inf
        check(windows((2, 3, 11, 37), (3, 3), 2, 1, pad), [data], caps)
        check(windows((2, 3, 11, 37), (3, 3), 1, 1, pad, ReduceKind.SUM), [np.clip(data, -1e30, 1e30)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_nothing(caps: Capabilities) -> None:
    program = windows(("n", "c", "h", "w"), (3, 3), 2, 1, 1, mean=True, kind=ReduceKind.SUM)
    for shape in ((0, 3, 8, 8), (2, 0, 8, 8), (1, 1, 1, 1)):
        check(program, [random_like(shape, DType.F32, 0)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_lines_and_volumes(caps: Capabilities) -> None:
    check(windows((2, 3, 50), (3,), 2, 1, 1), [random_like((2, 3, 50), DType.F32, 0)], caps)
    check(windows((1, 2, 5, 6, 21), (2, 3, 3), 2, 1, 1), [random_like((1, 2, 5, 6, 21), DType.F32, 0)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_results_of_mean_and_residual(caps: Capabilities) -> None:
    for shape in ((1, 3, 14, 30), (1, "c", "h", "w")):
        program = windows(shape, (3, 3), 2, 1, 1, ReduceKind.SUM, mean=True, residual=True)
        check(program, [random_like((1, 3, 14, 30), DType.F32, 0), random_like((1, 3, 7, 15), DType.F32, 1)], caps)


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
@pytest.mark.parametrize("caps", MACHINES)
def test_halves(dtype: DType, caps: Capabilities) -> None:
    data = from_float64(np.random.default_rng(0).standard_normal((1, 3, 9, 35)), dtype)
    check(windows((1, 3, 9, 35), (3, 3), 2, 1, 1, dtype=dtype), [data], caps)


def test_what_is_no_row_of_windows_is_declined() -> None:
    def reason(program: Program) -> str:
        with pytest.raises(UnsupportedError) as declined:
            plan_for(program, AVX512, VARIANTS)
        return str(declined.value)

    assert "33 taps" in reason(windows((1, 1, 8, 80), (1, 33)))
    assert "5 columns apart" in reason(windows((1, 1, 8, 80), (3, 3), 5))
    assert "changes the result" in reason(windows((1, 1, 8, 80), (3, 3), 1, 1, 1, other=0.0))
    p = ProgramBuilder()
    x = p.input(4, 40)
    turned = load(0, call("add", axis(1), axis(2)), axis(0), dtype=DType.F32)
    assert "no neighbours in memory" in reason(
        rows((40, 3), (2,), [x], [Stage(kind=ReduceKind.SUM, body=turned)], [(acc(0), True)], p)
    )


def test_it_is_chosen_for_planes() -> None:
    chosen = plan_for(windows((1, 64, 56, 56), (3, 3), 2, 1, 1), AVX512, [*COLUMNS, *VARIANTS])
    assert chosen.kernels[0].symbol.startswith("xy_windows")
