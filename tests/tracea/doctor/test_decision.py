from __future__ import annotations

import dataclasses

import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.toy_variants import POINTWISE
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.ops import CoreOp, Pointwise
from xyntra_ep.tracea.doctor.decision import Decision, Evidence, RunnerUp, Tuned, decide
from xyntra_ep.tracea.doctor.variants import CPU, by_op, cpu_variants
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR


def op() -> tuple[CoreOp, BuildContext]:
    p = ProgramBuilder()
    p.output(p.add(p.input(4), p.program.operand(0)))
    return p.program.ops[0], BuildContext(caps=SCALAR, program=p.program)


def variant(name: str, cost_ns: float = 100.0, rank: int = 0, why_not: str | None = None) -> Variant[Pointwise]:
    return dataclasses.replace(
        POINTWISE,
        name=name,
        rank=rank,
        admits=lambda op, context: why_not,
        cost_ns=lambda op, config, context: cost_ns,
        space=lambda op, context: (Axis(name="unroll", values=(1, 2)),),
        default=lambda op, context: {"unroll": 1},
    )


def choose(*variants: Variant[Pointwise], tuned: Tuned | None = None) -> Decision:
    return decide(*op(), variants, tuned)


def test_the_cheapest_wins_and_the_others_are_told_why() -> None:
    decision = choose(variant("slow", 300), variant("fast", 100), variant("odd", why_not="needs AVX"))
    assert decision.chosen.name == "fast" and decision.evidence is Evidence.ESTIMATE
    assert decision.rejected == (("odd", "needs AVX"), ("slow", "300 ns against 100 ns"))


def test_the_runner_up_is_what_would_be_chosen_next() -> None:
    variants = [variant("slow", 300), variant("slower", 500), variant("fast", 100), variant("odd", 1, why_not="needs AVX")]
    assert choose(*variants).runner_up == RunnerUp(variant="slow", cost_ns=300)
    tuned = Tuned(variant="slower", config={"unroll": 2}, ratio=1.5)
    assert choose(*variants, tuned=tuned).runner_up == RunnerUp(variant="fast", cost_ns=100)
    cheap_fallback = variant("fallback", 200, rank=100)
    assert choose(*variants, cheap_fallback).runner_up == RunnerUp(variant="slow", cost_ns=300), "fallbacks come last"
    assert choose(variants[2], cheap_fallback).runner_up == RunnerUp(variant="fallback", cost_ns=200)
    assert choose(variants[2], variants[3]).runner_up is None, "what does not admit the op is none"


def test_equal_costs_go_to_rank_then_name_whatever_the_order() -> None:
    a, b, c = variant("a", rank=1), variant("b"), variant("c")
    for order in ((a, b, c), (c, b, a), (b, a, c)):
        decision = choose(*order)
        assert decision.chosen.name == "b"
        assert dict(decision.rejected) == {"c": "ranks lower at equal cost", "a": "ranks lower at equal cost"}


def test_a_measurement_beats_an_estimate() -> None:
    tuned = Tuned(variant="slow", config={"unroll": 2}, ratio=1.5)
    decision = choose(variant("slow", 300), variant("fast", 100), tuned=tuned)
    assert (decision.chosen.name, decision.config, decision.evidence) == ("slow", {"unroll": 2}, Evidence.MEASURED)
    assert decision.cost_ns == pytest.approx(100 / 1.5), "by so much faster than what would be chosen without it"
    assert decision.rejected == (("fast", "slow was measured to be the fastest"),)


@pytest.mark.parametrize("config", [{"unroll": 7}, {}, {"unroll": 1, "more": 1}])
def test_a_configuration_that_left_the_space_is_ignored(config: dict[str, int]) -> None:
    decision = choose(variant("a", 300), tuned=Tuned(variant="a", config=config, ratio=2.0))
    assert (decision.config, decision.evidence) == ({"unroll": 1}, Evidence.ESTIMATE)


def test_a_measured_variant_that_admits_nothing_any_more_is_ignored() -> None:
    tuned = Tuned(variant="gone", config={"unroll": 1}, ratio=2.0)
    assert choose(variant("gone", why_not="odd"), variant("a"), tuned=tuned).evidence is Evidence.ESTIMATE
    assert choose(variant("a"), tuned=tuned).chosen.name == "a"


def test_when_none_admits_every_reason_is_given() -> None:
    with pytest.raises(UnsupportedError) as caught:
        choose(variant("a", why_not="too wide"), variant("b", why_not="too deep"))
    assert str(caught.value) == "add: no kernel for Pointwise (a: too wide; b: too deep)"
    with pytest.raises(UnsupportedError, match="there is no variant for it"):
        choose()


def test_all_variants_are_known_by_op() -> None:
    assert sum(map(len, cpu_variants().values())) == len(CPU) > 0
    assert by_op([variant("x")]).keys() == {Pointwise}
