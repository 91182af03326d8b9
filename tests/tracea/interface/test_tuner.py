"""The tuner finds what is faster than the default, keeps it only if that is sure, and nothing of what is wrong."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.programs.builder import ProgramBuilder
from xyntra_ep.errors import ConfigError, UnsupportedError
from xyntra_ep.provider import registration
from xyntra_ep.tracea import AutoTuner, Budget, Context, named_problem, tune
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.expr import call, const
from xyntra_ep.tracea.core_ir.ops import Binding, Gemm, Program, Range, SymbolKind, ValueKind
from xyntra_ep.tracea.doctor.decision import Evidence
from xyntra_ep.tracea.doctor.variants import AnyVariant, VariantTable, cpu_variants
from xyntra_ep.tracea.interface.tuning import trial as trial_module
from xyntra_ep.tracea.interface.tuning import tuner as tuner_module
from xyntra_ep.tracea.interface.tuning.problem import Problem, problem_of
from xyntra_ep.tracea.interface.tuning.trial import Candidate, Measured, Trial
from xyntra_ep.tracea.kernels.variant import Axis
from xyntra_ep.tracea.optimizer.cost_model import CostModel, MachineFacts, Option, Tree, Vocabulary, features
from xyntra_ep.tracea.optimizer.search import Exhaustive
from xyntra_ep.tracea.optimizer.tuning_cache import TuningCache
from xyntra_ep.tracea.runtime.hashing import hash128_of

GEMM = named_problem("gemm", m=24, n=96, k=64)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(cache_dir=tmp_path / "cache", hash128=hash128_of(registration.library()))


def exhaustive(space: Any, seeds: Sequence[Any], seed: int) -> Exhaustive:
    return Exhaustive(space, seeds=seeds, seed=seed)


def measuring(ratios: Mapping[str, float], noise: float = 0.0) -> Any:
    """Instead of a clock: what a variant takes, in times of the default's, and by how much rounds differ."""

    def measure(self: Trial, candidates: Sequence[Candidate], rounds: int) -> list[Measured]:
        found = []
        for candidate in candidates:
            ratio = ratios.get(candidate.variant.name, 1.0) + 0.001 * sum(candidate.config.values())
            spread = [ratio * (1 - noise * (-1) ** i) for i in range(rounds)]
            found.append(Measured(candidate=candidate, ratios=tuple(spread), ns=1e3 * ratio, default_ns=1e3))
        return found

    return measure


def test_a_search_on_this_machine_ends_and_is_remembered(context: Context) -> None:
    """For real: every point that may be tried, each right, and the second search has nothing left to do."""
    heard: list[Measured] = []
    autotuner = AutoTuner(context, threads=1, search=exhaustive)
    found = autotuner.optimize(GEMM, Budget(trials=400), heard.append)
    trial = Trial(GEMM, context, 1)
    assert {m.problem for m in heard} == {""}, "no point computes something else"
    assert len(heard) == len(found.trials) >= 3
    assert all(m.ratio > 0 and m.ns > 0 and m.default_ns > 0 for m in heard)
    again = AutoTuner(Context(cache_dir=context.root.path, hash128=context.hash128), threads=1, search=exhaustive)
    heard.clear()
    assert again.optimize(GEMM, Budget(trials=400), heard.append) == dataclasses.replace(found, trials=found.trials)
    assert heard == []
    assert len(trial.space.points()) == len(found.trials) + 1, "the default was not tried against itself"


def test_what_is_faster_is_chosen_from_then_on(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    op, program, known = GEMM.op, GEMM.program, GEMM.constants
    before = context.estimate(op, program, known)
    other = next(name for name, _ in before.rejected if name == "gemm.batched")
    monkeypatch.setattr(Trial, "measure", measuring({other: 0.5}))
    found = AutoTuner(context, search=exhaustive).optimize(GEMM)
    assert found.best is not None and found.best.variant == other and found.ratio > 1.5
    tuned = Context(cache_dir=context.root.path, hash128=context.hash128)
    decision = tuned.estimate(op, program, known)
    assert (decision.chosen.name, dict(decision.config)) == (other, dict(found.best.config))
    assert decision.evidence is Evidence.MEASURED and decision.cost_ns < before.cost_ns
    assert tuned.untuned.estimate(op, program, known).chosen is before.chosen
    alone = tuned.choosing({Gemm: (before.chosen,)})
    assert alone.estimate(op, program, known).chosen is before.chosen, "who names variants gets these"


def test_what_was_found_at_one_size_is_for_sessions_that_expect_it(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    program, known = rows_known_by_then()
    [binding] = program.bindings

    def expecting(*rows: int) -> Program:
        return replace(program, bindings=[replace(binding, plausible=Range(*rows))])

    problem = problem_of(expecting(24, 24, 24), 0, known)
    trial = Trial(problem, context, 1)
    other = next(c.variant.name for c in trial.candidates() if c.variant.name != trial.default.variant.name)
    monkeypatch.setattr(Trial, "measure", measuring({other: 0.5}))
    assert AutoTuner(context, search=exhaustive).optimize(problem).best is not None
    tuned = Context(cache_dir=context.root.path, hash128=context.hash128)
    evidence = {
        rows: tuned.estimate(program.ops[0], expecting(*rows), known).evidence
        for rows in [(24, 24, 24), (40, 40, 40), (16, 128, 512), (4096, 4096, 4096), (1, 1, 8)]
    }
    assert list(evidence.values()) == [Evidence.MEASURED] * 3 + [Evidence.ESTIMATE] * 2


def test_the_learned_cost_model_is_tried_first_where_it_is_better(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes gemm.batched for the fastest, whatever is estimated: the tree asks whether that is the variant."""
    trial, wanted = Trial(GEMM, context, 1), "gemm.batched"
    known = Vocabulary(variants=(wanted,), axes=())
    pair = [Option(variant=name, config={}, estimate_ns=1.0) for name in (wanted, "another")]
    [asked] = np.flatnonzero(np.diff(features(GEMM.facts, MachineFacts.of(context.caps), pair, known), axis=0)[0])
    tree = Tree.of([[int(asked), 0.5, 1, 2], [9.0], [-9.0]])

    def use(*kinds: str) -> None:
        model = CostModel(known=known, trees=(tree,), better_for=frozenset(kinds))
        monkeypatch.setattr(trial_module, "learned", lambda: model)

    use("Conv")
    assert trial.ranked(2) == [], "estimates are better for products"
    use("Gemm", "Conv")
    assert [trial.candidate(point).variant.name for point in trial.ranked(2)] == [wanted, wanted]
    monkeypatch.setattr(tuner_module, "heroes", TuningCache)  # which come before: there are none
    monkeypatch.setattr(Trial, "measure", measuring({}))
    heard: list[Measured] = []
    AutoTuner(context, search=exhaustive).optimize(GEMM, Budget(trials=1), heard.append)
    assert heard[0].candidate.variant.name == wanted


def test_what_is_not_surely_faster_is_not_chosen(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "measure", measuring({"gemm.batched": 0.9}, noise=0.3))
    found = AutoTuner(context, search=exhaustive).optimize(GEMM)
    assert found.best is None and found.trials
    assert Context(cache_dir=context.root.path).estimate(GEMM.op, GEMM.program, GEMM.constants).evidence is Evidence.ESTIMATE


def test_a_search_ends_when_nothing_is_better(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "measure", measuring({}))
    monkeypatch.setattr(tuner_module, "_IN_VAIN", 8)
    assert len(AutoTuner(context, search=exhaustive).optimize(GEMM).trials) == 8


def broken(name: str, **change: Any) -> AnyVariant:
    """gemm.packed_b, but for what is said."""
    [packed] = [v for v in cpu_variants()[Gemm] if v.name == "gemm.packed_b"]
    return dataclasses.replace(packed, name=name, space=lambda op, c: [Axis(name="x", values=(1,))], **change)


def _wrong(op: Gemm, config: Any, context: Any) -> Any:
    """Twice as much."""
    [packed] = [v for v in cpu_variants()[Gemm] if v.name == "gemm.packed_b"]
    twice = dataclasses.replace(op, epilogue=call("mul", op.epilogue, const(2.0)))
    return packed.build(twice, packed.default(twice, context), context)


def _raises(op: Gemm, config: Any, context: Any) -> Any:
    raise RuntimeError("no such tile")


@pytest.mark.parametrize(("build", "why"), [(_wrong, "computes something else"), (_raises, "cannot be made")])
def test_what_is_wrong_loses_and_is_recorded(context: Context, monkeypatch: pytest.MonkeyPatch, build: Any, why: str) -> None:
    variant = broken(
        "gemm.broken", build=build, default=lambda op, c: {"x": 1}, cost_ns=lambda op, config, c: 1e9, refuses=lambda *a: ""
    )
    table: VariantTable = {**cpu_variants(), Gemm: (*cpu_variants()[Gemm], variant)}
    monkeypatch.setattr(trial_module, "cpu_variants", lambda: table)
    monkeypatch.setattr(trial_module, "_SLOW", 1e30)
    trial = Trial(GEMM, context, 1)
    [candidate] = [c for c in trial.candidates() if c.variant is variant]
    right, wrong = trial.measure([trial.default, candidate], 1)
    assert right.problem == "" and wrong.problem.startswith(why)


def test_a_kernel_that_ends_its_process_loses_alone(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child of the second job is ended by hand, as a kernel would by a wrong address."""
    child = Path(tuner_module.__file__).parents[2] / "runtime" / "children" / "trial_child.py"
    text = child.read_text().replace(
        '        _say({"trying": number})\n',
        '        _say({"trying": number})\n        if number == 1:\n            os.kill(os.getpid(), signal.SIGSEGV)\n',
    )
    fake = context.root.tmp / "child.py"
    fake.write_text(text)
    from xyntra_ep.tracea.runtime.children import trial_child

    monkeypatch.setattr(trial_child, "__file__", str(fake))
    trial = Trial(GEMM, context, 1)
    ended, fine = trial.measure([trial.default, trial.default], 2)
    assert ended.problem == f"the process that tried it was ended by signal {signal.SIGSEGV:d}"
    assert fine.problem == "" and len(fine.ratios) == 2


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_tensors_of_a_trial_begin_lines_as_in_a_session(size: int, tmp_path: Path) -> None:
    """By chance one in four would."""
    from xyntra_ep.tracea.runtime.children.trial_child import _buffer, _memory

    for i in range(8):
        (tmp_path / str(i)).write_bytes(bytes([i]) * size)
        read, written = _buffer(str(tmp_path / str(i))), _memory(b"\xff" * size, size)
        assert ctypes.addressof(read) % 64 == ctypes.addressof(written) % 64 == 0
        assert read.raw[:size] == bytes([i]) * size and len(read) == size + 64
        assert written.raw == b"\xff" * size


def test_interrupted_it_keeps_what_it_has(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Measured] = []

    def heard(measured: Measured) -> None:
        tried.append(measured)
        if len(tried) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "measure", measuring({}))
    with pytest.raises(KeyboardInterrupt):
        AutoTuner(context, search=exhaustive).optimize(GEMM, heard=heard)
    kept = TuningCache.load(context.root.path, context.machine_class, trials=True)
    [result] = kept.results.values()
    assert len(result.trials) == 5 and result.best is None
    more: list[Measured] = []
    AutoTuner(Context(cache_dir=context.root.path), search=exhaustive).optimize(GEMM, heard=more.append)
    before = {tuple(sorted(m.candidate.point.items())) for m in tried}
    assert before.isdisjoint(tuple(sorted(m.candidate.point.items())) for m in more), "it goes on where it stopped"


def rows_known_by_then() -> tuple[Program, frozenset[int]]:
    """Of a product whose rows are usually 24."""
    p = ProgramBuilder()
    x, w = p.input("s", 64), p.constant(64, 96)
    p.output(p.gemm(x, w))
    p.program.bindings[:] = [replace(b, plausible=Range(1, 24, 48)) for b in p.program.bindings]
    return p.program, frozenset({w.value})


def test_an_op_of_a_program_by_itself() -> None:
    program, known = rows_known_by_then()
    problem = problem_of(program, 0, known)
    assert [v.kind.value for v in problem.program.values] == ["input", "const", "output"]
    assert problem.sizes == {"s": 24} and problem.flops == 2 * 24 * 64 * 96
    assert [a.shape for a in problem.data(problem.program.values[0].kind)] == [(24, 64)]
    program.bindings[:] = [replace(b, plausible=None) for b in program.bindings]
    with pytest.raises(UnsupportedError, match="nothing is known of the size s"):
        problem_of(program, 0, known)


def test_sizes_of_a_run_may_be_known_by_then_only(context: Context) -> None:
    program, known = rows_known_by_then()
    problem = problem_of(program, 0, known)
    [measured] = (trial := Trial(problem, context, 2)).measure([trial.default], 2)
    assert measured.problem == "" and measured.ns > 0


def test_sizes_may_be_half_of_what_an_input_shows(context: Context) -> None:
    """As behind a convolution of stride 2, where no tensor of the op itself has them."""
    p = ProgramBuilder()
    s = symbol("s")
    x, w = p.temp(s // 2 + 1, 64), p.constant(64, 96)
    p.output(p.gemm(x, w))
    p.program.bindings[:] = [Binding(name="s", kind=SymbolKind.DIM, input=0, index=0, plausible=Range(2, 46, 90))]
    problem = problem_of(p.program, 0, frozenset({w.value}))
    assert problem.sizes == {"s": 46} and [a.shape for a in problem.data(ValueKind.INPUT)] == [(24, 64), (46,)]
    [right] = (trial := Trial(problem, context, 1)).measure([trial.default], 2)
    assert right.problem == "" and right.ns > 0
    fixed = named_problem("gemm", m=24, n=96, k=64)
    assert {c.variant.name for c in trial.candidates()} == {c.variant.name for c in Trial(fixed, context, 1).candidates()}


def test_a_strict_session_is_tuned_by_what_it_may_use(context: Context) -> None:
    """No Winograd where NaN has to stay where it is."""
    conv = named_problem("conv", n=1, c=32, h=14, w=14, m=32, k=3, pad=1)
    strict = Context(cache_dir=context.root.path, hash128=context.hash128, strict=True)
    kinds = [{c.variant.name for c in Trial(conv, c, 1).candidates()} for c in (context, strict)]
    assert any("winograd" in name for name in kinds[0]) and not any("winograd" in name for name in kinds[1])


def test_by_name() -> None:
    with pytest.raises(ConfigError, match="no size 'q'"):
        tune("gemm", q=1)
    with pytest.raises(ConfigError):
        tune("gemmm")
    assert isinstance(named_problem("conv", c=8, m=8, h=9, w=9), Problem)


def test_it_leaves_no_process_and_no_file(context: Context) -> None:
    trial = Trial(GEMM, context, 1)
    trial.measure([trial.default], 1)
    assert os.listdir(context.root.tmp) == []


def test_what_was_best_for_a_shape_alike_is_tried_first(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "measure", measuring({"gemm.batched": 0.5}))
    best = AutoTuner(context, search=exhaustive).optimize(named_problem("gemm", m=24, n=128, k=64)).best
    assert best is not None
    heard: list[Measured] = []
    AutoTuner(context, search=exhaustive).optimize(GEMM, Budget(trials=1), heard.append)
    assert (heard[0].candidate.variant.name, heard[0].candidate.config) == (best.variant, best.config)
