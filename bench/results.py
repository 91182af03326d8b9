"""What a measurement stores. These types are the file format; `schema/` describes it for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from xyntra_bench.codec import KEY, LATER
from xyntra_bench.contenders import AUTO_BACKEND, CPU_BACKEND, PLUGINS, Contender, backend_of
from xyntra_bench.environment import Environment
from xyntra_bench.plan import Budget, Scenario, Target, case_label

SCHEMA = "xyntra-bench/7"
RULES = 1  # of publishing (`publish`) that a run is measured under


class Verdict(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNSURE = "unsure"
    NO_DATA = "no data"


class Status(StrEnum):
    OK = "ok"
    UNAVAILABLE = "unavailable"  # not on this machine, or not installed; the text says what is missing
    FAILED = "failed"  # an exception; the text says which
    CRASHED = "crashed"  # the process died
    TIMED_OUT = "timed out"


class Stopped(StrEnum):
    """Why no further iteration of a case followed."""

    SURE = "sure"  # every comparison has its verdict
    ENOUGH = "enough"  # the least that the budget asks for, which then asks for no more
    TIME = "time"  # the cap, with the least and without every verdict
    ITERATIONS = "turns"  # the other cap; the value is as files have it
    CUT = "cut short"  # either cap, before the least


class Accuracy(StrEnum):
    OK = "ok"
    INACCURATE = "inaccurate"
    DEAD_REFERENCE = "dead reference"
    MISMATCH = "mismatch"  # another shape, type, number of outputs, or other integers


class Warn(StrEnum):
    """The value is the name in the stored file, `advice` what to do next."""

    QUICK = "quick"
    CUT_SHORT = "cut short"
    FEW_ITERATIONS = "few turns"
    NOISY = "noisy"
    LOADED = "loaded machine"
    STOLEN = "stolen time"
    OVERSUBSCRIBED = "oversubscribed"
    GOVERNOR = "governor"
    THROTTLED = "throttled"
    CLOCK = "clock"
    STILL_UNSURE = "still unsure"
    NOTHING_CLAIMED = "nothing claimed"
    NO_ASSIGNMENT = "no assignment"
    OTHER_PRECISION = "other precision"
    SLOW_FIRST_RUN = "slow first run"
    NO_RATE = "no rate"
    INACCURATE = "inaccurate"
    DEAD_REFERENCE = "dead reference"
    DEAD_OUTPUT = "dead output"

    @property
    def advice(self) -> str:
        return ADVICE[self]


ADVICE = {
    Warn.QUICK: "rows end with 100 runs of each session, sure or not: run again without --quick where a verdict is unsure",
    Warn.CUT_SHORT: "the time was up before the least that a row takes, so it is not published: raise --max-time, or drop it",
    Warn.FEW_ITERATIONS: "too few iterations for an interval: give the case more time with --min-time and --max-time",
    Warn.NOISY: "run times scatter by more than 10 %: stop other programs, or compare p50 only",
    Warn.LOADED: "other processes used the machine meanwhile: stop them and repeat",
    Warn.STOLEN: "the hypervisor gave the processors to others meanwhile: repeat later, or on a machine of your own",
    Warn.OVERSUBSCRIBED: "more threads than processors are allowed: lower --threads or widen the quota",
    Warn.GOVERNOR: "the clock follows the load: set the CPU governor to 'performance' and repeat",
    Warn.THROTTLED: "the control group's quota stopped the process meanwhile: widen it, or lower --threads below it",
    Warn.CLOCK: "the clock changed by more than 5 % meanwhile: let the machine cool down, fix its frequency and repeat",
    Warn.STILL_UNSURE: "the time was used up before every comparison had its verdict: raise --max-time, or quiet the machine",
    Warn.NOTHING_CLAIMED: "the provider took no node, so its fallback was measured: ask `xyntra explain` why",
    Warn.NO_ASSIGNMENT: "this runtime does not say which provider runs a node: upgrade onnxruntime",
    Warn.OTHER_PRECISION: "the precision asked for is not what ran: the runtime's notes in the result file say why",
    Warn.SLOW_FIRST_RUN: "the first run took over 3 medians: look for work that belongs in creation",
    Warn.NO_RATE: "no rate held the bound of p99 in every round: raise --p99-bound, or give the case more workers with --threads",
    Warn.INACCURATE: "outputs differ from the reference's beyond the bound, so speed does not count: of an ONNX file "
    "`xyntra compare` finds the node",
    Warn.DEAD_REFERENCE: "the reference outputs are zero, constant or not finite and prove nothing: use real "
    "weights or other inputs",
    Warn.DEAD_OUTPUT: "some outputs are zero or constant in the reference: only the others were judged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Percentiles are None where n is too small for them. `histogram` is HDR V2, base64, in nanoseconds."""

    n: int
    mean_ns: float
    cv: float
    mad_ns: float
    min_ns: int
    p50_ns: int
    p90_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    max_ns: int
    histogram: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """Session creation. Cold starts from an empty kernel cache of its own, warm finds what cold left there, of which
    `artefact_bytes` is the size. In between a session finds the kernels and not the plans, so `planned_ns` less `warm_ns` is
    what planning takes, and `cold_ns` less `planned_ns` what compiling adds to it; as several compilers run at a time,
    `compile_cpu_ns` is their processor time. None where the contender keeps no such cache."""

    cold_ns: int
    planned_ns: int | None
    warm_ns: int
    compile_cpu_ns: int | None
    rss_growth_bytes: int
    artefact_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Resident bytes of a process that does nothing else: with the runtime loaded, after creation from a warm
    cache, after some runs, and the most there ever was. `pss_bytes` is the steady figure with shared pages divided
    among those who share them, None where the system does not tell."""

    loaded_bytes: int
    created_bytes: int
    steady_bytes: int
    pss_bytes: int | None
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The time of the setup it is compared with over this one's; above 1 is faster. The interquartile mean over pairs of
    iterations, and its 95 % interval."""

    middle: float
    low: float
    high: float
    pairs: int
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A rate of arrivals that was tried, and whether its p99, from the intended starts, was within the bound."""

    rate_per_s: float
    queries: int
    p99_ns: int
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """What a search ended with: the highest rate that held, 0 for none, and the lowest that did not, None for none."""

    held_per_s: float
    failed_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Open loop: the highest rate that holds a bound of p99, a search in every round. None where none held."""

    bound_ns: int
    rate_per_s: float | None
    brackets: tuple[Bracket, ...]
    probes: tuple[Probe, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A loop: the run with the prompt gives the first token, each run after it one more. `latency` of the measurement is
    that of the whole loop, and so is its ratio; here are those of the parts, against the same setup."""

    tokens: int
    first_token: Latency
    later_token: Latency
    tokens_per_s: float  # of the later ones, for each row of the batch
    first_token_ratio: Ratio | None
    later_token_ratio: Ratio | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How many nodes of the optimised graph each provider runs, and in how many groups."""

    nodes: Mapping[str, int]
    groups: Mapping[str, int]


class Moment(StrEnum):
    """When outputs were compared."""

    FIRST = "first run"  # of the session of the first round, before its iterations
    LAST = "last run"  # of that of the last, behind them


class Weights(StrEnum):
    """Where a model's came from. Speed hardly depends on them; whoever reads an error or a table must know."""

    RANDOM = "random"  # of the zoo's models, by their seed
    FILE = "of the file"  # of somebody's model


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatError:
    """How far a quantised model's outputs are from those of the `model` that it was made from, on the same feeds: of the worst
    output max|a-b| / max|b|, and the root of the mean square of a-b over that of b. Of `logits` for several positions, also at
    how many of them the largest is the same."""

    model: str
    error: float
    rms: float
    output: str
    positions: int | None
    same_largest: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """max|a-b| / max|b| of the worst output against the baseline's, on the same feeds; of all `moments` the worst. Of a quantised
    model, `float_ratio` is the error against its float model (`rms` of `FloatError`) over the baseline's, of the worst output
    (`accuracy` has the rule)."""

    state: Accuracy
    max_err: float
    error: float | None
    output: str = ""
    dead_outputs: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()
    float_ratio: float | None = field(default=None, metadata={LATER: True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """What a block of a kernel takes of a GPU's multiprocessor, by the compiler's report, and how many `blocks` one holds at a
    time: `warps` of `of_warps`, limited by what is short first."""

    threads: int
    registers: int  # of a thread
    shared_bytes: int
    blocks: int
    warps: int
    of_warps: int
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Why a kernel is computed as it is. `predicted_ns` is what all its calls in a run were expected to take: the estimate that
    it was chosen by, less what tuning gained where `tuned`, at the sizes of the run and divided by the threads that share it.
    `runner_up` is the variant that would have been chosen next, with its estimate in the same terms; empty where no other can
    compute the op."""

    predicted_ns: int
    config: Mapping[str, int]
    tuned: bool
    runner_up: str
    runner_up_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """One kernel in one run of the session: the median of its time, and what it must at least do at this shape. Flop and
    bytes are those of `xyntra_ep/tracea/core_ir/work.py`; `precision` is what its products are computed in. `resident` is of
    the kernel that takes longest, where a GPU runs it and the compiler's report is kept."""

    island: str
    label: str
    variant: str
    symbols: tuple[str, ...]
    precision: str
    op_types: Mapping[str, int]
    nodes: tuple[str, ...]  # the first few
    calls: int
    ns: int
    flops: int
    bytes: int
    resident: Resident | None
    choice: Choice | None = field(default=None, metadata={LATER: True})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """Nodes of one type that the provider left to others for the same reason."""

    op_type: str
    reason: str
    count: int
    nodes: tuple[str, ...]  # the first few


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """`run_ns` is the median of the profiled runs. What kernels do not account for is the runtime's own and other nodes'.
    `device` is where kernels ran and by whose clock they were timed, empty for the CPU. There each is launched by itself to be
    timed: their sum is more than the measurement's `device_ns`, which is that of the run as it is."""

    device: str
    runs: int
    run_ns: int
    kernels: tuple[KernelTime, ...]
    declined: tuple[Declined, ...]


def _failure(status: Status, error: str) -> str:
    """In a line."""
    return "" if status is Status.OK else f"{status}: {error.partition(chr(10))[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One setup of a case: a session with its threads, form of shapes and concurrent calls. The CPU provider's has no
    `check`, and those that nothing is compared with have no `ratio`."""

    label: str
    provider: str
    options: Mapping[str, str]
    threads: int = 1
    specialised: bool = False
    streams: int = 0
    status: Status
    error: str = ""
    precision: str = ""  # what it ran in, where the runtime tells
    device: str = ""  # where it computed, as the runtime tells; empty for the CPU
    notes: tuple[str, ...] = ()  # what the runtime warned of at creation
    latency: Latency | None = None
    cpu_ns: int | None = None  # processor time of all threads for what `latency` measures once, the median
    device_ns: int | None = None  # of a run as a whole, by the clock of the device that computes it, the median; None on the CPU
    first_run_ns: int | None = None
    creation: Creation | None = None
    memory: Memory | None = None
    placement: Placement | None = None
    check: Check | None = None
    float_error: FloatError | None = field(default=None, metadata={LATER: True})  # of a quantised model
    against: str = ""  # the label of the setup that `ratio` compares with
    ratio: Ratio | None = None
    peers: Mapping[str, Ratio] = field(default_factory=dict)  # by the label of the other
    verdict: Verdict = Verdict.NO_DATA
    generation: Generation | None = None
    serving: Serving | None = None  # of a server; `latency` is then that at the rate which held
    warnings: tuple[Warn, ...] = ()
    inside: Inside | None = None
    samples_ns: tuple[int, ...] = ()

    @property
    def failure(self) -> str:
        """Why it could not be measured, in a line; empty when it was."""
        return _failure(self.status, self.error)

    @property
    def is_wrong(self) -> bool:
        """It failed, or its outputs are others."""
        wrong = (Accuracy.INACCURATE, Accuracy.MISMATCH)
        return self.status is not Status.OK or (self.check is not None and self.check.state in wrong)

    @property
    def lacking(self) -> str:
        """Why its times count for nothing: it failed, or its outputs are wrong; empty when they count."""
        return self.failure or ("" if self.check is None or self.check.state is Accuracy.OK else str(self.check.state))

    @property
    def backend(self) -> str:
        """Of XyntraEP, where it computed, or was to compute where nothing has been recorded; empty of others."""
        if self.provider not in PLUGINS:
            return ""
        asked = self.options.get("backend", CPU_BACKEND)
        return backend_of(self.device) if self.device or asked == AUTO_BACKEND else asked

    @property
    def contender(self) -> Contender:
        return Contender(provider=self.provider, options=self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    model: str
    family: str
    scenario: Scenario = Scenario.SINGLE_STREAM
    shape: str
    batch: int
    seq: int | None
    threads: int
    model_sha256: str
    weights: Weights
    status: Status
    error: str = ""
    baseline: Measurement | None = None
    contenders: tuple[Measurement, ...] = ()
    warnings: tuple[Warn, ...] = ()
    iterations: int = field(default=0, metadata={KEY: "turns"})
    stopped: Stopped | None = None
    wall_s: float = 0.0
    cpu_s: float | None = None  # of the whole process, creation of sessions included
    throttled_s: float | None = None  # by the control group's quota
    clock_before_mhz: float | None = None
    clock_after_mhz: float | None = None
    clock_low_mhz: float | None = None  # of the fastest processor, after each round
    clock_high_mhz: float | None = None
    load_before: float | None = None
    load_after: float | None = None
    load_high: float | None = None  # at the end of each round
    foreign_cores: float | None = None  # kept busy by other processes meanwhile, and taken by the hypervisor
    stolen_cores: float | None = None  # of them, what the hypervisor took
    peak_rss_bytes: int | None = None

    @property
    def failure(self) -> str:
        """Why nothing could be measured, in a line; empty when it could."""
        return _failure(self.status, self.error)

    @property
    def label(self) -> str:
        return case_label(self.model, self.shape, self.threads, self.scenario)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return (*([self.baseline] if self.baseline else []), *self.contenders)


def lacks_data(case: CaseResult) -> bool:
    """Something was to be measured and could not: a crash, a failure, wrong outputs."""
    return case.status is not Status.OK or any(m.is_wrong for m in case.contenders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """10^9 operations and 10^9 bytes per second with `threads` threads at the same time; of the caches each thread has
    its own part. `bf16_gflops` is 0 where the machine multiplies bfloat16 no faster than fp32, `int8_gops` where it has no
    instructions for bytes. The sizes of the caches are those of one core, and of L3 all of it."""

    threads: int
    fp32_gflops: float
    bf16_gflops: float
    l1_gbs: float
    l2_gbs: float
    l3_gbs: float
    dram_gbs: float
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    int8_gops: float | None = field(default=None, metadata={LATER: True})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCeilings:
    """The same of a device, by kernels of ours that do one thing (`xyntra_ep/tracea/doctor/device_ceilings.py`). `library_*` are
    the best products that `library` was seen to make beside them, 0 where there is none."""

    device: str
    copy_gbs: float
    cache_gbs: float  # read from the cache that all multiprocessors share
    cache_bytes: int
    fp32_gflops: float
    fp16_gflops: float
    bf16_gflops: float
    tf32_gflops: float
    library: str
    library_fp32_gflops: float
    library_fp16_gflops: float
    library_bf16_gflops: float
    library_tf32_gflops: float
    library_copy_gbs: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A case that was asked for and not measured, and about how long it would have taken."""

    case: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One stored file. `finished` stays empty when a run was interrupted; its cases are good nevertheless. `rules` is 0 of runs
    that were made before tables had rules (`publish`). `kernels_isa` is the class of processors that XyntraEP made its kernels
    for, which XYNTRA_ISA may hold down, empty where it was not asked. `within_s` is the time that the command was given, and
    `left_out` what it therefore left out."""

    schema: str = SCHEMA
    rules: int = RULES
    target: Target = Target.ZOO
    command: str = ""
    started: str = ""
    finished: str = ""
    quick: bool = False
    environment: Environment
    kernels_isa: str = ""
    budget: Budget
    planned: int = 0
    within_s: float | None = None
    left_out: tuple[LeftOut, ...] = ()
    imports_ns: Mapping[str, int] = field(default_factory=dict)  # by module, over what was imported before it
    ceilings: tuple[Ceilings, ...] = ()
    device_ceilings: tuple[DeviceCeilings, ...] = ()
    cases: tuple[CaseResult, ...] = field(default=())
