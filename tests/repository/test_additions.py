"""CONTRIBUTING's table "To add X, write this file", carried out: each line in a copy of the packages, by what it names alone.

A child process that sees the copy in the place of this checkout is asked for the addition, before it is made and after.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import onnx
import pytest

from tests.repository.additions import ADDITIONS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("xyntra_ep", "custom_ops", "zoo", "bench", "reports")
# Lines whose additions other tests make: tests/provider, test_new_op_kind.py, tests/fusion/passes.
ELSEWHERE = {"a target", "a kind of core-IR op", "a pass over islands"}


def table() -> dict[str, str]:
    """The lines of the table: what is added, and the cells that say where."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## To add X, write this file")[2]
    lines = re.findall(r"^\| (?!to add)(.+?) \| (.+) \|$", text, re.MULTILINE)
    return dict(lines)


def ask(question: str, copy: Path, variables: Mapping[str, str]) -> str:
    """What a program prints to which ``copy`` is the checkout; of one that fails, its error."""
    site = Path(onnx.__file__).parent.parent
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(map(str, (copy, ROOT, site)))}
    command = [sys.executable, "-S", "-c", question]  # without the editable installation, which comes before folders
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=copy, env=environment, check=False)
    return ran.stdout.strip() if ran.returncode == 0 else ran.stderr


def test_each_line_is_carried_out() -> None:
    assert table().keys() == ADDITIONS.keys() | ELSEWHERE


@pytest.mark.parametrize("what", ADDITIONS)
def test_what_the_line_names_is_all(what: str, tmp_path: Path) -> None:
    addition = ADDITIONS[what]
    copy = tmp_path / "copy"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("*.so", "*.pyc.*"))
        if not folder.startswith("xyntra_"):
            (copy / f"xyntra_{folder}").symlink_to(folder)  # by which it is imported
    assert ask(addition.question, copy, addition.variables) != addition.answer

    for path, text in addition.files.items():
        assert not (copy / path).exists()
        (copy / path).write_text(text, encoding="utf-8")
    for path, (before, row) in addition.rows.items():
        text = (copy / path).read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{path} has no single place for the row"
        (copy / path).write_text(text.replace(before, row + before), encoding="utf-8")
    assert ask(addition.question, copy, addition.variables) == addition.answer
    assert [path for path in (*addition.files, *addition.rows) if not _said(path, table()[what])] == [], "not in the line"


def _said(path: str, cells: str) -> bool:
    """Whether the line names the path, in which <...> stands for any names."""
    named = re.findall(r"`([\w/<>.]+\.py)`", cells)
    return any(re.fullmatch(re.sub(r"<\w+>", r"[\\w/]+", re.escape(name)), path) for name in named)
