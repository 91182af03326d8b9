"""What a measurement contains. Never how long something took."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.reports.conftest import ENVIRONMENT
from xyntra_bench import interleaving, serve
from xyntra_bench import measure as module
from xyntra_bench.contenders import Contender
from xyntra_bench.loads import Sample
from xyntra_bench.measure import measure
from xyntra_bench.ort_sessions import OrtSession
from xyntra_bench.plan import Budget, Case, Scenario, zoo_cases
from xyntra_bench.publish import Rule, missed
from xyntra_bench.results import (
    Accuracy,
    CaseResult,
    Moment,
    Placement,
    Run,
    Status,
    Stopped,
    Verdict,
    Warn,
    Weights,
    lacks_data,
)
from xyntra_bench.sessions import Session, factory_for
from xyntra_bench.setups import Setup
from xyntra_zoo import zoo

CPU = Contender(provider="CPUExecutionProvider")
AGAIN = "CPUExecutionProvider again"


def test_a_case_against_itself_is_complete(case: Case, fast: Budget, tmp_path: Path) -> None:
    result = measure(case, (CPU,), fast, tmp_path, quick=True)
    assert result.status is Status.OK and result.iterations == fast.max_iterations and not lacks_data(result)
    assert len(result.model_sha256) == 64 and Warn.QUICK in result.warnings
    base, (contender,) = result.baseline, result.contenders
    assert base is not None and base.ratio is None and base.check is None
    for m in (base, contender):
        assert m.latency is not None and m.creation is not None and m.placement is not None
        assert m.latency.n == len(m.samples_ns) >= fast.max_iterations * fast.runs_per_iteration
        assert m.latency.min_ns <= m.latency.p50_ns <= m.latency.max_ns * 1.001
        assert min(m.creation.cold_ns, m.creation.warm_ns, m.first_run_ns or 0) > 0
        assert m.placement.nodes == {"CPUExecutionProvider": sum(m.placement.nodes.values())}
    assert contender.check is not None and contender.check.state is Accuracy.OK and contender.check.error == 0
    assert contender.ratio is not None and contender.ratio.pairs == fast.max_iterations
    assert contender.verdict is not Verdict.NO_DATA


def test_a_missing_provider_fails_alone_and_says_why(case: Case, fast: Budget, tmp_path: Path) -> None:
    result = measure(case, (Contender(provider="NoSuchEP"), CPU), fast, tmp_path, quick=False)
    absent, present = result.contenders
    assert absent.status is Status.UNAVAILABLE and absent.verdict is Verdict.NO_DATA
    assert "NoSuchEP: not in onnxruntime" in absent.error and "CPUExecutionProvider" in absent.error
    assert present.status is Status.OK and lacks_data(result)


class Distorted:
    """A session whose float outputs are multiplied by `factor`."""

    def __init__(self, session: Session, factor: float) -> None:
        self._session = session
        self._factor = np.float32(factor)

    def outputs(self, feeds: Any, names: Any) -> Any:
        return [output * self._factor for output in self._session.outputs(feeds, names)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def distorted(monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, scratch: Path, *, by: dict[str, float]) -> CaseResult:
    """The CPU provider against itself, the outputs of each setup distorted by its factor."""
    made = factory_for

    def make(model: Path, setup: Setup, *others: Any) -> Any:
        factory = made(model, setup, *others)
        create = factory.create

        def distorting(*, watched: bool = False) -> tuple[Any, int]:
            session, took = create(watched=watched)
            return Distorted(session, by[setup.label]), took

        monkeypatch.setattr(factory, "create", distorting)
        return factory

    monkeypatch.setattr(module, "factory_for", make)
    return measure(case, (CPU,), fast, scratch, quick=False)


def test_a_wrong_result_voids_the_speed(monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, tmp_path: Path) -> None:
    result = distorted(monkeypatch, case, fast, tmp_path, by={CPU.label: 1, AGAIN: 1.001})
    (m,) = result.contenders
    assert m.check is not None and m.check.state is Accuracy.INACCURATE
    assert m.check.error == pytest.approx(1e-3, rel=0.1)
    assert m.ratio is None and m.verdict is Verdict.NO_DATA and Warn.INACCURATE in m.warnings
    assert lacks_data(result)


class Spoiling:
    """A session whose outputs are right the first time alone, as of one that gives a buffer back too early."""

    def __init__(self, session: Session, first: list[bool]) -> None:
        self._session = session
        self._first = first

    def outputs(self, feeds: Any, names: Any) -> Any:
        outputs = self._session.outputs(feeds, names)
        if self._first:
            self._first.clear()
            return outputs
        return [output + np.float32(1) for output in outputs]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def test_outputs_that_the_last_run_has_wrong_void_the_speed(
    monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, tmp_path: Path
) -> None:
    made, first = factory_for, [True]

    def make(model: Path, setup: Setup, *others: Any) -> Any:
        factory = made(model, setup, *others)
        create = factory.create

        def creating(*, watched: bool = False) -> tuple[Any, int]:
            session, took = create(watched=watched)
            return (Spoiling(session, first) if setup.label == AGAIN else session), took

        monkeypatch.setattr(factory, "create", creating)
        return factory

    monkeypatch.setattr(module, "factory_for", make)
    (m,) = measure(case, (CPU,), fast, tmp_path, quick=False).contenders
    assert m.check is not None and m.check.state is Accuracy.INACCURATE and m.check.moments == (Moment.FIRST, Moment.LAST)
    assert m.ratio is None and m.verdict is Verdict.NO_DATA and Warn.INACCURATE in m.warnings


def test_each_round_is_a_sign_of_life_and_a_look_at_the_machine(case: Case, fast: Budget, tmp_path: Path) -> None:
    result = measure(case, (CPU,), dataclasses.replace(fast, min_runs=0), tmp_path, quick=False)
    assert (tmp_path / module.ALIVE_FILE).is_file() and result.stopped in (Stopped.ENOUGH, Stopped.SURE)
    assert (result.stolen_cores is None) is (result.foreign_cores is None) and result.weights is Weights.RANDOM
    assert result.load_high is not None or result.load_before is None
    (m,) = result.contenders
    assert m.check is not None and m.check.moments == (Moment.FIRST, Moment.LAST)


def test_a_row_that_the_time_cut_short_is_marked_and_keeps_its_verdict(case: Case, fast: Budget, tmp_path: Path) -> None:
    asked = dataclasses.replace(fast, min_runs=10**6, max_iterations=3000, max_time_s=0.0, may_cut=True)
    result = measure(case, (CPU,), asked, tmp_path, quick=False)
    assert result.stopped is Stopped.CUT and Warn.CUT_SHORT in result.warnings
    (m,) = result.contenders
    assert m.ratio is not None and m.verdict is not Verdict.NO_DATA
    assert Rule.REACHED_STOP in {
        one.rule for one in missed(Run(environment=ENVIRONMENT, budget=asked, cases=(result,)), case.scenario)
    }


def test_a_dead_reference_voids_the_speed(monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, tmp_path: Path) -> None:
    (m,) = distorted(monkeypatch, case, fast, tmp_path, by={CPU.label: 0, AGAIN: 0}).contenders
    assert m.check is not None and m.check.state is Accuracy.DEAD_REFERENCE
    assert m.ratio is None and m.verdict is Verdict.NO_DATA and Warn.DEAD_REFERENCE in m.warnings


def test_turns_alternate_and_rotate(monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, tmp_path: Path) -> None:
    order: list[str] = []
    repeat = interleaving._repeat

    def spy(runner: interleaving.Runner, feeds: Any, *, at_least: int, block_ns: int) -> list[Sample]:
        if block_ns == interleaving.BLOCK_NS:  # a timed iteration
            order.append(runner.setup.label)
        return repeat(runner, feeds, at_least=at_least, block_ns=0)

    monkeypatch.setattr(interleaving, "_repeat", spy)
    monkeypatch.setattr(interleaving, "wait_until_idle", lambda: None)
    other = Contender(provider=CPU.provider, options={"arena_extend_strategy": "kNextPowerOfTwo"})
    measure(case, (other,), dataclasses.replace(fast, max_iterations=4, min_iterations=4, rounds=2), tmp_path, quick=False)
    a, b = CPU.label, other.label
    assert order == [a, b, b, a, *(b, a, a, b)], "the second round starts with the other"


def test_a_claim_of_nothing_is_a_warning(monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, tmp_path: Path) -> None:
    empty = Placement(nodes={"Other": 3}, groups={"Other": 1})
    monkeypatch.setattr(OrtSession, "placement", lambda session: empty)
    assert Warn.NOTHING_CLAIMED in measure(case, (CPU,), fast, tmp_path, quick=False).contenders[0].warnings
    monkeypatch.setattr(OrtSession, "placement", lambda session: None)
    assert Warn.NO_ASSIGNMENT in measure(case, (CPU,), fast, tmp_path, quick=False).contenders[0].warnings


def test_more_threads_than_cores_is_a_warning(case: Case, fast: Budget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cores_allowed", lambda: 0.5)
    monkeypatch.setattr(module, "governor", lambda: "powersave")
    warnings = measure(case, (), fast, tmp_path, quick=False).warnings
    assert Warn.OVERSUBSCRIBED in warnings and Warn.GOVERNOR in warnings and Warn.QUICK not in warnings


def test_every_warning_says_what_to_do() -> None:
    for warn in Warn:
        assert ":" in warn.advice


@pytest.mark.parametrize("scenario", [Scenario.SCALING, Scenario.SPECIALISED])
def test_a_contender_against_itself(scenario: Scenario, case: Case, fast: Budget, tmp_path: Path) -> None:
    asked = dataclasses.replace(case, scenario=scenario, threads=2)
    result = measure(asked, (CPU,), fast, tmp_path, quick=False)
    assert result.scenario is scenario and len(result.measurements) == 2
    compared, reference = sorted(result.measurements, key=lambda m: not m.against)
    assert compared.against == reference.label and compared.ratio is not None and reference.ratio is None
    assert compared.ratio.pairs == fast.max_iterations
    (second,) = result.contenders
    assert second.check is not None and second.check.state is Accuracy.OK


def test_a_server_has_a_rate_and_latencies_at_it(
    monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, tmp_path: Path
) -> None:
    monkeypatch.setattr(serve, "PROBE_S", 0.01)
    asked = dataclasses.replace(case, scenario=Scenario.SERVER, threads=2, p99_bound_ms=10_000.0)
    result = measure(asked, (CPU,), fast, tmp_path, quick=False)
    assert result.iterations == fast.rounds
    for m in result.measurements:
        assert m.serving is not None and m.streams == 2 and m.threads == 1
        assert m.serving.bound_ns == 10_000_000_000 and len(m.serving.brackets) == fast.rounds
        assert m.latency is not None and m.latency.p99_ns is not None and m.cpu_ns is not None


def test_a_batch_is_one_run(case: Case, fast: Budget, tmp_path: Path) -> None:
    asked = dataclasses.replace(case, scenario=Scenario.MULTI_STREAM, batch=3)
    result = measure(asked, (CPU,), fast, tmp_path, quick=False)
    assert result.shape == "b3 s16" and result.contenders[0].ratio is not None


def test_a_loop_has_its_first_token_and_those_after_it(fast: Budget, tmp_path: Path) -> None:
    model = zoo["gpt2-generate-tiny"]
    case = Case(model=model.name, family=model.family.value, seq=16, scenario=Scenario.GENERATE, new_tokens=4)
    result = measure(case, (CPU,), fast, tmp_path, quick=False)
    (again,) = result.contenders
    for m in result.measurements:
        made = m.generation
        assert made is not None and m.latency is not None and made.tokens == 4
        assert made.first_token.n == m.latency.n and made.later_token.n == 3 * m.latency.n and made.tokens_per_s > 0
    assert again.generation is not None and again.check is not None and again.check.state is Accuracy.OK
    assert again.generation.first_token_ratio is not None and again.generation.later_token_ratio is not None
    assert again.generation.later_token_ratio.pairs == fast.max_iterations


def test_a_past_that_is_lost_voids_the_speed(monkeypatch: pytest.MonkeyPatch, fast: Budget, tmp_path: Path) -> None:
    """The first run has none, so only the runs after it can show it."""
    case = Case(model="gpt2-generate-tiny", seq=16, scenario=Scenario.GENERATE, new_tokens=2)
    runs: list[int] = []
    outputs = OrtSession.outputs

    def forgetful(self: OrtSession, feeds: Any, names: Any) -> Any:
        past = {name: value for name, value in feeds.items() if name != "input_ids"}
        if next(iter(past.values())).shape[2] == 17:
            runs.append(1)
        if len(runs) == 2:  # the second setup's second step
            runs.append(1)
            feeds = {**feeds, **{name: value * 0 for name, value in past.items()}}
        return outputs(self, feeds, names)

    monkeypatch.setattr(OrtSession, "outputs", forgetful)
    (m,) = measure(case, (CPU,), fast, tmp_path, quick=False).contenders
    assert m.check is not None and m.check.state is Accuracy.INACCURATE and m.check.output.startswith("logits after 2")
    assert m.ratio is None and m.generation is not None and m.generation.later_token_ratio is None


def test_a_note_about_the_precision_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, tmp_path: Path
) -> None:
    note = "precision=fp32 needs a floating-point unit: computed by hand"
    monkeypatch.setattr(module, "factory_for", with_notes((note,)))
    (m,) = measure(case, (CPU,), fast, tmp_path, quick=False).contenders
    assert Warn.OTHER_PRECISION in m.warnings and m.notes == (note,)
    monkeypatch.setattr(module, "factory_for", with_notes(("takes nothing: no compiler",)))
    (m,) = measure(case, (CPU,), fast, tmp_path, quick=False).contenders
    assert Warn.OTHER_PRECISION not in m.warnings


def with_notes(notes: tuple[str, ...]) -> Any:
    def make(*arguments: Any) -> Any:
        factory = factory_for(*arguments)
        create = factory.create

        def noting(*, watched: bool = False) -> Any:
            made = create(watched=watched)
            factory.notes = notes  # type: ignore[misc]  # what a runtime would have warned of
            return made

        factory.create = noting  # type: ignore[method-assign]
        return factory

    return make


def test_a_runtime_that_says_what_it_ran_in_is_believed(
    monkeypatch: pytest.MonkeyPatch, case: Case, fast: Budget, tmp_path: Path
) -> None:
    monkeypatch.setattr(OrtSession, "precision", lambda self: "bf16")
    (m,) = measure(case, (CPU,), fast, tmp_path, quick=False).contenders
    assert m.precision == "bf16" and Warn.OTHER_PRECISION in m.warnings


class Compiling:
    """A factory like that of a provider with a cache of kernels and plans; what each creation found is noted."""

    notes = ()

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.found: list[set[str]] = []

    def create(self, *, watched: bool = False) -> tuple[Any, int]:
        self.found.append({path.suffix for path in self.cache.rglob("*.*")})
        for name in ("kernels/k.so", "plans/p.plan"):
            (self.cache / name).parent.mkdir(parents=True, exist_ok=True)
            (self.cache / name).write_text("x")
        return object(), len(self.found)


def test_planning_is_timed_with_the_kernels_of_the_cold_creation(fast: Budget, tmp_path: Path) -> None:
    made = Compiling(tmp_path / "cache")
    setup = Setup(label="XyntraEP", contender=Contender(provider="XyntraEP"), threads=1)
    creation = module._time_creation(setup, made, fast, made.cache)
    assert made.found == [set(), {".so"}, {".so", ".plan"}]
    assert (creation.cold_ns, creation.planned_ns, creation.warm_ns) == (1, 2, 3)
    assert creation.compile_cpu_ns is not None and creation.artefact_bytes == 2
    other = Compiling(tmp_path / "other")
    creation = module._time_creation(dataclasses.replace(setup, contender=CPU), other, fast, other.cache)
    assert creation.planned_ns is None and creation.compile_cpu_ns is None and len(other.found) == 2


def test_a_quantised_model_is_held_against_its_float_model(fast: Budget, tmp_path: Path) -> None:
    model = zoo["gpt2-prefill-q4-tiny"]
    (case,) = zoo_cases([model.name], (1,), quick=True)
    result = measure(case, (CPU,), fast, tmp_path, quick=True)
    base, (again,) = result.baseline, result.contenders
    assert base is not None and base.float_error is not None and base.float_error == again.float_error
    found = base.float_error
    assert (found.model, found.output, found.positions) == ("gpt2-prefill-tiny", "logits", 16)
    assert 0.01 < found.rms < 0.4 and 4 < (found.same_largest or 0) < 16
    assert again.check is not None and again.check.state is Accuracy.OK and again.check.max_err == model.max_err
    assert again.check.float_ratio == 1 and again.check.error == 0 and base.check is None


def test_a_quantised_result_that_is_farther_from_the_float_model_voids_the_speed(
    monkeypatch: pytest.MonkeyPatch, fast: Budget, tmp_path: Path
) -> None:
    (case,) = zoo_cases(["mobilenetv2-qdq-tiny"], (1,), quick=True)
    result = distorted(monkeypatch, case, fast, tmp_path, by={CPU.label: 1, AGAIN: 1.1})
    (m,) = result.contenders
    assert m.check is not None and m.check.state is Accuracy.INACCURATE and (m.check.float_ratio or 0) > 1.25
    assert m.check.error is not None and m.check.error < m.check.max_err, "it was the float model that told"
    assert m.float_error is not None and m.float_error.error > 0.05 and m.ratio is None and Warn.INACCURATE in m.warnings
