"""The zoo's models as a whole through the GPU variants: by OpenCL against ONNX Runtime, and every kernel through NVRTC."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.support.alternatives import OneIsland, one_island
from tests.support.run_gpu import compile_for_cuda, plan_for, run_planned
from tests.support.run_program import compare
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import OPENCL
from zoo import ZooModel, model_path, zoo

# Drivers take their time with kernels: a transformer and a network of convolutions are quick enough for every day.
QUICK = frozenset({"gpt2-prefill-tiny", "resnet50-tiny"})
TINY = [pytest.param(m, id=m.name, marks=() if m.name in QUICK else pytest.mark.slow) for m in zoo if m.tiny]
FULL = [pytest.param(m, id=m.name) for m in zoo if not m.tiny]
MAX_ERR = 1e-4


def island(model: ZooModel) -> OneIsland:
    return one_island(onnx.load(str(model_path(model))))


def check(model: ZooModel, batch: int, seq: int) -> None:
    """All outputs of the model, computed by one plan, at one size."""
    whole = island(model)
    feeds = model.feeds(batch, seq, 7)
    session = ort.InferenceSession(str(model_path(model)), providers=["CPUExecutionProvider"])
    wanted = session.run([o.name for o in session.get_outputs()], feeds)
    planned = plan_for(whole.program, OPENCL)
    got = run_planned(planned, [feeds[name] for name in whole.inputs], whole.constants())
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        compare(a.astype(np.float64), b.astype(np.float64), MAX_ERR, f"{model.name}, output {i}")


@pytest.mark.device("opencl")
@pytest.mark.parametrize("model", TINY)
def test_small_models(model: ZooModel) -> None:
    check(model, 2, max(model.seqs, default=1))


@pytest.mark.slow
@pytest.mark.device("opencl")
@pytest.mark.parametrize("model", FULL)
def test_full_size_models(model: ZooModel) -> None:
    check(model, 1, min(model.seqs, default=1))


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize("model", TINY)
def test_cuda(model: ZooModel) -> None:
    compile_for_cuda(island(model).program)
