"""Written kernels compute what core IR means: Triton's interpreter against ours, on random data, ragged sizes, special values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.frameworks.triton.interpreted import Case, differences, needs_triton
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import elementwise, here, rows
from tests.support.programs.random import RandomProgram
from tests.tracea.kernels import attention_programs, block_programs, gemm_programs
from tests.tracea.kernels.attention_programs import AttentionCase
from tests.tracea.kernels.block_programs import BlockCase
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.gemm_programs import GemmCase
from xyntra_ep.diagnostics.fused.graph import read_model, source_of
from xyntra_ep.diagnostics.fused.groups import find_islands
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, acc, acc_int, axis, call
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Gemm, NoSoftmax, Product, Program, ReduceKind, Scan, Stage, TopK, ValueKind
from xyntra_zoo import model_path, zoo

pytestmark = needs_triton
SPECIAL = np.array([0.0, -0.0, 0.5, 1.5, 2.5, -2.5, 1e-6, -1e-3, 3.0, -7.25, 88.0, np.inf, -np.inf, np.nan], np.float32)
# Functions of numbers near 1 and their errors there, where they are larger than rounding.
LOOSE = {"pow": 2e-5, "tan": 1e-5, "asin": 1e-5, "acos": 1e-5, "gelu_tanh": 5e-6, "asinh": 1e-5}


def test_scalar_functions(tmp_path: Path) -> None:
    """Each on ordinary numbers and on special ones. What only a machine's own rounding decides is left out."""
    cases = []
    rng = np.random.default_rng(3)
    for name, row in SCALAR_OPS.items():
        if name.startswith(("wrap", "quantise", "round_")) or set(row.args) - {"f", "n", "t"} or row.result not in "fnt":
            continue
        of_one = name in ("asin", "acos", "atanh")
        values = rng.uniform(-0.99, 0.99, 40) if of_one else rng.standard_normal(40) * 3
        special = SPECIAL[:3] if of_one or name in ("sin", "cos", "tan", "sinh", "cosh", "acosh") else SPECIAL
        if name == "exp_nonpositive":
            values, special = -np.abs(values), np.array([0.0, -np.inf, -100.0], np.float32)
        if name == "acosh":
            values, special = 1 + np.abs(values), np.array([1.0, 2.0], np.float32)
        if name in ("div", "mod", "fmod", "pow"):
            special = np.array([0.5, 1.5, 3.0], np.float32)
        x = np.concatenate([values.astype(np.float32), special])
        program, _ = elementwise((len(x),), lambda *args, name=name: call(name, *args), *[DType.F32] * len(row.args))
        cases.append(Case(name=name, program=program, inputs=[x, x[::-1].copy()][: len(row.args)], most=LOOSE.get(name, 2e-6)))
    assert len(cases) > 30
    assert differences(cases, tmp_path) == []


def test_rounding(tmp_path: Path) -> None:
    halves = np.concatenate([np.arange(-9, 9) / 2, [8388607.5, 1e12, -0.4, np.inf, -np.inf]]).astype(np.float32)
    program, _ = elementwise(halves.shape, lambda x: call("round", x), DType.F32)
    assert differences([Case(name="round", program=program, inputs=[halves], most=0.0)], tmp_path) == []


def test_random_expressions(tmp_path: Path) -> None:
    cases = []
    for seed in range(24):
        made = RandomProgram(seed, rank=(0, 1, 2, 3, 4, 8)[seed % 6], symbolic=seed % 2 == 1, special=seed % 3 == 2)
        made.pointwise(depth=1 + seed % 3)
        cases.append(Case(name=f"seed {seed}", program=made.program, inputs=made.inputs, most=3e-5))
    assert differences(cases, tmp_path) == []


def test_random_reductions(tmp_path: Path) -> None:
    cases = []
    for seed in range(24):
        rank = (2, 1, 3, 4)[seed % 4]
        made = RandomProgram(seed, rank=rank, symbolic=seed % 2 == 1, special=seed % 3 == 2)
        made.row_reduce(inner=1 + (rank > 2 and seed % 3 == 0), depth=seed % 3)
        cases.append(Case(name=f"seed {seed}", program=made.program, inputs=made.inputs, most=3e-5))
    assert differences(cases, tmp_path) == []


@pytest.mark.parametrize("columns", [1, 100, 128, 129, 1000, 9000, "n"])
def test_rows_of_any_length(columns: int | str, tmp_path: Path) -> None:
    """Several of a program, one, and in a loop: the sum, the largest and where it is, and what follows of each element."""
    p = ProgramBuilder()
    x = p.input(3, columns)
    length = 2500 if columns == "n" else int(columns)
    stages = [Stage(kind=kind, body=here(x, 0)) for kind in (ReduceKind.SUM, ReduceKind.MAX, ReduceKind.ARGMAX_LAST)]
    bodies = [(call("sub", here(x, 0), acc(1)), False), (acc(0), True)]
    program = rows(x.shape[:1], x.shape[1:], [x], stages, bodies, p)
    data = random_like((3, length), DType.F32, length)
    data[1, length // 2] = np.nan
    data[2] = -np.inf
    assert differences([Case(name="rows", program=program, inputs=[data], most=1e-5)], tmp_path) == []


def _gemms() -> Iterator[GemmCase]:
    for m, k, n in ((1, 1, 1), (1, 70, 33), (5, 64, 64), (65, 33, 17), (64, 32, 128)):
        yield GemmCase(m=m, k=k, n=n, epilogue="gelu" if m == 5 else "none")
    yield GemmCase(m=7, k=20, n=9, batch=(2, 3), a_batch=(2, 1), b_batch=(3,), constant_b=False)
    yield GemmCase(m=7, k=20, n=9, transpose="ab", symbolic="mkn", constant_b=False)
    yield GemmCase(m=17, k=40, n=24, product=Product.F16)
    yield GemmCase(m=17, k=40, n=24, dtypes=(DType.F16, DType.F16, DType.F16))
    yield GemmCase(m=17, k=40, n=24, dtypes=(DType.F16, DType.F16, DType.F32))


def test_products(tmp_path: Path) -> None:
    cases = []
    for case in _gemms():
        program, inputs, constants = gemm_programs.build(case)
        cases.append(Case(name=str(case), program=program, inputs=inputs, constants=constants))
    for block in (
        BlockCase(m=3, k=64, n=20),
        BlockCase(m=3, k=70, n=20, zeros=DType.U8),
        BlockCase(m=17, k=64, n=33, bits=8, block=16, zeros=DType.F32),
        BlockCase(m=2, k=96, n=16, bits=2, zeros=DType.U8, product=Product.INT8),
    ):
        if block.product is Product.INT8:
            program, inputs, constants = block_programs.build(block)
            cases.append(Case(name=str(block), program=program, inputs=inputs, constants=constants, most=2e-2))
            continue
        program, inputs, constants = block_programs.build(block)
        cases.append(Case(name=str(block), program=program, inputs=inputs, constants=constants))
    assert differences(cases, tmp_path) == []


CONVS = (
    ConvCase(x=(1, 5, 7, 9), w=(12, 5, 1, 1), tail=("bias", "residual", "relu")),
    ConvCase(x=(3, 16, 13, 17), w=(33, 16, 3, 3), strides=(2, 1), pads=(1, 0, 1, 2)),
    ConvCase(x=(1, 3, 17, 13), w=(17, 3, 3, 3), pads=(1, 0, 2, 1), dilations=(2, 2), channels_last=False),
    ConvCase(x=(2, 17, 33), w=(16, 17, 3), pads=(1, 1), tail=("relu",)),
    ConvCase(x=(1, 1, 200), w=(1, 1, 5), strides=(3,), dilations=(4,), pads=(9, 2), tail=()),
    ConvCase(x=(1, 4, 3, 3), w=(20, 4, 3, 3), pads=(4, 4, 4, 4)),
    ConvCase(x=(2, 12, 7, 7), w=(12, 1, 3, 3), group=12, pads=(1, 1, 1, 1), symbolic="n"),
    ConvCase(x=(2, 12, 7, 7), w=(18, 2, 3, 3), group=6, pads=(1, 1, 1, 1)),
    ConvCase(x=(1, 32, 5, 6), w=(64, 16, 3, 3), group=2, pads=(1, 1, 1, 1), symbolic="hw"),
    ConvCase(x=(1, 6, 5, 5), w=(20, 6, 3, 3), dtype=DType.F16, w_dtype=DType.F16),
    ConvCase(x=(1, 3, 4, 5, 6), w=(4, 3, 2, 3, 2), pads=(1, 0, 1, 0, 1, 1)),
)


def test_convolutions(tmp_path: Path) -> None:
    cases = []
    for case in CONVS:
        program, inputs, constants = conv_program(case)
        cases.append(Case(name=case.name(), program=program, inputs=inputs, constants=constants))
    assert differences(cases, tmp_path) == []


ATTENTIONS = (
    AttentionCase(),
    AttentionCase(s=70, t=130, d=24, e=40, masks=("causal",), past=60),
    AttentionCase(s=65, t=65, masks=("causal", "bias")),
    AttentionCase(b=2, s=3, t=9, masks=("bool",), no_softmax=NoSoftmax.UNSEEN_ZERO),
    AttentionCase(b=2, s=3, t=9, masks=("full",), no_softmax=NoSoftmax.ZERO),
    AttentionCase(s=7, t=7, masks=("ends",), lasts=(3,), window=2, symbolic=""),
    AttentionCase(s=9, t=9, layout="bshd", shared=True, dtype=DType.F16),
    AttentionCase(s=9, t=33, product=Product.F16),
)


def test_attention(tmp_path: Path) -> None:
    cases = []
    for case in ATTENTIONS:
        program, inputs = attention_programs.build(case)
        most = 1e-2 if case.product is Product.F16 or case.dtype is DType.F16 else 5e-6
        cases.append(Case(name=str(case), program=program, inputs=inputs, most=most))
    assert differences(cases, tmp_path) == []


def _scan(kind: ReduceKind, *, exclusive: bool, reverse: bool) -> Program:
    p = ProgramBuilder()
    x = p.input("n", 37)
    out = p.value(ValueKind.OUTPUT, *x.shape)
    p.op(Scan(inputs=(x,), body=here(x, 0), kind=kind, exclusive=exclusive, reverse=reverse, output=out))
    return p.program


def test_scans(tmp_path: Path) -> None:
    data = [random_like((3, 37), DType.F32, 1)]
    cases = [
        Case(name=f"{kind} {exclusive} {reverse}", program=_scan(kind, exclusive=exclusive, reverse=reverse), inputs=data)
        for kind in (ReduceKind.SUM, ReduceKind.PROD)
        for exclusive in (False, True)
        for reverse in (False, True)
    ]
    assert differences(cases, tmp_path) == []


def test_the_k_best(tmp_path: Path) -> None:
    cases = []
    for largest in (True, False):
        for dtype in (DType.F32, DType.I64):
            p = ProgramBuilder()
            x = p.input("n", 21, dtype=dtype)
            values = p.value(ValueKind.OUTPUT, x.shape[0], 5, dtype=dtype)
            indices = p.value(ValueKind.OUTPUT, x.shape[0], 5, dtype=DType.I64)
            p.op(TopK(inputs=(x,), k=5, largest=largest, values=values, indices=indices))
            data = np.round(random_like((4, 21), dtype, 2))  # with equals
            if dtype is DType.F32:
                data[1, 3] = -np.inf
                data[2] = np.inf
            cases.append(Case(name=f"{largest} {dtype}", program=p.program, inputs=[data]))
    assert differences(cases, tmp_path) == []


def test_bytes_are_summed_exactly(tmp_path: Path) -> None:
    cases = []
    for a in (DType.U8, DType.I8):
        for b in (DType.U8, DType.I8):
            p = ProgramBuilder()
            x, w = p.input(9, 70, dtype=a), p.input(70, 21, dtype=b)
            out = p.value(ValueKind.OUTPUT, 9, 21, dtype=DType.I32)
            p.op(Gemm(inputs=(x, w), output=out, product=Product.I32, epilogue=call("add", acc_int(0), axis(0))))
            rng = np.random.default_rng(0)
            data = [rng.integers(-128 if d is DType.I8 else 0, 128 if d is DType.I8 else 256, s).astype(d.numpy)
                    for d, s in ((a, (9, 70)), (b, (70, 21)))]  # fmt: skip
            cases.append(Case(name=f"{a} {b}", program=p.program, inputs=data))
    assert differences(cases, tmp_path) == []


ZOO = sorted(model.name for model in zoo if model.tiny)


@pytest.mark.parametrize("name", ZOO)
def test_islands_of_the_zoo(name: str, tmp_path: Path) -> None:
    path, model = Path(model_path(zoo[name])), zoo[name]
    graph = source_of(read_model(path), path.parent).graph
    feeds = model.feeds(2, model.seqs[-1] if model.seqs else 0, 0)
    cases = []
    for number, island in enumerate(find_islands(graph).islands):
        program = island.program
        inputs = sorted((v for v in program.values if v.kind is ValueKind.INPUT), key=lambda v: v.index)
        values = [graph.values[name] for name in program.constants]
        constants = [np.asarray(v.read()).reshape([int(n or 0) for n in v.shape or ()]) for v in values if v.read is not None]
        given = [feeds[v.name] for v in inputs]
        cases.append(Case(name=f"island {number}", program=program, inputs=given, constants=constants, most=5e-6))
    assert differences(cases, tmp_path) == []
