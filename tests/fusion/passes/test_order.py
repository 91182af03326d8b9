"""The list of passes: what each requires holds where it stands, and another order is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion import passes
from xyntra_ep.fusion.passes import PASSES, Fact, Pass, in_order

ROOT = Path(__file__).resolve().parents[3]


def without(name: str) -> list[Pass]:
    return [each for each in PASSES if each.name != name]


def moved(name: str, to: int) -> list[Pass]:
    [one] = [each for each in PASSES if each.name == name]
    rest = without(name)
    return [*rest[:to], one, *rest[to:]]


def test_the_list_is_in_order() -> None:
    assert in_order(*PASSES) == PASSES
    assert {fact for each in PASSES for fact in each.establishes} == set(Fact) - {Fact.TENSORS}


LATE = replace(PASSES[0], name="late")
ABSENT = "which does not hold there"


@pytest.mark.parametrize(
    ("wrong", "name", "message"),
    [
        (moved("fuse_rows", 2), "fuse_rows", f"requires found attention, {ABSENT}. put it after fuse_attention"),
        (moved("lower_to_ops", 0), "lower_to_ops", f"requires found attention, {ABSENT}. put it after fuse_attention"),
        (moved("settle_repeats", 7), "merge_low_rank", f"requires settled repeats, {ABSENT}. put it after settle_repeats"),
        (moved("join_projections", 4), "fuse_attention", f"requires joined projections, {ABSENT}. put it after join_projections"),
        (without("choose_precision"), "limit_elements", f"requires chosen precision, {ABSENT}. no pass establishes that"),
        ([*PASSES, LATE], "late", "requires lazy tensors, which lower_to_ops ends. put it before"),
        ([*PASSES, PASSES[0]], "settle_repeats", "is there twice"),
    ],
)
def test_another_order_is_refused(wrong: list[Pass], name: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        in_order(*wrong)
    assert str(refused.value) == f"pass {name}: {message}"


def test_a_file_for_each_pass_and_a_pass_for_each_file() -> None:
    folder = Path(passes.__path__[0])
    files = {path.stem for path in folder.glob("*.py") if not path.name.startswith("_")}
    assert files == {each.name for each in PASSES}


def test_the_page_has_them_in_this_order() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \| (.+) \|$", page, flags=re.MULTILINE) == [(each.name, each.doc) for each in PASSES]
