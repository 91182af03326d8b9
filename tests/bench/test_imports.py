from __future__ import annotations

import pytest

from xyntra_bench import imports
from xyntra_bench.contenders import Contender
from xyntra_bench.imports import measure_imports


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "REPEATS", 1)


def test_the_runtime_is_measured_and_a_plugin_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "RUNTIME", "json")
    monkeypatch.setattr(imports, "PLUGINS", {"A": "wave"})
    assert list(measure_imports([Contender(provider="A"), Contender.parse("A:x=1")])) == ["json", "wave"]
    assert list(measure_imports([Contender(provider="Other")])) == ["json"]
    assert all(ns > 0 for ns in measure_imports([Contender(provider="A")]).values())


def test_what_cannot_be_imported_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "RUNTIME", "json")
    monkeypatch.setattr(imports, "PLUGINS", {"A": "no_such_module_anywhere"})
    assert list(measure_imports([Contender(provider="A")])) == ["json"]
