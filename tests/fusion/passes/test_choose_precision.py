"""Lower precision: which products are marked, which temporaries are stored narrow, and that the result stays near."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.models.alternatives import one_island
from tests.support.models.model_text import normal, parse
from tests.tracea.kernels.block_programs import BlockCase, build, op_of
from xyntra_ep.fusion.passes.choose_precision import choose_precision
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import (
    PRODUCT_OF,
    Attention,
    Conv,
    Gemm,
    Pointwise,
    Product,
    Program,
    RowReduce,
    ValueKind,
)
from xyntra_ep.tracea.planning.legality import check_program

K = 32
RESIDUAL = """(float[b, s, 32] x) => (float[b, s, 32] y) {
    n = LayerNormalization(x, scale)
    h = MatMul(n, w1)
    g = Relu(h)
    d = MatMul(g, w2)
    y = Add(d, n)
}"""
CONVOLUTIONS = """(float[1, 16, 8, 8] x) => (float[1, 16] y) {
    a = Conv(x, w1)
    b = Relu(a)
    c = Conv(b, w2)
    d = Add(c, b)
    e = Conv(d, w1)
    f = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(e)
    g = Conv(f, w2)
    m = GlobalAveragePool(g)
    y = Flatten(m)
}"""


def residual() -> Program:
    weights = {"scale": normal(K), "w1": normal(K, 48, seed=1), "w2": normal(48, K, seed=2)}
    return one_island(parse(RESIDUAL, **weights)).program


def convolutions(w: tuple[int, ...] = (16, 16, 1, 1)) -> Program:
    return one_island(parse(CONVOLUTIONS, w1=normal(*w), w2=normal(*w, seed=1))).program


def stored(program: Program, operand: int) -> DType:
    return program.values[operand].dtype


def products(program: Program) -> list[Gemm | Conv | Attention]:
    return [op for op in program.ops if isinstance(op, (Gemm, Conv, Attention))]


def test_fp32_changes_nothing() -> None:
    program, same = residual(), residual()
    choose_precision(program, Product.F32, halves={DType.BF16})
    assert program.ops == same.ops and program.values == same.values


def test_a_model_that_allows_to_round_is_rounded_where_that_is_fast() -> None:
    def found(*, allows: Product = Product.BF16, halves: Collection[DType] = (DType.BF16,), **more: Any) -> Product:
        program, _, _ = build(BlockCase(m=3, k=64, n=8))
        program.ops[0] = replace(op_of(program), allows=allows)
        choose_precision(program, more.pop("product", Product.F32), halves=halves, **more)
        return op_of(program).product

    assert found() is Product.BF16 and found(allows=Product.F32) is Product.F32
    assert found(halves=()) is Product.F32 and found(halves=(DType.F16,)) is Product.F32 and found(strict=True) is Product.F32
    assert found(product=Product.F16, halves=(DType.F16, DType.BF16)) is Product.F16
    assert found(product=Product.BF16, allows=Product.F32) is Product.BF16
    assert found(allows=Product.INT8, in_bytes=True) is found(allows=Product.INT8, in_bytes=True, halves=()) is Product.INT8
    assert found(allows=Product.INT8) is found(in_bytes=True) is Product.BF16
    assert found(allows=Product.F32, in_bytes=True) is found(allows=Product.INT8, in_bytes=True, strict=True) is Product.F32
    assert found(allows=Product.INT8, in_bytes=True, product=Product.BF16) is Product.BF16


@pytest.mark.parametrize("half", [DType.BF16, DType.F16])
def test_what_only_feeds_products_is_narrow(half: DType) -> None:
    program = residual()
    choose_precision(program, PRODUCT_OF[half], halves={DType.BF16, DType.F16})
    check_program(program)
    first, second = products(program)
    assert first.product is second.product is PRODUCT_OF[half]
    assert stored(program, second.inputs[0].value) is half  # relu(h)
    assert second.output.dtype is DType.F32


def test_a_normalisation_is_stored_twice_for_product_and_residual() -> None:
    program = residual()
    choose_precision(program, Product.BF16, halves={DType.BF16})
    (rows,) = (op for op in program.ops if isinstance(op, RowReduce))
    assert sorted(o.dtype for o in rows.written) == [DType.BF16, DType.F32]
    first, second = products(program)
    assert first.inputs[0].dtype is DType.BF16
    assert second.inputs[2].dtype is DType.F32  # the residual


@pytest.mark.parametrize(
    ("product", "limit"), [(Product.BF16, 2e-2), (Product.F16, 2e-3), (Product.TF32, 2e-3), (Product.INT8W, 2e-2)]
)
def test_the_result_stays_near(product: Product, limit: float) -> None:
    exact, lowered = residual(), residual()
    choose_precision(lowered, product, halves={DType.BF16, DType.F16})
    weights = {"scale": normal(K), "w1": normal(K, 48, seed=1), "w2": normal(48, K, seed=2)}
    feeds = [normal(2, 5, K, seed=3)]
    (want,) = interpret(exact, feeds, [weights[name] for name in exact.constants])
    (got,) = interpret(lowered, feeds, [weights[name] for name in lowered.constants])
    error = np.abs(got - want).max() / np.abs(want).max()
    assert 1e-5 < error < limit  # it does round


def test_tf32_changes_no_tensor() -> None:
    before, program = residual(), residual()
    choose_precision(program, Product.TF32, halves={DType.BF16, DType.F16})
    assert [op.product for op in products(program)] == [Product.TF32] * 2
    assert program.values == before.values


def test_int8_is_for_constant_matrices() -> None:
    text = """(float[m, 32] a, float[32, n] b) => (float[m, n] y, float[m, 48] z) {
        y = MatMul(a, b)
        z = MatMul(a, w)
    }"""
    program = one_island(parse(text, w=normal(K, 48))).program
    choose_precision(program, Product.INT8W, halves={DType.BF16})
    assert [op.product for op in products(program)] == [Product.F32, Product.INT8W]
    assert all(v.dtype is DType.F32 for v in program.values)


def test_short_sums_are_left() -> None:
    text = "(float[m, 4] a) => (float[m, 8] y) { y = MatMul(a, w) }"
    program = one_island(parse(text, w=normal(4, 8))).program
    choose_precision(program, Product.BF16, halves={DType.BF16})
    assert products(program)[0].product is Product.F32


def test_between_convolutions_everything_is_narrow() -> None:
    program = convolutions()
    choose_precision(program, Product.BF16, halves={DType.BF16})
    check_program(program)
    assert all(op.product is Product.BF16 for op in products(program))
    written = {o.value for op in program.ops[:-1] for o in op.written}
    temporaries = [program.values[i] for i in written if program.values[i].kind is ValueKind.TEMP]
    assert temporaries and all(v.dtype is DType.BF16 for v in temporaries)
    assert next(v for v in program.values if v.kind is ValueKind.OUTPUT).dtype is DType.F32


def test_a_grouped_convolution_and_what_it_reads_stay_wide() -> None:
    text = """(float[1, 16, 8, 8] x) => (float[1, 16, 8, 8] y) {
        a = Conv(x, w)
        b = Conv<group = 16, pads = [1, 1, 1, 1]>(a, depthwise)
        y = Conv(b, w)
    }"""
    program = one_island(parse(text, w=normal(16, 16, 1, 1), depthwise=normal(16, 1, 3, 3))).program
    choose_precision(program, Product.BF16, halves={DType.BF16})
    check_program(program)
    first, middle, last = products(program)
    assert (first.product, middle.product, last.product) == (Product.BF16, Product.F32, Product.BF16)
    assert middle.inputs[0].dtype is DType.F32 and last.inputs[0].dtype is DType.BF16


def test_outputs_keep_their_type() -> None:
    text = """(float[m, 32] x) => (float[m, 32] h, float[m, 32] y) {
        h = MatMul(x, w)
        y = MatMul(h, w)
    }"""
    program = one_island(parse(text, w=normal(K, K))).program
    choose_precision(program, Product.BF16, halves={DType.BF16})
    check_program(program)
    assert all(v.dtype is DType.F32 for v in program.values if v.kind is ValueKind.OUTPUT)


def test_movement_into_a_product_is_narrow_too() -> None:
    text = """(float[m, 32] x) => (float[m, 32] y) {
        h = MatMul(x, w)
        a, b = Split<axis = 0, num_outputs = 2>(h)
        swapped = Concat<axis = 0>(b, a)
        y = MatMul(swapped, w)
    }"""
    program = one_island(parse(text, w=normal(K, K))).program
    choose_precision(program, Product.BF16, halves={DType.BF16})
    check_program(program)
    moves = [op for op in program.ops if isinstance(op, Pointwise)]
    assert all(o.dtype is DType.BF16 for op in moves for o in (*op.inputs, *op.outputs))


@pytest.mark.parametrize(("kind", "half"), [("float16", DType.F16), ("bfloat16", DType.BF16)])
@pytest.mark.parametrize("asked", [Product.F32, Product.BF16])
def test_a_model_in_half_precision_multiplies_in_it_where_the_machine_does(kind: str, half: DType, asked: Product) -> None:
    """Whatever was asked for; and nothing of it is widened in memory."""
    text = f"""({kind}[m, 32] x, {kind}[32, 32] w) => ({kind}[m, 32] y) {{
        h = MatMul(x, w)
        y = MatMul(h, w)
    }}"""
    program = one_island(parse(text)).program
    choose_precision(program, asked, halves={DType.BF16, DType.F16})
    check_program(program)
    assert all(op.product is PRODUCT_OF[half] for op in products(program))
    assert all(v.dtype is half for v in program.values) and len(program.ops) == 2


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_is_widened_once(kind: str) -> None:
    """Where the machine does not multiply in it: inputs by an op of their own, temporaries never stored narrow."""
    text = f"""({kind}[m, 32] x, {kind}[32, 32] w) => ({kind}[m, 32] y) {{
        h = MatMul(x, w)
        y = MatMul(h, w)
    }}"""
    program = one_island(parse(text)).program
    choose_precision(program, Product.F32, halves=())
    check_program(program)
    first, second = products(program)
    assert first.product is Product.F32
    assert first.inputs[0].dtype is second.inputs[0].dtype is DType.F32
    (widen,) = (op for op in program.ops if isinstance(op, Pointwise))
    assert program.values[widen.inputs[0].value].kind is ValueKind.INPUT
    narrow = {ValueKind.INPUT, ValueKind.OUTPUT}
    assert all(v.kind in narrow for v in program.values if v.dtype is not DType.F32)


def test_a_broadcast_operand_is_widened_without_its_repetition() -> None:
    text = "(float16[1, s, 32] q, float16[4, 32, 8] w) => (float16[4, s, 8] y) { y = MatMul(q, w) }"
    program = one_island(parse(text)).program
    choose_precision(program, Product.F32, halves=())
    check_program(program)
    (widen,) = (op for op in program.ops if isinstance(op, Pointwise))
    assert widen.domain[0] == 1
    (product,) = products(program)
    assert product.inputs[0].shape[0] == 4 and product.inputs[0].strides[0] == 0


@pytest.mark.parametrize("halves", [{DType.F16}, ()])
def test_what_a_fused_attention_stores_is_of_the_model_s_type(halves: set[DType]) -> None:
    """Else the product after it would have operands of two types, and no matrix unit."""
    text = """(float16[2, s, 16] q, float16[2, 16, t] k, float16[2, t, 16] v) => (float16[2, s, 24] y) {
        c = MatMul(q, k)
        p = Softmax(c)
        a = MatMul(p, v)
        y = MatMul(a, w)
    }"""
    program = one_island(parse(text, w=normal(16, 24).astype(np.float16))).program
    choose_precision(program, Product.F32, halves=halves)
    check_program(program)
    attention, product = products(program)
    assert isinstance(attention, Attention) and isinstance(product, Gemm)
    assert attention.output.dtype is product.inputs[0].dtype is (DType.F16 if halves else DType.F32)
