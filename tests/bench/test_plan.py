from __future__ import annotations

from pathlib import Path

import pytest

from xyntra_bench.errors import BenchError
from xyntra_bench.plan import (
    QUICK,
    Case,
    Scenario,
    file_cases,
    parse_counts,
    parse_scenarios,
    parse_shape,
    wide_cases,
    with_bound,
    zoo_cases,
)
from xyntra_zoo import zoo
from xyntra_zoo.registry import RegistryError


def test_quick_covers_every_family_at_full_size() -> None:
    cases = zoo_cases([], (1, 2), (1,), (), quick=True)
    assert {case.family for case in cases} == {model.family.value for model in zoo}
    assert not any(case.model.endswith("-tiny") for case in cases)
    assert {case.threads for case in cases} == {1, 2}
    assert {case.model: case.float_model for case in cases if case.float_model} == {
        "bert-base-dq8": "bert-base",
        "resnet50-qdq": "resnet50",
        "mobilenetv2-qdq": "mobilenetv2",
        "vit-tiny16-qdq": "vit-tiny16",
        "gpt2-prefill-q4": "gpt2-prefill",
        "gpt2-decode-q4": "gpt2-decode",
    }
    assert len({case.label for case in cases}) == len(cases)


def test_axes_multiply() -> None:
    cases = zoo_cases(["bert-base", "resnet50"], (1, 2), (1, 4), (64, 128), quick=False)
    assert len([case for case in cases if case.model == "bert-base"]) == 8
    assert [case.seq for case in cases if case.model == "resnet50"] == [None] * 4, "images have no sequence"
    full = zoo_cases(["bert-base"], (1,), (1,), (), quick=False)
    assert [case.seq for case in full] == [128, 384]


def test_the_wide_selection_is_what_people_serve() -> None:
    cases = wide_cases([], (1, 2))
    shapes = {(case.model, case.shape) for case in cases}
    assert shapes == {
        *(("bert-base", shape) for shape in ("b1 s16", "b1 s128", "b1 s512", "b8 s128")),
        *((model, "b8") for model in ("resnet50", "mobilenetv2", "vit-tiny16")),
        *(("gpt2-prefill", shape) for shape in ("b1 s16", "b1 s512", "b1 s1024")),
        ("gpt2-decode", "b8 s128"),
    }
    assert len(cases) == 2 * len(shapes) and {case.scenario for case in cases} == {Scenario.SINGLE_STREAM}
    for name in {case.model for case in cases}:
        longest = max((size.seq or 0 for size in zoo[name].served), default=0)
        zoo[name].feeds(1, longest or 1, 0)  # none is longer than the model's positions
    assert [case.label for case in wide_cases(["resnet50"], (2,))] == ["resnet50 b8 t2"]
    with pytest.raises(BenchError, match=r"^--wide: no sizes are known that gpt2-generate is served at\. there are bert-base, "):
        wide_cases(["bert-base", "gpt2-generate"], (1,))


def test_scenarios_multiply_and_only_what_compares_threads_leaves_one_thread_out() -> None:
    cases = zoo_cases(["resnet50"], (1, 2), scenarios=tuple(Scenario), quick=True)
    assert [(case.scenario.value, case.threads) for case in cases] == [
        ("single-stream", 1),
        ("single-stream", 2),
        ("multi-stream", 1),
        ("multi-stream", 2),
        ("server", 1),
        ("server", 2),
        ("offline", 2),
        ("scaling", 2),
        ("specialised", 1),
        ("specialised", 2),
    ]
    assert [case.memory for case in cases] == [True, *[False] * 9]
    assert len({case.label for case in cases}) == len(cases)
    assert {case.batch for case in cases if case.scenario is Scenario.MULTI_STREAM} == {8}
    (asked,) = zoo_cases(["resnet50"], (1,), (1, 4), scenarios=(Scenario.MULTI_STREAM,), quick=True)
    assert asked.batch == 4, "the batches asked for, without one"
    (alone,) = zoo_cases(["resnet50"], (1,), scenarios=(Scenario.SCALING,), quick=True)
    assert alone.threads == 2


def test_scenario_names() -> None:
    assert parse_scenarios("scaling, specialised,scaling") == (Scenario.SCALING, Scenario.SPECIALISED)
    assert parse_scenarios("all") == tuple(Scenario)
    with pytest.raises(BenchError, match=r"--scenario 'servant': no such scenario\. there are single-stream, multi-stream"):
        parse_scenarios("servant")


def test_more_sessions_get_more_time() -> None:
    assert [QUICK.for_sessions(n).max_time_s / QUICK.max_time_s for n in (1, 2, 5)] == [1, 1, 2.5]


def test_what_generates_is_measured_generating() -> None:
    def of(*names: str, scenarios: tuple[Scenario, ...], new_tokens: int | None = None) -> list[tuple[str, str, int]]:
        cases = zoo_cases(list(names), (1,), scenarios=scenarios, quick=False, new_tokens=new_tokens)
        return [(case.model, case.scenario.value, case.new_tokens) for case in cases]

    both = (Scenario.SINGLE_STREAM, Scenario.GENERATE)
    everything = of(scenarios=both)
    assert ("gpt2-generate", "generate", 32) in everything and ("gpt2-decode", "single-stream", 0) in everything
    assert not {("gpt2-generate", "single-stream", 0), ("gpt2-decode", "generate", 32)} & set(everything)
    named = of("gpt2-generate", scenarios=both, new_tokens=5)
    assert named == [("gpt2-generate", "single-stream", 0), ("gpt2-generate", "generate", 5)]
    with pytest.raises(BenchError, match=r"resnet50 does not generate\. there are gpt2-generate"):
        of("resnet50", scenarios=(Scenario.GENERATE,))


def test_a_bound_is_a_time() -> None:
    cases = with_bound(zoo_cases(["resnet50"], (1,), quick=True), 20.0)
    assert [case.p99_bound_ms for case in cases] == [20.0]
    with pytest.raises(BenchError, match=r"--p99-bound 0: not a time\. give milliseconds above 0"):
        with_bound(cases, 0.0)


def test_unknown_models_are_refused() -> None:
    with pytest.raises(RegistryError, match="did you mean"):
        zoo_cases(["bert-bass"], (1,), (1,), (), quick=True)


def test_shapes_and_counts() -> None:
    assert parse_shape("input_ids=1x128") == ("input_ids", (1, 128))
    assert parse_shape("a=b=2") == ("a=b", (2,))
    assert parse_shape("scalar=") == ("scalar", ())
    assert parse_counts("2,1,2", "threads") == (2, 1)
    for bad in ("1x128", "x=1x", "x=axb"):
        with pytest.raises(BenchError, match="not NAME=1x128"):
            parse_shape(bad)
    for bad in ("", "0", "1,", "two"):
        with pytest.raises(BenchError, match="not a list of positive numbers"):
            parse_counts(bad, "threads")


def test_files_need_to_exist_and_do_not_generate(tmp_path: Path) -> None:
    (tmp_path / "there.onnx").write_text("")
    with pytest.raises(BenchError, match="--scenario generate: only models of the zoo"):
        file_cases(tmp_path / "there.onnx", (), (1,), (1,), (Scenario.GENERATE,), seed=0, max_err=1e-5)
    with pytest.raises(BenchError, match="no such file"):
        file_cases(tmp_path / "absent.onnx", (), (1,), seed=0, max_err=1e-5)


def test_labels_name_the_shape() -> None:
    assert Case(model="m", batch=4, seq=128, threads=2).label == "m b4 s128 t2"
    assert Case(model="m").label == "m b1 t1"
    assert Case(model="m", shapes={"x": (1, 3)}).label == "m x=1x3 t1"
    assert Case(model="m", shapes={"x": (1, 3)}, batch=8).label == "m x=1x3 b8 t1"
