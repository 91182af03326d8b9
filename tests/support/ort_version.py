"""Tests compare with the ONNX Runtime that is installed. Where older ones are wrong, they say so by this."""

from __future__ import annotations

import onnxruntime as ort
import pytest

REFERENCE = (1, 31)  # the release whose results ours are compared with


def is_older_ort() -> bool:
    return tuple(int(n) for n in ort.__version__.split(".")[:2]) < REFERENCE


newer_ort = pytest.mark.skipif(is_older_ort(), reason=f"wrong in ONNX Runtime {ort.__version__}")
