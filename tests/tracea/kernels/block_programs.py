"""Products with weights that are scaled in blocks, to test with: one op in a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.core_ir.dims import Size, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, axis, call, load
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Binding, BlockGemm, Operand, Product, Program, SymbolKind, Value, ValueKind

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCase:
    """``zeros``: the type of the zero points, None for none. ``batch``: leading axes of a. ``symbolic``: m is known at run time
    only; ``constant``: whether the weights are. ``product``: what is multiplied in."""

    m: int
    k: int
    n: int
    bits: int = 4
    block: int = 32
    zeros: DType | None = None
    dtype: DType = DType.F32
    scale_dtype: DType = DType.F32
    batch: tuple[int, ...] = ()
    epilogue: str = "none"
    symbolic: bool = True
    constant: bool = True
    transposed: bool = False
    product: Product = Product.F32

    @property
    def blocks(self) -> int:
        return -(-self.k // self.block)


def op_of(program: Program) -> BlockGemm:
    [op] = program.ops
    assert isinstance(op, BlockGemm)
    return op


def build(case: BlockCase, seed: int = 0) -> tuple[Program, list[Array], list[Array]]:
    """(program, its inputs, its constants)."""
    return _Builder(case, seed).build()


class _Builder:
    def __init__(self, case: BlockCase, seed: int) -> None:
        self.case = case
        self.rng = np.random.default_rng(seed)
        self.program = Program()
        self.inputs: list[Array] = []
        self.constants: list[Array] = []

    def build(self) -> tuple[Program, list[Array], list[Array]]:
        case, p = self.case, self.program
        m: Size = symbol("sm") if case.symbolic else case.m
        if case.transposed:
            stored = self.input((case.k, m), random_like((case.k, case.m), case.dtype, 1), case.dtype)
            a = Operand(value=stored.value, dtype=case.dtype, shape=(m, case.k), strides=stored.strides[::-1])
        else:
            a = self.input((*case.batch, m, case.k), random_like((*case.batch, case.m, case.k), case.dtype, 1), case.dtype)
        if case.symbolic:
            p.bindings.append(Binding(name="sm", kind=SymbolKind.DIM, input=0, index=len(a.shape) - 2 + case.transposed))
        width = case.blocks * case.block * case.bits // 8
        operands = [a, self.weights(self.rng.integers(0, 256, (case.n, width)).astype(np.uint8), DType.U8)]
        scales = self.rng.uniform(0.01, 0.1, (case.n, case.blocks)) * self.rng.choice([-1, 1], (case.n, case.blocks))
        operands.append(self.weights(scales.astype(case.scale_dtype.numpy), case.scale_dtype))
        if case.zeros is DType.U8:
            zeros = self.rng.integers(0, 256, (case.n, -(-case.blocks * case.bits // 8)))
            operands.append(self.weights(zeros.astype(np.uint8), DType.U8))
        elif case.zeros is not None:
            floats = self.rng.uniform(0, 1 << case.bits, (case.n, case.blocks))
            operands.append(self.weights(floats.astype(case.zeros.numpy), case.zeros))
        domain = (*case.batch, m, case.n)
        epilogue = self.epilogue(operands, domain)
        p.values.append(Value(kind=ValueKind.OUTPUT, dtype=case.dtype, shape=domain, index=0))
        p.ops.append(
            BlockGemm(
                inputs=tuple(operands),
                bits=case.bits,
                block=case.block,
                has_zeros=case.zeros is not None,
                product=case.product,
                epilogue=epilogue,
                output=p.operand(len(p.values) - 1),
                label="block gemm",
            )
        )
        p.sources.append((0,))
        return p, self.inputs, self.constants

    def input(self, shape: tuple[Size, ...], array: Array, dtype: DType) -> Operand:
        self.inputs.append(array)
        self.program.values.append(Value(kind=ValueKind.INPUT, dtype=dtype, shape=shape, index=len(self.inputs) - 1))
        return self.program.operand(len(self.program.values) - 1)

    def weights(self, array: Array, dtype: DType) -> Operand:
        if not self.case.constant:
            return self.input(array.shape, array, dtype)
        self.constants.append(array)
        self.program.constants.append(f"c{len(self.constants)}")
        index = len(self.constants) - 1
        self.program.values.append(Value(kind=ValueKind.CONST, dtype=dtype, shape=array.shape, index=index))
        return self.program.operand(len(self.program.values) - 1)

    def epilogue(self, operands: list[Operand], domain: tuple[Size, ...]) -> Expr:
        case = self.case
        here = [axis(i) for i in range(len(domain))]
        if case.epilogue == "none":
            return acc()
        operands.append(self.weights(random_like((case.n,), DType.F32, 2), DType.F32))
        biased = call("add", acc(), load(len(operands) - 1, here[-1], dtype=DType.F32))
        if case.epilogue == "gelu":
            return call("gelu_erf", biased)
        if case.epilogue == "residual":
            operands.append(self.input(domain, random_like((*case.batch, case.m, case.n), DType.F32, 3), DType.F32))
            return call("add", biased, load(len(operands) - 1, *here, dtype=DType.F32))
        assert case.epilogue == "bias"
        return biased
