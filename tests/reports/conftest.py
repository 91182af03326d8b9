"""A small stored run, made by hand: one win, one failure, one crash."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from xyntra_bench.environment import Environment
from xyntra_bench.plan import QUICK, Scenario, Target
from xyntra_bench.results import (
    Accuracy,
    Bracket,
    CaseResult,
    Ceilings,
    Check,
    Choice,
    Creation,
    Declined,
    FloatError,
    Generation,
    Inside,
    KernelTime,
    Measurement,
    Memory,
    Moment,
    Placement,
    Probe,
    Ratio,
    Resident,
    Run,
    Serving,
    Status,
    Stopped,
    Warn,
    Weights,
)
from xyntra_bench.statistics import latency, paired_ratio
from xyntra_bench.store import dump
from xyntra_bench.verdicts import judge
from xyntra_ep.diagnostics.kernel_times import multiplied_in

ENVIRONMENT = Environment(
    cpu="Example CPU",
    cpu_flags=("avx2", "f16c", "fma"),
    cores_logical=4,
    cores_usable=2,
    quota_cores=1.5,
    smt=True,
    memory_bytes=1 << 33,
    memory_limit_bytes=1 << 32,
    governor="performance",
    clock_mhz=3000.0,
    load_1m=0.1,
    virtual=False,
    container="docker",
    os="Linux",
    kernel="6.1",
    libc="glibc-2.36",
    compiler="clang version 18.1.0",
    gpus=(),
    python="3.11.7",
    packages={"onnxruntime": "1.31.1"},
    git_revision="0123456789ab",
    git_dirty=False,
)


HOSTILE = "/a|b</text><script>1</script> $x_1$ `c` &"
CEILINGS = Ceilings(
    threads=1,
    fp32_gflops=100.0,
    bf16_gflops=1600.0,
    l1_gbs=200.0,
    l2_gbs=80.0,
    l3_gbs=25.0,
    dram_gbs=10.0,
    l1_bytes=32 << 10,
    l2_bytes=1 << 20,
    l3_bytes=16 << 20,
    int8_gops=400.0,
)


def choice(predicted_ns: int, runner_up: str = "", runner_up_ns: int = 0, *, tuned: bool = False, **config: int) -> Choice:
    return Choice(predicted_ns=predicted_ns, config=config, tuned=tuned, runner_up=runner_up, runner_up_ns=runner_up_ns)


def kernel(
    name: str, ns: int, flops: int, moved: int, variant: str = "gemm.packed_b", choice: Choice | None = None
) -> KernelTime:
    return KernelTime(
        island="island0",
        label=variant.partition(".")[0],
        variant=variant,
        symbols=("xy_kernel",),
        precision=multiplied_in(variant, ["xy_kernel"]),
        op_types={"MatMul": 1, "Add": 2},
        nodes=(name,),
        calls=1,
        ns=ns,
        flops=flops,
        bytes=moved,
        resident=None,
        choice=choice,
    )


TUNED = choice(20_000_000, "gemm.streamed", 50_000_000, tuned=True, rows=8, columns=48)
INSIDE = Inside(
    device="",
    runs=5,
    run_ns=100_000_000,
    kernels=(
        kernel(HOSTILE, 30_000_000, 2_400_000_000, 20_000_000, choice=TUNED),
        kernel("/layer.1/MatMul", 20_000_000, 2_400_000_000, 20_000_000, choice=TUNED),
        kernel("/layer.0/Softmax", 10_000_000, 1_000_000, 40_000, "row_reduce.rows", choice(20_000_000)),
        kernel("/layer.0/Transpose", 5_000_000, 0, 500_000, "transpose.tiled"),
    ),
    declined=(Declined(op_type="Det", reason="unsupported | <b>", count=2, nodes=(HOSTILE,)),),
)


def measurement(label: str, ms: float, n: int = 120) -> Measurement:
    samples = tuple(int(ms * 1e6 * (1 + i / 10_000)) for i in range(n))
    return Measurement(
        label=label,
        provider=label,
        options={},
        status=Status.OK,
        latency=latency(samples),
        first_run_ns=int(ms * 2e6),
        memory=Memory(
            loaded_bytes=50 << 20, created_bytes=90 << 20, steady_bytes=int(ms) << 20, pss_bytes=None, peak_bytes=200 << 20
        ),
        creation=Creation(
            cold_ns=2_000_000_000,
            planned_ns=700_000_000,
            warm_ns=300_000_000,
            compile_cpu_ns=2_500_000_000,
            rss_growth_bytes=100 << 20,
            artefact_bytes=1 << 20,
        ),
        placement=Placement(nodes={label: 90, "CPUExecutionProvider": 10}, groups={label: 1}),
        samples_ns=samples,
    )


def contender(ms: float, base: Measurement, error: float) -> Measurement:
    m = measurement("XyntraEP", ms)
    good = error <= 2e-5
    state = Accuracy.OK if good else Accuracy.INACCURATE
    ratio = ratio_of(base, m) if good else None
    return dataclasses.replace(
        m,
        against=base.label,
        ratio=ratio,
        verdict=judge(ratio),
        inside=INSIDE,
        check=Check(state=state, max_err=2e-5, error=error, output="y", moments=(Moment.FIRST, Moment.LAST)),
        warnings=() if good else (Warn.INACCURATE,),
    )


def case(model: str, threads: int, status: Status = Status.OK, error: float = 1e-6) -> CaseResult:
    ok = status is Status.OK
    base = measurement("CPUExecutionProvider", 130.0)
    return CaseResult(
        model=model,
        family="bert",
        shape="b1 s128",
        batch=1,
        seq=128,
        threads=threads,
        model_sha256="0" * 64,
        weights=Weights.RANDOM,
        status=status,
        error="" if ok else "killed by SIGSEGV\nlog",
        baseline=base if ok else None,
        contenders=(contender(100.0, base, error),) if ok else (),
        iterations=ITERATIONS,
        stopped=Stopped.ENOUGH,
        load_before=0.5,
        load_high=1.25,
        load_after=1.0,
        clock_low_mhz=2990.0,
        clock_high_mhz=3000.0,
        foreign_cores=0.02,
        stolen_cores=0.001,
    )


def against_itself(scenario: Scenario) -> CaseResult:
    """One contender in two forms, the second twice as fast."""
    slow, fast = measurement("XyntraEP one", 100.0), measurement("XyntraEP two", 50.0)
    fast = dataclasses.replace(fast, provider="XyntraEP", against=slow.label, ratio=ratio_of(slow, fast))
    base = measurement("CPUExecutionProvider", 130.0)
    return dataclasses.replace(case("self", 2), scenario=scenario, baseline=base, contenders=(slow, fast))


def offline() -> CaseResult:
    """Two calls at a time: 1.3 of the CPU provider's throughput, twice that of one call."""
    base, ours = (
        dataclasses.replace(measurement(name, ms), streams=2) for name, ms in (("CPUExecutionProvider", 65.0), ("A", 50.0))
    )
    alone = dataclasses.replace(measurement("A", 100.0), streams=1)
    ours = dataclasses.replace(
        ours, label="A x2", against=base.label, ratio=ratio_of(base, ours), peers={"A x1": ratio_of(alone, ours)}
    )
    return dataclasses.replace(
        case("busy", 2),
        scenario=Scenario.OFFLINE,
        baseline=base,
        contenders=(ours, dataclasses.replace(alone, label="A x1")),
    )


def server() -> CaseResult:
    base, ours = measurement("CPUExecutionProvider", 13.0), measurement("XyntraEP", 10.0)
    brackets = (Bracket(held_per_s=60.0, failed_per_s=62.0), Bracket(held_per_s=64.0, failed_per_s=66.0))
    probe = Probe(rate_per_s=60.0, queries=100, p99_ns=10, held=True)
    held = Serving(bound_ns=65_000_000, rate_per_s=62.0, brackets=brackets, probes=(probe,))
    none = Serving(bound_ns=65_000_000, rate_per_s=None, brackets=(), probes=())
    return dataclasses.replace(
        case("asked", 1),
        scenario=Scenario.SERVER,
        baseline=dataclasses.replace(base, streams=1, serving=none),
        contenders=(dataclasses.replace(ours, streams=1, serving=held),),
    )


def generated() -> CaseResult:
    def loop(label: str, first_ms: float, later_ms: float) -> Measurement:
        first, later = (measurement(label, ms) for ms in (first_ms, later_ms))
        assert first.latency and later.latency
        made = Generation(
            tokens=32,
            first_token=first.latency,
            later_token=later.latency,
            tokens_per_s=1000 / later_ms,
            first_token_ratio=ratio_of(measurement("", 130.0), first),
            later_token_ratio=ratio_of(measurement("", 20.0), later),
        )
        return dataclasses.replace(first, generation=made)

    failed = dataclasses.replace(measurement("B", 1.0), status=Status.FAILED, latency=None)
    base, ours = loop("CPUExecutionProvider", 130.0, 20.0), loop("XyntraEP", 100.0, 10.0)
    return dataclasses.replace(case("writes", 1), scenario=Scenario.GENERATE, baseline=base, contenders=(ours, failed))


def rounds_of(m: Measurement) -> list[tuple[int, ...]]:
    return [m.samples_ns[i::4] for i in range(4)]


ITERATIONS = 120  # as many as a measurement has samples: each an iteration


def ratio_of(reference: Measurement, m: Measurement) -> Ratio:
    ratio = paired_ratio(rounds_of(reference), rounds_of(m))
    assert ratio is not None
    return ratio


def quantised(model: str) -> CaseResult:
    """Of a language model: both are about as far from the float model."""
    plain = case(model, 1)
    (m,) = plain.contenders
    assert plain.baseline and m.check
    found = FloatError(model="float", error=0.24, rms=0.2, output="logits", positions=128, same_largest=44)
    check = dataclasses.replace(m.check, max_err=0.03, error=0.012, float_ratio=0.99)
    m = dataclasses.replace(m, check=check, float_error=dataclasses.replace(found, error=0.23, same_largest=45))
    return dataclasses.replace(plain, baseline=dataclasses.replace(plain.baseline, float_error=found), contenders=(m,))


def with_peer(model: str) -> CaseResult:
    """Both beside OpenVINO in bf16, which one of them could not do."""
    plain = case(model, 1)
    assert plain.baseline is not None
    options = {"precision": "bf16"}
    ours, peer = (dataclasses.replace(contender(ms, plain.baseline, 1e-6), options=options) for ms in (65.0, 78.0))
    peer = dataclasses.replace(peer, label="OpenVINO:precision=bf16", provider="OpenVINO")
    of_int8w = {"precision": "int8w"}
    ours = dataclasses.replace(ours, label="XyntraEP:precision=bf16", peers={peer.label: ratio_of(peer, ours)}, precision="fp32")
    absent = dataclasses.replace(
        peer, label="OpenVINO:precision=int8w", options=of_int8w, status=Status.UNAVAILABLE, latency=None
    )
    return dataclasses.replace(plain, contenders=(ours, peer, absent))


DEVICE = "CUDA / Example / sm_90 / driver 12.8"
RESIDENT = Resident(threads=256, registers=116, shared_bytes=32 << 10, blocks=2, warps=16, of_warps=64, limit="registers")


def on_device(run: Run) -> Run:
    """The first case alone, its first contender on a device beside PyTorch."""
    case = run.cases[0]
    m = case.contenders[0]
    kernels = tuple(dataclasses.replace(k, resident=RESIDENT) if k.flops else k for k in INSIDE.kernels)
    inside = dataclasses.replace(INSIDE, device=DEVICE, kernels=kernels)
    torch = dataclasses.replace(m, label="torch:mode=compile", provider="torch", options={"mode": "compile"}, inside=None)
    torch = dataclasses.replace(torch, device_ns=3_000_000)
    peers = {torch.label: Ratio(middle=1.5, low=1.4, high=1.6, pairs=ITERATIONS, rounds=8)}
    gpu = dataclasses.replace(torch, label="XyntraEP:backend=cuda", provider="XyntraEP", options={"backend": "cuda"}, peers=peers)
    gpu = dataclasses.replace(gpu, inside=inside, device=DEVICE)
    return dataclasses.replace(run, cases=(dataclasses.replace(case, contenders=(gpu, torch)),))


@pytest.fixture(scope="session")  # its intervals take a while
def run() -> Run:
    return Run(
        command="bench run zoo --quick",
        started="2026-05-04T10:00:00+00:00",
        finished="2026-05-04T10:05:00+00:00",
        quick=True,
        environment=ENVIRONMENT,
        budget=QUICK,
        planned=6,
        ceilings=(CEILINGS,),
        imports_ns={"onnxruntime": 80_000_000, "xyntra_ep": 40_000_000},
        cases=(
            case("wins", 1),
            case("wrong", 1, error=0.5),
            case("dies", 2, Status.CRASHED),
            against_itself(Scenario.SCALING),
            offline(),
            server(),
            generated(),
            dataclasses.replace(case("batched", 1), scenario=Scenario.MULTI_STREAM),
            against_itself(Scenario.SPECIALISED),
        ),
    )


@pytest.fixture
def results(tmp_path: Path, run: Run) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "example.json").write_text(dump(run))
    (folder / "other.json").write_text(dump(dataclasses.replace(run, target=Target.MICRO, started="2020-01-01")))
    return folder


@pytest.fixture(scope="session")
def results_once(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """The same for tests that only read."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "example.json").write_text(dump(run))
    return folder
