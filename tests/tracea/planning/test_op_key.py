"""Ops that differ in names only are built once, and what is built fits each of them."""

from __future__ import annotations

import numpy as np

from tests.support.programs.builder import ProgramBuilder
from tests.support.run_program import run_planned
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import smin, symbol
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Operand, Pointwise
from xyntra_ep.tracea.planning.op_key import OpKey, op_key
from xyntra_ep.tracea.planning.planner import cpu_builder, plan_program
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR


def test_layers_with_sizes_of_their_own() -> None:
    p = ProgramBuilder()
    for m in ("s", "a", "t"):
        p.output(p.gemm(p.input(m, 8), p.constant(8, 8)))
    builder = cpu_builder(SCALAR)
    planned = plan_program(p.program, SCALAR, builder=builder)
    decisions = [id(decision) for _, decision in planned.decisions]
    assert len(set(decisions)) == 1, "decided once"
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((n, 8)).astype(np.float32) for n in (3, 1, 7)]
    constants = [rng.standard_normal((8, 8)).astype(np.float32) for _ in range(3)]
    for got, wanted in zip(run_planned(planned, inputs, constants, SCALAR), interpret(p.program, inputs, constants), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def key_of(*names: str, swap: bool = False) -> OpKey:
    """Of an op whose expression, shape, strides and offset name sizes."""
    p = ProgramBuilder()
    s, t = (symbol(name) for name in names)
    shape = (s, t)
    x = p.input(*names)
    first, second = (t, s) if swap else (s, t)
    body = E.call("add", E.size(first), E.call("mul", E.axis(0), E.size(smin(second, 5))))
    out = p.temp(*shape)
    strided = Operand(value=x.value, dtype=x.dtype, shape=shape, strides=(t, 1), offset=0)
    op = Pointwise(domain=shape, inputs=(strided,), bodies=(E.call("to_f", body),), outputs=(out,), label=names[0])
    return op_key(op, p.program, frozenset())


def test_names_do_not_matter_and_their_order_does() -> None:
    one, other = key_of("a", "b"), key_of("x", "y")
    assert one.key == other.key and (one.symbols, other.symbols) == (("a", "b"), ("x", "y"))
    assert key_of("a", "b", swap=True).key != one.key
    assert key_of("a", "a").key != one.key, "two sizes that are one are another op"
