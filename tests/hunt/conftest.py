"""The hunter silences ONNX Runtime, whose log other tests of the same process read."""

from __future__ import annotations

from collections.abc import Iterator

import onnxruntime as ort
import pytest

_DEFAULT_SEVERITY = 2  # warnings


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    yield
    ort.set_default_logger_severity(_DEFAULT_SEVERITY)
