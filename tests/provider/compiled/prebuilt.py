"""Libraries of prebuilt kernels for tests: of one small model, for this machine."""

from __future__ import annotations

from pathlib import Path

import onnx

from xyntra_ep.diagnostics.record_ops import Recorder, record
from xyntra_ep.tracea.prebuilt.build import build_library, used_here

TARGETS = used_here()  # none where there is no AVX2


def library_of(model: onnx.ModelProto, folder: Path) -> Path:
    """``folder``, with the kernels of ``model`` in it."""
    onnx.save(model, folder / "recorded.onnx")
    recorder = Recorder(targets=TARGETS)
    record([folder / "recorded.onnx"], {"claim": "all"}, recorder)
    kernels = [build_library(target, recorder.ops, folder)[0] for target in TARGETS]
    assert sum(kernels) >= len(recorder.ops) >= 3
    return folder
