"""What is in the pictures; how they look is for eyes."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import pytest

from tests.reports.conftest import CEILINGS, HOSTILE, INSIDE, kernel, measurement
from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Run
from xyntra_reports import flamegraph, latency, roofline
from xyntra_reports._figure import COLOURS, figure, inline
from xyntra_reports._kernels import cpu_roofs
from xyntra_reports._roofline_plot import _roomiest, overview
from xyntra_reports._samples import outer_fence_ns, sorted_ns
from xyntra_reports.registry import Picture

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(picture.svg)


def ids(picture: Picture, prefix: str) -> list[str]:
    return [e.get("id", "") for e in parsed(picture).iter() if e.get("id", "").startswith(prefix)]


def titles(picture: Picture) -> list[str]:
    return [e.text or "" for e in parsed(picture).iter(f"{SVG}title")]


@pytest.fixture(scope="module")
def wins(run: Run) -> CaseResult:
    return run.cases[0]


@pytest.fixture(scope="module")
def roofs(run: Run, wins: CaseResult) -> Picture:
    section = roofline.part(run, wins)
    assert section is not None
    (picture,) = section.pictures
    return picture


def test_a_roofline_has_a_point_for_each_kind_of_kernel_and_one_for_the_run(roofs: Picture) -> None:
    assert sorted(ids(roofs, "kernel-")) == ["kernel-0", "kernel-1"], "what computes nothing has no place on it"
    assert ids(roofs, "model") == ["model"]
    assert sorted(ids(roofs, "roof-")) == ["roof-DRAM", "roof-L1", "roof-L2", "roof-L3", "roof-fp32"]
    assert any("96% of its roof (compute)" in t for t in titles(roofs))


def test_names_of_nodes_are_text_and_no_markup(roofs: Picture) -> None:
    assert any(t.startswith(HOSTILE[:20]) for t in titles(roofs)), "as it is, dollars and all"
    assert "<script>" not in roofs.svg and "&lt;script&gt;" in roofs.svg
    shown = "".join(e.text or "" for e in parsed(roofs).iter(f"{SVG}text"))
    assert "$x_1$" in shown, "and is not read as a formula"


@pytest.mark.parametrize(
    ("points", "where"), [([], 1.0), ([(1.2, 10.0)], 10.0), ([(1.2, 10.0), (12.0, 10.0), (102.0, 10.0)], 100.0)]
)
def test_a_name_stands_where_the_points_leave_room(points: list[tuple[float, float]], where: float) -> None:
    """The first anchor that is free, else the one with most room."""
    with figure(9.6, 5.0) as fig:
        axes = fig.add_axes((0, 0, 1, 1))
        axes.set(xscale="log", yscale="log", xlim=(1.0, 1000.0), ylim=(1.0, 100.0))
        taken = [axes.transData.transform(point) for point in points]
        x, spots = _roomiest(axes, [(1.0, 10.0), (10.0, 10.0), (100.0, 10.0)], (1.0, 0.0), 3, 8, taken)
        assert x == where and spots[0][0] == pytest.approx(axes.transData.transform((where, 10.0))[0])


def test_colours_follow_the_reader(roofs: Picture) -> None:
    bare = re.sub(r"var\([^)]*\)|<style>:root.*?</style>", "", roofs.svg)
    assert not [light for _, light, _ in COLOURS if light in bare], "every colour is a variable"
    assert "prefers-color-scheme:dark" in roofs.svg and "@media print" in roofs.svg
    assert roofs.png.startswith(b"\x89PNG")


def test_a_picture_in_a_page_shares_no_id_with_another(roofs: Picture) -> None:
    text = inline(roofs.svg, "p1")
    assert "<style>:root" not in text and 'id="p1-kernel-0"' in text
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    assert used and used <= set(re.findall(r'id="([^"]+)"', text)), "and what refers to an id still finds it"


def test_all_models_stand_under_the_roofs_once_for_each_contender(run: Run) -> None:
    picture = overview(run, 1)
    assert picture is not None
    assert sorted(ids(picture, "model-")) == ["model-0-0", "model-0-1", "model-1-0", "model-1-1"]
    assert overview(dataclasses.replace(run, ceilings=()), 1) is None, "without ceilings there are no roofs"
    assert overview(run, 7) is None


def test_every_contender_has_its_percentiles_its_histogram_and_its_order(run: Run, wins: CaseResult) -> None:
    slow = measurement("CPUExecutionProvider", 130.0)
    slow = dataclasses.replace(slow, samples_ns=(*slow.samples_ns[:-1], 10 * slow.samples_ns[-1]))
    section = latency.part(run, dataclasses.replace(wins, baseline=slow))
    assert section is not None
    (picture,) = section.pictures
    for what in ("nines-", "histogram-", "order-"):
        assert sorted(ids(picture, what)) == [f"{what}0", f"{what}1"]
    assert ids(picture, "outliers-") == ["outliers-0"] and "1 outliers of CPUExecutionProvider" in titles(picture)
    labels = [e.text for e in parsed(picture).iter(f"{SVG}text")]
    assert {"CPUExecutionProvider", "XyntraEP", "50%", "90%", "99%"} <= set(labels)


def test_without_raw_samples_the_histogram_counts() -> None:
    m = measurement("XyntraEP", 100.0)
    again = sorted_ns(dataclasses.replace(m, samples_ns=()))
    raw = sorted_ns(m)
    assert again.size == raw.size and abs(again - raw).max() / raw.max() < 2e-3
    assert sorted_ns(dataclasses.replace(m, samples_ns=(), latency=None)).size == 0


def test_only_far_and_slow_runs_are_outliers() -> None:
    values = sorted_ns(dataclasses.replace(measurement("A", 1.0), samples_ns=(10, *range(1000, 1100), 1400)))
    fence = outer_fence_ns(values)
    assert 1200 < fence < 1400, "the third quartile and three times the distance of the quartiles"


def test_the_boxes_of_a_flame_graph_fill_the_run(wins: CaseResult) -> None:
    root = flamegraph.tree(INSIDE)
    assert root.ns == INSIDE.run_ns == sum(child.ns for child in root.children)
    island, rest = root.children
    assert island.ns == 65_000_000 and rest.name == flamegraph.REST
    assert [box.name for box in island.children] == ["matrix product", "rows", "other"]
    (alike,) = island.children[0].children
    assert alike.name.endswith(" x2") and [box.ns for box in alike.children] == [30_000_000, 20_000_000]


def test_a_flame_graph_tells_all_of_a_box_and_draws_no_speck(run: Run, wins: CaseResult) -> None:
    speck = kernel("/tiny", 1000, 1, 1)
    inside = dataclasses.replace(INSIDE, kernels=(*INSIDE.kernels, speck))
    assert wins.contenders
    picture = flamegraph.picture(wins, wins.contenders[0], inside)
    told = titles(picture)
    assert any(t.startswith(f"{HOSTILE}: 30.0 ms, 30.0% of the run; MatMul, Add x2; gemm.packed_b; xy_kernel") for t in told)
    assert not any("/tiny" in t for t in told) and "<script>" not in picture.svg
    widths = [float(e.get("width", "0")) for e in parsed(picture).iter(f"{SVG}rect")]
    assert max(widths) == pytest.approx(flamegraph.WIDTH - 0.5, abs=0.01)


def test_cases_that_tell_nothing_have_no_kernels_to_show(run: Run) -> None:
    bare = dataclasses.replace(run.cases[0], contenders=())
    assert roofline.part(run, bare) is None and flamegraph.part(run, bare) is None
    dead = run.cases[2]
    assert dead.scenario is Scenario.SINGLE_STREAM and latency.part(run, dead) is None


def test_the_table_of_kernels_accounts_for_the_whole_run() -> None:
    text = roofline.kernel_table(INSIDE, cpu_roofs(CEILINGS), rows=1)
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in text.splitlines()[2:]]
    assert [row[0] for row in rows[1:]] == ["2 more", "ONNX Runtime and its own nodes"]
    assert sum(float(row[3].rstrip("%")) for row in rows) == pytest.approx(100)
    assert rows[0][-2:] == ["compute", "96%"]
