"""Without PyTorch the exporting half is not imported, and the tests say why they are skipped. With it, a table at the end."""

from __future__ import annotations

import importlib.util

import pytest

from tests.exports.record import ROWS

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
    collect_ignore = ["exporting.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if ROWS:
        terminalreporter.section("exported models on XyntraEP")
        for row in sorted(ROWS, key=lambda r: r.name):
            terminalreporter.write_line(row.text())
