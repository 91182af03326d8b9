"""Nodes for matrix products that a warp computes together, of 16-bit elements or tf32, in f32 (NVIDIA's mma.sync and ldmatrix).

A fragment is a matrix spread over the 32 threads of a warp: 8 x 8 elements as one pair in each thread, thread t holding row
t / 4, columns 2 (t % 4) and the next (PTX ISA, "ldmatrix" and "Matrix Fragments for mma.m16n8k16").

    LoadFragments   four matrices of 8 x 8 from shared memory. Thread t says where row t % 8 of matrix t / 8 is: 8 elements, 16
                    bytes, aligned. ``transposed``: each matrix is handed out turned round
    FragmentDot     c (16 x 8, f32) += a (16 x 16) times b (16 x 8). a: the four matrices (rows 0 to 7, columns 0 to 7),
                    (8 to 15, 0 to 7), (0 to 7, 8 to 15), (8 to 15, 8 to 15). b: rows 0 to 7 and 8 to 15, each turned round, so
                    that a pair is of neighbouring rows. c: (t / 4, 2 (t % 4)), the column after it, and both 8 rows further down

Of f32 a row of 16 bytes has four elements, of which a thread holds one: thread t row t / 4, column t % 4 ("Matrix Fragments for
mma.m16n8k8"). What is called a pair above is one element then, 16 of k are 8, and nothing can be turned round. FragmentDot takes
f32 as tf32 (8 bits of exponent, 10 behind the leading one): what its bits below that are is not defined to be ignored, so they
are rounded away before (`math_library.round_tf32`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Statement, Var

SIDE = 8  # rows of a matrix of LoadFragments
ROW_BYTES = 16  # of a row of it
DTYPES = (DType.F16, DType.BF16, DType.F32)


def depth_of(dtype: DType) -> int:
    """How many elements a FragmentDot sums: two rows of fragments."""
    return 2 * ROW_BYTES // dtype.bytes


@dataclass(frozen=True, slots=True)
class LoadFragments(Statement):
    """Declare ``variables``, four i32 of pairs (or of bits of an f32); see the module's docstring."""

    variables: tuple[Var, ...]
    pointer: Pointer
    index: Rvalue
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class FragmentDot(Statement):
    """``c``: four mutable f32, ``a``: four i32, ``b``: two i32, which are ``dtype``."""

    c: tuple[Var, ...]
    a: tuple[Rvalue, ...]
    b: tuple[Rvalue, ...]
    dtype: DType
