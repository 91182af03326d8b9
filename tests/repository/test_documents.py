"""README and docs as a reader follows them: each example runs, and prints what is shown (tests/support/documents.py)."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import xyntra_ep
from tests.support.documents import RUN, SHOWN, Block, alike, blocks, problems, script
from xyntra_ep.diagnostics.compare import compare
from xyntra_ep.diagnostics.explain import Explanation

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "release/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
PACKAGES = ("xyntra_ep", "xyntra_custom_ops", "xyntra_zoo", "xyntra_bench", "xyntra_reports")
IMPORTS_ON_FIRST_USE = ("xyntra_ep", "tracea", "ops", "torch")
TRACEA = ("interface", "core_ir", "doctor", "kernels", "semantic_ir", "emitters", "runtime", "planning")
COMMANDS = {"xyntra": "-m xyntra_ep.cli", "bench": "-m xyntra_bench", "python": ""}
LINK = re.compile(r"\]\(([^)\s#]+)?(?:#([\w-]+))?\)")
# A path from the root of the repository; of one with a placeholder, as in `zoo/<family>.py`, the folder before it.
FOLDERS = r"\.ci|\.github|bench|custom_ops|docs|native|release|reports|tests|xyntra_ep|zoo"
NAMED_FILE = re.compile(rf"(?<![\w./<~-])((?:{FOLDERS})/(?:[\w.-]+/)*)([\w.-]*\w)?(?![\w*<{{])")
GENERATED = re.compile(r"<!-- bench:([\w-]+) -->.*?<!-- /bench:\1 -->", re.DOTALL)


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a document's blocks run, one after the other: the commands are those of this checkout, and home is elsewhere."""
    found = tmp_path / "bin"
    found.mkdir()
    for name, arguments in COMMANDS.items():
        (found / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
        (found / name).chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("PATH", f"{found}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XYNTRA_ZOO_DIR", str(tmp_path / "zoo"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    return work


@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if any(b.language in RUN for b in blocks(d.read_text()))], ids=name_of)
def test_examples_print_what_is_shown(document: Path, folder: Path) -> None:
    found = []
    for block in blocks(document.read_text(encoding="utf-8")):
        if block.language in RUN and not block.excuse:
            found += [f"{name_of(document)}:{block.line}: {problem}" for problem in wrong(block, folder)]
    assert not found, "\n\n".join(found)


def wrong(block: Block, folder: Path) -> list[str]:
    program = {
        "python": [sys.executable, "-c", block.text],
        "sh": ["bash", "-e", "-c", block.text],
        "console": ["bash", "-c", script(block)] if block.language == "console" else [],
    }[block.language]
    # Only a console block shows what goes to the terminal beside the output.
    errors = subprocess.STDOUT if block.language == "console" else subprocess.PIPE
    ran = subprocess.run(program, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=240, check=False)
    if block.language == "console":
        return list(problems(block, ran.stdout))
    if ran.returncode:
        return [f"ended with {ran.returncode}\n{ran.stderr}"]
    if block.output is not None and not alike(block.output, ran.stdout):
        return [f"shown:\n{block.output}\nprinted:\n{ran.stdout}"]
    return []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_block_is_run_or_says_why_not(document: Path) -> None:
    for block in blocks(document.read_text(encoding="utf-8")):
        assert block.language in (*RUN, *SHOWN), f"{name_of(document)}:{block.line}: nobody knows what {block.language!r} is"
        assert block.language in RUN or not block.excuse, f"{name_of(document)}:{block.line}: nothing to run, nothing to excuse"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    for target, anchor in LINK.findall(document.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), f"{name_of(document)}: {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{name_of(document)}: {target}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_files_that_are_named_exist(document: Path) -> None:
    """Outside of generated tables, whose commands name files that a measurement has written."""
    text = GENERATED.sub("", document.read_text(encoding="utf-8"))
    named = {folder + (file or "") for folder, file in NAMED_FILE.findall(text) if folder != "reports/results/"}
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_the_architecture_names_a_file_for_each_step() -> None:
    """Each folder of the way from a graph to a running kernel, so that a part that is added or renamed is added here."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    way = {path for path, _ in NAMED_FILE.findall(text)}
    parts = ["native", "xyntra_ep/provider", "xyntra_ep/fusion", *(f"xyntra_ep/tracea/{name}" for name in TRACEA)]
    assert [part for part in parts if not any(path.startswith(f"{part}/") for path in way)] == []


def test_each_package_says_what_it_is_and_holds_no_code_of_its_own() -> None:
    """A docstring, imports and `__all__`; some of them import on first use."""
    for file in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), f"{name_of(file)}: no docstring"
        if file.parent.name not in IMPORTS_ON_FIRST_USE:
            kinds = {type(statement) for statement in tree.body[1:]} - {ast.Import, ast.ImportFrom}
            assert kinds <= {ast.Assign}, f"{name_of(file)}: more than re-exports"


def anchors(document: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_signatures_are_as_the_api_has_them() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    shown = re.findall(r"`(\w+)(\([^`]*\))`", prose)
    assert {"explain", "doctor", "compare", "register"} <= {name for name, _ in shown}
    assert [(name, as_shown) for name, as_shown in shown if as_shown != signature(name)] == []


def signature(name: str) -> str:
    """As the page writes it: without types, and without self."""
    elsewhere: dict[str, Callable[..., object]] = {"compare": compare, "reason": Explanation.reason, "passes": Explanation.passes}
    found = inspect.signature(elsewhere[name] if name in elsewhere else getattr(xyntra_ep, name))
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name != "self"]
    return str(inspect.Signature(bare))


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


def test_messages_of_the_troubleshooting_page_are_ours() -> None:
    """Each piece between quotes' `...` stands in a source, so that a message that is reworded is found here."""
    folders = (("xyntra_ep", "*.py"), ("native", "*.cc"), ("native", "*.h"))
    source = "\n".join(path.read_text(encoding="utf-8") for folder, kind in folders for path in (ROOT / folder).rglob(kind))
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    entries = [cell for row in re.findall(r"^\| (`.+?) \|", page, flags=re.MULTILINE) for cell in re.findall("`([^`]+)`", row)]
    assert len(entries) > 40
    pieces = [piece.strip("':; ") for entry in entries if entry not in THEIRS for piece in entry.split("...")]
    assert [piece for piece in pieces if piece not in source] == []


# What ONNX Runtime says, and what begins with a name that our sources take from a constant.
THEIRS = {"Unknown Provider Type: XyntraEP", "Got invalid dimensions for input", "XyntraEP is not registered: ..."}
