from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def zoo_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tests build into a directory of their own."""
    path = tmp_path_factory.mktemp("zoo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XYNTRA_ZOO_DIR", str(path))
        yield path
