"""Programs of one op over one or more inputs, in few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.programs.builder import ProgramBuilder
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, load
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Operand, Pointwise, Program, RowOutput, RowReduce, Stage, ValueKind

Array = NDArray[Any]
Body = Callable[..., Expr]


def here(operand: Operand, number: int, shift: int = 0) -> Expr:
    """Input ``number`` at the domain's own axes (those from ``shift`` on)."""
    return load(number, *(axis(shift + i) for i in range(len(operand.shape))), dtype=operand.dtype)


def permuted(operand: Operand, order: Sequence[int]) -> Operand:
    """The view whose axis i is the operand's axis order[i]."""
    return Operand(
        value=operand.value,
        dtype=operand.dtype,
        shape=tuple(operand.shape[i] for i in order),
        strides=tuple(operand.strides[i] for i in order),
    )


def pointwise(
    domain: Sequence[Size],
    inputs: Sequence[Operand],
    body: Expr,
    p: ProgramBuilder,
    dtype: DType = DType.F32,
    output: Callable[[ProgramBuilder], Operand] | None = None,
) -> Program:
    """One result over ``domain``; ``output`` makes an operand other than the dense one."""
    out = output(p) if output else p.value(ValueKind.OUTPUT, *domain, dtype=dtype)
    p.op(Pointwise(domain=tuple(domain), inputs=tuple(inputs), bodies=(body,), outputs=(out,)))
    return p.program


def elementwise(shape: Sequence[int], body: Body, *dtypes: DType, result: DType = DType.F32) -> tuple[Program, list[Array]]:
    """``body(x, y ...)`` over dense inputs of ``shape``, with seeded data."""
    p = ProgramBuilder()
    operands = [p.input(*shape, dtype=d) for d in dtypes]
    program = pointwise(shape, operands, body(*(here(o, i) for i, o in enumerate(operands))), p, result)
    return program, [random_like(tuple(shape), d, i) for i, d in enumerate(dtypes)]


def rows(
    outer: Sequence[Size],
    inner: Sequence[Size],
    inputs: Sequence[Operand],
    stages: Sequence[Stage],
    results: Sequence[tuple[Expr, bool]],
    p: ProgramBuilder,
    dtype: DType = DType.F32,
) -> Program:
    """``results``: (body, per row?)."""
    outputs = [
        RowOutput(
            body=body,
            operand=p.value(ValueKind.OUTPUT, *outer, *(() if per_row else inner), dtype=dtype),
            per_row=per_row,
        )
        for body, per_row in results
    ]
    p.op(RowReduce(outer=tuple(outer), inner=tuple(inner), inputs=tuple(inputs), stages=tuple(stages), outputs=tuple(outputs)))
    return p.program


def special_floats(shape: Sequence[int], seed: int = 0) -> Array:
    """Normal values with every kind of special one among them."""
    rng = np.random.default_rng(seed)
    data = rng.standard_normal(tuple(shape)).astype(np.float32)
    flat = data.reshape(-1)
    kinds = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3e38], dtype=np.float32)
    flat[:: max(1, flat.size // 40)] = np.resize(kinds, len(flat[:: max(1, flat.size // 40)]))
    return data
