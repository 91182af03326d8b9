"""The zoo's models as a whole through Metal's kernels, which run on the host (tests/support/metal), against ONNX Runtime. No
kernel has run on an Apple GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
import pytest

from tests.conformance.test_gpu_models import FLOAT, MAX_ERR, island
from tests.support.gpu.run import plan_for, run_planned
from tests.support.metal.host import MetalOnHost
from tests.support.run_program import compare
from xyntra_ep.tracea.backends.metal import APPLE_GPU
from xyntra_ep.tracea.doctor.variants import AnyVariant
from xyntra_ep.tracea.emitters import metal
from xyntra_ep.tracea.kernels.gpu.matrix_cores.gemm_matrix import VARIANTS as MATRICES
from xyntra_ep.tracea.semantic_ir.gpu.shared_memory import shared_layout
from xyntra_ep.tracea.semantic_ir.nodes import Kernel
from xyntra_zoo import ZooModel, model_path

EVERY_DAY = "vit-tiny16-tiny"
_BUFFERS = re.compile(r"\[\[buffer\((\d+)\)\]\]")
MOST_BUFFERS = 31


def check(model: ZooModel, batch: int, seq: int, variants: Sequence[AnyVariant] | None = None) -> set[str]:
    """All outputs of the model, computed by one plan, at one size; no kernel wants more than a device has. Returns the names of
    the kernels."""
    whole = island(model)
    feeds = model.feeds(batch, seq, 7)
    session = ort.InferenceSession(str(model_path(model)), providers=["CPUExecutionProvider"])
    wanted = session.run([o.name for o in session.get_outputs()], feeds)
    kernels: dict[str, Kernel] = {}
    planned = plan_for(whole.program, APPLE_GPU, variants, kernels, emit=metal.emit)
    for text, kernel in kernels.items():
        assert len(_BUFFERS.findall(text)) <= MOST_BUFFERS and shared_layout(kernel).bytes <= APPLE_GPU.shared_bytes
        assert kernel.threads <= APPLE_GPU.max_threads
    got = run_planned(planned, [feeds[name] for name in whole.inputs], whole.constants(), MetalOnHost(planned.kernels))
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        compare(a.astype(np.float64), b.astype(np.float64), MAX_ERR, f"{model.name}, output {i}")
    return {kernel.name for kernel in kernels.values()}


@pytest.mark.parametrize(
    "model", [pytest.param(m, id=m.name, marks=() if m.name == EVERY_DAY else pytest.mark.slow) for m in FLOAT if m.tiny]
)
def test_small_models(model: ZooModel) -> None:
    check(model, 2, max(model.seqs, default=1))


@pytest.mark.slow
def test_products_by_matrices() -> None:
    """Which estimates seldom choose."""
    made = check(next(m for m in FLOAT if m.name == EVERY_DAY), 2, 1, MATRICES)
    assert any(name.startswith("xy_gemm_f32_matrix") for name in made)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("model", [pytest.param(m, id=m.name) for m in FLOAT if not m.tiny])
def test_full_size_models(model: ZooModel) -> None:
    check(model, 1, min(model.seqs, default=1))
