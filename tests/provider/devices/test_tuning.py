"""Tuning on a device: kernels run and are timed there, and its sessions, and no others, find what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.provider.devices.test_automatic import NO_DOUBT
from tests.provider.devices.test_automatic import session as automatic_session
from xyntra_ep.diagnostics.machine import doctor
from xyntra_ep.diagnostics.tuning_tables import context_of, export_tuning, import_tuning
from xyntra_ep.errors import ConfigError
from xyntra_ep.provider import planner, registration
from xyntra_ep.tracea import AutoTuner, Budget, Context, named_problem
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.backends.opencl import OpenCl
from xyntra_ep.tracea.core_ir.expr import call, const
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.doctor.decision import Evidence
from xyntra_ep.tracea.doctor.variants import gpu_variants
from xyntra_ep.tracea.interface.tuning.trial import Trial
from xyntra_ep.tracea.optimizer.search import Exhaustive
from xyntra_ep.tracea.runtime import opencl
from xyntra_ep.tracea.runtime.hashing import hash128_of

pytestmark = [pytest.mark.native, pytest.mark.device("opencl")]
GEMM = named_problem("gemm", m=128, n=128, k=128)
TILES: dict[str, Any] = {
    "variant": "gemm.block_tiles",
    **{f"gemm.block_tiles.{name}": n for name, n in (("rows", 64), ("columns", 64), ("parts", 16))},
}


@pytest.fixture
def target() -> DeviceTarget:
    """A GPU of two units, whatever is behind the driver: its products have tiles to choose from, the largest by default."""
    found = OpenCl().target()
    return replace(found, gpu=replace(found.gpu, is_cpu=False, units=2))


def context_on(target: DeviceTarget | None, cache: Path) -> Context:
    return Context(cache_dir=cache, hash128=hash128_of(registration.library()), device=target)


def four_tiles(space: Any, seeds: Sequence[Any], seed: int) -> Exhaustive:
    """First, and not one as large as the result, as the default is."""
    return Exhaustive(space, seeds=[*seeds, TILES], seed=seed)


def test_a_product_is_tuned_and_found_by_another_context(
    target: DeviceTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = Trial.measure

    def half(*asked: Any) -> list[Any]:
        """Which tiles are faster is not what is asked here."""
        return [replace(m, ratios=(0.5,) * len(m.ratios), ns=m.default_ns / 2) for m in measure(*asked)]

    monkeypatch.setattr(Trial, "measure", half)
    cache, file = tmp_path / "cache", tmp_path / "tuning.json"
    options = {"backend": "opencl", "cache_dir": str(cache)}
    found = AutoTuner(context_on(target, cache), search=four_tiles).optimize(GEMM, Budget(trials=1))
    [trial] = found.trials
    assert trial.ratio == 0.5
    assert found.best is not None and 0 < found.best.ns < found.default.ns

    def chosen(context: Context) -> Any:
        decision = context.estimate(GEMM.op, GEMM.program, GEMM.constants)
        return decision.chosen.name, decision.config, decision.evidence

    tuned = (found.best.variant, found.best.config, Evidence.MEASURED)
    assert chosen(context_on(target, cache)) == tuned
    assert chosen(context_on(replace(target, identity="another"), cache))[2] is Evidence.ESTIMATE
    assert chosen(context_on(None, cache))[2] is Evidence.ESTIMATE
    assert f"tuning     {target.name}: 1 kernel by 1 trial, 1 faster" in str(doctor(cache_dir=cache))
    assert export_tuning(file, options) == 1
    with pytest.raises(ConfigError, match="a device's results want its backend, as in -O backend=NAME"):
        import_tuning(file, {"cache_dir": str(tmp_path / "other")})
    import_tuning(file, options | {"cache_dir": str(tmp_path / "other")})
    assert chosen(context_on(target, tmp_path / "other")) == tuned


def test_a_kernel_that_computes_something_else_loses(
    target: DeviceTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [right] = [variant for variant in gpu_variants()[Gemm] if variant.name == "gemm.thread"]

    def twice(op: Gemm, *rest: Any) -> Any:
        return right.build(replace(op, epilogue=call("mul", op.epilogue, const(2.0))), *rest)

    def raises(*_: Any) -> Any:
        raise RuntimeError("no such tile")

    broken = [replace(right, name=f"gemm.{build.__name__}", build=build, rank=1) for build in (twice, raises)]
    table: dict[Any, Any] = {**gpu_variants(), Gemm: (right, *broken)}
    monkeypatch.setattr(DeviceTarget, "variants", property(lambda self: table))
    trial = Trial(GEMM, context_on(target, tmp_path), 1)
    trial.default = replace(trial.default, variant=right, config={})
    wrong, failing = trial.measure([replace(trial.default, variant=variant) for variant in broken], 1)
    assert wrong.problem.startswith("computes something else: error ") and not wrong.ratios
    assert failing.problem == "cannot be made: internal: RuntimeError: no such tile"


def test_weights_are_packed_before_runs_as_in_a_session(target: DeviceTarget, tmp_path: Path) -> None:
    """By a kernel whose time would be the run's."""
    conv = named_problem("conv", n=1, c=32, h=9, w=9, m=32, k=3, pad=1, group=32)
    trial = Trial(conv, context_on(target, tmp_path), 1)
    assert trial.default.variant.name == "conv.depthwise"
    [(_, made)] = trial._compiled([trial.default])
    [island] = made.islands
    assert island is not None and [*island.constants] == ["const0"]
    [measured] = trial.measure([trial.default], 1)
    assert measured.problem == "" and measured.ns > 0


@pytest.mark.parametrize(("run_ns", "runs"), [(None, 1), (1e3, 50), (2e6, 10), (1e8, 3), (8e8, 2), (9e9, 1)])
def test_what_a_device_takes_says_how_often_it_runs(
    target: DeviceTarget, tmp_path: Path, run_ns: float | None, runs: int
) -> None:
    """Whatever is estimated, and without memory that is read between runs on the processor only."""
    trial = Trial(replace(GEMM, between_bytes=1 << 30), context_on(target, tmp_path), 1)
    trial._run_ns = run_ns
    assert trial._runs == runs


def test_where_auto_places_a_session_there_it_is_tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = opencl.survey()
    fast: dict[str, Any] = {"is_cpu": False, "vendor": "Advanced Micro Devices, Inc.", "compute_units": 60, "clock_mhz": 2000}
    gpus = replace(found, devices=tuple(replace(device, **fast) for device in found.devices))
    monkeypatch.setattr(opencl, "survey", lambda *_: gpus)
    monkeypatch.setattr(opencl, "gpu_at_hand", lambda: True)
    monkeypatch.setattr(planner, "DEVICE_DOUBT", NO_DOUBT)
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "0")
    monkeypatch.setenv("XYNTRA_TRIALS", "0")
    options = {"cache_dir": str(tmp_path)}
    assert context_of(options).device is None
    assert context_of(options, automatic_session(tmp_path)).device_identity == OpenCl().target().identity
    assert context_of(options, automatic_session(tmp_path, backend="cpu")).device is None
