"""What documents show: of each class of processors the newest run that keeps the rules, and those of the project do."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xyntra_bench.cli import app
from xyntra_bench.environment import ISA_FLAGS, IsaClass
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import MIN_N_P99, Scenario, Target
from xyntra_bench.publish import missed
from xyntra_bench.results import CaseResult, Check, Moment, Run, Stopped, Warn
from xyntra_bench.store import Stored, dump
from xyntra_reports import update_file

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "results.md", ROOT / "docs" / "wide.md")
STORED = Stored.at(ROOT / "reports" / "results")
OF_THE_ZOO = {path: run for path, run in STORED.runs.items() if run.target is Target.ZOO and run.environment.compiler}
BLOCK = "<!-- bench:{0} -->\n{1}<!-- /bench:{0} -->\n"
BEFORE = "**Made before tables had rules, on "


def sections(document: str) -> list[tuple[str, str]]:
    """Heading and text of each class of processors in the main table's block."""
    block = document.partition("<!-- bench:zoo -->")[2].partition("<!-- /bench:zoo -->")[0]
    parts = re.split(r"^### (.+)$", block, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


# ------------------------------------------------------------------------------------- the project's own documents


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_says_what_the_stored_runs_say(document: Path) -> None:
    assert update_file(document, STORED, write=False) == [], "run `bench report`"


def test_every_stored_run_keeps_the_rules_or_is_from_before() -> None:
    for path, run in STORED.runs.items():
        if run.rules:
            for scenario in Scenario:
                assert missed(run, scenario) == (), path.name


def test_there_is_a_table_for_each_class_that_was_measured() -> None:
    shown = sections(DOCUMENTS[1].read_text())
    measured = {
        run.environment.isa for run in OF_THE_ZOO.values() if any(c.scenario is Scenario.SINGLE_STREAM for c in run.cases)
    }
    assert {title.partition(":")[0] for title, _ in shown} == set(measured) and len(shown) == len(measured)
    for title, text in shown:
        ((source, run),) = [(path, run) for path, run in OF_THE_ZOO.items() if f"stored in `{path.name}`" in text]
        assert title == f"{run.environment.isa}: {run.environment.cpu}", source
        rows = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| [\w-]+ \| b\d", line)]
        assert len(rows) == sum(len([m for m in case.contenders if m.provider != "OpenVINO"]) for case in run.cases)
        assert (BEFORE in text) is (run.rules == 0), "one that misses rules says so"
        if run.rules:
            told = [re.fullmatch(r"([\d.]+) \((\d+)\)", row[6]) for row in rows if row[5] != "-"]
            assert told and all(p99 and int(p99[2]) >= MIN_N_P99 for p99 in told)
        for disclosed in ("Weights: random", "timed runs of each session", "Warnings: ", "onnxruntime ", run.environment.cpu):
            assert disclosed in text
        warned = {warn for case in run.cases for warn in (*case.warnings, *(w for m in case.measurements for w in m.warnings))}
        last = text.rpartition("Warnings: ")[2]
        assert all(f"{warn} in " in last for warn in warned), "none is dropped"


def test_the_head_has_ratios_of_runs_under_the_rules_alone() -> None:
    head = DOCUMENTS[0].read_text().partition("\n## ")[0]
    assert "<!-- bench:ratios -->" in head
    for run in OF_THE_ZOO.values():
        line = f"- {run.environment.isa} ({run.environment.cpu}, {run.started[:10]}): "
        assert line not in head or run.rules


# -------------------------------------------------------------------------------------------------- how they choose


def single(run: Run, **changes: object) -> Run:
    cases = tuple(case for case in run.cases if case.scenario is Scenario.SINGLE_STREAM)
    return dataclasses.replace(run, cases=cases, planned=len(cases), **changes)  # type: ignore[arg-type]


def of_class(run: Run, isa: IsaClass, cpu: str) -> Run:
    flags = tuple(sorted(ISA_FLAGS[isa]))
    return dataclasses.replace(run, environment=dataclasses.replace(run.environment, cpu=cpu, cpu_flags=flags))


def with_first(run: Run, **changes: object) -> Run:
    first = dataclasses.replace(run.cases[0], **changes)  # type: ignore[arg-type]
    return dataclasses.replace(run, cases=(first, *run.cases[1:]))


def written(folder: Path, runs: dict[str, Run], *blocks: str) -> Path:
    for name, run in runs.items():
        (folder / name).write_text(dump(run))
    document = folder / "README.md"
    document.write_text("".join(BLOCK.format(name, "") for name in blocks))
    return document


def test_each_class_has_its_table_and_no_row_of_another(tmp_path: Path, run: Run) -> None:
    runs = {
        "a.json": of_class(single(run), IsaClass.AVX512, "A wide one"),
        "b.json": of_class(single(run), IsaClass.AMX, "One with tiles"),
        "c.json": of_class(single(run, started="2026-06-01T00:00:00+00:00"), IsaClass.AVX512, "A wider one"),
    }
    document = written(tmp_path, runs, "zoo", "ratios")
    update_file(document, Stored.at(tmp_path), write=True)
    shown = sections(document.read_text())
    assert [title for title, _ in shown] == ["AVX-512: A wider one", "AMX: One with tiles"]
    assert all(text.count("| wins | b1 s128 |") == 1 for _, text in shown)
    assert "Not measured yet: AVX2." in document.read_text()
    head = document.read_text().rpartition("<!-- bench:ratios -->")[2]
    assert "- AVX-512 (A wider one, 2026-06-01): 1.30x to 1.30x in fp32" in head and "- AMX (One with tiles" in head


def test_a_wide_run_has_its_table_and_leaves_the_others_alone(tmp_path: Path, run: Run) -> None:
    later = single(run, target=Target.WIDE, started="2099-01-01T00:00:00+00:00")
    runs = {"zoo.json": single(run), "wide.json": later}
    document = written(tmp_path, runs, "ratios", "summary", "zoo", "machine", "creation", "wide", "wide-kernels")
    update_file(document, Stored.at(tmp_path), write=True)
    of_zoo, _, of_wide = document.read_text().partition("<!-- bench:wide -->")
    assert "2099" not in of_zoo and "stored in `wide.json`" not in of_zoo and "stored in `zoo.json`" in of_zoo
    assert "stored in `zoo.json`" not in of_wide and of_wide.count("stored in `wide.json`") == 2
    assert "| wins | b1 s128 |" in of_wide
    (tmp_path / "wide.json").write_text(dump(with_first(later, stopped=Stopped.CUT)))
    with pytest.raises(BenchError, match=r"^wide.json: not for publishing: ended before its stopping rule"):
        update_file(document, Stored.at(tmp_path), write=True)
    (tmp_path / "wide.json").unlink()
    update_file(document, Stored.at(tmp_path), write=True)
    assert document.read_text().count("Not measured yet: `bench run zoo --wide") == 2


def test_a_run_without_a_compiler_has_its_table_and_leaves_the_others_alone(tmp_path: Path, run: Run) -> None:
    bare = dataclasses.replace(run.environment, compiler="")
    later = single(run, environment=bare, started="2099-01-01T00:00:00+00:00")
    document = written(
        tmp_path, {"zoo.json": single(run), "bare.json": later}, "ratios", "summary", "zoo", "creation", "prebuilt"
    )
    update_file(document, Stored.at(tmp_path), write=True)
    of_zoo, _, of_bare = document.read_text().partition("<!-- bench:prebuilt -->")
    assert "2099" not in of_zoo and "stored in `zoo.json`" in of_zoo
    assert "stored in `bare.json`" in of_bare and "stored in `zoo.json`" not in of_bare and "| wins | b1 s128 |" in of_bare


def test_a_run_from_before_the_rules_stands_until_one_under_them_is_there(tmp_path: Path, run: Run) -> None:
    old = with_first(single(run, rules=0, started="2099-01-01T00:00:00+00:00"), stopped=Stopped.TIME)
    document = written(tmp_path, {"old.json": old}, "zoo", "ratios")
    update_file(document, Stored.at(tmp_path), write=True)
    text = document.read_text()
    assert f"{BEFORE}2099-01-01; do not quote its numbers.** It breaks: ended before its stopping rule in 1 of 2 cases" in text
    assert "No run that keeps the [rules of publishing]" in text, "its ratios are not in the head"
    (tmp_path / "new.json").write_text(dump(single(run)))
    update_file(document, Stored.at(tmp_path), write=True)
    assert BEFORE not in document.read_text() and "`new.json`" in document.read_text(), "though it is older"


def broken() -> list[tuple[str, dict[str, object], str]]:
    return [
        ("loaded", {"warnings": (Warn.LOADED,)}, "the machine was not quiet in 1 of 2 cases (wins b1 s128 t1)"),
        ("cut", {"stopped": Stopped.CUT, "warnings": (Warn.CUT_SHORT,)}, "ended before its stopping rule in 1 of 2 cases"),
    ]


@pytest.mark.parametrize(("changes", "reason"), [row[1:] for row in broken()], ids=[row[0] for row in broken()])
def test_a_run_that_misses_a_rule_is_refused_with_the_reason(
    changes: dict[str, object], reason: str, tmp_path: Path, run: Run
) -> None:
    document = written(tmp_path, {"new.json": with_first(single(run), **changes)}, "zoo")
    before = document.read_text()
    for arguments in ((), ("--check",), ("--results", str(tmp_path / "new.json"))):
        asked = ["report", "--readme", str(document), "--results", str(tmp_path), *arguments]
        error = CliRunner().invoke(app, asked).exception
        assert isinstance(error, BenchError), arguments
        assert str(error).startswith(f"new.json: not for publishing: {reason}") and "measure" in str(error)
    assert document.read_text() == before
    shown = CliRunner().invoke(app, ["report", "--show", "zoo", "--results", str(tmp_path)]).output
    assert shown.startswith("**Not for publishing**") and "| wins |" in shown, "to look at it is not to publish it"
    if "stopped" in changes:
        assert "| faster, cut short |" in shown, "the row is marked, and keeps its verdict"


def test_outputs_that_were_right_once_are_not_enough(tmp_path: Path, run: Run) -> None:
    case: CaseResult = run.cases[0]
    (m,) = case.contenders
    assert isinstance(m.check, Check)
    once = dataclasses.replace(m, check=dataclasses.replace(m.check, moments=(Moment.FIRST,)))
    document = written(tmp_path, {"new.json": with_first(single(run), contenders=(once,))}, "zoo")
    with pytest.raises(BenchError, match="outputs were not compared at the first and at the last run in 1 of 4 rows"):
        update_file(document, Stored.at(tmp_path), write=True)


def test_scenarios_have_a_table_or_nothing(tmp_path: Path, run: Run) -> None:
    document = written(tmp_path, {"all.json": run}, "scenarios")
    update_file(document, Stored.at(tmp_path), write=True)
    titles = re.findall(r"^## (.+)$", document.read_text(), flags=re.MULTILINE)
    assert len(titles) == len(Scenario) - 1
    cases = tuple(case for case in run.cases if case.scenario is not Scenario.SERVER)
    (tmp_path / "all.json").write_text(dump(dataclasses.replace(run, cases=cases)))
    update_file(document, Stored.at(tmp_path), write=True)
    text = document.read_text()
    assert len(re.findall(r"^## ", text, flags=re.MULTILINE)) == len(Scenario) - 2
    assert "server" not in text
    cases = tuple(case for case in run.cases if case.scenario is Scenario.SINGLE_STREAM)
    (tmp_path / "all.json").write_text(dump(dataclasses.replace(run, cases=cases)))
    update_file(document, Stored.at(tmp_path), write=True)
    assert document.read_text() == "<!-- bench:scenarios -->\n<!-- /bench:scenarios -->\n"


def test_the_short_table_has_a_row_for_each_case_under_the_rules(tmp_path: Path, run: Run) -> None:
    runs = {
        "a.json": of_class(single(run), IsaClass.AVX512, "A wide one"),
        "b.json": of_class(single(run, rules=0), IsaClass.AMX, "One from before"),
    }
    document = written(tmp_path, runs, "summary")
    update_file(document, Stored.at(tmp_path), write=True)
    text = document.read_text()
    assert "### AVX-512: A wide one" in text and "One from before" not in text
    assert len(re.findall(r"^\| [\w-]+ \| b1", text, flags=re.MULTILINE)) == len(single(run).cases)
    assert "1.30x [" in text and "No run that keeps the rules is stored for AVX2, AMX." in text


def test_the_readme_has_the_times_of_the_stored_run() -> None:
    text = DOCUMENTS[0].read_text().partition("<!-- bench:summary -->")[2].partition("<!-- /bench:summary -->")[0]
    for run in OF_THE_ZOO.values():
        heading = f"### {run.environment.isa}: {run.environment.cpu}"
        assert (heading in text) is bool(run.rules)
        table = text.partition(heading)[2].partition("### ")[0]
        for case in run.cases if run.rules else ():
            [row] = [line for line in table.splitlines() if line.startswith(f"| {case.model} | {case.shape} | {case.threads} |")]
            told = re.findall(r"([\d.]+), ([\d.]+) \((\d+)\)", row)
            assert len(told) >= 2 and all(float(p99) >= float(p50) and int(n) >= MIN_N_P99 for p50, p99, n in told)
