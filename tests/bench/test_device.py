"""`bench device`: points are what they say, run on a device that the host stands in for, and failures are rows."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from typer.testing import CliRunner

from tests.reports.conftest import ENVIRONMENT
from tests.reports.test_kernels import OF_DEVICE
from tests.support.fake_cuda import FakeCuda
from xyntra_bench import cli, device_run, device_worker
from xyntra_bench.cli import app
from xyntra_bench.device_points import POINTS, TINY_POINTS, Point, from_bits, rows, to_bits
from xyntra_bench.device_results import PointResult, cells, load_device_run
from xyntra_bench.device_run import measured, points_like
from xyntra_bench.device_worker import measure_point
from xyntra_bench.errors import BenchError
from xyntra_bench.torch_timing import Stopwatch


def test_what_is_to_be_measured_is_among_them() -> None:
    names = {point.name for point in POINTS}
    assert {"gemm-4096-bf16", "gemm-8192-bf16", "copy-65536x1024-fp32", "softmax-65536x1024-bf16"} <= names
    assert {f"attention-s{s}-d{d}-bf16" for s in (512, 1024, 2048, 4096) for d in (64, 128)} <= names
    [point] = points_like("gemm-8192-bf16", tiny=False)
    [older] = points_like("gemm-8192-bf16-*", tiny=False)
    assert (older.flops, older.avoided, point.avoided) == (point.flops, ("gemm.wgmma",), ())
    assert point.flops == 2 * 8192**3 and point.bytes == 3 * 2 * 8192**2
    assert {p.flops for p in points_like("attention", tiny=False) if "s512" in p.name} == {4 * 16384 * 2048 * 512}
    with pytest.raises(BenchError, match="'nothing': no point of that name"):
        points_like("nothing", tiny=True)


@pytest.mark.parametrize("point", [p for p in TINY_POINTS if p.precision == "fp32"], ids=lambda point: point.name)
def test_a_point_expects_what_its_model_computes(point: Point) -> None:
    inputs = point.inputs()
    model = point.model(inputs)
    onnx.checker.check_model(model)
    [y] = ReferenceEvaluator(model).run(None, {name: x for name, x in inputs.items() if name not in point.constant})
    wanted = point.expected(inputs)
    np.testing.assert_allclose(np.asarray(y).reshape(-1, point.output[-1])[: len(wanted)], wanted, atol=1e-4)


def test_bits_of_bfloat16_round_to_even() -> None:
    x = np.array([1.0, 1.00390625, 1.01171875, -3.1415927], np.float32)
    assert to_bits(x, "bf16").tolist() == [0x3F80, 0x3F80, 0x3F82, 0xC049]
    assert from_bits(to_bits(x, "bf16"), "bf16").tolist() == [1.0, 1.0, 1.015625, -3.140625]


@pytest.mark.native
@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize("point", [*TINY_POINTS[:4:3], rows("layernorm", 20, 64, "fp16")], ids=lambda point: point.name)
def test_runs_on_the_device(
    point: Point, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    FakeCuda(monkeypatch, tmp_path_factory.mktemp("cuda"))
    found = measure_point(point, "cuda", tmp_path)
    assert found.good and found.error is not None and found.ns == 250_000 * len(found.variants)
    assert len(found.variants) == 1, "what is measured is one kernel"
    assert found.library == "" and found.library_ns is None


@pytest.mark.native
def test_a_point_that_cannot_be_measured_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failed = measured(TINY_POINTS[0], "nowhere")
    assert not failed.good and failed.failure.startswith("failed: ") and "nowhere" in failed.failure
    assert cells(failed, None)[-1] == failed.failure
    monkeypatch.setattr(device_run, "measured", lambda point, backend: failed)
    monkeypatch.setattr(device_run, "make_trials", lambda backends, environment: "")
    monkeypatch.setattr(device_run, "measure_device_ceilings", lambda backend, environment: ((OF_DEVICE,), ""))
    file = tmp_path / "run.json"
    done = CliRunner().invoke(app, ["device", "gemm", "--tiny", "--json", str(file)])
    assert done.exit_code == 1 and done.output.count("failed: ") == 2 * 3, "as progress, and in the table"
    stored = json.loads(file.read_text())
    assert stored["schema"] == "xyntra-device/2" and stored["finished"] and len(stored["points"]) == 3


def test_an_interrupted_run_goes_on_with_what_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def stopped(point: Point, backend: str) -> PointResult:
        asked.append(point.name)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return PointResult(
            name=point.name, precision=point.precision, flops=point.flops, bytes=point.bytes, ns=1000, runs=1, variants=("x",),
            error=0.0, max_err=point.max_err, library="", library_ns=None, failure="",
        )  # fmt: skip

    ceilings = iter([((), "ceilings of cuda: refused"), ((OF_DEVICE,), "")])  # which are measured once
    monkeypatch.setattr(cli, "read_environment", lambda compiler, gpus: ENVIRONMENT)
    monkeypatch.setattr(cli, "find_gpus", lambda: ())
    monkeypatch.setattr(cli, "kernel_compiler", lambda: "")
    monkeypatch.setattr(device_run, "measured", stopped)
    monkeypatch.setattr(device_run, "make_trials", lambda backends, environment: "")
    monkeypatch.setattr(device_run, "measure_device_ceilings", lambda backend, environment: next(ceilings))
    file = tmp_path / "run.json"
    monkeypatch.setattr(sys, "argv", ["bench", "device", "--tiny", "--json", str(file)])
    interrupted = CliRunner().invoke(app, ["device", "--tiny", "--json", str(file)])
    assert interrupted.exit_code == 130 and "! ceilings of cuda: refused" in interrupted.output
    kept = load_device_run(file)
    assert [point.name for point in kept.points] == asked[:2] and not kept.finished and kept.device_ceilings == ()
    monkeypatch.setattr(sys, "argv", ["bench", "device", "--tiny", "--resume", "--json", str(file)])
    done = CliRunner().invoke(app, ["device", "--tiny", "--resume", "--json", str(file)])
    assert done.exit_code == 0, done.output
    whole = load_device_run(file)
    assert [point.name for point in whole.points] == [point.name for point in TINY_POINTS] and whole.finished
    assert len(asked) == len(TINY_POINTS) + 1 and whole.started == kept.started and whole.device_ceilings == (OF_DEVICE,)
    monkeypatch.setattr(sys, "argv", ["bench", "device", "gemm", "--tiny", "--resume", "--json", str(file)])
    refused = CliRunner().invoke(app, ["device", "gemm", "--tiny", "--resume", "--json", str(file)])
    assert "cannot be resumed: options: it was `bench device --tiny" in str(refused.exception)


ENDED = """
import sys
from xyntra_bench import cli, device_run, device_worker
cli.find_gpus = lambda: ()
cli.kernel_compiler = lambda: ""
device_run.make_trials = lambda backends, environment: ""
device_run.measure_device_ceilings = lambda backend, environment: ((), "")
asleep = f"import os, pathlib, time; pathlib.Path({sys.argv[-1]!r}).write_text(str(os.getpid())); time.sleep(100)"
device_run.WORKER = ("-c", asleep)
sys.argv = ["bench", "device", "--tiny", "--json", sys.argv[-2]]
cli.main()
"""


def test_a_run_that_is_told_to_end_takes_along_who_measures(tmp_path: Path) -> None:
    """Else the next run would not be alone on the device."""
    file, number = tmp_path / "run.json", tmp_path / "number"
    run = subprocess.Popen([sys.executable, "-c", ENDED, str(file), str(number)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    while not (number.exists() and number.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    run.terminate()
    assert run.wait(timeout=60) == 130 and load_device_run(file).points == ()
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)


@pytest.mark.native
def test_without_a_device_nothing_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cli, "read_environment", lambda compiler, gpus: ENVIRONMENT)
    for name in ("find_gpus", "kernel_compiler"):
        monkeypatch.setattr(cli, name, lambda: "")
    monkeypatch.setattr(device_run, "make_trials", lambda backends, environment: "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "0")
    done = CliRunner().invoke(app, ["device", "gemm", "--tiny", "--json", str(tmp_path / "run.json")])
    assert "ceilings of cuda: cannot be measured: " in str(done.exception) and "cannot be had" in str(done.exception)
    done = CliRunner().invoke(app, ["device", "--backend", "vulkan"])
    assert str(done.exception) == "--backend 'vulkan': not a device's. there are cuda, metal, opencl, hip, webgpu"


@pytest.mark.torch
@pytest.mark.parametrize("point", TINY_POINTS, ids=lambda point: point.name)
def test_the_library_computes_the_same_and_is_timed_alone(point: Point) -> None:
    import torch

    made: list[Any] = []
    told: list[str] = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            told.append("event")

        def elapsed_time(self, end: Event) -> float:
            return float(len(told))  # two events a run

    def watched(of: Any, there: Any) -> Any:
        work = point.library(of, there)

        def run() -> Any:
            told.append("")
            made.append(work().float())
            return made[-1]

        return run

    inputs = point.inputs()
    ns = device_worker.library_ns(
        torch, dataclasses.replace(point, library=watched), inputs, "cpu", Stopwatch(Event, lambda cycles: None)
    )
    assert told == ["event", "", "event"] * 12 and ns == median(3e6 * (run + 1) for run in range(2, 12))
    got = made[-1].transpose(1, 2) if point.name.startswith("attention") else made[-1]
    wanted = point.expected(inputs)
    found = got.reshape(-1, point.output[-1])[: len(wanted)].numpy()
    assert np.abs(found - wanted).max() <= max(point.max_err, 1e-5) * np.abs(wanted).max()


def test_shares_are_of_the_roof_and_of_the_library() -> None:
    point = PointResult(
        name="gemm", precision="bf16", flops=7 * 10**11, bytes=10**6, ns=2_000_000, runs=10, variants=("gemm.fragments",) * 2,
        error=1e-3, max_err=2e-2, library="torch", library_ns=1_500_000.0, failure="",
    )  # fmt: skip
    assert point.of_roof(OF_DEVICE) == pytest.approx(0.5) and point.of_library == 0.75
    assert (
        cells(point, OF_DEVICE)[1:6] == ["2000.0", "350.0", "0", "50%", "75%"] and cells(point, OF_DEVICE)[-1] == "gemm.fragments"
    )
    wrong = dataclasses.replace(point, error=1.0)
    assert not wrong.good and wrong.of_library is None and cells(wrong, None)[-2].endswith("WRONG")
    moving = dataclasses.replace(point, flops=0, bytes=2_900_000)
    assert moving.of_roof(OF_DEVICE) == pytest.approx(0.0005)
