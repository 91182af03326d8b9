"""BlockGemm by itself: what it means, and what it cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.tracea.kernels.block_programs import BlockCase, build, op_of
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Product
from xyntra_ep.tracea.core_ir.work import sized_work
from xyntra_ep.tracea.optimizer.tuning_cache import signature


def test_the_first_integer_of_a_byte_is_in_its_low_bits() -> None:
    program, [a], [q, scales, zeros] = build(BlockCase(m=1, k=3, n=2, block=16, zeros=DType.U8, symbolic=False))
    a[:] = [1, 10, 100]
    q[:, :2] = [[0x21, 0xF3], [0x00, 0x00]]
    scales[:], zeros[:] = [[2], [0.5]], [[0x01], [0xF4]]  # the high bits belong to a second block, which is not there
    [y] = interpret(program, [a], [q, scales, zeros])
    assert np.array_equal(y, [[2 * (0 + 10 + 200), 0.5 * -4 * 111]])


def test_eight_bits_without_zero_points_are_around_128() -> None:
    program, [a], [q, scales] = build(BlockCase(m=1, k=2, n=1, block=16, bits=8, symbolic=False))
    a[:], scales[:], q[:, :2] = [1, 10], 1, [129, 126]
    assert np.array_equal(interpret(program, [a], [q, scales])[0], [[1 - 20]])


def test_rows_in_int8_have_a_scale_for_each_block() -> None:
    program, [a], [q, scales] = build(BlockCase(m=3, k=40, n=2, symbolic=False, product=Product.INT8))
    a[:] = 0
    a[0, 3], a[0, 7], a[0, 35] = -254, 1.2, 0.01  # a step of 2 in the first block, all of the second
    a[1, 5], a[1, 32] = 1e-45, 3
    a[2, 0], a[2, 39] = 1, np.inf
    q[:], scales[:] = 0x99, 1  # all weights are 1
    [y] = interpret(program, [a], [q, scales])
    assert np.allclose(y[0], -254 + 2 + 0.01, rtol=1e-6) and np.allclose(y[1], 3, rtol=1e-6) and np.isnan(y[2]).all()


def test_shapes_that_do_not_fit_are_named() -> None:
    op = op_of(build(BlockCase(m=2, k=40, n=3, zeros=DType.U8, symbolic=False))[0])
    assert not [*op.problems()]
    a, q, scales, zeros = op.inputs
    for i, (operand, what) in enumerate(((a, "a"), (q, "q"), (scales, "the scales"), (zeros, "the zero points"))):
        inputs = [*op.inputs]
        inputs[i] = replace(operand, shape=(7, *operand.shape[1:]))
        assert [text.startswith(f"{what} has shape") for text in replace(op, inputs=tuple(inputs)).problems()] == [True]


def test_work_and_what_it_is_tuned_by() -> None:
    four, eight = (op_of(build(BlockCase(m=2, k=64, n=32, bits=bits, symbolic=False))[0]) for bits in (4, 8))
    work = sized_work(four)
    assert evaluate(work.flops, {}) == 2 * 2 * 64 * 32
    assert evaluate(work.bytes, {}) == 4 * 2 * 64 + 32 * 32 + 4 * 2 * 32 + 4 * 2 * 32
    assert signature(four, frozenset()) != signature(eight, frozenset()) and signature(four, frozenset()).endswith("4 32")
