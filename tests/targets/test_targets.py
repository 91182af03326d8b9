"""The table of op kinds by targets is made of the record, and the record knows of every target and kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.targets.evidence import Evidence, State, read, updated, write
from tests.targets.pages import texts
from tests.targets.table import cell, kinds, matrix, refreshed, targets
from xyntra_ep.tracea.backends import BACKENDS
from xyntra_ep.tracea.doctor.variants import cpu_variants, gpu_variants


def made(target: str, op: str, variant: str, state: State, where: str = "here", why: str = "") -> Evidence:
    return Evidence(target=target, op=op, variant=variant, state=state, where=where, why=why)


FOUND = [
    made("gpu", "Gemm", "gemm.a", State.RUN),
    made("gpu", "Gemm", "gemm.a", State.COMPILED),
    made("gpu", "Gemm", "gemm.b", State.COMPILED),
    made("gpu", "Gemm", "gemm.c", State.FAILED, why="computes something else"),
    made("cpu", "Scan", "scan.rows", State.RUN),
]


def test_the_best_of_each_variant_counts() -> None:
    assert cell(FOUND, "Gemm", "gpu") == "run 1, compiled 1, **failed 1**"
    assert cell(FOUND, "Scan", "gpu") == "-"


def test_the_processor_is_the_first_column() -> None:
    assert matrix(FOUND).splitlines()[0] == "| | cpu | gpu |"


def test_a_record_comes_back(tmp_path: Path) -> None:
    write(FOUND, tmp_path / "r.json")
    assert read(tmp_path / "r.json") == sorted(FOUND)


def test_what_was_found_anew_takes_the_place_of_the_same() -> None:
    new = made("gpu", "Gemm", "gemm.d", State.RUN)
    assert updated(FOUND, [new]) == [*FOUND[1:], new]


def test_a_page_without_a_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place for the table"):
        refreshed("# Page\n", "")


def test_every_target_and_every_kind_is_known() -> None:
    found = read()
    assert set(targets(found)) == {backend.name for backend in BACKENDS}
    assert set(kinds(found)) == {op.__name__ for op in (*cpu_variants(), *gpu_variants())}
    assert not [e for e in found if e.state is State.FAILED]


def test_pages_show_the_record() -> None:
    for page, text in texts(read()).items():
        assert page.read_text(encoding="utf-8") == text, f"{page.name}: python -m tests.targets --write"
