"""The pages that show what is known of targets: README.md the table alone, docs/targets.md where it comes from, too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.targets.evidence import Evidence
from tests.targets.table import matrix, refreshed, sources

ROOT = Path(__file__).resolve().parents[2]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "targets.md"


def texts(found: Sequence[Evidence]) -> dict[Path, str]:
    """As they should be."""
    shown = {README: matrix(found), PAGE: f"{matrix(found)}\n\n{sources(found)}"}
    return {page: refreshed(page.read_text(encoding="utf-8"), text) for page, text in shown.items()}
