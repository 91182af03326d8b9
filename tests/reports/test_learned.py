"""The page about the learned cost model says where it is worse than the estimates, too."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from xyntra_bench.cli import app
from xyntra_bench.tuning.learned_results import LearnedKernel, LearnedRun, Ranking
from xyntra_reports import learned_page, learned_picture

ROOT = Path(__file__).resolve().parents[2]
ESTIMATE = Ranking(correlation=0.5, top=1.1, first=1.2)


def kernel(name: str, top: float, needed: tuple[int, ...], seeded: tuple[int, ...], *, unseen: bool = True) -> LearnedKernel:
    ranking = Ranking(correlation=0.7, top=top, first=1.3)
    return LearnedKernel(
        name=name, isa="AVX2", kind="Gemm", points=9, estimate=ESTIMATE, unseen_shape=ranking,
        unseen_machine=ranking if unseen else None, needed=needed, needed_seeded=seeded,
    )  # fmt: skip


def run_of(*kernels: LearnedKernel, better_for: tuple[str, ...] = ("Gemm",)) -> LearnedRun:
    return LearnedRun(
        command="bench learn a.json", made="2026-01-02T", sources=("a.json",), machines=("a CPU, kernels for AVX2",),
        better_for=better_for, kernels=kernels,
    )  # fmt: skip


def test_the_page_names_the_losers_and_orders_by_what_is_gained() -> None:
    page = learned_page(run_of(kernel("loses", 1.21, (9,), (12,)), kernel("wins", 1.0, (9, 9, 0), (4, 4, 4))), "f.json")
    assert (
        "It ranks for Gemm" in page
        and "Of 2 kernels the best of its first 5 is worse than the estimates' on 1 (loses AVX2)" in page
    )
    assert "fewer trials on 1 of them, and more on 1." in page
    assert "| estimates | 0.50 | 1.100x | 1.200x |" in page and "| learned, unseen machine | 0.70 | 1.100x | 1.300x |" in page
    rows = [line for line in page.splitlines() if " | AVX2 | " in line]
    assert [row.split(" | ")[0] for row in rows] == ["| wins", "| loses"]
    assert rows[0].endswith("| 9 | 4 |") and "1.100x | 1.000x | 1.000x" in rows[0]


def test_what_is_not_known_is_not_shown() -> None:
    page = learned_page(run_of(kernel("a", 1.0, (0, 0, 3), (1,), unseen=False), better_for=()), "f.json")
    assert "It ranks nowhere" in page and "unseen machine |" not in page.splitlines()[5] and "| never | 1 |" in page
    assert "learned, unseen machine" not in page


def test_the_plot_has_a_mark_for_each_ranking() -> None:
    picture = learned_picture(run_of(kernel("a", 1.0, (1,), (1,)), kernel("b", 1.1, (1,), (1,), unseen=False)))
    assert "learned, unseen shape" in picture.svg and "2 kernels" in picture.alt and picture.png.startswith(b"\x89PNG")


def test_the_stored_run_makes_the_page_and_its_plot(tmp_path: Path) -> None:
    page = (ROOT / "docs/learned-costs.md").read_text(encoding="utf-8")
    files = sorted((ROOT / "reports/tuning").glob("learned-*.json"))
    assert files
    drawn = tmp_path / "drawn.svg"
    made = CliRunner().invoke(app, ["learned", str(files[-1]), "--figure", str(drawn)])
    assert made.stdout in page, f"bench learned {files[-1].relative_to(ROOT)}"
    assert drawn.stat().st_size > 1000
