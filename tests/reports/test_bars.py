"""Bars of a GPU: what holds one, what does not, and what has no data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from tests.reports.conftest import ENVIRONMENT, on_device
from tests.reports.test_kernels import OF_DEVICE
from xyntra_bench.cli import app
from xyntra_bench.device_results import DeviceRun, PointResult
from xyntra_bench.results import Accuracy, Check, Measurement, Run, Status
from xyntra_bench.store import dump
from xyntra_reports import bars, bars_page
from xyntra_reports.bars import Bar

POINT = PointResult(
    name="gemm-4096-bf16", precision="bf16", flops=7 * 10**11, bytes=10**6, ns=1_000_000, runs=10, variants=("gemm.wgmma",),
    error=1e-3, max_err=2e-2, library="torch", library_ns=950_000.0, failure="",
)  # fmt: skip
OLDER_NS = int(POINT.flops / (0.8 * OF_DEVICE.bf16_gflops))
Changes = Mapping[str, Any]  # of a measurement's fields
MOVING = dataclasses.replace(POINT, name="softmax-1", flops=0, bytes=2_850_000_000, variants=("row_reduce.block",))


def device_run(*points: PointResult) -> DeviceRun:
    return DeviceRun(
        command="bench device",
        started="2026-05-04T10:00:00",
        environment=ENVIRONMENT,
        device_ceilings=(OF_DEVICE,),
        points=points,
    )


def judged(*points: PointResult) -> tuple[Bar, ...]:
    return bars({"d.json": device_run(*points)}, [])[: len(points)]


@pytest.mark.parametrize(
    ("point", "share", "held"),
    [
        (POINT, "95% of the library's speed, by wgmma", True),
        (dataclasses.replace(POINT, ns=1_010_000), "94% of the library's speed, by wgmma", False),
        (dataclasses.replace(POINT, ns=OLDER_NS, variants=("gemm.fragments",)), "80% of mma.sync's rate", True),
        (dataclasses.replace(POINT, ns=OLDER_NS * 102 // 100, variants=("gemm.fragments",)), "78% of mma.sync's rate", False),
        (dataclasses.replace(POINT, library_ns=None), "of the library's speed, by wgmma: nothing to hold it against", None),
        (dataclasses.replace(POINT, error=3e-2), "of the library's speed, by wgmma", False),
        (dataclasses.replace(POINT, error=None), "of the library's speed, by wgmma", False),
        (dataclasses.replace(POINT, failure="crashed: SIGSEGV"), "crashed: SIGSEGV", False),
        (dataclasses.replace(POINT, precision="fp32", error=9e-5), "the result alone", True),
        (dataclasses.replace(POINT, precision="fp32", error=2e-4), "the result alone", False),
        (dataclasses.replace(POINT, name="attention-1", ns=1_600_000), "62% of the library's matrix rate", True),
        (dataclasses.replace(POINT, name="attention-1", ns=1_700_000), "59% of the library's matrix rate", False),
        (MOVING, "98% of a copy's bandwidth", True),
        (dataclasses.replace(MOVING, ns=1_200_000), "82% of a copy's bandwidth", False),
    ],
)
def test_points(point: PointResult, share: str, held: bool | None) -> None:
    [bar] = judged(point)
    assert (bar.measured, bar.held) == (share, held)


def test_points_that_should_be_there_have_no_data_and_the_later_of_two_counts() -> None:
    runs = {"a.json": device_run(POINT), "b.json": device_run(dataclasses.replace(POINT, ns=2_000_000))}
    found = bars(runs, ["gemm-8192-bf16", POINT.name])
    assert [(bar.what, bar.held) for bar in found] == [
        ("gemm-8192-bf16", None),
        (POINT.name, False),
        ("models of the zoo beside torch.compile", None),
    ]
    page = bars_page(runs, found)
    assert "- `a.json`: no GPU Python " in page and page.endswith("0 of 3 bars hold, 1 fail, 2 have no data\n")
    assert f"FAILS: {POINT.name}: 48% of the library's speed, by wgmma, bar 95%, error 1.0e-03" in page


def test_the_page_of_what_was_measured_is_that_of_the_stored_runs() -> None:
    files = sorted((ROOT / "reports/gpu").glob("*.json"))
    assert files
    made = CliRunner().invoke(app, ["bars", *map(str, files)])
    page = (ROOT / "docs/gpu-bars.md").read_text(encoding="utf-8")
    assert made.stdout == page[page.index("- `") :], "bench bars reports/gpu/*.json, behind the page's first lines"


def zoo_run(run: Run, *, ours: Changes, theirs: Changes) -> Run:
    [case] = on_device(run).cases
    gpu, torch = case.contenders
    half = {"precision": "bf16"}

    def changed(m: Measurement, change: Changes) -> Measurement:
        return dataclasses.replace(m, **{"options": {**m.options, **half}, **change})

    contenders = (changed(gpu, {"device_ns": 3_000_000, **ours}), changed(torch, {"device_ns": 3_300_000, **theirs}))
    return dataclasses.replace(run, cases=(dataclasses.replace(case, contenders=contenders),))


def checked(error: float | None, state: Accuracy = Accuracy.OK) -> Check:
    return Check(state=state, max_err=5e-3, error=error)


def test_models_are_to_be_ahead_on_the_device_and_for_the_caller(run: Run) -> None:
    ours, theirs = {"check": checked(1e-3)}, {"check": checked(4e-2, Accuracy.INACCURATE)}
    on_it, outside = bars({"z.json": zoo_run(run, ours=ours, theirs=theirs)}, [])
    assert on_it.what.endswith("b1 s128 bf16 on the device") and outside.what.endswith("for the caller")
    assert (on_it.measured, on_it.held) == ("1.10x torch.compile, whose error is 4.0e-02", True)
    assert outside.measured.startswith("1.00x") and outside.held is False, "as fast is not ahead"
    within = bars({"z.json": zoo_run(run, ours={"check": checked(1e-2, Accuracy.INACCURATE)}, theirs=theirs)}, [])
    assert within[0].held, "the bar of the error is its own"
    of_tf32 = {"options": {"backend": "cuda", "precision": "tf32"}}
    for error, held in ((4e-3, None), (6e-3, False)):
        found = bars({"z.json": zoo_run(run, ours={"check": checked(error), **of_tf32}, theirs=theirs)}, [])
        assert {bar.held for bar in found} == {held}, "its bound is the one that it was checked with"


def test_models_without_a_time_a_peer_or_a_right_result(run: Run) -> None:
    right = {"check": checked(1e-3)}
    for ours, theirs, said, held in (
        (right, {"status": Status.FAILED, "latency": None, "device_ns": None}, ["no time of torch.compile beside"] * 2, None),
        ({"check": checked(3e-2)}, {}, ["the result alone"], False),
        ({"check": checked(None, Accuracy.MISMATCH)}, {}, ["the result alone"], False),
        ({"status": Status.FAILED, "error": "boom", "latency": None}, {}, ["failed: boom"], False),
    ):
        found = bars({"z.json": zoo_run(run, ours=ours, theirs=theirs)}, [])
        assert [bar.measured for bar in found] == said and {bar.held for bar in found} == {held}


def test_the_command_reads_both_kinds_of_files(run: Run, tmp_path: Path) -> None:
    device, models = tmp_path / "device.json", tmp_path / "zoo.json"
    device.write_text(dump(device_run(POINT)))
    models.write_text(dump(zoo_run(run, ours={"check": checked(1e-3)}, theirs={})))
    done = CliRunner().invoke(app, ["bars", str(device), str(models)])
    assert (
        done.exit_code == 1 and "| gemm-4096-bf16 | 95% of the library's speed, by wgmma | 95% | 1.0e-03 | holds |" in done.output
    )
    assert "| gemm-8192-bf16 | not measured | - | - | no data |" in done.output and "1.10x torch.compile" in done.output
    device.write_text(device.read_text().replace("xyntra-device/2", "xyntra-device/1"))
    assert "schema 'xyntra-device/1', this version reads" in str(CliRunner().invoke(app, ["bars", str(device)]).exception)
