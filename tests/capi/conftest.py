"""The operations' files, which a checkout does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from xyntra_ep.diagnostics.compiled.operations import compile_operations


@pytest.fixture(scope="session")
def operation_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("operations")
    compile_operations(folder)
    return folder


@pytest.fixture
def operations(operation_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the library finds them meanwhile."""
    monkeypatch.setenv("XYNTRA_PREBUILT_DIR", str(operation_folder))
    return operation_folder
