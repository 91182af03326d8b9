"""scan.rows against the interpreter."""

from __future__ import annotations

import itertools

import pytest

from tests.support.machine import WIDEST
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here
from tests.support.run_program import check_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call, const
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, ReduceKind, Scan, ValueKind
from xyntra_ep.tracea.kernels.cpu.rows.scan import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512

pytestmark = pytest.mark.compiler("cc")


def scan(kind: ReduceKind, dtype: DType, exclusive: bool, reverse: bool) -> Program:
    p = ProgramBuilder()
    x = p.input("a", "b", "n", dtype=dtype)
    body = call("to_i", here(x, 0)) if dtype is DType.BOOL else here(x, 0)
    if dtype.is_float:
        body = call("mul", body, const(0.5))
    out = p.value(ValueKind.OUTPUT, *x.shape, dtype=DType.I64 if dtype is DType.BOOL else dtype)
    p.op(Scan(inputs=(x,), body=body, kind=kind, exclusive=exclusive, reverse=reverse, output=out))
    return p.program


@pytest.mark.parametrize("dtype", [DType.F32, DType.I64, DType.I32, DType.BOOL])
@pytest.mark.parametrize("kind", [ReduceKind.SUM, ReduceKind.PROD])
def test_scans(kind: ReduceKind, dtype: DType) -> None:
    for exclusive, reverse in itertools.product((False, True), repeat=2):
        for shape in ((2, 3, 40), (1, 1, 1), (2, 0, 5), (2, 3, 0), (300, 2, 7)):
            data = random_like(shape, dtype, 0)
            check_program(scan(kind, dtype, exclusive, reverse), [data], [], WIDEST, 1e-5, variants=VARIANTS)


def test_only_sums_and_products() -> None:
    program = scan(ReduceKind.MAX, DType.F32, False, False)
    op = program.ops[0]
    assert isinstance(op, Scan)
    assert VARIANTS[0].admits(op, BuildContext(caps=AVX512, program=program)) == "no scan by max"
