"""The page about searches says who needs fewer trials, the losers included."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xyntra_bench.cli import app
from xyntra_bench.environment import Environment, read_environment
from xyntra_bench.errors import BenchError
from xyntra_bench.store import dump, write_atomically
from xyntra_bench.tuning import searches
from xyntra_bench.tuning.search_results import KIND_GP, KIND_RANDOM, KernelSearch, SearchRun, load_search_run
from xyntra_ep.tracea.interface.tuning.shapes import NamedShape
from xyntra_reports import searches_page, searches_picture

ROOT = Path(__file__).resolve().parents[2]
MACHINE = {"lanes": 8.0, "gflops": 100.0}


@pytest.fixture(scope="module")
def environment() -> Environment:
    return read_environment("gcc", ())


def search(name: str, by_process: tuple[int, ...], by_chance: tuple[int, ...]) -> KernelSearch:
    curve = tuple(max(1.0, 1.5 - 0.05 * i) for i in range(16))
    return KernelSearch(
        name=name, op="Gemm f32[4,8] f32[8,4]! f32[4,4]", flops=256, bytes=320,
        points=100, failed=2, near=3, default="v a=1", best="v a=2", default_ratio=1.25, rank_correlation=0.5,
        top5=1.1, times={"v a=1": (90.0, 1.0), "v a=2": (100.0,)},
        curves={KIND_GP: curve, KIND_RANDOM: curve}, needed={KIND_GP: by_process, KIND_RANDOM: by_chance},
    )  # fmt: skip


def run_of(environment: Environment, *kernels: KernelSearch) -> SearchRun:
    return SearchRun(
        command="bench run tune",
        started="2026-01-02T",
        finished="x",
        environment=environment,
        kernels_isa="AVX2",
        machine=MACHINE,
        kernels=kernels,
    )


def test_the_page_has_winners_losers_and_who_never_came_near(environment: Environment) -> None:
    kernels = (search("loses", (9, 9, 9), (3, 3, 3)), search("wins", (4, 4, 0), (8, 8, 8)), search("never", (0, 0, 5), (0, 0, 0)))
    page = searches_page(run_of(environment, *kernels), "f.json")
    assert "fewer trials than chance on 1 of 3 kernels, and more on 1 (loses)." in page
    assert "chance needs 0.9 times as many" in page  # the cubic root of 2 / 3
    rows = [line for line in page.splitlines() if line.startswith("| ") and "kernel" not in line]
    assert [row.split(" | ")[0] for row in rows] == ["| wins", "| never", "| loses"]
    assert (
        "| 4 | 8 |" in rows[0]
        and "| never | never |" in rows[1]
        and "100 (2 failed) | 3 | 25.0 % slower | 0.50 | 1.100x |" in rows[0]
    )
    assert "Interrupted" in searches_page(dataclasses.replace(run_of(environment, *kernels), finished=""), "f.json")


def test_the_plot_has_a_curve_for_each_search(environment: Environment) -> None:
    picture = searches_picture(run_of(environment, search("a", (1,), (1,)), search("b", (1,), (1,))))
    assert KIND_GP in picture.svg and picture.png.startswith(b"\x89PNG") and "2 kernels" in picture.alt


def test_what_is_stored_is_read_again(environment: Environment, tmp_path: Path) -> None:
    run = run_of(environment, search("a", (1, 0), (2, 3)))
    write_atomically(tmp_path / "s.json", dump(run))
    assert load_search_run(tmp_path / "s.json") == run
    (tmp_path / "other.json").write_text('{"schema": "xyntra-search/9"}')
    with pytest.raises(BenchError, match="measure again"):
        load_search_run(tmp_path / "other.json")


def test_a_kernel_is_searched_for_real(tmp_path: Path) -> None:
    """A small one, of all its configurations."""
    small = NamedShape(name="gemm-8x64x32", op="gemm", sizes={"m": 8, "n": 64, "k": 32})
    found = searches.search_kernel(small, seeds=2, rounds=2)
    assert found.points >= 3 and found.failed == 0 and found.near >= 1 and found.default_ratio >= 1.0
    for kind in (KIND_GP, KIND_RANDOM):
        curve = found.curves[kind]
        assert list(curve) == sorted(curve, reverse=True) and curve[-1] == 1.0, "all of a small space are tried"
        assert len(found.needed[kind]) == 2 and all(found.needed[kind])
    ratios = [time[1] for time in found.times.values()]
    assert len(found.times) == found.points and found.times[found.default][1] == 1.0
    assert min(ratios) == pytest.approx(1 / found.default_ratio, abs=1e-3) and all(time[0] > 0 for time in found.times.values())
    assert found.flops == 2 * 8 * 64 * 32 and found.op.startswith("Gemm ")
    with pytest.raises(BenchError, match="no kernel of that name"):
        searches.kernels_like("nothing")


def test_the_stored_runs_make_the_page_and_its_plot(tmp_path: Path) -> None:
    page = (ROOT / "docs/tuning-search.md").read_text(encoding="utf-8")
    files = sorted((ROOT / "reports/tuning").glob("search-*.json"))
    assert files
    for file in files:
        drawn = tmp_path / "drawn.svg"
        made = CliRunner().invoke(app, ["searches", str(file), "--figure", str(drawn)])
        assert made.stdout in page, f"bench searches {file.relative_to(ROOT)}"
        assert drawn.stat().st_size > 1000
