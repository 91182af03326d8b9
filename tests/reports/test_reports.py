from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bench.results import Run
from bench.store import dump
from reports import render_report, reports
from zoo.registry import RegistryError


@pytest.mark.parametrize("name", reports.names())
def test_every_report_renders_and_names_its_source(name: str, results: Path) -> None:
    text = render_report(name, results)
    for part in ("`example.json`", "Example CPU", "quota 1.5 cores", "onnxruntime 1.31.1", "0123456789ab"):
        assert part in text
    assert "2026-05-04" in text and "A quick run" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines}) == 1, "every row has every column"
    assert text == render_report(name, results), "a pure function"


def test_zoo_shows_wins_and_losses_alike(results: Path) -> None:
    rows = [line.split(" | ") for line in render_report("zoo", results).splitlines() if line.startswith("| ")]
    header, wins, wrong, dies = rows
    by_name = dict(zip(header, wins, strict=True))
    assert by_name["speed-up [95 %]"].startswith("1.30x [1.30, 1.30")
    assert by_name["verdict"] == "faster" and by_name["max error"] == "1.0e-06"
    assert by_name["nodes |"] == "90/100 |" and by_name["p99 ms (n)"] == "101 (120)"
    assert dict(zip(header, wrong, strict=True))["speed-up [95 %]"] == "-"
    assert dict(zip(header, wrong, strict=True))["max error"] == "5.0e-01"
    assert dict(zip(header, dies, strict=True))["verdict"] == "crashed"


def test_an_interrupted_run_is_called_one(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "half.json"
    file.write_text(dump(dataclasses.replace(run, finished="", planned=9)))
    assert "Interrupted after 3 of 9 cases" in render_report("zoo", file)


def test_an_unknown_report_is_refused(results: Path) -> None:
    with pytest.raises(RegistryError, match=r"no 'zo' in reports\. did you mean \['zoo'\]"):
        render_report("zo", results)
