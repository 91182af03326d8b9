from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.reports.conftest import on_device
from xyntra_bench.cli import app
from xyntra_bench.errors import BenchError
from xyntra_bench.results import Run
from xyntra_bench.store import Stored, dump, load
from xyntra_reports import render_report, update_file

TEXT = """# Title

<!-- bench:zoo -->
stale text
<!-- /bench:zoo -->

middle
<!-- bench:creation --><!-- /bench:creation -->
end
"""


@pytest.fixture
def readme(tmp_path: Path) -> Path:
    path = tmp_path / "README.md"
    path.write_text(TEXT)
    return path


def test_blocks_are_filled_and_the_rest_is_kept(readme: Path, results: Path) -> None:
    assert update_file(readme, Stored.at(results), write=True) == ["zoo", "creation"]
    text = readme.read_text()
    assert text.startswith("# Title\n\n<!-- bench:zoo -->\n### AVX2: Example CPU\n\n| model |")
    assert "\n<!-- /bench:zoo -->\n\nmiddle\n<!-- bench:creation -->\n" in text and text.endswith("\nend\n")
    table, _, note = render_report("zoo", Stored.at(results)).rpartition("\n\n")
    assert table in text and f"\nNot measured yet: AVX-512, AMX.\n\n{note}" in text and "stale text" not in text
    assert update_file(readme, Stored.at(results), write=True) == [], "nothing to do the second time"


def test_a_block_that_nothing_is_stored_for_says_how_to_measure_it(readme: Path, results: Path) -> None:
    file = results / "example.json"
    file.write_text(file.read_text().replace('"scenario": "scaling"', '"scenario": "specialised"'))
    readme.write_text("<!-- bench:scaling -->\n<!-- /bench:scaling -->\n")
    update_file(readme, Stored.at(results), write=True)
    assert "Nothing is stored yet: `bench run zoo --scenario scaling --json" in readme.read_text()


def test_runs_on_devices_fill_a_table_of_their_own(readme: Path, results: Path, run: Run) -> None:
    readme.write_text("<!-- bench:gpu -->\n<!-- /bench:gpu -->\n<!-- bench:zoo -->\n<!-- /bench:zoo -->\n")
    update_file(readme, Stored.at(results), write=True)
    empty, _, cpu = readme.read_text().partition("<!-- /bench:gpu -->")
    sentence = "No model has been measured on a GPU for this table yet."
    assert empty == f"<!-- bench:gpu -->\n{sentence}\n", "a sentence and no empty table"
    (results / "gpu.json").write_text(dump(dataclasses.replace(on_device(run), started="2099-01-01T00:00:00+00:00")))
    assert update_file(readme, Stored.at(results), write=True) == ["gpu"]
    filled, _, after = readme.read_text().partition("<!-- /bench:gpu -->")
    [row] = [line for line in filled.splitlines() if "XyntraEP:backend=cuda" in line]
    cells = row.strip("| ").split(" | ")
    assert cells[5] == "3.00" and cells[8:10] == ["-", "-"] and cells[10].endswith(" / 3.00")
    assert cells[11] == "1.50x [1.40, 1.60]" and "No GPU" not in filled
    assert after == cpu, "the newest run is not about the CPU"


def test_a_figure_belongs_to_its_block(readme: Path, results: Path) -> None:
    (results.parent / "docs").mkdir()
    readme.write_text("<!-- bench:machine -->\n<!-- /bench:machine -->\n")
    assert update_file(readme, Stored.at(results), write=True) == ["machine"]
    figure = readme.parent / "docs" / "figures" / "roofline-models-t1-avx2.svg"
    assert (
        "](docs/figures/roofline-models-t1-avx2.svg)" in readme.read_text() and "<desc>example.json</desc>" in figure.read_text()
    )
    assert update_file(readme, Stored.at(results), write=False) == []
    figure.write_text(figure.read_text().replace("example.json", "older.json"))
    assert update_file(readme, Stored.at(results), write=False) == ["machine"], "the figure is of other results"
    figure.unlink()
    assert update_file(readme, Stored.at(results), write=True) == ["machine"] and figure.is_file()


def test_a_block_of_kernels_says_how_to_measure_them(readme: Path, results: Path, run: Run) -> None:
    for path in results.glob("*.json"):
        stored = load(path)
        cases = tuple(dataclasses.replace(case, contenders=()) for case in stored.cases)
        path.write_text(dump(dataclasses.replace(stored, cases=cases)))
    readme.write_text("<!-- bench:machine -->\n<!-- /bench:machine -->\n")
    update_file(readme, Stored.at(results), write=True)
    assert "Nothing is stored yet: `bench run zoo --json" in readme.read_text()


def test_check_changes_nothing(readme: Path, results: Path) -> None:
    assert update_file(readme, Stored.at(results), write=False) == ["zoo", "creation"]
    assert readme.read_text() == TEXT


def test_the_command_exits_1_when_readme_and_results_disagree(readme: Path, results: Path) -> None:
    arguments = ["report", "--readme", str(readme), "--results", str(results)]
    stale = CliRunner().invoke(app, [*arguments, "--check"])
    assert stale.exit_code == 1 and "not what the stored results say: zoo, creation. run `bench report`" in stale.output
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert CliRunner().invoke(app, [*arguments, "--check"]).exit_code == 0
    readme.write_text(readme.read_text().replace("1.30x", "9.99x"))
    assert CliRunner().invoke(app, [*arguments, "--check"]).exit_code == 1


def test_one_report_can_be_printed(results: Path) -> None:
    output = CliRunner().invoke(app, ["report", "--show", "latency", "--results", str(results)]).output
    assert output == render_report("latency", Stored.at(results))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "no markers"),
        ("<!-- bench:zoo -->", "is not closed. add <!-- /bench:zoo -->"),
        ("<!-- bench:zoo --><!-- /bench:zoo -->" * 2, "stands there twice"),
    ],
)
def test_bad_markers_are_explained(readme: Path, results: Path, text: str, message: str) -> None:
    readme.write_text(text)
    with pytest.raises(BenchError, match=message):
        update_file(readme, Stored.at(results), write=False)
