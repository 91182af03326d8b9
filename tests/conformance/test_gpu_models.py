"""The zoo's models as a whole through the GPU variants: by OpenCL against ONNX Runtime, and every kernel through NVRTC."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.support.alternatives import OneIsland, one_island
from tests.support.run_gpu import compile_for_cuda, plan_for, run_planned
from tests.support.run_program import compare
from xyntra_ep.fusion.precision import choose_precision
from xyntra_ep.tracea.core_ir.ops import Product
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import OPENCL, SM_80
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


def halves() -> list[Any]:
    """Each model in each type. bfloat16 of the quick ones is for every day."""
    return [
        pytest.param(m, product, id=f"{m.name}-{product}", marks=() if quick else pytest.mark.slow)
        for m in zoo
        if m.tiny
        for product in (Product.BF16, Product.F16)
        for quick in [m.name in QUICK and product is Product.BF16]
    ]


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize(("model", "product"), halves())
def test_cuda_in_half_precision(model: ZooModel, product: Product) -> None:
    """The kernels that are not those of fp32, for one architecture: variants' own tests have all."""
    wide = {source.text for source in plan_for(island(model).program, SM_80).kernels}
    program = island(model).program
    choose_precision(program, product, halves=SM_80.halves)
    narrow = [source for source in plan_for(program, SM_80).kernels if source.text not in wide]
    assert any("fragments" in source.symbol for source in narrow)
    for source in narrow:
        assert nvrtc.load().compile(source.symbol, source.text, "sm_90").spilled_bytes == 0, f"{source.symbol} spills"
