"""`xyntra tune`: kernels of a model are tuned, sessions find what was found, and a model that is slower for it forgets it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tracea.interface.test_tuner import exhaustive, measuring
from xyntra_ep import cli
from xyntra_ep.diagnostics import tune as tune_module
from xyntra_ep.diagnostics import tuning_tables
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.machine import doctor
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.diagnostics.tune import ModelTimes, TuningReport, compared, tune
from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.estimates.cost import Comparison, Estimate
from xyntra_ep.provider.planner import Planner
from xyntra_ep.tracea import AutoTuner, Context
from xyntra_ep.tracea.doctor.variants import CPU, GPU
from xyntra_ep.tracea.interface.tuning import tuner as tuner_module
from xyntra_ep.tracea.interface.tuning.problem import Problem
from xyntra_ep.tracea.interface.tuning.shapes import SHAPES
from xyntra_ep.tracea.interface.tuning.trial import Trial
from xyntra_ep.tracea.optimizer import hero_tables as hero_module
from xyntra_ep.tracea.optimizer.hero_tables import heroes
from xyntra_ep.tracea.optimizer.tuning_cache import TuningCache, TuningResult, read_export
from xyntra_zoo import model_path, zoo


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XYNTRA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def quick(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the configurations with an odd number of rows are twice as fast, by a clock of the test's."""
    monkeypatch.setattr(Trial, "measure", measuring({"gemm.batched": 0.5, "gemm.packed_b": 0.8, "conv.nhwc_direct": 0.7}))
    monkeypatch.setattr(tuner_module, "GaussianProcess", exhaustive)
    monkeypatch.setattr(tuner_module, "gaussian_process", exhaustive)
    monkeypatch.setattr(tune_module, "_ROUNDS", 6)


def model() -> Path:
    return model_path(zoo["mobilenetv2-tiny"])


def measured() -> set[bool]:
    """Of the kernels that a new session has, whether they were chosen by what tuning has found."""
    return {kernel.is_measured for graph in explain(model()).graphs for island in graph.islands for kernel in island.kernels}


def runs_at(*ratios: float) -> Callable[..., ModelTimes]:
    """Instead of a clock: of each comparison, the last one for all that follow."""
    left = list(ratios)

    def compared(before: object, after: object) -> ModelTimes:
        ratio = left.pop(0) if len(left) > 1 else left[0]
        return ModelTimes(before_ns=ratio, after_ns=1.0, ratio=ratio, low=ratio, high=ratio, rounds=9)

    return compared


def test_a_model_is_tuned_for_real(cache: Path) -> None:
    found = tune(model(), seconds=12, trials=4, threads=1)
    done = [k for k in found.kernels if k.result is not None]
    assert done and all(0 < k.share <= 1 and k.count >= 1 for k in found.kernels)
    assert sum(k.share for k in found.kernels) <= 1.0 + 1e-9
    assert all(t.ratio is not None for k in done if k.result is not None for t in k.result.trials), str(found)
    shown = str(found)
    assert shown.splitlines()[0].split() == ["kernel", "share", "before", "after", "ratio", "ceiling", "variant"]
    assert found.file.exists() and found.file.parent == cache


def test_sizes_that_do_not_fit_are_told_before_anything_is_tuned(cache: Path) -> None:
    heard: list[object] = []
    with pytest.raises(ConfigError, match=r"sequence=128 is made up, with 64 it runs: give sizes=\{'sequence': 64\}"):
        tune(model_path(zoo["bert-base-tiny"]), seconds=60, hear=lambda *of: heard.append(of))
    assert not heard


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", ["arrays", "files"])
def test_inputs_say_which_sizes_are_usual(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Those of a dimension by their shapes; and the model is run on them."""
    given: dict[str, Any] = {name: np.full((3, 17), 1, np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
    ran: list[Any] = []
    opened: list[str] = []

    def once(before: Callable[[], object], after: Callable[[], object]) -> ModelTimes:
        ran.extend((before(), after()))
        return runs_at(1.3)(before, after)

    def recorded(model: Any, options: Mapping[str, str] | None = None, **rest: Any) -> Any:
        opened.append((options or {}).get("dim_hints", ""))
        return open_session(model, options, **rest)

    monkeypatch.setattr(tune_module, "open_session", recorded)
    monkeypatch.setattr(tune_module, "compared", once)
    model = model_path(zoo["bert-base-tiny"])
    if way == "arrays":
        found = tune(model, seconds=60, trials=2, feeds=given)
        assert found.kernels
    else:
        np.savez(tmp_path / "feeds.npz", **given)
        assert cli.main(["tune", str(model), "--time", "60s", "--trials", "2", "--feeds", str(tmp_path / "feeds.npz")]) == 0
    assert opened[0] == "" and set(opened[1:]) == {"batch=3,sequence=17"}
    assert ran and all(output[0].shape[:2] == (3, 17) for output in ran)


def test_an_input_that_does_not_fit_is_told_before_anything_is_tuned(cache: Path) -> None:
    with pytest.raises(ConfigError, match="the model has no input 'y'"):
        tune(model(), seconds=60, feeds={"y": np.zeros(3, np.float32)})


@pytest.mark.usefixtures("quick")
def test_sessions_find_what_was_found(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_module, "compared", runs_at(1.3))
    before = explain(model())
    found = tune(model(), seconds=60)
    assert found.kept and found.model is not None and found.model.ratio == 1.3
    kinds = measured()
    assert True in kinds and "kept in" in str(found) and "(tuned)" in str(explain(model()))
    for options in ({"tune": "off"}, {"deterministic": "1"}):
        untuned = explain(model(), options=options)
        assert [i.kernels for g in untuned.graphs for i in g.islands] == [i.kernels for g in before.graphs for i in g.islands]


@pytest.mark.usefixtures("quick")
def test_what_makes_the_model_slower_is_taken_back(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_module, "compared", runs_at(0.9, 1.0))
    found = tune(model(), seconds=60)
    assert not found.kept and "nothing of it is used" in str(found)
    context = Context()
    kept = TuningCache.load(context.root.path, context.machine_class, trials=True)
    assert kept.results and all(r.best is None and r.trials for r in kept.results.values())
    kinds = measured()
    assert kinds == {False}


@pytest.mark.usefixtures("quick")
def test_an_island_that_is_slower_than_onnx_runtime_is_declined_from_then_on(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune_module, "compared", runs_at(1.1, 0.77))
    found = tune(model(), seconds=60)
    [island] = found.islands
    assert island.verdict.loses and "0.770x with it (0.770 to 0.770), declined from now on" in str(found)
    reasons = {d.why.text for graph in explain(model()).graphs for d in graph.declined}
    assert reasons == {"declined, measured: 0.77x with it"}
    for options in ({"claim": "all"}, {"tune": "off"}, {"deterministic": "1"}):
        assert all(not graph.declined for graph in explain(model(), options=options).graphs)
    monkeypatch.setattr(tune_module, "compared", runs_at(1.0))
    [island] = tune(model(), seconds=60).islands
    assert "not sure: estimates decide" in str(island), "a second call measures it again"
    assert all(not graph.declined for graph in explain(model()).graphs)


@pytest.mark.usefixtures("quick")
def test_an_island_that_is_faster_is_claimed_whatever_is_estimated(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_module, "compared", runs_at(1.3))
    tune(model(), seconds=60)
    monkeypatch.setattr(Comparison, "total", lambda self: Estimate(ours_ns=2.0, ort_ns=1.0))
    monkeypatch.setattr(Comparison, "slow", lambda self: {})
    monkeypatch.setattr(Planner, "_hopeless", lambda *_: None)
    assert all(not graph.declined for graph in explain(model()).graphs)
    assert any(graph.declined for graph in explain(model(), options={"tune": "off"}).graphs), "by estimates it would be"


@pytest.mark.usefixtures("quick")
def test_sessions_that_are_made_to_judge_islands_leave_no_plan(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who ends the process meanwhile must not find an island left out for ever."""

    def ended(before: Callable[[], object], after: Callable[[], object]) -> ModelTimes:
        raise SystemExit

    monkeypatch.setattr(tune_module, "compared", ended)
    with pytest.raises(SystemExit):
        tune(model(), seconds=60)
    assert not list((cache / "plans").iterdir())
    assert all(not graph.declined for graph in explain(model()).graphs)


@pytest.mark.usefixtures("quick")
def test_a_session_tunes_what_has_no_answer_yet(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    optimize = AutoTuner.optimize

    def noted(self: AutoTuner, problem: Problem, *rest: Any) -> TuningResult:
        asked.append(problem.name)
        return optimize(self, problem, *rest)

    monkeypatch.setattr(AutoTuner, "optimize", noted)
    session = {"tune": "session"}
    first = explain(model(), options=session)
    assert asked and any(k.is_measured for g in first.graphs for i in g.islands for k in i.kernels)
    asked.clear()
    explain(model(), options={**session, "min_island": "2"})
    assert asked == []
    explain(model(), options={**session, "deterministic": "1"})
    assert asked == []


@pytest.mark.usefixtures("quick")
def test_stopped_it_keeps_what_it_has_and_goes_on(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = 0

    def hear(*_: object) -> None:
        nonlocal trials
        trials += 1
        if trials == 6:
            raise KeyboardInterrupt

    found = tune(model(), seconds=60, hear=hear)
    assert found.stopped and found.model is None and "goes on from there" in str(found)
    context = Context()
    kept = TuningCache.load(context.root.path, context.machine_class, trials=True)
    assert sum(len(r.trials) for r in kept.results.values()) >= 6
    monkeypatch.setattr(tune_module, "compared", runs_at(1.1))
    assert not tune(model(), seconds=60).stopped


@pytest.mark.usefixtures("quick")
def test_the_command(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tune_module, "compared", runs_at(1.2))
    assert cli.main(["tune", "--export", str(tmp_path / "none.json")]) == 2
    assert "there is nothing to export" in capsys.readouterr().err
    assert cli.main(["tune", str(model()), "--time", "30s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kept"] is True and told["kernels"][0]["result"]["trials"]
    exported = tmp_path / "tuning.json"
    assert cli.main(["tune", "--export", str(exported)]) == 0
    count = int(capsys.readouterr().out.split()[0])
    monkeypatch.setenv("XYNTRA_CACHE_DIR", str(tmp_path / "other"))
    assert cli.main(["tune", "--import", str(exported)]) == 0
    assert capsys.readouterr().out == f"{count} results taken over\n"
    kinds = measured()
    assert True in kinds
    text = json.loads(exported.read_text())
    text["machine"]["name"] = "another"
    exported.write_text(json.dumps(text))
    assert cli.main(["tune", "--import", str(exported)]) == 2
    assert "is of another class of machines (another)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "it wants one of a model, --export, --import and --heroes"),
        (["model.onnx", "--export", "x"], "it wants one of a model"),
        (["no.onnx"], "no such file"),
        (["no.onnx", "--trials", "0"], "there is nothing to spend"),
        (["no.onnx", "-O", "tune=off"], "tune and deterministic are decided here"),
        (["--import", "no.json"], "holds no tuning results"),
    ],
)
def test_mistakes(words: list[str], why: str, capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert cli.main(["tune", *words]) == 2
    assert why in capsys.readouterr().err


def test_a_damaged_store_is_told_and_harms_nothing(cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    context = Context()
    file = context.root.path / context.machine_class.file
    file.write_text("{")
    for _ in range(3):  # an option that no other test has: a process tells of a graph once
        assert explain(model(), options={"min_island": "3"}).graphs[0].claimed
    told = [line for line in capfd.readouterr().err.splitlines() if "tuning results are not used" in line]
    assert len(told) == 1 and f"{file.name} is damaged" in told[0]
    assert f"tuning     tuning results are not used: {file.name} is damaged" in str(doctor())


@pytest.mark.usefixtures("quick")
def test_hero_tables_are_made_and_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tuning_tables, "SHAPES", SHAPES[:3])
    file = tmp_path / "mine.json"
    assert cli.main(["tune", "--heroes", str(file), "--time", "5s"]) == 0
    assert capsys.readouterr().out == f"3 results written to {file}\n"
    table = read_export(file)
    assert all(result.best is not None and not result.trials for result in table.results.values())
    monkeypatch.setattr(hero_module, "FOLDER", tmp_path)
    hero_module._tables.cache_clear()
    try:
        assert heroes(table.machine).results == table.results
        assert heroes(replace(table.machine, l3=1)).results == table.results, "for all machines of the instruction set"
        assert not heroes(replace(table.machine, name="x86_64|any|none")).results
    finally:
        hero_module._tables.cache_clear()


def test_committed_hero_tables_name_variants_that_there_are() -> None:
    known = {variant.name for variant in (*CPU, *GPU)}
    for path in hero_module.FOLDER.glob("*.json"):
        table = read_export(path)
        assert table.results and not table.islands
        assert {r.best.variant for r in table.results.values() if r.best is not None} <= known, path.name


def test_two_runs_are_compared_in_turn() -> None:
    order: list[str] = []
    times = compared(lambda: order.append("before"), lambda: order.append("after"))
    assert times.low <= times.ratio <= times.high and times.rounds == tune_module._ROUNDS
    assert order.count("before") == order.count("after") + 1, "one to see how long it takes"


def test_a_model_without_kernels_says_so() -> None:
    report = TuningReport(kernels=(), model=None, kept=True, stopped=False, file=Path("f"))
    assert str(report) == "nothing of the model is computed by kernels that can be tuned"


def test_nothing_to_spend() -> None:
    with pytest.raises(ConfigError, match="nothing to spend"):
        tune("model.onnx", seconds=0)
