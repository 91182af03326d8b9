"""Products of small matrices by the threads of a warp together, whichever GPU's: a node, and a table of the shapes it has.

A matrix unit multiplies a (m x k) by b (k x n) and adds that to c (m x n, f32). Each lane has some elements of each, in an array
of its own; which ones is the shape's `LaneMap`: a number made of the lane (its lowest digits) and of the element's place in the
lane's array (the digits above) is dealt out to the axes of the matrix. Where lanes hold the same element, a digit is of the axis
``copy``, which no matrix has.

    TakePacket    neighbours, 16 bytes at most, from memory to a thread's own array of the same type, as they are
    MatrixDot     c += a times b, by all threads of a warp. Each is a thread's own array, from a place on

All elements of a lane's part of a are neighbours along one axis, and so are those of b, perhaps another: tiles lie in shared
memory in rows along it (`contiguous`). Sums may be taken in any order: where the axis is k, a lane may read more neighbours than
one product takes, if it does so of both operands.

A shape is added by a row of `MATRIX_SHAPES`, the instruction's spelling in the target's `Dialect.matrix_dots`, and the GPUs that
have it (`capabilities.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.lane_map import Digit, LaneMap
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Statement

COPY = "copy"  # the axis of lanes that hold the same elements


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixShape:
    """``name``: of the instruction, for dialects. ``dtype``: of a and b. ``rounded``: an f32 is taken as tf32, whose bits below
    must have been rounded away."""

    name: str
    dtype: DType
    m: int
    n: int
    k: int
    lanes: int
    a: LaneMap
    b: LaneMap
    c: LaneMap
    rounded: bool = False

    def held(self, part: LaneMap) -> int:
        """How many elements of ``part`` (a, b or c) a lane has."""
        return part.threads // self.lanes

    def place(self, part: LaneMap, lane: int, element: int) -> dict[str, int]:
        """Where an element of a lane is in the matrix, by axis."""
        return part.at(lane + self.lanes * element)

    def of_lanes(self, part: LaneMap) -> LaneMap:
        """Where a lane's first element is."""
        return _split(part, self.lanes)[0]

    def of_elements(self, part: LaneMap) -> LaneMap:
        """How far from it the others are."""
        return _split(part, self.lanes)[1]

    def contiguous(self, part: LaneMap) -> str:
        """The axis along which a lane's elements of an operand are neighbours; k where there is one alone."""
        axes = {digit.axis for digit in self.of_elements(part).digits}
        assert len(axes) <= 1 and part is not self.c, "neighbours lie along one axis"
        return axes.pop() if axes else "k"


def _split(part: LaneMap, lanes: int) -> tuple[LaneMap, LaneMap]:
    """The digits of a lane, and those of its elements."""
    count, below = 0, 1
    while below < lanes:
        below *= part.digits[count].count
        count += 1
    assert below == lanes, f"{part}: a digit is of lanes and of elements"
    return LaneMap(part.digits[:count]), LaneMap(part.digits[count:])


@dataclass(frozen=True, slots=True)
class TakePacket(Statement):
    """Copy ``count`` neighbours from ``index`` on to the thread's own array ``target``, from its beginning on."""

    target: Pointer
    pointer: Pointer
    index: Rvalue
    count: int


@dataclass(frozen=True, slots=True)
class MatrixDot(Statement):
    """See the module's docstring; each a thread's own array, or such an array from a place on."""

    shape: MatrixShape
    c: Pointer
    a: Pointer
    b: Pointer


# -- AMD's CDNA: v_mfma, by waves of 64 ("AMD Instinct MI300 Instruction Set Architecture", chapter "Matrix Arithmetic
# Instructions"; AMD's Matrix Instruction Calculator)


def _mfma(name: str, dtype: DType, side: int, k: int, rounded: bool = False) -> MatrixShape:
    """Of ``side`` rows and columns: a lane has neighbours along k of one row, or column; of c four rows below each other at a
    time."""
    groups = 64 // side
    held = k // groups
    along = (Digit("k", groups, step=held), *((Digit("k", held),) if held > 1 else ()))
    further = (Digit("m", side // (4 * groups), step=4 * groups),) if side > 4 * groups else ()
    return MatrixShape(
        name=name,
        dtype=dtype,
        m=side,
        n=side,
        k=k,
        lanes=64,
        a=LaneMap((Digit("m", side), *along)),
        b=LaneMap((Digit("n", side), *along)),
        c=LaneMap((Digit("n", side), Digit("m", groups, step=4), Digit("m", 4), *further)),
        rounded=rounded,
    )


# -- AMD's RDNA 3: v_wmma, by waves of 32 ("RDNA3 Instruction Set Architecture", section "Wave Matrix Multiply Accumulate")


def _wmma(name: str, dtype: DType) -> MatrixShape:
    """The upper half of the lanes holds the same elements of a and b as the lower; of c they have the odd rows."""
    return MatrixShape(
        name=name,
        dtype=dtype,
        m=16,
        n=16,
        k=16,
        lanes=32,
        a=LaneMap((Digit("m", 16), Digit(COPY, 2), Digit("k", 16))),
        b=LaneMap((Digit("n", 16), Digit(COPY, 2), Digit("k", 16))),
        c=LaneMap((Digit("n", 16), Digit("m", 2), Digit("m", 8, step=2))),
    )


MATRIX_SHAPES: Mapping[str, MatrixShape] = {
    shape.name: shape
    for shape in (
        _mfma("mfma_f32_32x32x8f16", DType.F16, 32, 8),
        _mfma("mfma_f32_16x16x16f16", DType.F16, 16, 16),
        _mfma("mfma_f32_32x32x8bf16_1k", DType.BF16, 32, 8),
        _mfma("mfma_f32_16x16x16bf16_1k", DType.BF16, 16, 16),
        _mfma("mfma_f32_32x32x2f32", DType.F32, 32, 2),
        _mfma("mfma_f32_16x16x4f32", DType.F32, 16, 4),
        _mfma("mfma_f32_32x32x4_xf32", DType.F32, 32, 4, rounded=True),
        _mfma("mfma_f32_16x16x8_xf32", DType.F32, 16, 8, rounded=True),
        _wmma("wmma_f32_16x16x16_f16_w32", DType.F16),
        _wmma("wmma_f32_16x16x16_bf16_w32", DType.BF16),
    )
}


# -- Apple's: simdgroup_multiply_accumulate of 8 x 8, by 32 lanes. Apple documents no layout; this is the one that its library MLX
# relies on (steel/gemm/mma.h of mlx)


def _simdgroup(dtype: DType) -> MatrixShape:
    """A lane has two neighbours of a row of each matrix: of b along n."""

    def matrix(row: str, column: str) -> LaneMap:
        lanes = (Digit(column, 2, step=2), Digit(row, 4), Digit(column, 2, step=4), Digit(row, 2, step=4))
        return LaneMap((*lanes, Digit(column, 2)))

    name = f"simdgroup_8x8_{dtype}"
    return MatrixShape(
        name=name, dtype=dtype, m=8, n=8, k=8, lanes=32, a=matrix("m", "k"), b=matrix("k", "n"), c=matrix("m", "n")
    )


SIMDGROUP_SHAPES: Mapping[DType, MatrixShape] = {dtype: _simdgroup(dtype) for dtype in (DType.F16, DType.F32)}
