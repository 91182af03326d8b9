"""A kind of op is one file and its kernels: what the package does with ops it does with one that it has never seen."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.model_text import parse
from tests.support.programs.builder import ProgramBuilder
from tests.support.run_program import check_program, plan_for
from tests.support.toy_op import DIFFERENCE, TABLE, Difference, difference
from xyntra_ep.errors import InvariantError
from xyntra_ep.fusion.estimates.cost import Comparison
from xyntra_ep.fusion.estimates.ort_cost import Ceilings
from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.fusion.passes.choose_precision import choose_precision
from xyntra_ep.fusion.passes.name_sizes import rename
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.trace import trace
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Product, Program
from xyntra_ep.tracea.core_ir.work import SizedWork, sized_work
from xyntra_ep.tracea.interface import Context, Island, TensorEntry, compile_islands, report_of
from xyntra_ep.tracea.interface.islands import StepCost
from xyntra_ep.tracea.optimizer.tuning_cache import signature
from xyntra_ep.tracea.planning.op_key import op_key
from xyntra_ep.tracea.planning.order.batch_loop import over_images
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR

S = symbol("s")


def rows(*lags: int) -> Program:
    p = ProgramBuilder()
    x = p.input("s", 8)
    for lag in lags:
        x = difference(p, x, lag)
    p.output(p.mul(x, x))
    return p.program


@pytest.mark.compiler("cc")
def test_it_is_planned_and_its_kernel_does_as_the_interpreter() -> None:
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    check_program(rows(3, 1), [x], [], SCALAR, max_err=1e-6, variants=[DIFFERENCE])
    [y] = interpret(rows(3), [np.array([[1, 2, 4, 8, 16, 32, 64, 128]])])
    assert [int(e) for e in np.sqrt(y[0])] == [1, 2, 4, 7, 14, 28, 56, 112]


def test_equal_ones_are_built_once_and_kept_in_text() -> None:
    program = rows(2, 3, 3, 1)
    decisions = [id(decision) for _, decision in plan_for(program, SCALAR, [DIFFERENCE]).decisions]
    assert len(set(decisions)) == 4 and decisions[1] == decisions[2]
    _, *keys = (op_key(op, program, frozenset()).key for op in program.ops[:4])
    assert keys[0] == keys[1] != keys[2]
    assert signature(program.ops[0], frozenset()) == "Difference f32[s,8] f32[s,8] 2"
    assert "Difference(" in repr(program.ops[0]) and "lag=2" in repr(program.ops[0])


def test_what_is_wrong_with_one_is_named() -> None:
    program = rows(3)
    op = program.ops[0]
    assert isinstance(op, Difference)
    program.ops[0] = replace(op, lag=symbol("t"))
    with pytest.raises(InvariantError, match=r"op 0 \(Difference difference\): nothing binds \['t'\]"):
        plan_for(program, SCALAR, [DIFFERENCE])
    program.ops[0] = replace(op, inputs=(replace(op.inputs[0], shape=(S, 7)),))
    with pytest.raises(InvariantError, match=r"op 0 \(Difference difference\): the output has shape \(s, 8\), not \(s, 7\)"):
        plan_for(program, SCALAR, [DIFFERENCE])
    rename(program, {"s": symbol("rows")})
    assert program.ops[0].inputs[0].shape == (symbol("rows"), 7)


def test_its_work_is_in_the_plan() -> None:
    planned = plan_for(rows(3), SCALAR, [DIFFERENCE])
    work = SizedWork(flops=8 * S, bytes=64 * S)
    assert planned.run[0].work == sized_work(planned.program.ops[0]) == work and planned.run[0].cost_ns == 16 * S


def test_it_is_compared_with_onnx_runtime_s_node() -> None:
    graph = graph_from_model(parse("(float[16,256] x) => (float[16,256] y) { y = Softmax(x) }", 18))
    traced = trace(graph, [NodeId(0)], ["x"], trust=True)
    program = build_program(traced, ["x"], ["y"])
    [old] = program.ops
    program.ops = [Difference(inputs=old.inputs, lag=1, output=old.written[0])]
    machine = Ceilings(gflops=100.0, dram_gbs=10.0, near_bytes=1 << 20, unit_bits=512)
    compared = Comparison(graph, [NodeId(0)], traced, program, [StepCost(op=0, cost_ns=10**9, units=1)], machine, 1)
    assert set(compared.slow()) == {NodeId(0)} and not compared.total().heavy


def test_it_joins_a_loop_over_images() -> None:
    p = ProgramBuilder()
    x = p.input(64, 1 << 18)
    for lag in (1, 2):
        x = difference(p, x, lag)
    p.output(p.mul(x, x))
    caps = replace(SCALAR, l2_bytes=4 << 20, l3_bytes=8 << 20)
    program, [loop] = over_images(p.program, [0, 1, 2], (), caps)
    assert loop.images == 64 and program.ops[1].written[0].shape == (1, 1 << 18)


def test_it_stores_what_the_next_product_multiplies() -> None:
    p = ProgramBuilder()
    y = difference(p, p.input("s", 32), 1)
    p.output(p.gemm(y, p.constant(32, 64)))
    choose_precision(p.program, Product.BF16, halves=[DType.BF16])
    assert p.program.ops[0].written[0].dtype is DType.BF16


@pytest.mark.compiler("cc")
def test_it_is_explained(tmp_path: Path) -> None:
    context = Context(cache_dir=tmp_path, hash128=lambda data: hashlib.md5(data).digest(), caps=SCALAR, variants=TABLE)
    p = ProgramBuilder()
    p.output(difference(p, p.input("s", 8), 3))
    tensors = [(TensorEntry(name=name, elem_type=1, rank=2),) for name in "xy"]
    island = Island(name="a", nodes=(100,), inputs=tensors[0], outputs=tensors[1], alternatives=(p.program,))
    result = compile_islands([island], context)
    [entry] = result.islands
    assert entry is not None
    ([row], _) = report_of(entry, result.kernels, context)
    assert (row["label"], row["variant"], row["nodes"]) == ("difference", "toy.difference", [100])
    assert p.program.ops[0].title() == "Difference"
