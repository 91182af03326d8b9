"""The registry: a folder of modules is the sum of the lists they declare."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xyntra_ep.errors import ConfigError
from xyntra_ep.registry import Named, Registry

ROW = "from types import SimpleNamespace as Row\n"
MakePackage = Callable[..., str]
_numbers = itertools.count()


@pytest.fixture
def make_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePackage:
    """Write a package from {stem: text} and return its name, never used before."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(**modules: str) -> str:
        name = f"registry_package_{next(_numbers)}"
        folder = tmp_path / name
        folder.mkdir()
        for stem, text in {"__init__": "", **modules}.items():
            (folder / f"{stem}.py").write_text(ROW + text, encoding="utf-8")
        return name

    return make


def test_rows_come_in_the_order_of_module_names(make_package: MakePackage) -> None:
    package = make_package(b="ROWS = [Row(name='one')]", a="ROWS = [Row(name='two'), Row(name='three')]", helper="SIZE = 3")
    registry = Registry[Named](package, "ROWS")
    assert registry.names() == ("two", "three", "one")
    assert [row.name for row in registry] == ["two", "three", "one"]
    assert len(registry) == 3
    assert registry["one"].name == "one"
    assert "one" in registry
    assert "four" not in registry


def test_nothing_is_imported_before_it_is_asked(make_package: MakePackage) -> None:
    package = make_package(a="ROWS = []")
    registry = Registry[Named](package, "ROWS")
    assert f"{package}.a" not in sys.modules
    assert registry.names() == ()
    assert f"{package}.a" in sys.modules


def test_underscored_modules_are_not_imported(make_package: MakePackage) -> None:
    package = make_package(_broken="raise RuntimeError", a="ROWS = [Row(name='one')]")
    assert Registry[Named](package, "ROWS").names() == ("one",)


def test_a_module_that_fails_fails_the_registry(make_package: MakePackage) -> None:
    registry = Registry[Named](make_package(a="import no_such_module_at_all"), "ROWS")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        registry.names()


def test_a_wrong_name_is_answered_with_near_ones(make_package: MakePackage) -> None:
    package = make_package(a="ROWS = [Row(name='wgsl'), Row(name='cuda')]")
    with pytest.raises(ConfigError) as caught:
        Registry[Named](package, "ROWS")["wgls"]
    assert str(caught.value) == f"no 'wgls' in {package}. did you mean ['wgsl']?"


def test_a_far_name_is_answered_with_all(make_package: MakePackage) -> None:
    package = make_package(a="ROWS = [Row(name='wgsl'), Row(name='cuda')]")
    with pytest.raises(ConfigError) as caught:
        Registry[Named](package, "ROWS")["zzz"]
    assert str(caught.value) == f"no 'zzz' in {package}. there are ['cuda', 'wgsl']"


def test_a_name_declared_twice_is_refused_with_both_places(make_package: MakePackage) -> None:
    package = make_package(a="ROWS = [Row(name='one')]", b="ROWS = [Row(name='one')]")
    with pytest.raises(ConfigError) as caught:
        Registry[Named](package, "ROWS").names()
    assert str(caught.value) == f"{package}: 'one' is declared in {package}.a and in {package}.b"


def test_a_misspelt_list_is_not_taken_for_a_helper(make_package: MakePackage) -> None:
    package = make_package(a="ROW = []")
    with pytest.raises(ConfigError) as caught:
        Registry[Named](package, "ROWS").names()
    assert str(caught.value) == f"{package}.a: declares ROW. the registry reads ROWS"
