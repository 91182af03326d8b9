from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.toy_variants import GEMM, TABLE
from tests.support.run_program import run_planned
from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import evaluate, symbol, symbols_of
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, axis, load
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Attention, Gemm, NoSoftmax, Operand, Pointwise, Program, ValueKind
from xyntra_ep.tracea.core_ir.ops.memory import Array
from xyntra_ep.tracea.core_ir.work import NO_WORK, sized_work
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, Phase, TempBuffer
from xyntra_ep.tracea.planning.plan import BufferKind, PlanError, PlannedProgram
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512, SCALAR


def plan(p: ProgramBuilder | Program) -> PlannedProgram:
    program = p.program if isinstance(p, ProgramBuilder) else p
    return plan_program(program, SCALAR, variants=TABLE)


def kinds(planned: PlannedProgram) -> list[BufferKind]:
    return sorted(b.kind for b in planned.buffers)


def check(p: ProgramBuilder, planned: PlannedProgram, seed: int = 0, **sizes: int) -> None:
    """Run the plan on random data and compare with the interpreter."""
    rng = np.random.default_rng(seed)

    def data(kind: ValueKind) -> list[Array]:
        values = sorted((v for v in p.program.values if v.kind is kind), key=lambda v: v.index)
        shapes = [[s if isinstance(s, int) else sizes[str(s)] for s in v.shape] for v in values]
        return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    inputs, constants = data(ValueKind.INPUT), data(ValueKind.CONST)
    for got, wanted in zip(run_planned(planned, inputs, constants, SCALAR), interpret(p.program, inputs, constants), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_constants_are_worked_on_once() -> None:
    p = ProgramBuilder()
    x, w1, w2 = p.input("s", 4), p.constant(4), p.constant(4)
    p.output(p.add(x, p.mul(p.add(w1, w2), w1)))
    planned = plan(p)
    assert [s.label for s in planned.init] == ["add", "mul"]
    assert [s.label for s in planned.run] == ["add"]
    assert kinds(planned) == [
        BufferKind.INPUT, BufferKind.OUTPUT, BufferKind.CONSTANT, BufferKind.CONSTANT, BufferKind.POOL,
        BufferKind.INIT,
    ]  # fmt: skip
    check(p, planned, s=3)


def test_an_output_that_is_constant_is_written_by_every_run() -> None:
    p = ProgramBuilder()
    p.output(p.add(p.constant(4), p.constant(4)))
    planned = plan(p)
    assert [s.label for s in planned.init] == ["copy const0", "copy const1"]
    assert [s.label for s in planned.run] == ["add"]
    check(p, planned)


def test_a_symbol_keeps_an_op_in_the_run() -> None:
    p = ProgramBuilder()
    p.input("s")
    w = p.constant(1)
    out = p.temp(symbol("s"))
    wide = dataclasses.replace(w, shape=(symbol("s"),), strides=(0,))
    p.add(wide, wide, out=out)
    p.output(p.add(out, p.program.operand(0)))
    planned = plan(p)
    assert [s.label for s in planned.run] == ["add", "add"]
    check(p, planned, s=5)


def test_a_weight_is_packed_once_and_its_original_is_not_kept() -> None:
    p = ProgramBuilder()
    p.output(p.gemm(p.input("s", 5), p.constant(5, 7)))
    planned = plan(p)
    assert [s.label for s in planned.init] == ["toy.gemm (prepare)"]
    assert kinds(planned) == [BufferKind.INPUT, BufferKind.OUTPUT, BufferKind.CONSTANT, BufferKind.POOL]
    pool = next(b for b in planned.buffers if b.kind is BufferKind.POOL)
    assert pool.size_bytes == 5 * 7 * 4
    check(p, planned, s=3)


def test_a_weight_read_as_it_is_gets_one_copy_for_all_readers() -> None:
    p = ProgramBuilder()
    x, w = p.input("s", 4), p.constant(4)
    p.output(p.mul(p.add(x, w), w))
    planned = plan(p)
    assert [s.label for s in planned.init] == ["copy const0"]
    run_kinds = {planned.buffers[u.buffer].kind for s in planned.run for u in s.buffers}
    assert BufferKind.CONSTANT not in run_kinds and BufferKind.POOL in run_kinds
    check(p, planned, s=3)


@pytest.mark.parametrize("dtype", [DType.U8, DType.BOOL, DType.F16, DType.I64])
def test_a_copy_is_of_bytes(dtype: DType) -> None:
    p = ProgramBuilder()
    x = p.input(3, dtype=dtype)
    w = p.value(ValueKind.CONST, 3, dtype=dtype)
    p.output(p.value(ValueKind.TEMP, 3, dtype=dtype))
    out = p.program.operand(2)
    gather = Pointwise(domain=(3,), inputs=(x, w), bodies=(load(1, axis(0), dtype=dtype),), outputs=(out,))
    p.op(gather)
    planned = plan(p)
    bits = np.random.default_rng(0).integers(0, 2, 3).astype(dtype.numpy)
    [got] = run_planned(planned, [bits], [bits], SCALAR)
    assert got.tobytes() == bits.tobytes()


def test_literals_need_no_copy() -> None:
    p = ProgramBuilder()
    literal = p.value(ValueKind.LITERAL, 2, literal=np.array([1, 2], "<f4").tobytes())
    p.output(p.add(p.input("s", 2), literal))
    planned = plan(p)
    assert planned.init == ()
    check(p, planned, s=3)


def test_what_no_output_needs_is_left_out() -> None:
    p = ProgramBuilder()
    x = p.input("s", 4)
    p.mul(p.add(x, x), x)
    p.output(p.add(x, x))
    planned = plan(p)
    assert [s.op for s in planned.run] == [2]


def test_an_elementwise_chain_runs_in_one_buffer() -> None:
    p = ProgramBuilder()
    x = p.input("s", 4)
    y = p.gemm(x, p.constant(4, 4))
    for _ in range(3):
        y = p.add(y, x)
    p.output(p.mul(y, y))
    planned = plan(p)
    [arena] = [b for b in planned.buffers if b.kind is BufferKind.ARENA]
    assert (arena.first, arena.last) == (0, 4)
    check(p, planned, s=5)


def test_no_reuse_of_what_is_read_later() -> None:
    p = ProgramBuilder()
    x = p.input("s", 4)
    y = p.add(x, x)
    z = p.mul(y, x)
    p.output(p.add(z, y))
    planned = plan(p)
    assert sum(b.kind is BufferKind.ARENA for b in planned.buffers) == 2
    check(p, planned, s=5)


def test_no_reuse_of_what_is_read_elsewhere() -> None:
    """out[i, j] = y[j, i] + ...: another unit's element may be overwritten before it is read."""
    p = ProgramBuilder()
    x = p.input(4, 4)
    y = p.add(x, x)
    turned = dataclasses.replace(y, strides=(y.strides[1], y.strides[0]))
    z = p.mul(turned, x)
    p.output(p.add(z, z))
    planned = plan(p)
    assert sum(b.kind is BufferKind.ARENA for b in planned.buffers) == 2
    check(p, planned)


def test_no_reuse_by_an_op_that_writes_a_part() -> None:
    """A concatenation: the second half must not move the buffer that holds the first."""
    p = ProgramBuilder()
    x = p.input(4)
    y, z = p.add(x, x), p.mul(x, x)
    whole = p.temp(8)
    halves = [Operand(value=whole.value, dtype=DType.F32, shape=(4,), strides=(1,), offset=4 * i) for i in (0, 1)]
    p.add(y, x, out=halves[0])
    p.add(z, x, out=halves[1])
    p.output(p.add(whole, whole))
    check(p, plan(p))


def test_lifetimes_are_the_steps_that_touch_a_buffer() -> None:
    p = ProgramBuilder()
    x = p.input("s", 4)
    w = [p.constant(4, 4) for _ in range(3)]
    a = p.gemm(x, w[0])
    b = p.gemm(a, w[1])
    p.output(p.gemm(b, w[2]))
    planned = plan(p)
    arena = [(b.first, b.last) for b in planned.buffers if b.kind is BufferKind.ARENA]
    assert arena == [(0, 1), (1, 2)]
    check(p, planned, s=5)


def test_equal_ops_share_kernels() -> None:
    p = ProgramBuilder()
    x = p.input("s", 4)
    for _ in range(5):
        x = p.gemm(x, p.constant(4, 4))
    p.output(x)
    planned = plan(p)
    assert [k.symbol for k in planned.kernels] == ["toy_pack", "toy_gemm"]
    assert len(planned.run) == 5 and planned.ops_of_kernel(1) == (0, 1, 2, 3, 4)
    check(p, planned, s=3)


def test_kernels_do_not_depend_on_the_names_of_sizes() -> None:
    """Layers whose sizes have other names, and alternatives of an island, share what is compiled."""
    texts = []
    for m in ("s", "another"):
        p = ProgramBuilder()
        p.output(p.gemm(p.input(m, 64), p.constant(64, 64)))
        kernels = plan_program(p.program, AVX512).kernels
        assert any(k.note and m in k.note for k in kernels)
        texts.append([(k.symbol, k.text) for k in kernels])
    assert texts[0] == texts[1]


def test_all_ops_without_a_kernel_are_named_at_once() -> None:
    p = ProgramBuilder()
    x = p.input("s", 4)
    p.output(p.add(p.pointwise("max", p.pointwise("min", x, x), x), x))
    with pytest.raises(PlanError) as caught:
        plan(p)
    assert [f.op for f in caught.value.failures] == [0, 1]
    assert "toy.pointwise: does not know ['min']" in caught.value.failures[0].reason
    assert p.program.sources[caught.value.failures[1].op] == (101,)


Calls = list[KernelCall]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda pack, run: [dataclasses.replace(run, units=4, phase=Phase.PREPARE)], "before there is a run"),
        (lambda pack, run: [dataclasses.replace(pack, units=symbol("s")), run], "an init step depends on a shape"),
        (lambda pack, run: [pack, dataclasses.replace(pack, phase=Phase.RUN), run], "writes to what was made once"),
        (lambda pack, run: [dataclasses.replace(run, buffers=run.buffers[:2])], "takes (3, 0, 0) buffers, sizes and tensors"),
        (lambda pack, run: [dataclasses.replace(run, buffers=run.buffers[::-1])], "writes to value 0, which is given"),
        (
            lambda pack, run: [
                pack,
                dataclasses.replace(run, buffers=(run.buffers[0], TempBuffer(name="packed", size_bytes=4), run.buffers[2])),
            ],
            "temporary 'packed' has two sizes",
        ),
    ],
)  # fmt: skip
def test_a_variant_that_breaks_a_rule_is_named(change: Callable[[KernelCall, KernelCall], Calls], message: str) -> None:
    p = ProgramBuilder()
    p.output(p.gemm(p.input("s", 4), p.constant(4, 4)))

    def build(op: Gemm, config: Config, context: BuildContext) -> Calls:
        return change(*GEMM.build(op, config, context))

    broken = dataclasses.replace(GEMM, name="broken", build=build)
    with pytest.raises((InvariantError, PlanError), match=re.escape(message)):
        plan_program(p.program, SCALAR, variants={**TABLE, Gemm: (broken,)})


def test_the_program_of_the_caller_is_not_changed() -> None:
    p = ProgramBuilder()
    p.output(p.add(p.input("s", 4), p.constant(4)))
    values = list(p.program.values)
    plan(p)
    assert p.program.values == values


def test_the_first_run_step_of_an_op_has_all_its_work() -> None:
    p = ProgramBuilder()
    x = p.input("s", 4)
    p.output(p.add(p.gemm(x, p.constant(4, 6)), p.constant(6)))
    planned = plan(p)
    by_op: dict[int, list[int]] = {}
    for step in planned.run:
        by_op.setdefault(step.op, []).append(evaluate(step.work.flops, {"s": 3}))
    assert [sum(counts) for counts in by_op.values()] == [2 * 3 * 4 * 6, 3 * 6]
    assert all(counts[0] == sum(counts) for counts in by_op.values())
    assert planned.init and not any(step.work.flops for step in planned.init), "what is done once is no run's work"


def test_an_op_of_several_steps_is_counted_once() -> None:
    p = ProgramBuilder()
    q, k, v = (p.input(1, 2, 17, 32) for _ in range(3))
    out = p.output(p.temp(1, 2, 17, 32))
    p.op(Attention(inputs=(q, k, v), score=acc(0), no_softmax=NoSoftmax.NAN, output=out))
    first, *others = plan_program(p.program, AVX512).run  # what the machine's own variants make of it; nothing is compiled
    assert others and first.work == sized_work(p.program.ops[0]) and all(step.work == NO_WORK for step in others)


def test_the_work_of_an_op_that_was_built_before_has_its_own_sizes() -> None:
    p = ProgramBuilder()
    for name in ("s", "t"):
        p.output(p.gemm(p.input(name, 4), p.constant(4, 6)))
    first, second = (step.work for step in plan(p).run)
    assert symbols_of(first.flops) == {"s"} and symbols_of(second.flops) == symbols_of(second.bytes) == {"t"}
