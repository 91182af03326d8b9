"""The zoo's models as a whole through the GPU variants: by OpenCL against ONNX Runtime, and every kernel that sessions with
backend=cuda or backend=hip would have through their compilers, for each architecture that plans differ for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.support.gpu.run import plan_for, run_planned
from tests.support.models.alternatives import OneIsland, one_island
from tests.support.models.graph_from_model import graph_from_model
from tests.support.run_program import compare
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.fusion.rules import built_in
from xyntra_ep.options import parse
from xyntra_ep.provider import planner, registration
from xyntra_ep.provider.placement import Placement
from xyntra_ep.tracea.interface.devices import known_target
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.tracea.runtime.kernel_report import KernelReport, read_report
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU
from xyntra_zoo import Family, ZooModel, model_path, zoo

FLOAT = [m for m in zoo if not m.float_model]  # GPU kernels compute no quantised ones
TINY = [pytest.param(m, id=m.name) for m in FLOAT if m.tiny]
FULL = [pytest.param(m, id=m.name) for m in FLOAT if not m.tiny]
MAX_ERR = 1e-4


def island(model: ZooModel) -> OneIsland:
    return one_island(onnx.load(str(model_path(model))))


def check(model: ZooModel, batch: int, seq: int) -> None:
    """All outputs of the model, computed by one plan, at one size."""
    whole = island(model)
    feeds = model.feeds(batch, seq, 7)
    session = ort.InferenceSession(str(model_path(model)), providers=["CPUExecutionProvider"])
    wanted = session.run([o.name for o in session.get_outputs()], feeds)
    planned = plan_for(whole.program, ANY_GPU)
    got = run_planned(planned, [feeds[name] for name in whole.inputs], whole.constants())
    for i, (a, b) in enumerate(zip(got, wanted, strict=True)):
        compare(a.astype(np.float64), b.astype(np.float64), MAX_ERR, f"{model.name}, output {i}")


@pytest.mark.slow  # every day they run in sessions: test_device_sessions.py
@pytest.mark.device("opencl")
@pytest.mark.parametrize("model", TINY)
def test_small_models(model: ZooModel) -> None:
    check(model, 2, max(model.seqs, default=1))


@pytest.mark.slow
@pytest.mark.device("opencl")
@pytest.mark.parametrize("model", FULL)
def test_full_size_models(model: ZooModel) -> None:
    check(model, 1, min(model.seqs, default=1))


# Precisions for every day; the others, and a step of any number of tokens, have few kernels of their own.
DAILY = {"sm_80": ["fp32", "bf16"], "sm_90": ["bf16"]}
OTHER = {"sm_80": ["fp16", "tf32"], "sm_90": ["fp32", "fp16", "tf32"]}


def compiled() -> Iterator[Any]:
    for daily, precisions in ((True, DAILY), (False, OTHER)):
        for architecture, names in precisions.items():
            for model in FLOAT:
                if not model.tiny:
                    marks = () if daily and not model.generates else pytest.mark.slow
                    label = f"{model.name}-{architecture}-{'-'.join(names)}"
                    yield pytest.param(model, architecture, names, id=label, marks=marks)


@pytest.mark.native
@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize(("model", "architecture", "precisions"), list(compiled()))
def test_cuda(model: ZooModel, architecture: str, precisions: Sequence[str], tmp_path: Path, device_cache: Path) -> None:
    graph = graph_from_model(as_providers_see_it(model, tmp_path))
    for precision in precisions:
        compile_session(graph, "cuda", architecture, precision, device_cache)


# Each architecture has a tiny model for every day.
HIP_DAILY = {"gfx90a": ("resnet50-tiny", "fp32"), "gfx942": ("bert-base-tiny", "bf16"), "gfx1100": ("gpt2-decode-tiny", "fp16")}
HIP_PRECISIONS = {
    "gfx90a": ("fp32", "bf16", "fp16"),
    "gfx942": ("fp32", "bf16", "fp16", "tf32"),
    "gfx1100": ("fp32", "bf16", "fp16"),
}


def compiled_for_hip() -> Iterator[Any]:
    for architecture, precisions in HIP_PRECISIONS.items():
        for model in FLOAT:
            for precision in precisions:
                marks = () if HIP_DAILY[architecture] == (model.name, precision) else pytest.mark.slow
                yield pytest.param(model, architecture, precision, id=f"{model.name}-{architecture}-{precision}", marks=marks)


@pytest.mark.native
@pytest.mark.compiler("hip")
@pytest.mark.parametrize(("model", "architecture", "precision"), list(compiled_for_hip()))
def test_hip(model: ZooModel, architecture: str, precision: str, tmp_path: Path, device_cache: Path) -> None:
    graph = graph_from_model(as_providers_see_it(model, tmp_path))
    reports = compile_session(graph, "hip", architecture, precision, device_cache)
    assert all(report.scalars and not report.spilled_registers for report in reports.values())


def as_providers_see_it(model: ZooModel, folder: Path) -> onnx.ModelProto:
    """ONNX Runtime folds normalisations into convolutions before it asks providers, and leaves transformers as they are."""
    if model.family not in (Family.RESNET, Family.MOBILENET):
        return onnx.load(str(model_path(model)))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    ort.InferenceSession(str(model_path(model)), options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath)


def compile_session(graph: Graph, backend: str, architecture: str, precision: str, cache: Path) -> dict[str, KernelReport]:
    """What the compiler reports of each kernel. Plan and compile as a session does. Nothing is declined, and no kernel keeps in
    memory what its registers do not hold."""
    options = parse({"backend": backend, "precision": precision, "cache_dir": str(cache)})
    hash128 = hash128_of(registration.library())
    work, result = planner.planned(graph, options, built_in(), Placement(device=known_target(architecture)), hash128)
    assert not work.precision.shortfall and not work.declined and not result.failures
    found = {k.symbol: read_report(work.context.root.path / k.path, k.symbol) for k in result.kernels}
    reports = {symbol: report for symbol, report in found.items() if report is not None}
    assert reports and len(reports) == len(found)
    units = re.compile("fragments|wgmma|matrix")
    assert precision == "fp32" or any(map(units.search, reports))
    assert not [symbol for symbol, report in reports.items() if report.spilled_bytes]
    return reports
