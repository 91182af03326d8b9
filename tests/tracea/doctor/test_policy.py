"""The policy: each goal chooses by its rows, and says why."""

from __future__ import annotations

import dataclasses
import math

import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.tracea.doctor.test_decision import op, variant
from xyntra_ep.options import Goal, parse
from xyntra_ep.tracea.core_ir.ops import Pointwise
from xyntra_ep.tracea.doctor.decision import RunnerUp, Tuned, decide, held_bytes
from xyntra_ep.tracea.doctor.policy import ROWS, Policy
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.nodes import Kernel


def holding(size_bytes: int, name: str, cost_ns: float, rank: int = 0) -> Variant[Pointwise]:
    """A variant with buffers of its own of so many bytes: half is written once, half at each run."""
    made = variant(name, cost_ns, rank)

    def build(of: object, config: object, context: object) -> list[KernelCall]:
        kernel = Kernel(name=name, buffers=(), params=(), functions=(), body=())
        packed, work = (TempBuffer(name=what, size_bytes=size_bytes // 2) for what in ("packed", "work"))
        once = KernelCall(kernel=kernel, buffers=(packed,), params=(), units=1, cost_ns=0, phase=Phase.PREPARE)
        return [once, KernelCall(kernel=kernel, buffers=(packed, work), params=(), units=1, cost_ns=0)]

    return dataclasses.replace(made, build=build)


HEAVY, MIDDLE, LIGHT = holding(4096, "heavy", 100), holding(2048, "middle", 190), holding(1024, "light", 210)


@pytest.mark.parametrize("goal", Goal)
def test_each_goal_has_a_reason_for_each_choice(goal: Goal) -> None:
    reasons = Policy(goal=goal).reasons()
    assert [name for name, _ in reasons] == [row.name for row in ROWS] and all(why for _, why in reasons)


def test_goals_differ_in_what_they_say() -> None:
    assert len({Policy(goal=goal).reasons() for goal in Goal}) == len(Goal)


def test_threads_are_those_of_the_goal() -> None:
    assert {goal.value: Policy(goal=goal).threads(8) for goal in Goal} == {
        "balanced": (8, 1), "latency": (8,), "throughput": (1,), "memory": (8, 1),
    }  # fmt: skip
    assert all(Policy(goal=goal).threads(1) == (1,) for goal in Goal)


def test_tuning_counts_where_options_and_goal_let_it() -> None:
    assert Policy.of(parse({})).tuned and Policy.of(parse({"policy": "latency"})).tuned
    for given in ({"tune": "off"}, {"deterministic": "1"}, {"policy": "memory"}):
        assert not Policy.of(parse(given)).tuned
    assert dict(Policy.of(parse({"tune": "off"})).reasons())["tuning"] == "its results do not count: tune=off, or deterministic=1"


def test_steps_are_side_by_side_where_a_run_has_threads_and_memory_for_it() -> None:
    assert [goal for goal in Goal if Policy(goal=goal).side_by_side] == [Goal.BALANCED, Goal.LATENCY]


def test_only_memory_refuses_a_gpu_that_nobody_names() -> None:
    assert [goal for goal in Goal if math.isinf(Policy(goal=goal).device_doubt)] == [Goal.MEMORY]


def test_less_memory_is_taken_within_the_slack_only() -> None:
    variants = (HEAVY, MIDDLE, LIGHT)
    assert decide(*op(), variants).chosen is HEAVY, "without slack the fastest"
    decision = decide(*op(), variants, None, 2.0)
    assert decision.chosen is MIDDLE and decision.cost_ns == 190
    assert decision.runner_up == RunnerUp(variant="heavy", cost_ns=100), "faster, and it holds more"
    assert dict(decision.rejected) == {"heavy": "holds 4096 bytes against 2048", "light": "210 ns against 190 ns"}
    assert decide(*op(), variants, None, 3.0).chosen is LIGHT


def test_of_what_holds_as_much_the_cheaper_one_is_taken_and_no_fallback() -> None:
    assert decide(*op(), (holding(2048, "a", 120), MIDDLE, HEAVY), None, 2.0).chosen.name == "a"
    assert decide(*op(), (HEAVY, holding(0, "fallback", 110, rank=100)), None, 2.0).chosen is HEAVY


def test_what_was_measured_is_taken_whatever_it_holds() -> None:
    tuned = Tuned(variant="heavy", config={"unroll": 1}, ratio=1.1)
    assert decide(*op(), (HEAVY, MIDDLE), tuned, 2.0).chosen is HEAVY


def test_constants_count_that_a_run_reads_as_they_are() -> None:
    p = ProgramBuilder()
    weights = p.constant(16)
    p.output(p.add(p.input(16), weights))
    kernel = Kernel(name="k", buffers=(), params=(), functions=(), body=())
    call = KernelCall(kernel=kernel, buffers=(ValueBuffer(value=weights.value),), params=(), units=1, cost_ns=0)
    reads = dataclasses.replace(variant("reads"), build=lambda op, config, context: [call])
    known = BuildContext(caps=SCALAR, program=p.program, constants=frozenset({weights.value}))
    assert held_bytes(reads, p.program.ops[0], {}, known) == 64
    assert held_bytes(reads, p.program.ops[0], {}, dataclasses.replace(known, constants=frozenset())) == 0
    packs = dataclasses.replace(reads, build=lambda op, config, context: [dataclasses.replace(call, phase=Phase.PREPARE)])
    assert held_bytes(packs, p.program.ops[0], {}, known) == 0, "ONNX Runtime's own are freed"
