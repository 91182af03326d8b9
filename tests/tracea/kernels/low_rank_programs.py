"""Low-rank products to test with: a product of `gemm_programs` that goes on with a second one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.tracea.kernels import gemm_programs
from tests.tracea.kernels.gemm_programs import Array, GemmCase, gemm_of
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import load, rewrite
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import LowRankGemm, Operand, Program, Value, ValueKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRankCase(GemmCase):
    """``constant``: whether the second right side is; ``columns_apart``: whether it is stored with its axes swapped."""

    rank: int
    constant: bool = True
    columns_apart: bool = False


def build(case: LowRankCase, seed: int = 0) -> tuple[Program, list[Array], list[Array]]:
    """(program, its inputs, its constants)."""
    program, inputs, constants = gemm_programs.build(case, seed)
    plain = gemm_of(program)

    def operand(kind: ValueKind, array: Array, operand: Operand) -> Operand:
        held = constants if kind is ValueKind.CONST else inputs
        held.append(array)
        if kind is ValueKind.CONST:
            program.constants.append(f"c{len(held)}")
        stored = operand.shape if kind is ValueKind.INPUT else array.shape
        program.values.append(Value(kind=kind, dtype=DType.F32, shape=stored, index=len(held) - 1))
        return program.operand(len(program.values) - 1)

    a, b, *rest = plain.inputs
    shape = (*plain.domain[:-1], case.rank)
    left = operand(
        ValueKind.INPUT,
        random_like((*case.batch, case.m, case.rank), DType.F32, seed + 50),
        Operand(value=0, dtype=DType.F32, shape=shape, strides=()),
    )
    kind = ValueKind.CONST if case.constant else ValueKind.INPUT
    extents = (case.n, case.rank) if case.columns_apart else (case.rank, case.n)
    array = random_like(extents, DType.F32, seed + 51)
    stored = operand(kind, array, Operand(value=0, dtype=DType.F32, shape=extents, strides=()))
    strides = stored.strides[::-1] if case.columns_apart else stored.strides
    batch = plain.domain[:-2]
    right = replace(stored, shape=(*batch, case.rank, plain.domain[-1]), strides=(*(0 for _ in batch), *strides))
    epilogue = rewrite(
        plain.epilogue,
        lambda e: load(e.attr + 2, *e.args, dtype=program.values[rest[e.attr - 2].value].dtype) if e.kind == "load" else None,
    )
    program.ops[0] = LowRankGemm(inputs=(a, b, left, right, *rest), epilogue=epilogue, output=plain.output, label="low-rank gemm")
    return program, inputs, constants
