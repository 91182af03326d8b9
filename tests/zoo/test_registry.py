from __future__ import annotations

import sys
from pathlib import Path

import pytest

from xyntra_zoo import Family, Registry, zoo
from xyntra_zoo.registry import Named, RegistryError


def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> Registry[Named]:
    name = f"rows_of_{tmp_path.name}"
    folder = tmp_path / name
    folder.mkdir()
    row = "from types import SimpleNamespace as Row\n"
    for file, text in {"__init__.py": "", **files}.items():
        (folder / file).write_text(row + text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Registry(name, "ROWS")


def test_full_size_models_cover_the_families() -> None:
    assert {model.family for model in zoo if not model.tiny} == set(Family)
    assert {f"{model.name}-tiny" for model in zoo if not model.tiny} == {m.name for m in zoo if m.tiny}


def test_a_wrong_name_is_answered_with_near_ones() -> None:
    with pytest.raises(RegistryError, match=r"no 'bert_base' in zoo\. did you mean \['bert-base'"):
        zoo["bert_base"]


def test_a_name_without_neighbours_lists_all() -> None:
    with pytest.raises(RegistryError, match=r"no 'xxx' in zoo\. there are \[.*'vit-tiny16'"):
        zoo["xxx"]


def test_modules_are_read_sorted_and_private_ones_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "b.py": "ROWS = [Row(name='b')]",
        "a.py": "ROWS = [Row(name='a')]",
        "_c.py": "ROWS = [Row(name='c')]",
    }
    rows = package(tmp_path, monkeypatch, files)
    assert not any(name.startswith("rows_of_") for name in sys.modules), "nothing is imported before the first question"
    assert rows.names() == ["a", "b"]
    assert len(rows) == 2 and "a" in rows and "c" not in rows


def test_duplicates_are_refused_and_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = package(tmp_path, monkeypatch, {"a.py": "ROWS = [Row(name='x')]", "b.py": "ROWS = [Row(name='x')]"})
    with pytest.raises(RegistryError, match=r"'x' is declared twice: in \w+\.a and in \w+\.b"):
        rows.names()
