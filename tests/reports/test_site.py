from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.reports.conftest import HOSTILE
from tests.support.site import Reader, problems, read
from xyntra_bench.cli import app
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import Run, Status, Warn
from xyntra_bench.store import Stored, dump
from xyntra_reports import parts, write_site
from xyntra_reports._html import from_markdown, slug
from xyntra_reports._markdown import table


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, results_once: Path) -> Path:
    out = tmp_path_factory.mktemp("site")
    write_site(Stored.at(results_once), out)
    return out


def test_every_address_is_in_the_site_and_every_picture_is_well_formed(site: Path) -> None:
    assert {p.name for p in site.rglob("*.html")} == {"index.html", "tables.html", "wins.html", "wrong.html", "dies.html"}
    assert problems(site) == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.html", '<a href="b.html">b</a>', "b.html leads nowhere"),
        ("a.html", '<a href="https://x.org/y.css">', "https://x.org/y.css leads out of the site"),
        ("a.html", '<a href="#part">', "#part leads to no part of it"),
        ("a.html", '<p id="p"></p><p id="p"></p>', "p stands twice"),
        ("a.html", '<script src="a.html"></script>', "<script> fetches"),
        ("a.html", "<svg><g></svg>", "not well-formed: mismatched tag: line 1, column 10"),
        ("a.svg", '<svg><use href="other.svg"/></svg>', "other.svg is not in the picture"),
        ("a.css", "p{background:url(https://x.org/a)}", "https://x.org/a is fetched by a style"),
        ("a.png", "text", "not a PNG file"),
    ],
)
def test_what_a_site_must_not_have_is_found(name: str, text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert problems(tmp_path) == [f"{name}: {problem}"]


def test_the_page_of_a_model_has_every_part(site: Path) -> None:
    text = read(site / "models" / "wins.html").text
    for part in parts:
        assert (part.title in text) is (part.name != "occupancy"), "which devices have"
    for shown in ("b1 s128, 1 thread", "Example CPU", "quota cores", "90/100", "unsupported | <b>"):
        assert shown in text
    assert [part.name for part in sorted(parts, key=lambda p: p.order)][:2] == ["placement", "latency"]


def test_warnings_and_shapes_are_explained_where_they_stand(site: Path) -> None:
    text = read(site / "models" / "wrong.html").text
    assert f"inaccurate: {Warn.INACCURATE.advice.replace('`', '')}" in text and "b is the batch" in text


def test_the_first_page_begins_with_who_is_faster(site: Path) -> None:
    text = read(site / "index.html").text
    summary = text.index("1.30x in geometric mean of the 1 that are sure")
    assert text.index("XyntraEP: faster in 1") < summary < text.index("Results") < text.index("under the roofs")
    assert text.count("Measured 2026-05-04") == 1, "where it is from stands at the head alone"


def test_a_contender_that_failed_says_why(tmp_path: Path, run: Run) -> None:
    lost = dataclasses.replace(run.cases[0].contenders[0], status=Status.CRASHED, error="killed by SIGSEGV\n<log>", latency=None)
    case = dataclasses.replace(run.cases[0], contenders=(lost,))
    (tmp_path / "run.json").write_text(dump(dataclasses.replace(run, cases=(case,))))
    write_site(Stored.at(tmp_path), tmp_path / "site")
    assert "XyntraEP crashed: killed by SIGSEGV <log>" in read(tmp_path / "site" / "models" / "wins.html").text


def test_hostile_names_are_text(site: Path) -> None:
    reader = read(site / "models" / "wins.html")
    assert HOSTILE in reader.text and "<script>1" not in (site / "models" / "wins.html").read_text()


def test_a_case_that_crashed_has_its_page_and_its_reason(site: Path) -> None:
    text = read(site / "models" / "dies.html").text
    assert "crashed: killed by SIGSEGV" in text and "Run times" not in text


def test_pictures_lie_beside_as_files(site: Path) -> None:
    names = {path.name for path in (site / "figures").iterdir()}
    for stem in ("roofline-wins-b1-s128-t1-0", "latency-wins-b1-s128-t1", "roofline-models-t1"):
        assert {f"{stem}.svg", f"{stem}.png"} <= names
    assert "flamegraph-wins-b1-s128-t1-0.svg" in names


def test_the_command_writes_the_site_and_says_where(tmp_path: Path, results_once: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    refused = CliRunner().invoke(app, ["report", "--results", str(results_once), "--html", str(blocked / "site")])
    assert isinstance(refused.exception, BenchError) and "name another folder with --html" in str(refused.exception)


def test_the_pages_are_of_the_newest_run_of_models(tmp_path: Path, run: Run) -> None:
    scaling = tuple(case for case in run.cases if case.scenario is Scenario.SCALING)
    runs = {
        "zoo": dataclasses.replace(run, cases=run.cases[2:3]),
        "scaling": dataclasses.replace(run, cases=scaling, started="2027-01-01"),
        "micro": dataclasses.replace(run, cases=run.cases[2:3], target=Target.MICRO, started="2028-01-01"),
        "wide": dataclasses.replace(run, cases=run.cases[2:3], target=Target.WIDE, started="2029-01-01"),
    }
    for name, stored in runs.items():
        (tmp_path / f"{name}.json").write_text(dump(stored))
    pages = write_site(Stored.at(tmp_path), tmp_path / "site")
    assert [path.name for path in pages] == ["index.html", "dies.html", "tables.html"]
    tables = read(tmp_path / "site" / "tables.html").text
    assert all(f"{name}.json" in tables for name in ("scaling", "micro", "wide"))
    (tmp_path / "zoo.json").unlink()
    assert "wide.json" in read(write_site(Stored.at(tmp_path), tmp_path / "served")[0]).text
    (tmp_path / "wide.json").unlink()
    assert "micro.json" in read(write_site(Stored.at(tmp_path), tmp_path / "other")[0]).text
    (tmp_path / "micro.json").unlink()
    assert "scaling.json" in read(write_site(Stored.at(tmp_path), tmp_path / "last")[0]).text


@pytest.mark.parametrize("text", [HOSTILE, "a\\", "\\|", "**b** `c` | <i>", "x](http://y)", "_a_*b*"])
def test_a_cell_comes_back_as_it_was(text: str) -> None:
    reader = Reader()
    reader.feed(from_markdown(table(["head"], [[text]])))
    assert reader.text.replace("\n", "") == f"head{' '.join(text.split())}"
    assert set(reader.tags) == {"div", "table", "thead", "tbody", "tr", "th", "td"}


def test_markdown_has_code_and_bold_and_paragraphs() -> None:
    assert from_markdown("**a**: `b < c`\n\nd") == "<p><strong>a</strong>: <code>b &lt; c</code></p>\n<p>d</p>"


def test_file_names_are_plain() -> None:
    assert slug("../a b/c") == "a-b-c" and slug("...") == "unnamed"
