"""The table of matrix units' shapes: lane maps against what documents say in formulas, each element once; and the rules of the
nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import COPY, MATRIX_SHAPES, MatrixShape
from xyntra_ep.tracea.semantic_ir.nodes import Const, Offset, f32, index, lt

SHAPES = list(MATRIX_SHAPES.values())
F16 = MATRIX_SHAPES["mfma_f32_32x32x8f16"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_element_is_held_once(shape: MatrixShape) -> None:
    """By one lane in one place of its array, or by as many lanes as have copies."""
    for part, rows, columns in ((shape.a, "m", "k"), (shape.b, "k", "n"), (shape.c, "m", "n")):
        copies = part.extent(COPY)
        held = Counter(
            (place[rows], place[columns])
            for lane in range(shape.lanes)
            for place in (shape.place(part, lane, element) for element in range(shape.held(part)))
        )
        sizes = {"m": shape.m, "n": shape.n, "k": shape.k}
        wanted = {(r, c): copies for r in range(sizes[rows]) for c in range(sizes[columns])}
        assert held == wanted
        assert shape.held(part) * shape.lanes == len(wanted) * copies


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_operands_are_neighbours_along_one_axis(shape: MatrixShape) -> None:
    for part in (shape.a, shape.b):
        axis = shape.contiguous(part)
        for element in range(shape.held(part)):
            assert shape.of_elements(part).at(element).get(axis, 0) == element


def _rows_of_mfma(side: int) -> Callable[[int, int], tuple[int, int]]:
    """AMD's Matrix Instruction Calculator of v_mfma_f32_32x32x8f16 and 16x16x16f16: D[i][j] with j = lane % side and
    i = 8 floor(GPR / 4) + 4 floor(lane / 32) + GPR % 4, or 4 floor(lane / 16) + GPR."""
    if side == 32:
        return lambda lane, gpr: (8 * (gpr // 4) + 4 * (lane // 32) + gpr % 4, lane % 32)
    return lambda lane, gpr: (4 * (lane // 16) + gpr, lane % 16)


@pytest.mark.parametrize("shape", [s for s in SHAPES if s.name.startswith("mfma")], ids=lambda shape: shape.name)
def test_mfma_as_the_calculator_has_it(shape: MatrixShape) -> None:
    """A[i][k]: i = lane % side, k = held floor(lane / side) + place; of B the same with its column."""
    place_of = _rows_of_mfma(shape.m)
    for lane in range(64):
        for i in range(shape.held(shape.c)):
            assert shape.place(shape.c, lane, i) == dict(zip("mn", place_of(lane, i), strict=True))
        for i in range(shape.held(shape.a)):
            k = shape.held(shape.a) * (lane // shape.m) + i
            assert shape.place(shape.a, lane, i) == {"m": lane % shape.m, "k": k}
            assert shape.place(shape.b, lane, i) == {"n": lane % shape.n, "k": k}


@pytest.mark.parametrize("shape", [s for s in SHAPES if s.name.startswith("wmma")], ids=lambda shape: shape.name)
def test_wmma_as_its_document_has_it(shape: MatrixShape) -> None:
    """GPUOpen, "How to accelerate AI applications on RDNA 3 using WMMA": lanes 16 to 31 repeat a and b of lanes 0 to 15; row
    2 GPR + floor(lane / 16) and column lane % 16 of the result."""
    for lane in range(32):
        for i in range(8):
            place = shape.place(shape.c, lane, i)
            assert (place["m"], place["n"]) == (2 * i + lane // 16, lane % 16)
        for i in range(16):
            assert shape.place(shape.a, lane, i)["m"] == lane % 16 and shape.place(shape.b, lane, i)["k"] == i


def product(
    *, held: int = 4, dtype: DType = DType.F16, sums: int = 16, divergent: bool = False, at: int = 0, source: DType = DType.F16
) -> GpuBuilder:
    b = GpuBuilder("f", threads=64)
    y = b.buffer("y", DType.F32, writable=True)
    tile = b.shared("tile", source, 64 * 4)
    for i in range(4):
        b.store(tile, b.thread * 4 + i, Const(f32(1), 1.0))
    b.barrier()
    x, c = b.array("x", dtype, held), b.array("c", DType.F32, sums)
    for i in range(sums):
        b.store(c, i, Const(f32(1), 0.0))
    b.take_packet(x, tile, b.thread * 4, 4)
    if divergent:
        with b.when(lt(b.thread, 32)):
            b.matrix_dot(F16, c, x, x)
    else:
        b.matrix_dot(F16, c, Offset(x, index(at)), x)
    b.store(y, b.thread, b.load(c, 0))
    return b


def test_a_product_is_legal() -> None:
    check_kernel(product().finish()[0])


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"held": 2}, "x_? has no 4 elements from 0 on"),
        ({"at": 2}, "x_? has no 4 elements from 2 on"),
        ({"sums": 8}, "c_? has no 16 elements"),
        ({"dtype": DType.BF16, "source": DType.BF16}, "an array of bf16 where f16 is wanted"),
        ({"dtype": DType.BF16}, "an array of bf16 where f16 is wanted"),
        ({"divergent": True}, "not all threads of the warp come here"),
    ],
)
def test_what_is_wrong_is_refused(wrong: dict[str, object], why: str) -> None:
    with pytest.raises(InvariantError, match=why):
        check_kernel(product(**wrong).finish()[0])  # type: ignore[arg-type]  # of several types
