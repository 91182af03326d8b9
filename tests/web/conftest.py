"""Browsers for all tests, each started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.web import browser
from tests.support.web.browser import Browser

ROOT = Path(__file__).resolve().parents[2]


def _started(*flags: str) -> Iterator[Browser]:
    if browser.executable() is None:
        pytest.skip(f"there is no browser ({', '.join(browser.NAMES)})")
    with browser.started(*flags) as found:
        yield found


@pytest.fixture(scope="session")
def with_gpu() -> Iterator[Browser]:
    yield from _started(*browser.WEBGPU)


@pytest.fixture(scope="session")
def without_gpu() -> Iterator[Browser]:
    yield from _started(*browser.NO_WEBGPU)


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where they are kept, for people to look at."""
    return ROOT / "build" / "web"
