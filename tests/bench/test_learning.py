"""`bench learn` on times that are made up: what the estimates do not know can be learned, and is judged on what was not seen."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from xyntra_bench.cli import app
from xyntra_bench.environment import Environment, read_environment
from xyntra_bench.errors import BenchError
from xyntra_bench.store import dump, write_atomically
from xyntra_bench.tuning import learning
from xyntra_bench.tuning.learned_results import LearnedKernel, Ranking, load_learned_run
from xyntra_bench.tuning.search_results import KIND_GP, KIND_RANDOM, KernelSearch, SearchRun
from xyntra_ep.tracea.optimizer.cost_model import CostModel, MachineFacts
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, Capabilities


@pytest.fixture(scope="module")
def environment() -> Environment:
    return read_environment("gcc", ())


def search(name: str, m: int, *, truth: float) -> KernelSearch:
    """The estimate knows of rows, and not that each doubling of columns takes ``truth`` times as long; one point fails."""
    rng, times = random.Random(m), {}
    for rows, columns in itertools.product((4, 6, 8, 12), (512, 256, 128, 96, 64, 48, 32, 16)):
        estimate = 100.0 * m * (1 + 1 / rows)
        time = estimate * truth ** (columns.bit_length() - 5) * rng.uniform(0.99, 1.01)
        times[f"gemm.x rows={rows} columns={columns}"] = (estimate, time)
    default = "gemm.x rows=12 columns=512"
    times = {name: (estimate, time / times[default][1]) for name, (estimate, time) in times.items()}
    broken: dict[str, tuple[float, ...]] = {**times, "gemm.x rows=4 columns=16": (1.0,)}
    return KernelSearch(
        name=name, op=f"Gemm f32[{m},64] f32[64,512]! f32[{m},512]", flops=m * 2 * 64 * 512,
        bytes=4 * (m * 64 + 64 * 512 + m * 512), points=32, failed=1, near=1, default=default,
        best="gemm.x rows=12 columns=16", default_ratio=1.5, rank_correlation=0.1,
        top5=1.2, curves={KIND_GP: (1.0,), KIND_RANDOM: (1.0,)}, needed={KIND_GP: (9, 9), KIND_RANDOM: (9, 9)}, times=broken,
    )  # fmt: skip


def run_of(environment: Environment, isa: str, caps: Capabilities, *, truth: float = 1.3) -> SearchRun:
    facts = {name: float(value) for name, value in dataclasses.asdict(MachineFacts.of(caps)).items()}
    return SearchRun(
        command="bench run tune",
        started="2026-01-02T",
        finished="x",
        environment=environment,
        kernels_isa=isa,
        machine=facts,
        kernels=tuple(search(f"gemm-{m}", m, truth=truth) for m in (8, 24, 64, 100, 192)),
    )


def test_what_estimates_do_not_know_is_learned(environment: Environment) -> None:
    runs = [run_of(environment, "AVX2", AVX2), run_of(environment, "AVX-512", AVX512)]
    kernels, model = learning.learned(runs, seeds=2)
    assert [(k.name, k.isa) for k in kernels] == [(s.name, run.kernels_isa) for run in runs for s in run.kernels]
    for k in kernels:
        assert k.points == 31, "what failed is not learned from"
        assert k.unseen_machine is not None and k.unseen_machine.correlation > 0.9 > k.estimate.correlation
        assert k.unseen_shape.correlation > 0.9 and k.unseen_shape.top <= 1.01 < 1.5 < k.estimate.top
        assert max(k.needed_seeded) <= 4 < min(k.needed), "the default, and three of the ranking"
    assert model.better_for == {"Gemm"}
    assert model.known.variants == ("gemm.x",) and model.known.axes == ("columns", "rows")
    sample = learning.samples_of(runs[0])[2]
    assert CostModel.of(model.data()).ranked(sample.op, sample.machine, sample.options)[0] in {
        i for i, option in enumerate(sample.options) if option.config["columns"] == 16
    }


def test_where_estimates_are_right_nothing_is_better(environment: Environment) -> None:
    kernels, model = learning.learned([run_of(environment, "AVX2", AVX2, truth=1.0)], seeds=1)
    assert model.better_for == frozenset() and all(k.unseen_machine is None for k in kernels)


def test_a_kernel_is_judged_by_models_that_have_not_seen_it(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[int, set[tuple[str, str]]] = {}
    real_fitted, real_judged = learning.fitted, learning._judged

    def fitted(samples: Sequence[learning.Sample], better_for: Sequence[str] = ()) -> Any:
        model = real_fitted(samples, better_for)
        seen[id(model)] = {(s.search.name, s.isa) for s in samples}
        return model

    def judged(sample: learning.Sample, shape: Any, machine: Any, seeds: int) -> LearnedKernel:
        assert not {isa for name, isa in seen[id(shape)] if name == sample.search.name} and len(seen[id(shape)]) == 8
        assert not {name for name, isa in seen[id(machine)] if isa == sample.isa} and len(seen[id(machine)]) == 5
        return real_judged(sample, shape, machine, seeds)

    monkeypatch.setattr(learning, "fitted", fitted)
    monkeypatch.setattr(learning, "_judged", judged)
    learning.learned([run_of(environment, "AVX2", AVX2), run_of(environment, "AVX-512", AVX512)], seeds=1)
    assert len(seen) >= 5 + 2


def test_a_ranking_is_better_by_its_first_ones_and_as_a_whole() -> None:
    def kernel(kind: str, correlation: float, top: float) -> LearnedKernel:
        estimate, learned = Ranking(correlation=0.5, top=1.1, first=1.2), Ranking(correlation=correlation, top=top, first=1.0)
        return LearnedKernel(
            name="k", isa="AVX2", kind=kind, points=9, estimate=estimate, unseen_shape=learned, unseen_machine=None,
            needed=(1,), needed_seeded=(1,),
        )  # fmt: skip

    kernels = [kernel("both", 0.6, 1.05), kernel("whole", 0.6, 1.15), kernel("first", 0.4, 1.05), kernel("none", 0.4, 1.15)]
    assert learning.better_for(kernels) == ["both"]


def test_one_kernel_is_too_little(environment: Environment) -> None:
    run = run_of(environment, "AVX2", AVX2)
    with pytest.raises(BenchError, match="fewer than two kernels"):
        learning.learned([dataclasses.replace(run, kernels=run.kernels[:1])])


def test_without_scikit_learn_it_is_named(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "find_spec", lambda name: None)
    with pytest.raises(BenchError, match=r"scikit-learn is missing. pip install 'xyntra-ep\[tune\]'"):
        learning.learned([run_of(environment, "AVX2", AVX2)])


def test_the_command_writes_results_and_weights(environment: Environment, tmp_path: Path) -> None:
    write_atomically(tmp_path / "run.json", dump(run_of(environment, "AVX2", AVX2)))
    results, weights = tmp_path / "learned.json", tmp_path / "weights.json"
    made = CliRunner().invoke(app, ["learn", str(tmp_path / "run.json"), "--json", str(results), "--weights", str(weights)])
    assert made.exit_code == 0, made.output
    stored = load_learned_run(results)
    assert stored.sources == ("run.json",) and stored.better_for == ("Gemm",)
    assert CostModel.of(json.loads(weights.read_text())).better_for == {"Gemm"}
    shown = CliRunner().invoke(app, ["learned", str(results)])
    assert shown.stdout == made.stdout and "It ranks for Gemm" in shown.stdout
    results.write_text('{"schema": "xyntra-learned/9"}')
    with pytest.raises(BenchError, match="run `bench learn` again"):
        load_learned_run(results)
