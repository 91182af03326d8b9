"""Trials: what a device computes is compared before it is used; what is wrong there is not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.provider.devices.test_automatic import NO_DOUBT, placed
from tests.provider.devices.test_automatic import session as automatic_session
from tests.provider.devices.test_cuda_backend import check, graph_variants, session
from tests.support.fake_cuda import FakeCuda
from xyntra_ep import explain
from xyntra_ep.diagnostics.machine import trial_lines
from xyntra_ep.fusion.estimates.cost import DEVICE_DOUBT
from xyntra_ep.provider import planner, registration
from xyntra_ep.tracea.backends.cuda import Cuda
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Gemm, Product, RowReduce, TopK
from xyntra_ep.tracea.doctor.variants import gpu_variants
from xyntra_ep.tracea.interface import alone, device_costs, islands, measuring, trial_jobs, trials
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.device_costs import DeviceCosts
from xyntra_ep.tracea.interface.devices import known_target
from xyntra_ep.tracea.interface.samples import SAMPLES as ALL_SAMPLES
from xyntra_ep.tracea.interface.samples import Sample, named, smallest_integers
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.runtime.cache_root import TRIALS
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.tracea.runtime.process import run_all
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import GFX942

pytestmark = [pytest.mark.native, pytest.mark.compiler("nvrtc")]
# Few, because the stand-in's kernels are slow to compile.
SAMPLES = (
    Sample(name="a product", build=named("gemm", m=9, n=40, k=24)),
    Sample(name="softmax", build=named("softmax", rows=7, columns=90)),
    Sample(name="the smallest integers", build=smallest_integers),
)
LIMIT_S = 200.0  # so that no right one is ended on a busy machine
TRIED = {
    "gemm.block_tiles", "gemm.gemv", "gemm.thread", "row_reduce.block", "row_reduce.thread", "topk.block", "topk.thread",
}  # fmt: skip


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> FakeCuda:
    made = FakeCuda(monkeypatch, tmp_path_factory.mktemp("cuda"))
    monkeypatch.setenv("XYNTRA_TRIALS", "1")
    monkeypatch.setattr(trials, "SAMPLES", SAMPLES)
    monkeypatch.setattr(trial_jobs, "LIMIT_S", LIMIT_S)
    monkeypatch.setattr(measuring, "_PRODUCT", SAMPLES[0])
    monkeypatch.setattr(measuring, "_SUM", Sample(name="a sum", build=named("add", n=64)))
    monkeypatch.setattr(measuring, "_COPIES", (4 << 10, 64 << 10))
    monkeypatch.setattr(measuring, "_RUNS", 3)
    monkeypatch.setattr(measuring, "_LARGE_RUNS", 3)
    (cache / "cache" / TRIALS).unlink(missing_ok=True)  # kernels stay
    return made


def outcome(cache: Path) -> trials.Outcome:
    target = Cuda().target()
    return trials.try_all(target, Context(cache_dir=cache / "cache", hash128=hash128_of(registration.library()), device=target))


def record(cache: Path, failed: dict[str, str], costs: DeviceCosts | None = None) -> None:
    """As if trials had shown that."""
    target = Cuda().target()
    context = Context(cache_dir=cache / "cache")
    measured = None if costs is None else device_costs.stored(costs)
    row = {trials._key(target): {"variants": dict.fromkeys(sorted(TRIED), "") | failed, "costs": measured}}
    (context.root.path / TRIALS).write_text(json.dumps(row), encoding="utf-8")


def costs(run_ns: float, *, kernels: float = 1.0, gbs: float = 12.0) -> DeviceCosts:
    """What might have been measured."""
    times = ((1 << 20, (1 << 20) / gbs),)
    return DeviceCosts(run_ns=run_ns, there_ns=times, back_ns=times, kernels=kernels, gflops=1000.0, is_measured=True)


def test_a_device_that_computes_right_is_tried_once(gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trials.on_record(Cuda().target(), Context(cache_dir=cache / "cache")) is None
    real, together = islands.compile_islands, []

    def compiled(*arguments: Any) -> Any:
        result = real(*arguments)
        together.append(result.compiled)
        return result

    monkeypatch.setattr(alone, "compile_islands", compiled)
    check(session(cache), 5)
    assert together and not any(together), "kernels were not compiled together before"
    shown = trials.on_record(Cuda().target(), Context(cache_dir=cache / "cache"))
    assert shown is not None and set(shown.tried) >= TRIED and not shown.failed
    assert str(shown) == f"{len(shown.tried)} of {len(shown.tried)} kernel variants compute what they should"
    monkeypatch.setattr(trials, "try_all", lambda *_: pytest.fail("tried again"))
    check(session(cache, claim="all"), 5)
    context = Context(cache_dir=cache / "cache")
    lines = list(trial_lines(context, [Cuda().target()], measure=False))
    assert lines == [f"Simulated GPU: {shown}", f"Simulated GPU: {shown.costs}"] and lines[1].endswith("(measured)")


def test_what_computes_something_else_is_told_and_not_chosen(gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = interpret

    def another(program: Any, inputs: Any) -> Any:  # the device is right: what it is held against is not
        made = right(program, inputs)
        if isinstance(program.ops[0], RowReduce):
            made[0][3, 4] += 0.01
        if isinstance(program.ops[0], TopK):
            made[1][5, 6] += 1
        return made

    monkeypatch.setattr("xyntra_ep.tracea.interface.trials.interpret", another)
    shown = outcome(cache)
    assert set(shown.failed) == {"row_reduce.block", "row_reduce.thread", "topk.block", "topk.thread"}
    assert all(why.startswith("computes something else: error ") for why in shown.failed.values())


def test_what_failed_is_not_chosen_and_the_rest_is(gpu: FakeCuda, cache: Path) -> None:
    usual = graph_variants(session(cache, min_island="2"))  # options of their own: no plan of another test
    chosen = next(name for name in usual if name.startswith("gemm."))
    record(cache, {chosen: "computes something else: error 1, 0.0001 allowed"})
    made = session(cache, min_island="3")
    check(made, 5)
    assert chosen not in graph_variants(made)
    passed = [why for g in explain(made).graphs for i in g.islands for k in i.kernels for why in k.rejected]
    told = [why.text for why in passed if why.about == chosen]
    assert told and told[0] == "failed its trial on this device: computes something else: error 1, 0.0001 allowed"


def test_a_device_on_which_nothing_is_right_is_refused(gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(cache, dict.fromkeys(TRIED, "cannot be made"))
    with pytest.raises(Exception, match="backend=cuda cannot be had: Simulated GPU does not compute as it should: 0 of 7"):
        session(cache, fp32_strict="1")
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "1")
    monkeypatch.setattr(planner, "DEVICE_DOUBT", NO_DOUBT)
    graph = placed(automatic_session(cache / "cache", fp32_strict="1"))
    assert graph.device == "" and "does not compute as it should: 0 of 7 kernel variants" in graph.placement


def test_one_wrong_variant_is_enough_for_auto_to_take_the_processor(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(cache, {"gemm.thread": "the process that tried it was ended by signal 11"})
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "1")
    monkeypatch.setattr(planner, "DEVICE_DOUBT", NO_DOUBT)
    graph = placed(automatic_session(cache / "cache", fp32_strict="1", min_island="2"))
    assert graph.device == "" and graph.placement.endswith("gemm.thread: the process that tried it was ended by signal 11")


def test_a_process_that_ends_costs_one_variant(gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, begun = run_all, []

    def ends(commands: Any, **more: Any) -> Any:
        [outcome] = real(commands, **more)
        begun.append(len(commands[0]) - 4)  # how many plans it was given
        if len(begun) == 1:  # as if the second had ended it
            lines = outcome.log.splitlines()[:4]
            return [type(outcome)(problem="was ended by signal 11", log="\n".join(lines))]
        return [outcome]

    monkeypatch.setattr(trial_jobs, "run_all", ends)
    shown = outcome(cache)
    second = list(trials.trials(Cuda().target()))[1].variant.name
    assert shown.failed == {second: "the process that tried it was ended by signal 11"}
    assert begun[:2] == [begun[0], begun[0] - 2] and len(begun) == 3  # the last one measures


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What each process is given to do."""
    begun: list[list[str]] = []

    def counted(commands: Any, **more: Any) -> Any:
        begun.append(commands[0][4:])
        return run_all(commands, **more)

    monkeypatch.setattr(trial_jobs, "run_all", counted)
    return begun


TWICE = Sample(name="another product", build=named("gemm", m=5, n=24, k=40))


def test_an_error_that_stays_in_a_process_costs_one_variant(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch, given: list[list[str]]
) -> None:
    """Every call of a context that a kernel has broken reports it: jobs behind it would, too."""
    monkeypatch.setattr(trials, "SAMPLES", (*SAMPLES, TWICE))
    gpu.misbehave(stray="gemv")
    shown = outcome(cache)
    assert shown.failed.keys() == {"gemm.gemv"} and "reports CUDA_ERROR_ILLEGAL_ADDRESS for" in shown.failed["gemm.gemv"]
    assert shown.costs is not None and len(given) == 3, "the second time it strays, too; the last process measures"


def test_a_hang_costs_one_variant_one_alarm(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch, given: list[list[str]]
) -> None:
    monkeypatch.setattr(trials, "SAMPLES", (*SAMPLES, TWICE))
    gpu.misbehave(hang="gemv")
    shown = outcome(cache)
    assert shown.failed == {"gemm.gemv": "the process that tried it did not end within 200 s"}
    tried = [t.variant.name for t in trials.trials(Cuda().target())]
    hung = tried.index("gemm.gemv")
    rest = [str(n) for n, name in enumerate(tried) if n > hung and name != "gemm.gemv"]
    assert "gemm.gemv" in tried[hung + 1 :] and given[1] == rest and len(given) == 3


def test_what_launches_others_kernels_is_not_tried_when_these_hang(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch, given: list[list[str]]
) -> None:
    any_rows = next(sample for sample in ALL_SAMPLES if sample.rows)
    monkeypatch.setattr(trials, "SAMPLES", (any_rows, SAMPLES[0]))
    few = {"gemm.thread", "gemm.gemv", "gemm.block_tiles", "gemm.block_tiles_or_gemv"}
    some = {op: tuple(v for v in variants if v.name in few) for op, variants in gpu_variants().items()}
    monkeypatch.setattr(trials, "gpu_variants", lambda: some)
    monkeypatch.setattr(trials, "measure", lambda *_: None)
    gpu.misbehave(hang="gemv")
    shown = outcome(cache)
    assert set(shown.tried) == few and len(given) == 2
    assert shown.failed == {
        "gemm.gemv": "the process that tried it did not end within 200 s",
        "gemm.block_tiles_or_gemv": "was not tried: gemm.gemv has failed",
    }


def test_a_device_that_does_nothing_right_is_soon_left(gpu: FakeCuda, cache: Path, given: list[list[str]]) -> None:
    gpu.misbehave(stray="xy_")
    shown = outcome(cache)
    assert shown.is_useless and not shown.lasting and len(given) == 4
    said = [why.partition(":")[0] for why in shown.failed.values()]
    assert said.count("was not tried") == len(TRIED) - 4
    assert "was not tried: the device did none of 4 that were before it" in shown.failed.values()


def test_a_device_that_cannot_be_opened_is_said_to_be(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch, given: list[list[str]]
) -> None:
    monkeypatch.setenv("FAKE_CUDA_FAIL", "MemAlloc:*")
    shown = outcome(cache)
    assert len(given) == 1
    [why] = set(shown.failed.values())
    assert shown.is_useless and why.startswith("was not tried: the device cannot be opened: ")
    assert why.endswith("CUDA_ERROR_OUT_OF_MEMORY for a buffer")


def test_a_process_that_takes_long_leaves_the_rest_to_the_next(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch, given: list[list[str]]
) -> None:
    monkeypatch.setattr(trial_jobs, "_BUDGET_S", 0.0)
    shown = outcome(cache)
    assert not shown.failed and shown.costs is not None
    assert [len(numbers) for numbers in given[: len(TRIED)]] == [*range(len(TRIED), 0, -1)]


def test_tensors_that_the_driver_refuses_cost_products_by_warpgroups(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are tried last, because their threads wait for each other."""
    gpu.set(capability=90)
    half = Sample(name="a product", build=named("gemm", m=9, n=40, k=24), product=Product.BF16)
    monkeypatch.setattr(trials, "SAMPLES", (half, SAMPLES[1]))
    few = {"gemm.thread", "gemm.wgmma", "row_reduce.thread"}
    some = {op: tuple(v for v in variants if v.name in few) for op, variants in gpu_variants().items()}
    monkeypatch.setattr(trials, "gpu_variants", lambda: some)
    monkeypatch.setattr(trials, "measure", lambda *_: None)
    order: list[str] = []
    add = trial_jobs.TrialJobs.run

    def noted(self: Any, *arguments: Any, about: Sequence[str], **more: Any) -> None:
        order.append(about[0])
        add(self, *arguments, about=about, **more)

    monkeypatch.setattr(trial_jobs.TrialJobs, "run", noted)
    monkeypatch.setenv("FAKE_CUDA_FAIL", "TensorMapEncodeTiled:*")
    shown = outcome(cache)
    assert shown.failed.keys() == {"gemm.wgmma"} and "for the map of a tensor" in shown.failed["gemm.wgmma"]
    assert sorted(shown.tried) == sorted(few) and order[-1] == "gemm.wgmma"


def test_every_variant_is_tried_with_batches_too() -> None:
    """By one of two GPUs whose matrix units have nothing in common."""
    ranks: dict[str, int] = {}
    known = known_target("h100")
    for trial in [trial for gpu in (known.gpu, GFX942) for trial in trials.trials(replace(known, gpu=gpu))]:
        rank = max(len(operand.shape) for operand in trial.program.ops[0].written)
        ranks[trial.variant.name] = max(rank, ranks.get(trial.variant.name, 0))
    every = {variant.name: variant for variants in gpu_variants().values() for variant in variants}
    assert ranks.keys() == every.keys()
    # What chooses between variants by the number of rows is tried with both, and they are with batches.
    assert {name for name, rank in ranks.items() if rank < 3} == {name for name, variant in every.items() if variant.parts}


def test_a_size_that_only_a_run_knows_chooses_both_ways() -> None:
    tried = [t for t in trials.trials(known_target("a100")) if t.variant.name == "gemm.fragments_or_gemv"]
    assert {t.sample.rows for t in tried} == {5, 150} and all(t.program.bindings for t in tried)


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("capability", [80, 90])
def test_all_samples_on_a_device_that_computes_right(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch, capability: int
) -> None:
    gpu.set(capability=capability)
    monkeypatch.setattr(trials, "SAMPLES", ALL_SAMPLES)
    monkeypatch.setattr(trial_jobs, "_BUDGET_S", 600.0)
    assert outcome(cache).failed == {}


def test_what_was_measured_decides_for_a_session_that_names_no_device(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "1")
    cases = ((1e-3, 1.0, 1e3, True), (1e-3, 1.0, 1e-3, False), (1e-3, 1e8, 1e3, False), (1e3, 1.0, 1e3, False))
    levels = ("verbose", "info", "warning", "error")  # options of their own: no plan of another case
    for (kernels, run_ns, gbs, is_taken), level in zip(cases, levels, strict=True):
        record(cache, {}, costs(run_ns, kernels=kernels, gbs=gbs))
        graph = placed(automatic_session(cache / "cache", min_island="2", log_level=level))
        assert bool(graph.device) is is_taken, graph.placement
        assert graph.placement.startswith("Simulated GPU works: est. " if is_taken else "Simulated GPU would not pay: est. ")
        assert graph.placement.endswith(str(costs(run_ns, kernels=kernels, gbs=gbs)))


def test_a_device_that_turns_out_slow_when_it_is_tried_is_left(
    gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in's kernels take 250 us by its clock, where microseconds are estimated."""
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "1")
    monkeypatch.setattr(planner, "DEVICE_DOUBT", {**DEVICE_DOUBT, False: 0.0})
    graph = placed(automatic_session(cache / "cache", min_island="3", log_level="error"))
    shown = trials.on_record(Cuda().target(), Context(cache_dir=cache / "cache"))
    assert shown is not None and shown.costs is not None and shown.costs.kernels > 10
    assert graph.device == "" and graph.placement.endswith(str(shown.costs))


def test_what_could_not_be_measured_is_assumed(gpu: FakeCuda, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_FAIL", "MemcpyHtoDAsync:24")  # of each process
    shown = outcome(cache)
    assert shown.costs is None
    lines = list(trial_lines(Context(cache_dir=cache / "cache"), [Cuda().target()], measure=False))
    assert lines[1] == f"Simulated GPU: {device_costs.ASSUMED}" and lines[1].endswith("(assumed)")


def test_a_broken_record_is_none(gpu: FakeCuda, cache: Path) -> None:
    context = Context(cache_dir=cache / "cache")
    key = trials._key(Cuda().target())
    for text in ("", "[1]", "{", json.dumps({key: {"gemm.thread": ""}}), json.dumps({key: {"variants": {"gemm.thread": 1}}})):
        (context.root.path / TRIALS).write_text(text, encoding="utf-8")
        assert trials.on_record(Cuda().target(), context) is None


def test_what_may_pass_is_tried_again_after_a_day(gpu: FakeCuda, cache: Path) -> None:
    context, day = Context(cache_dir=cache / "cache"), 86400
    for why, is_kept in (("computes something else: error 1, 0.0001 allowed", True), ("cannot be made: no room", False)):
        record(cache, {"gemm.thread": why})
        shown = trials.on_record(Cuda().target(), context)
        assert shown is not None and shown.lasting is is_kept
        before = time.time() - day - 60
        os.utime(context.root.path / TRIALS, (before, before))
        assert (trials.on_record(Cuda().target(), context) is not None) is is_kept


def test_files_are_nobody_elses_to_write_whatever_the_process_allows(gpu: FakeCuda, cache: Path) -> None:
    before = os.umask(0o002)
    try:
        assert not outcome(cache).failed
    finally:
        os.umask(before)


def test_a_variant_is_as_right_as_those_whose_kernels_it_launches() -> None:
    for failed in ("gemm.gemv", "gemm.fragments"):
        target = replace(known_target("a100"), failed={failed: "wrong"})
        known, named = ({v.name: v for v in table[Gemm]} for table in (gpu_variants(), target.variants))
        both = named["gemm.fragments_or_gemv"]
        assert both is not known["gemm.fragments_or_gemv"] and named["gemm.thread"] is known["gemm.thread"]
        [trial] = [t for t in trials.trials(known_target("a100")) if t.variant.name == "gemm.fragments"][:1]
        why = both.admits(trial.program.ops[0], BuildContext(caps=SCALAR, program=trial.program))
        assert why == "failed its trial on this device: wrong"
