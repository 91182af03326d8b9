from __future__ import annotations

import dataclasses

import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.recurrences import recurrence
from xyntra_ep.tracea.core_ir.dims import evaluate, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const, load
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    NoSoftmax,
    Operand,
    Pointwise,
    Product,
    ReduceKind,
    RowOutput,
    RowReduce,
    Stage,
)
from xyntra_ep.tracea.core_ir.ops.attention import SOFTMAX_FLOPS
from xyntra_ep.tracea.core_ir.work import SizedWork, sized_work


def at(work: SizedWork, **sizes: int) -> tuple[int, int]:
    return evaluate(work.flops, sizes), evaluate(work.bytes, sizes)


def dense(*shape: int | str, value: int = 0, dtype: DType = DType.F32) -> Operand:
    sizes = tuple(symbol(s) if isinstance(s, str) else s for s in shape)
    strides = tuple(1 for _ in shape)  # any but 0
    return Operand(value=value, dtype=dtype, shape=sizes, strides=strides)


@pytest.mark.parametrize(("product", "weight_bytes"), [(Product.F32, 4), (Product.BF16, 2), (Product.INT8W, 1)])
def test_a_product_reads_its_weights_in_the_width_it_keeps_them(product: Product, weight_bytes: int) -> None:
    op = Gemm(inputs=(dense("m", 64), dense(64, 32, value=1)), epilogue=acc(0), output=dense("m", 32, value=2), product=product)
    assert at(sized_work(op, {1}), m=5) == (2 * 5 * 64 * 32, 4 * (5 * 64 + 5 * 32) + weight_bytes * 64 * 32)
    assert at(sized_work(op), m=5)[1] == 4 * (5 * 64 + 64 * 32 + 5 * 32), "what a run computes is as wide as it is"


def test_a_convolution_has_its_taps_in_the_group() -> None:
    x, w, y = dense(1, 8, 14, 14), dense(16, 4, 3, 3, value=1), dense(1, 16, 14, 14, value=2)
    op = Conv(inputs=(x, w), strides=(1, 1), dilations=(1, 1), pads=(1, 1), group=2, epilogue=acc(0), output=y)
    assert at(sized_work(op)) == (2 * 16 * 14 * 14 * 36, 4 * (8 * 196 + 16 * 36 + 16 * 196))


def test_attention_is_two_products_and_a_softmax() -> None:
    q, k, v, y = (dense(1, 2, n, d, value=i) for i, (n, d) in enumerate([("s", 8), ("t", 8), ("t", 4), ("s", 4)]))
    op = Attention(inputs=(q, k, v), score=acc(0), no_softmax=NoSoftmax.NAN, output=y)
    assert at(sized_work(op), s=3, t=5) == (2 * 3 * 5 * (2 * (8 + 4) + SOFTMAX_FLOPS), 4 * 2 * (3 * 8 + 5 * 8 + 5 * 4 + 3 * 4))


def test_a_recurrence_multiplies_in_every_step() -> None:
    [op] = recurrence("lstm", 8, outputs=(True, False, False), initial=False).ops
    calls = 4 * 2 + 3 + 2  # a sum and an activation for each gate; two products and a sum; tanh and product
    steps = 5 * 6 * 8
    assert at(sized_work(op), t=5, b=6) == (steps * (2 * 4 * 8 + calls), 4 * (4 * 64 + 4 * steps + steps))


def test_a_table_is_read_where_it_is_looked_up_and_a_broadcast_once() -> None:
    table, bias = dense(30_000, 64), dataclasses.replace(dense(3, 64, value=1), strides=(0, 1))
    row = call("add", axis(0), const(7))
    body = call("add", load(0, row, axis(1), dtype=DType.F32), load(1, axis(0), axis(1), dtype=DType.F32))
    op = Pointwise(domain=(3, 64), inputs=(table, bias), bodies=(body,), outputs=(dense(3, 64, value=2),))
    assert at(sized_work(op)) == (3 * 64, 4 * (3 * 64 + 64 + 3 * 64)), "one addition: indices are no work"


def test_rows_count_each_stage_and_what_is_done_once_a_row_once() -> None:
    x = dense("r", 10)
    here = load(0, axis(0), axis(1), dtype=DType.F32)
    stages = (Stage(kind=ReduceKind.SUM, body=here), Stage(kind=ReduceKind.SUM, body=call("mul", here, here)))
    outputs = (
        RowOutput(body=call("sub", here, acc(0)), operand=dense("r", 10, value=1), per_row=False),
        RowOutput(body=call("sqrt", acc(1)), operand=dense("r", value=2), per_row=True),
    )
    op = RowReduce(outer=x.shape[:1], inner=x.shape[1:], inputs=(x,), stages=stages, outputs=outputs)
    assert at(sized_work(op), r=3) == (3 * (10 * (2 + 1 + 1) + 1), 4 * 3 * (10 + 10 + 1))


def test_every_op_of_a_program_has_work() -> None:
    p = ProgramBuilder()
    x = p.input("s", 4)
    p.output(p.add(p.gemm(x, p.constant(4, 6)), p.constant(6)))
    ops: list[CoreOp] = p.program.ops
    assert all(min(at(sized_work(op), s=2)) > 0 for op in ops)
