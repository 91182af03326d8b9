"""A folder is read as a whole: it holds about fifteen files, and what is more gets rooms by what belongs together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOPS = ("xyntra_ep", "custom_ops", "zoo", "bench", "reports", "tests", "native")
SOURCES = (".py", ".cc", ".h")
MOST = 16  # without `__init__.py`
# Folders that may hold more: how many, and why.
EXCEPTIONS = {
    "native": (92, "what carries out a plan; a class is two files"),
    "reports": (40, "a registry: a report is a file of its own"),
    "zoo": (20, "a registry: a model is a file of its own"),
    "bench": (65, "workers are started by module names, which stored results and workflows hold"),
    "tests/bench": (45, "a file for each of bench"),
    "xyntra_ep/tracea/runtime": (21, "with a file for each step of each device API"),
}


def counts(root: Path) -> Iterator[tuple[str, int]]:
    """(folder, files of source in it) of all folders that have any."""
    for top in TOPS:
        for folder, _, names in os.walk(root / top):
            held = [name for name in names if name.endswith(SOURCES) and name != "__init__.py"]
            if held:
                yield Path(folder).relative_to(root).as_posix(), len(held)


def crowded(root: Path) -> list[str]:
    """A line for each folder that holds more than it may."""
    found = []
    for folder, held in sorted(counts(root)):
        most, _ = EXCEPTIONS.get(folder, (MOST, ""))
        if held > most:
            found.append(f"{folder}: {held} files, at most {most}")
    return found


def test_no_folder_is_crowded() -> None:
    assert crowded(ROOT) == [], "make rooms in it, by what belongs together"


def test_each_exception_is_needed() -> None:
    held = dict(counts(ROOT))
    assert [folder for folder in EXCEPTIONS if held.get(folder, 0) <= MOST] == []


def test_a_crowded_folder_is_named(tmp_path: Path) -> None:
    full, more = tmp_path / "xyntra_ep" / "full", tmp_path / "xyntra_ep" / "full" / "more"
    more.mkdir(parents=True)
    for folder, files in ((full, MOST), (more, MOST + 1)):
        for name in ("__init__.py", "README.md", *(f"part{i}.py" for i in range(files))):
            (folder / name).touch()
    assert crowded(tmp_path) == [f"xyntra_ep/full/more: {MOST + 1} files, at most {MOST}"]
