"""The environment: read in one place, typed, scoped for tests."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from xyntra_ep import knobs
from xyntra_ep.errors import ConfigError
from xyntra_ep.knobs import Knobs

ROOT = Path(__file__).resolve().parent.parent
CMAKE = {"XYNTRA_WERROR", "XYNTRA_BUILD_HOST", "XYNTRA_BUILD_FUZZ", "XYNTRA_PREBUILT"}
MISSPELT = {"XYNTRA_PRECISON"}  # by the documents, which show what is said then


def test_all_variables_arrive() -> None:
    read = Knobs.from_environment(
        {
            "XYNTRA_REGISTER": "0",
            "XYNTRA_CC": "clang-19",
            "XYNTRA_DEBUG": "3",
            "XYNTRA_COMPILE_TIMEOUT_S": "2.5",
            "XYNTRA_JOBS": "7",
            "XYNTRA_CONFIG": "~/fusion.toml",
            "XYNTRA_CACHE_DIR": "",
            "XDG_CACHE_HOME": "/caches",
            "XYNTRA_CLAIM": " all ",
            "XYNTRA_AVOID": "gemm.wgmma, gemm.gemv,",
            "XYNTRA_ZOO_DIR": "/models",
        }
    )
    assert read == Knobs(
        register=False,
        cc="clang-19",
        debug=3,
        compile_timeout_s=2.5,
        jobs=7,
        config=Path.home() / "fusion.toml",
        xdg_cache_home=Path("/caches"),
        claim="all",
        avoid=("gemm.wgmma", "gemm.gemv"),
        zoo_dir=Path("/models"),
    )


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({"XYNTRA_CACHE_DIR": "/mine", "XDG_CACHE_HOME": "/caches"}, Path("/mine")),
        ({"XYNTRA_CACHE_DIR": "~/mine"}, Path.home() / "mine"),
        ({"XDG_CACHE_HOME": "/caches"}, Path("/caches/xyntra")),
        ({}, Path.home() / ".cache" / "xyntra"),
    ],
)
def test_cache_root(environment: dict[str, str], root: Path) -> None:
    assert Knobs.from_environment(environment).cache_root == root


@pytest.mark.parametrize(
    ("text", "sanitizers"),
    [("1", "address,undefined"), ("Thread", "thread"), ("address,undefined", "address,undefined"), ("0", "")],
)
def test_sanitizers(text: str, sanitizers: str) -> None:
    assert Knobs.from_environment({"XYNTRA_SANITIZE": text}).sanitize == sanitizers


@pytest.mark.parametrize("environment", [{}, {"XDG_CACHE_HOME": "/caches"}, {"XYNTRA_ZOO_DIR": "/models"}])
def test_the_models_of_the_zoo_are_where_the_zoo_says(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    from xyntra_zoo.cache import cache_dir

    monkeypatch.setattr(os, "environ", environment)
    assert Knobs.from_environment(environment).zoo_root == cache_dir()


def test_every_variable_that_documents_and_tools_name_is_known() -> None:
    files = [*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / ".ci" / "run"]
    for folder in ("bench", "docs", "tests", "zoo"):
        files += [path for path in (ROOT / folder).rglob("*.[mp][dy]") if not path.name.startswith("test_")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    found = set(re.findall(r"\bXYNTRA_[A-Z0-9_]*[A-Z0-9]", text))
    assert len(found) > 10 and knobs.unknown(dict.fromkeys(found - CMAKE - MISSPELT)) == []


def test_what_is_wrong_does_not_keep_the_rest_from_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_JOBS", "0")
    monkeypatch.setenv("XYNTRA_DEBUG", "2")
    with knobs.forgiving() as wrong:
        assert knobs.current().debug == 2 and [error.where for error in wrong] == ["XYNTRA_JOBS"]
        with knobs.scope(debug=3), knobs.forgiving() as wrong:
            assert knobs.current().debug == 3 and wrong == []
    with pytest.raises(ConfigError, match="XYNTRA_JOBS: '0' is not valid"):
        knobs.current()


def test_the_environment_is_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_DEBUG", "1")
    assert knobs.current().debug == 1
    monkeypatch.setenv("XYNTRA_DEBUG", "2")
    assert knobs.current().debug == 2


def test_scope_sets_and_restores() -> None:
    before = knobs.current()
    with knobs.scope(debug=4, cc="tcc") as inside:
        assert (inside.debug, inside.cc) == (4, "tcc")
        assert knobs.current() is inside
        with knobs.scope(debug=1):
            assert (knobs.current().debug, knobs.current().cc) == (1, "tcc")
    assert knobs.current() == before


def test_nobody_else_reads_the_environment() -> None:
    reading = re.compile(r"os\.environ(\.get|\[|\.pop|\.setdefault)|os\.getenv|from os import .*environ")
    readers = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "xyntra_ep").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if reading.search(line)
    ]
    assert readers == []
