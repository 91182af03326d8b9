"""The interior of a row against the interpreter: paddings of symbolic and of known extents, edges of vectors, views without
elements, elements that are repeated."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.machine import WIDEST
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, permuted, pointwise, special_floats
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, ValueKind
from xyntra_ep.tracea.kernels.cpu.pointwise.vector import VARIANTS
from xyntra_ep.tracea.kernels.cpu.shared.row_units import BLOCK
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
Extent = int | str
WIDTHS = (1, 2, 7, 8, 9, 15, 16, 17, 33, 100)


def check(program: Program, inputs: list[np.ndarray], caps: Capabilities) -> None:
    check_program(program, inputs, [], caps, 2e-6, variants=VARIANTS)


def edge(position: Expr, n: Size) -> Expr:
    return call("max", call("min", position, size(n - 1)), const(0))


def reflect(position: Expr, n: Size) -> Expr:
    mirrored = call("abs", position)
    return call("where", call("lt", mirrored, size(n)), mirrored, call("sub", size(2 * n - 2), mirrored))


def wrap(position: Expr, n: Size) -> Expr:
    return call("mod", position, size(n))


MODES: dict[str, Callable[[Expr, Size], Expr]] = {"edge": edge, "reflect": reflect, "wrap": wrap}


def padded(mode: str, before: int, after: int, height: Extent = "h", width: Extent = "w") -> Program:
    """Both axes are padded alike."""
    p = ProgramBuilder()
    x = p.input(2, height, width)
    extents = x.shape[1:]
    positions = [call("sub", axis(1 + i), const(before)) for i in range(2)]
    whole = [n + before + after for n in extents]
    if mode == "constant":
        within = [
            call("and", call("le", const(0), at), call("lt", at, size(n))) for at, n in zip(positions, extents, strict=True)
        ]
        value = load(0, axis(0), *positions, dtype=DType.F32)
        body = call("where", call("and", *within), value, const(-1.0))
    else:
        index = [MODES[mode](at, n) for at, n in zip(positions, extents, strict=True)]
        body = call("neg", load(0, axis(0), *index, dtype=DType.F32))
    return pointwise((2, *whole), [x], body, p)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("mode", ["constant", *MODES])
def test_padding_of_any_width(mode: str, caps: Capabilities) -> None:
    for before, after in ((1, 1), (0, 3), (4, 0), (6, 6)):
        program = padded(mode, before, after)
        for width in WIDTHS:
            if mode == "reflect" and max(before, after) >= width:
                continue
            height = max(before, after) + 1
            check(program, [special_floats((2, height, width), width)], caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("mode", ["constant", *MODES])
def test_padding_of_known_widths(mode: str, caps: Capabilities) -> None:
    for width in (5, 16, 33):
        check(padded(mode, 2, 3, 4, width), [special_floats((2, 4, width), width)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_of_nothing_the_padding_is_left(caps: Capabilities) -> None:
    """A view without elements is read nowhere, whichever of its axes has none."""
    program = padded("constant", 9, 20)
    for shape in ((2, 0, 40), (2, 3, 0), (2, 0, 0)):
        check(program, [np.zeros(shape, np.float32)], caps)


def test_rows_longer_than_a_block() -> None:
    for width in (BLOCK - 1, BLOCK, 2 * BLOCK + 5):
        check(padded("reflect", 3, 2), [random_like((2, 4, width), DType.F32, 0)], WIDEST)


def test_a_row_that_runs_over_several_units() -> None:
    check(padded("reflect", 1, 1), [random_like((2, 900, 30), DType.F32, 0)], WIDEST)


@pytest.mark.parametrize("mode", ["constant", *MODES])
def test_the_interior_is_read_as_vectors(mode: str) -> None:
    """Before the edges nothing is gathered, compared or clamped in a vector."""
    [kernel] = plan_for(padded(mode, 1, 1), AVX512, VARIANTS).kernels
    interior = re.search(r"for \(i64 i\w* = inner_.*?\n(.*?)\n {6,8}}", kernel.text, re.DOTALL)
    assert interior is not None
    assert "gather" not in interior[1] and "i64x16" not in interior[1]


@pytest.mark.parametrize("caps", MACHINES)
def test_what_a_condition_leaves_out_does_not_bound_the_interior(caps: Capabilities) -> None:
    """One after the other along the lanes: the first part is the interior, the second is read behind it."""
    p = ProgramBuilder()
    x, y = p.input(3, "a"), p.input(3, "b")
    a, b = x.shape[1], y.shape[1]
    second = load(1, axis(0), call("sub", axis(1), size(a)), dtype=DType.F32)
    body = call("where", call("lt", axis(1), size(a)), here(x, 0), second)
    program = pointwise((3, a + b), [x, y], body, p)
    for widths in ((17, 40), (0, 33), (33, 0), (1, 1)):
        check(program, [random_like((3, n), DType.F32, i) for i, n in enumerate(widths)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_a_lane_axis_that_runs_backwards(caps: Capabilities) -> None:
    """Below a clamp: the interior ends where the index does."""
    p = ProgramBuilder()
    x = p.input(2, "n")
    n = x.shape[1]
    at = call("sub", size(n + 2), axis(1))
    program = pointwise((2, n + 5), [x], load(0, axis(0), edge(at, n), dtype=DType.F32), p)
    for width in WIDTHS:
        check(program, [random_like((2, width), DType.F32, width)], caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("times", [2, 3, 4, 8, 32])
def test_repeated_elements(times: int, caps: Capabilities) -> None:
    """A whole multiple of an image, and one with something of its own size added."""
    for height, width in ((2, 1), (3, 7), (1, 8), (2, 17), (1, 33)):
        for known in (True, False):
            p = ProgramBuilder()
            x = p.input(2, *((height, width) if known else ("h", "w")))
            h, w = x.shape[1:]
            y = p.value(ValueKind.INPUT, 2, h * times, w * times)
            index = [call("div", axis(i), const(times)) for i in (1, 2)]
            body = call("add", load(0, axis(0), *index, dtype=DType.F32), here(y, 1))
            program = pointwise((2, h * times, w * times), [x, y], body, p)
            data = [special_floats((2, height, width)), random_like((2, height * times, width * times), DType.F32, 1)]
            check(program, data, caps)


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.I64, DType.U8, DType.BOOL])
def test_repeated_and_padded_elements_of_every_type(dtype: DType) -> None:
    p = ProgramBuilder()
    x = p.input("h", "w", dtype=dtype)
    h, w = x.shape
    doubled = load(0, axis(0), call("div", axis(1), const(2)), dtype=dtype)
    program = pointwise((h, w * 2), [x], doubled, p, dtype)
    check(program, [random_like((3, 21), dtype, 0)], WIDEST)
    p = ProgramBuilder()
    x = p.input("h", "w", dtype=dtype)
    h, w = x.shape
    mirrored = load(0, axis(0), reflect(call("sub", axis(1), const(3)), w), dtype=dtype)
    check(pointwise((h, w + 6), [x], mirrored, p, dtype), [random_like((3, 21), dtype, 0)], WIDEST)


def test_repeated_elements_of_a_strided_view() -> None:
    """Neighbours that are apart in memory are gathered."""
    p = ProgramBuilder()
    x = permuted(p.input("w", "h"), (1, 0))
    h, w = x.shape
    body = load(0, axis(0), call("div", axis(1), const(2)), dtype=DType.F32)
    check(pointwise((h, w * 2), [x], body, p), [random_like((21, 3), DType.F32, 0)], WIDEST)


def resized(mode: str) -> Program:
    """Linear interpolation between two neighbours along the lanes, at positions that a division gives."""
    p = ProgramBuilder()
    x = p.input(2, "h", "w")
    h, w = x.shape[1:]
    to = w * 2 if mode == "larger" else w
    at = call("div", call("mul", call("to_f", axis(2)), const(0.5 if mode == "larger" else 3.0)), const(1.0))
    low = edge(call("to_i", at), w)
    high = edge(call("add", low, const(1)), w)
    weight = call("div", call("to_f", call("sub", high, low)), call("add", call("to_f", axis(2)), const(2.0)))
    near, far = (load(0, axis(0), axis(1), i, dtype=DType.F32) for i in (low, high))
    body = call("add", call("mul", near, call("sub", const(1.0), weight)), call("mul", far, weight))
    return pointwise((2, h, to), [x], body, p)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("mode", ["larger", "further apart"])
def test_what_depends_on_the_lane_alone_is_kept_for_a_run(mode: str, caps: Capabilities) -> None:
    program = resized(mode)
    for height, width in ((3, 1), (1, 9), (5, 17), (40, 200), (0, 5), (2, BLOCK + 3)):
        check(program, [random_like((2, height, width), DType.F32, 0)], caps)
    [kernel] = plan_for(program, caps, VARIANTS).kernels
    assert "per_lane" in kernel.text


@pytest.mark.parametrize("caps", MACHINES)
def test_positions_that_are_given_are_kept_for_a_run(caps: Capabilities) -> None:
    """Clamped once for the rows of a run; nothing is read behind the last of them."""
    p = ProgramBuilder()
    x, places = p.input(2, "h", 40), p.input("w", dtype=DType.I64)
    h, w = x.shape[1], places.shape[0]
    at = load(1, axis(2), dtype=DType.I64)
    program = pointwise((2, h, w), [x, places], call("neg", load(0, axis(0), axis(1), at, dtype=DType.F32)), p)
    for height, width in ((3, 1), (5, 17), (70, 33), (4, 200), (2, BLOCK + 3)):
        given = np.random.default_rng(width).integers(0, 40, width)
        check(program, [random_like((2, height, 40), DType.F32, 0), given], caps)
    [kernel] = plan_for(program, caps, VARIANTS).kernels
    assert "per_lane" in kernel.text


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("reach", [1, 7, 15, 16, 31, 32, 33, 1000])
def test_gathers_of_what_is_near_and_of_what_is_not(reach: int, caps: Capabilities) -> None:
    """In every order: rising, falling, and with lanes before the first or behind the last one."""
    p = ProgramBuilder()
    x, ids = p.input("n"), p.input("m", dtype=DType.I64)
    body = load(0, load(1, axis(0), dtype=DType.I64), dtype=DType.F32)
    program = pointwise((ids.shape[0],), [x, ids], body, p)
    data = special_floats((1100,))
    random = np.random.default_rng(reach).integers(0, reach + 1, 160)
    for order in (np.sort(random), np.sort(random)[::-1].copy(), random):
        for start in (0, 1100 - reach - 1):  # the last one reads up to the end of the buffer
            check(program, [data, order.astype(np.int64) + start], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_what_is_the_same_in_all_lanes_is_not_read_of_a_view_without_elements(caps: Capabilities) -> None:
    """It is read once for a row, before the row's interior is known to be empty."""
    p = ProgramBuilder()
    column, x = p.input("a", 1), p.input("h", "w")
    (h, w), a = x.shape, column.shape[0]
    row = call("sub", axis(0), const(1))
    within = call("and", call("le", const(0), row), call("lt", row, size(a)))
    below = call("where", within, load(0, row, const(0), dtype=DType.F32), const(7.0))
    mirrored = load(1, axis(0), reflect(call("sub", axis(1), const(1)), w), dtype=DType.F32)
    program = pointwise((h, w + 2), [column, x], call("add", below, mirrored), p)
    for rows in (0, 1, 3):
        check(program, [random_like((rows, 1), DType.F32, 0), random_like((2, 40), DType.F32, 1)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_repeated_elements_that_only_the_edges_read(caps: Capabilities) -> None:
    p = ProgramBuilder()
    y, x = p.input("h", "v"), p.input("h", "w")
    (h, v), w = y.shape, x.shape[1]
    first = load(0, axis(0), edge(call("sub", axis(1), const(1)), v), dtype=DType.F32)
    doubled = load(1, axis(0), call("div", axis(1), const(2)), dtype=DType.F32)
    program = pointwise((h, w * 2), [y, x], call("where", call("lt", axis(1), const(21)), first, doubled), p)
    for width in (5, 20, 40, 64):
        check(program, [random_like((3, 50), DType.F32, 0), random_like((3, width), DType.F32, 1)], caps)
