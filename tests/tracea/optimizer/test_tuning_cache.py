"""What tuning has found is found again, by who asks the same; whatever else lies there is ignored, with a reason."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.builder import ProgramBuilder
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.core_ir.ops import Range
from xyntra_ep.tracea.interface.tuning.keep import _locked, keep
from xyntra_ep.tracea.optimizer.tuning_cache import (
    FORMAT,
    Choice,
    MachineClass,
    Question,
    TrialResult,
    TuningCache,
    TuningResult,
    Verdict,
    expected_sizes,
    read_export,
    signature,
    usual_sizes,
)
from xyntra_ep.tracea.runtime.cache_root import CacheRoot

MACHINE = MachineClass(name="x86_64|some|avx2", l1d=32768, l2=524288, l3=1 << 24)
ASKED = Question(op="Gemm f32[2,3] f32[3,4]! f32[2,4]", compiler="gcc 12", release="1", threads=2)
RESULT = TuningResult(
    question=ASKED,
    default=Choice(variant="a", config={"rows": 4}, ns=120.0),
    best=Choice(variant="b", config={"rows": 8, "columns": 3}, ns=100.0),
    trials=(
        TrialResult(variant="b", config={"rows": 8, "columns": 3}, ratio=0.8),
        TrialResult(variant="c", config={}, problem="hangs"),
    ),
)

VERDICT = Verdict(what="w", ratio=0.5, low=0.4, high=0.6)


def root_at(folder: Path) -> CacheRoot:
    for name in ("tmp", "plans"):
        (folder / name).mkdir(exist_ok=True, mode=0o700)
    return CacheRoot(path=folder, asked=folder)


def saved(folder: Path, *results: TuningResult, machine: MachineClass = MACHINE) -> Path:
    cache = TuningCache.load(folder, machine)
    for result in results:
        cache.add(result)
    keep(cache, root_at(folder))
    return folder / machine.file


def test_what_was_saved_is_found(tmp_path: Path) -> None:
    path = saved(tmp_path, RESULT)
    found = TuningCache.load(tmp_path, MACHINE, trials=True)
    assert path.parent == tmp_path and found.problem == ""
    assert found.find(ASKED) == RESULT and RESULT.ratio == pytest.approx(1.2)
    sessions = TuningCache.load(tmp_path, MACHINE)
    assert sessions.find(ASKED) == dataclasses.replace(RESULT, trials=()), "who asks for no trials reads none"
    (tmp_path / "exported.json").write_bytes(found.exported())
    (tmp_path / "exported.json").chmod(0o600)
    assert read_export(tmp_path / "exported.json") == found


NO_TRIALS: list[Any] = ["", "[]", '{"trials": 3}', {}, [[]], [{"variant": "v", "config": [1], "ratio": 1.0}], [{"variant": "v"}]]


@pytest.mark.parametrize("trials", NO_TRIALS, ids=repr)
def test_trials_that_are_damaged_are_none_and_cost_no_choice(tmp_path: Path, trials: Any) -> None:
    saved(tmp_path, RESULT)
    file = tmp_path / MACHINE.trials_file
    text = trials if isinstance(trials, str) else json.dumps({**json.loads(file.read_text()), "trials": {ASKED.key: trials}})
    file.write_text(text)
    found = TuningCache.load(tmp_path, MACHINE, trials=True)
    assert found.find(ASKED) == dataclasses.replace(RESULT, trials=()) and found.problem == ""


@pytest.mark.parametrize(
    "change", [{"op": "Gemm"}, {"compiler": "gcc 13"}, {"release": "2"}, {"threads": 1}, {"device": "cuda:0"}], ids=repr
)
def test_another_question_has_no_answer(tmp_path: Path, change: dict[str, Any]) -> None:
    saved(tmp_path, RESULT)
    assert TuningCache.load(tmp_path, MACHINE).find(dataclasses.replace(ASKED, **change)) is None


@pytest.mark.parametrize("change", [{"name": "other"}, {"l1d": 49152}, {"l2": 1 << 20}, {"l3": 1}], ids=repr)
def test_each_class_of_machines_has_a_file_of_its_own(tmp_path: Path, change: dict[str, Any]) -> None:
    other = dataclasses.replace(MACHINE, **change)
    path = saved(tmp_path, RESULT)
    assert TuningCache.load(tmp_path, other) == TuningCache(other)
    path.rename(tmp_path / other.file)
    found = TuningCache.load(tmp_path, other)
    assert found.results == {} and found.problem == f"tuning results are not used: {other.file} is of another machine"


def test_the_later_answer_counts_and_trials_are_kept(tmp_path: Path) -> None:
    saved(tmp_path, RESULT)
    more = TrialResult(variant="d", config={"rows": 1}, ratio=1.5)
    again = TrialResult(variant="b", config={"rows": 8, "columns": 3}, ratio=0.9)
    saved(tmp_path, dataclasses.replace(RESULT, best=None, trials=(again, more)))
    found = TuningCache.load(tmp_path, MACHINE, trials=True).find(ASKED)
    assert found is not None and found.best is None
    assert sorted(found.trials, key=repr) == sorted((again, RESULT.trials[1], more), key=repr)


def test_plans_go_when_something_is_chosen_otherwise(tmp_path: Path) -> None:
    """And only then: trials that change no choice cost nobody a plan."""
    plan = root_at(tmp_path).plans / f"{'0' * 32}.plan"

    def goes(cache: TuningCache) -> bool:
        plan.touch()
        keep(cache, root_at(tmp_path))
        return not plan.exists()

    cache = TuningCache(MACHINE)
    cache.add(RESULT)
    assert goes(cache) and not goes(cache)
    cache.add(dataclasses.replace(RESULT, trials=(TrialResult(variant="e", config={}, ratio=2.0),)))
    assert not goes(cache)
    cache.islands["i"] = Verdict(what="w", ratio=0.9, low=0.8, high=1.1)
    assert goes(cache)
    cache.islands["i"] = Verdict(what="w", ratio=0.9, low=0.8, high=0.95)
    assert goes(cache)
    cache.add(dataclasses.replace(RESULT, best=None))
    assert goes(cache)


def test_results_of_shapes_alike_are_found_the_nearest_first() -> None:
    cache = TuningCache(MACHINE)

    def result(op: str, rows: int, variant: str | None = "b") -> TuningResult:
        best = Choice(variant=variant, config={"rows": rows}, ns=1.0) if variant else None
        return dataclasses.replace(RESULT, question=dataclasses.replace(ASKED, op=op), best=best)

    for op, rows, variant in (
        ("Gemm f32[8,64] f32[64,32]! f32[8,32]", 1, "b"),
        ("Gemm f32[9,64] f32[64,32]! f32[9,32]", 2, "b"),
        ("Gemm f32[512,64] f32[64,32]! f32[512,32]", 3, "b"),
        ("Gemm f32[10,64] f32[64,32] f32[10,32]", 4, "b"),  # b is not known
        ("Gemm f16[10,64] f32[64,32]! f32[10,32]", 5, "b"),
        ("Conv f32[10,64] f32[64,32]! f32[10,32]", 6, "b"),
        ("Gemm f32[2,10,64] f32[64,32]! f32[2,10,32]", 7, "b"),
        ("Gemm f32[10,65] f32[65,32]! f32[10,32]", 8, None),  # nothing was better than the default there
    ):
        cache.add(result(op, rows, variant))
    asked = dataclasses.replace(ASKED, op="Gemm f32[10,64] f32[64,32]! f32[10,32]")
    assert [choice.config["rows"] for choice in cache.like(asked, 9)] == [2, 1, 3]
    assert [choice.config["rows"] for choice in cache.like(asked, 1)] == [2]


def test_verdicts_of_several_writers_are_kept(tmp_path: Path) -> None:
    for name, ratio in (("a", 0.7), ("b", 1.3)):
        cache = TuningCache(MACHINE)
        cache.islands[name] = Verdict(what=name, ratio=ratio, low=ratio, high=ratio)
        keep(cache, root_at(tmp_path))
    assert {name: v.loses for name, v in TuningCache.load(tmp_path, MACHINE).islands.items()} == {"a": True, "b": False}


def _add(folder: Path, number: int) -> None:
    for i in range(5):
        saved(folder, dataclasses.replace(RESULT, question=dataclasses.replace(ASKED, op=f"{number} {i}")))


def test_a_writer_waits_for_the_one_before(tmp_path: Path) -> None:
    saved(tmp_path, RESULT)
    with _locked(tmp_path / f"{MACHINE.file}.lock"):
        spawn = multiprocessing.get_context("spawn")
        other = spawn.Process(target=_add, args=(tmp_path, 1))
        other.start()
        other.join(3.0)
        assert other.is_alive() and len(TuningCache.load(tmp_path, MACHINE).results) == 1
    other.join()
    assert len(TuningCache.load(tmp_path, MACHINE).results) == 6


def test_writers_lose_nothing_of_each_other(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_add, args=(tmp_path, n)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(TuningCache.load(tmp_path, MACHINE).results) == 15


def document(**change: Any) -> dict[str, Any]:
    row = {
        "op": "o", "compiler": "c", "release": "r", "threads": 1, "device": "",
        "default": {"variant": "v", "config": {}, "ns": 1.0},
    }  # fmt: skip
    machine = {name: getattr(MACHINE, name) for name in ("name", "l1d", "l2", "l3")}
    return {
        "format": FORMAT,
        "machine": machine,
        "results": {"k": row | change},
        "islands": {"i": {"what": "w", "ratio": 0.5, "low": 0.4, "high": 0.6}},
    }


def test_the_documented_form_is_read(tmp_path: Path) -> None:
    (tmp_path / MACHINE.file).write_text(json.dumps(document()))
    found = TuningCache.load(tmp_path, MACHINE)
    assert (
        len(found.results) == 1
        and found.islands == {"i": Verdict(what="w", ratio=0.5, low=0.4, high=0.6)}
        and found.islands["i"].loses
    )


DAMAGED: list[Any] = [
    "", "[]", "{", "null", json.dumps({k: v for k, v in document().items() if k != "machine"}),
    json.dumps(document() | {"islands": {"i": {"what": "w", "ratio": 0.5, "low": "0.4", "high": 0.6}}}),
    json.dumps(document() | {"islands": 3}), json.dumps({k: v for k, v in document().items() if k != "islands"}),
    '{"results": 1}', "\ufffe", "[" * 100_000,
    *(json.dumps(document(**{name: value})) for name, value in [
        ("op", 1), ("threads", "2"), ("threads", True), ("threads", 1.5), ("default", None), ("default", {}), ("variant", 7),
        ("default", {"variant": "v", "config": {"a": 1.5}, "ns": 1.0}),
        ("default", {"variant": "v", "config": {}, "ns": -1.0}),
        ("default", {"variant": "v", "config": {}, "ns": float("nan")}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_what_is_damaged_counts_as_empty_and_is_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / MACHINE.file
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    found = TuningCache.load(tmp_path, MACHINE)
    assert found.results == {} and found.problem == f"tuning results are not used: {MACHINE.file} is damaged"
    with pytest.raises(ConfigError, match="holds no tuning results"):
        read_export(path)
    saved(tmp_path, RESULT)
    assert TuningCache.load(tmp_path, MACHINE, trials=True).find(ASKED) == RESULT


def test_a_later_format_is_not_understood(tmp_path: Path) -> None:
    (tmp_path / MACHINE.file).write_text(json.dumps(document() | {"format": FORMAT + 1}))
    found = TuningCache.load(tmp_path, MACHINE)
    assert found.results == {} and found.problem.endswith(f"has format {FORMAT + 1}, and this release knows {FORMAT}")


def test_a_file_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    path = saved(tmp_path, RESULT)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o666)
    found = TuningCache.load(tmp_path, MACHINE)
    assert found.results == {} and "others may write to it" in found.problem
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    assert TuningCache.load(tmp_path, MACHINE).results == {}


@pytest.mark.parametrize(
    ("expected", "wanted"),
    [
        (Range(128, 128, 128), 128),  # what was found there, not the near one
        (Range(190, 190, 190), 128),
        (Range(200, 200, 200), 300),  # of two that count, the nearer
        (Range(16, 128, 512), 128),
        (Range(512, 2048, 4096), 4096),
        (Range(1200, 1200, 1200), None),
        (Range(16, 32, 32), None),
        (Range(8193, 8193, 8193), None),
    ],
)
def test_a_result_counts_where_its_sizes_are_expected(tmp_path: Path, expected: Range, wanted: int | None) -> None:
    """What is best for 4096 rows is not for 128; written, and read again."""
    asked = dataclasses.replace(ASKED, op="Gemm f32[s,3] f32[3,4]! f32[s,4]")
    found_at = (128, 300, 4096)
    results = [dataclasses.replace(RESULT, question=dataclasses.replace(asked, sizes={"s": n}), trials=()) for n in found_at]
    cache = TuningCache(MACHINE, results={r.question.key: r for r in results})
    for n in found_at:
        question = dataclasses.replace(asked, sizes={"s": n})
        cache.islands[question.key] = dataclasses.replace(VERDICT, form=question.form, sizes={"s": n})
    keep(cache, root_at(tmp_path))
    read = TuningCache.load(tmp_path, MACHINE)
    session = dataclasses.replace(asked, sizes=usual_sizes({"s": expected}))
    found, verdict = read.find(session, {"s": expected}), read.verdict(session, {"s": expected})
    assert (found and found.question.sizes["s"], verdict and verdict.sizes["s"]) == (wanted, wanted)
    assert read.find(session) == (found if expected.usual == wanted else None), "who searches asks for the very sizes"
    changes: list[dict[str, Any]] = [{"threads": 3}, {"compiler": "another"}, {"op": "Gemm f32[s,3] f32[3,5]! f32[s,5]"}]
    for change in changes:
        other = dataclasses.replace(session, **change)
        assert read.find(other, {"s": expected}) is None and read.verdict(other, {"s": expected}) is None


def test_sizes_that_have_other_names_are_of_another_op(tmp_path: Path) -> None:
    """So are those of a result that was kept before results had sizes."""
    asked = dataclasses.replace(ASKED, op="Gemm f32[s,3] f32[3,4]! f32[s,4]")
    saved(tmp_path, dataclasses.replace(RESULT, question=asked))
    read = TuningCache.load(tmp_path, MACHINE)
    assert read.find(asked) is not None
    assert read.find(dataclasses.replace(asked, sizes={"s": 8}), {"s": Range(1, 8, 64)}) is None


def test_sizes_of_an_op_are_those_of_its_symbols() -> None:
    p = ProgramBuilder()
    p.output(p.gemm(p.input("s", "t"), p.input("t", 6)))
    assumed = ({"s": 1, "u": 2}, {"s": 3, "u": 2}, {"s": 5, "u": 2})
    assert expected_sizes(p.program.ops, assumed) == {"s": Range(1, 3, 5)}, "of t nothing is known, u is of no concern"
    fixed = ProgramBuilder()
    fixed.output(fixed.gemm(fixed.input(3, 4), fixed.constant(4, 6)))
    assert expected_sizes(fixed.program.ops, assumed) == {}


def test_signatures_have_types_shapes_layouts_and_what_is_known() -> None:
    p = ProgramBuilder()
    p.output(p.gemm(p.input("s", 4), p.constant(4, 6)))
    op = p.program.ops[0]
    known = frozenset({op.inputs[1].value})
    assert signature(op, known).startswith("Gemm f32[s,4] f32[4,6]! f32[s,6]")
    assert signature(op, frozenset()).startswith("Gemm f32[s,4] f32[4,6] f32[s,6]")
    turned = dataclasses.replace(op.inputs[1], strides=(1, 4))
    other = op.with_operands((op.inputs[0], turned), op.written)
    assert "f32[4,6]@1,4!" in signature(other, known)


def test_equal_shapes_have_equal_signatures_whatever_the_epilogue() -> None:
    signatures = set()
    for act in ("add", "mul"):
        p = ProgramBuilder()
        x = p.input("s", 4)
        p.output(p.pointwise(act, x, x))
        signatures.add(signature(p.program.ops[0], frozenset()))
    assert len(signatures) == 1
