"""What files show of drivers and packages, without asking them. Nothing is an error: what cannot be read is not there."""

from __future__ import annotations

import importlib.util
import os


def first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""


def names(folder: str) -> list[str]:
    """Of what is in it, sorted."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def installed(package: str) -> list[str]:
    """The times of the folders that an import would look in; nothing of a package that is not there, or not as packages are."""
    try:
        found = importlib.util.find_spec(package)
        folders = (found.submodule_search_locations if found is not None else None) or ()
        return [f"{folder} {os.stat(folder).st_mtime_ns}" for folder in folders]
    except (ImportError, OSError, ValueError):
        return []
