"""A target is a row of `tracea/backends`: nobody else asks which target, backend or architecture it is.

What differs in the text of kernels is a table in emitters/, what differs in drivers a file of runtime/. A device tells what it
can do (`semantic_ir/gpu/capabilities.py`).
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "xyntra_ep"  # bench measures others, too, who have names of their own for devices
MAY = ("xyntra_ep/tracea/backends/", "xyntra_ep/tracea/emitters/", "xyntra_ep/tracea/runtime/")
TARGET = re.compile(r"cuda|opencl|hip|metal|webgpu|wgsl|sm_\d+a?", re.IGNORECASE)
ASKING = frozenset({"startswith", "endswith"})
MOST_LINES = 80


def switches(tree: ast.AST) -> Iterator[int]:
    """Lines on which something is compared with the name of a target."""
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            asked = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKING:
            asked = node.args
        if any(_names_a_target(part) for part in asked):
            yield node.lineno  # type: ignore[attr-defined]  # all three have one


def _names_a_target(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return TARGET.fullmatch(text) is not None
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(_names_a_target(part) for part in parts)
        case _:
            return False


def found_in(root: Path) -> list[str]:
    found = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if not place.startswith(MAY):
            found += [f"{place}:{line}" for line in sorted(set(switches(ast.parse(path.read_text(encoding="utf-8")))))]
    return found


def test_nobody_asks_which_target_it_is() -> None:
    assert found_in(ROOT) == []


def test_opencl_is_a_table() -> None:
    text = (ROOT / "xyntra_ep/tracea/emitters/opencl.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES


# Targets whose names are no words of other things, but for these.
TARGETS = ("hip", "metal", "opencl", "webgpu")
OWN = r"(xyntra_ep/tracea/(backends|emitters|runtime(/children)?)|native|tests/.*)/[^/]*{0}[^/]*(/.*)?"
# Who else must name one: WebGPU reaches Apple's GPUs by way of Metal, and is what a browser calls its own.
ALSO = {"metal": "(native|xyntra_ep/tracea/backends)/webgpu.*", "webgpu": "xyntra_ep/web/pages/.*"}
# Where people read what there is, or choose what to install.
TOLD = (
    "docs/",
    "tests/",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "release/",
    "Makefile",
    "pyproject.toml",
    ".github/",
    ".ci/",
)


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_named_in_its_own_files_alone(target: str) -> None:
    found = subprocess.run(["git", "grep", "-ilw", target], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode > 1:
        pytest.skip("the sources are not a checkout")
    own = re.compile(f"{OWN.format(target)}|{ALSO.get(target, '$')}")
    assert [name for name in found.stdout.splitlines() if own.fullmatch(name) is None and not name.startswith(TOLD)] == []


def test_a_switch_is_named(tmp_path: Path) -> None:
    def write(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")

    write(
        "xyntra_ep/fusion/lower.py",
        "if target == 'cuda': pass\n"
        "if 'opencl' != kind: pass\n"
        "if api in ('cpu', 'CUDA'): pass\n"
        "ok = target == 'x' or name in {'cudart'} or TARGETS['cuda']\n"
        "if gpu.name.startswith('sm_90'): pass\n"
        "match options.backend:\n"
        "    case 'cuda': pass\n",
    )
    write("xyntra_ep/tracea/emitters/hip.py", "if target == 'cuda': pass\n")
    assert found_in(tmp_path) == [f"xyntra_ep/fusion/lower.py:{line}" for line in (1, 2, 3, 5, 7)]
