from __future__ import annotations

from pathlib import Path

import pytest

from xyntra_ep import knobs


@pytest.fixture(scope="session")
def device_cache() -> Path:
    """One for all tests on devices, on whichever worker: trials are made once, and so is each kernel."""
    return knobs.current().cache_root / "devices"
