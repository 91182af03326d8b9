"""What will be measured: cases (model, shape, threads, scenario) and contenders, decided before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from xyntra_bench.codec import KEY
from xyntra_bench.contenders import DEFAULT_MAX_ERR, Contender
from xyntra_bench.errors import BenchError
from xyntra_zoo import ZooModel, zoo


class Scenario(StrEnum):
    """What a case asks. The first are named after MLPerf's; in all but the last two contenders are compared with the
    CPU provider."""

    SINGLE_STREAM = "single-stream"
    MULTI_STREAM = "multi-stream"
    SERVER = "server"
    OFFLINE = "offline"
    GENERATE = "generate"
    SCALING = "scaling"
    SPECIALISED = "specialised"


MEANING = {
    Scenario.SINGLE_STREAM: "one run after the other",
    Scenario.MULTI_STREAM: "the same, each run a batch",
    Scenario.SERVER: "open loop: the highest rate of arrivals that holds a bound of p99",
    Scenario.OFFLINE: "throughput of several Run calls at a time on one session, one intra-op thread each",
    Scenario.GENERATE: "a prompt and the tokens after it, with growing past: time to first token, tokens per second",
    Scenario.SCALING: "each contender with several threads against itself with one",
    Scenario.SPECIALISED: "each contender with dynamic shapes against itself with the shapes fixed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How long a case is measured.

    The minimum is `rounds` rounds, `min_iterations` iterations, `min_time_s` seconds and `min_runs` timed runs of each session,
    however long they take. With `until_sure` the case goes on until every comparison is settled, or until `max_time_s` or
    `max_iterations` is reached. With `may_cut`, which `--max-time` sets, the time limit may end the case before the minimum, but
    not before the iterations that a verdict needs; such a row is marked and not published.

    In each iteration every session runs at least once untimed, which brings its own weights back into the caches, and then
    `runs_per_iteration` times timed, or more often when runs are short. Each round begins with new sessions, because the
    addresses that memory gets make equal sessions differ by up to 6 %.
    """

    rounds: int
    warmups: int
    min_iterations: int = field(metadata={KEY: "min_turns"})
    runs_per_iteration: int = field(metadata={KEY: "runs_per_turn"})
    min_time_s: float
    max_time_s: float
    max_iterations: int = field(default=3000, metadata={KEY: "max_turns"})
    min_runs: int = 0
    until_sure: bool = True
    may_cut: bool = False
    creations: int = 1  # warm session creations; their median counts

    def for_sessions(self, count: int) -> Budget:
        """The time limit is meant for two sessions; more sessions take longer for as many iterations."""
        return replace(self, max_time_s=self.max_time_s * max(count, 2) / 2)


# What a percentile takes: with n = 100 one sample lies above p99.
MIN_N_P90, MIN_N_P95, MIN_N_P99, MIN_N_P999 = 10, 20, 100, 1000

FULL = Budget(
    rounds=8,
    warmups=2,
    min_iterations=48,
    runs_per_iteration=2,
    min_time_s=10.0,
    max_time_s=300.0,
    min_runs=MIN_N_P99,
    creations=3,
)
QUICK = Budget(
    rounds=4,
    warmups=1,
    min_iterations=12,
    runs_per_iteration=2,
    min_time_s=3.0,
    max_time_s=12.0,  # for the searches of `server`; other scenarios end with their minimum
    min_runs=MIN_N_P99,
    until_sure=False,
)
MULTI_STREAM_BATCH = 8  # MLPerf's samples per query
NEW_TOKENS, QUICK_NEW_TOKENS = 32, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model at one shape with one number of threads in one scenario. `model` names a zoo entry, unless `module` or `file` is
    set; then `shapes` fixes the dynamic dims of its inputs, of which `batch` multiplies the first. In `OFFLINE`
    and `SERVER`, `threads` counts the Run calls."""

    model: str
    scenario: Scenario = Scenario.SINGLE_STREAM
    family: str = ""
    batch: int = 1
    seq: int | None = None
    threads: int = 1
    seed: int = 0
    max_err: float = DEFAULT_MAX_ERR
    float_model: str = ""  # the zoo's, that a quantised one was made from
    file: str = ""
    module: str = ""  # a row of `architectures` that PyTorch itself runs; `file` is its export, empty where there is none
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    feeds: str = ""  # a file of `own_feeds` with inputs of the caller's, of which `shapes` has the shapes
    p99_bound_ms: float | None = None  # of a server; None is five runs of the CPU provider
    new_tokens: int = 0  # that a loop makes of its prompt
    memory: bool = False  # measured too, in processes of their own

    @property
    def shape(self) -> str:
        parts = [f"{name}={'x'.join(map(str, dims))}" for name, dims in self.shapes.items()]
        if not self.shapes or self.batch > 1:
            parts.append(f"b{self.batch}")
        if self.seq is not None:
            parts.append(f"s{self.seq}")
        return " ".join(parts)

    @property
    def label(self) -> str:
        return case_label(self.model, self.shape, self.threads, self.scenario)


def case_label(model: str, shape: str, threads: int, scenario: Scenario) -> str:
    """Of a case before and after it was measured."""
    what = "" if scenario is Scenario.SINGLE_STREAM else f" {scenario}"
    return f"{model} {shape} t{threads}{what}".replace("  ", " ")


class Target(StrEnum):
    """What a run is about; a report reads runs of its own kind."""

    ZOO = "zoo"
    WIDE = "wide"  # the zoo at the sizes that people serve
    QUANTISED = "quantised"  # the quantised models of the zoo
    MODEL = "model"
    MICRO = "micro"
    ARCHITECTURES = "architectures"
    TORCH = "torch"  # modules of PyTorch, eager and compiled


PUBLISHED = (
    Target.ZOO,
    Target.WIDE,
    Target.QUANTISED,
    Target.ARCHITECTURES,
    Target.TORCH,
)  # whose tables are in documents, by the rules of `publish`


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    target: Target
    cases: tuple[Case, ...]
    contenders: tuple[Contender, ...]
    budget: Budget
    quick: bool
    within_s: float | None = None  # for all cases together; what does not fit is left out


def zoo_cases(
    names: Sequence[str],
    threads: Sequence[int],
    batches: Sequence[int] = (1,),
    seqs: Sequence[int] = (),
    scenarios: Sequence[Scenario] = (Scenario.SINGLE_STREAM,),
    *,
    quick: bool,
    new_tokens: int | None = None,
) -> tuple[Case, ...]:
    """Full-size models unless named. Without `seqs` each model's own lengths, with `quick` the first. One that generates is
    measured generating, and otherwise only when it is named."""
    models: list[ZooModel] = [zoo[name] for name in names] or [model for model in zoo if not model.tiny]
    cases: list[Case] = []
    for model in models:
        fitting = [s for s in scenarios if (model.generates if s is Scenario.GENERATE else names or not model.generates)]
        lengths: Sequence[int | None] = [None]
        if model.seqs:
            lengths = list(seqs) or list(model.seqs[:1] if quick else model.seqs)
        for seq in lengths:
            cases += expand(_zoo_case(model, seq), threads, batches, fitting)
    if not cases:
        able = ", ".join(model.name for model in zoo if model.generates)
        raise BenchError(f"--scenario generate: {names[0]} does not generate. there are {able}")
    tokens = new_tokens or (QUICK_NEW_TOKENS if quick else NEW_TOKENS)
    return tuple(replace(c, new_tokens=tokens) if c.scenario is Scenario.GENERATE else c for c in cases)


def quantised_models(names: Sequence[str]) -> list[str]:
    """Those of the zoo that were made from a float model, or ``names``, which must be."""
    if others := [name for name in names if zoo[name].float_model is None]:
        able = ", ".join(model.name for model in zoo if model.float_model)
        raise BenchError(f"--quantised: {others[0]} is no quantised model. there are {able}")
    return list(names) or [model.name for model in zoo if model.float_model and not model.tiny]


def wide_cases(names: Sequence[str], threads: Sequence[int]) -> tuple[Case, ...]:
    """Each model at the sizes that people serve it at, by its row in the zoo."""
    models: list[ZooModel] = [zoo[name] for name in names] or [model for model in zoo if not model.tiny]
    if none := [model.name for model in models if names and not model.served]:
        able = ", ".join(model.name for model in zoo if model.served)
        raise BenchError(f"--wide: no sizes are known that {none[0]} is served at. there are {able}")
    return tuple(
        case
        for model in models
        for size in model.served
        for case in expand(_zoo_case(model, size.seq), threads, (size.batch,), (Scenario.SINGLE_STREAM,))
    )


def _zoo_case(model: ZooModel, seq: int | None) -> Case:
    return Case(
        model=model.name,
        family=model.family.value,
        seq=seq,
        seed=model.seed,
        max_err=model.max_err,
        float_model=model.float_model.name if model.float_model else "",
    )


def file_cases(
    file: Path,
    shapes: Sequence[str],
    threads: Sequence[int],
    batches: Sequence[int] = (1,),
    scenarios: Sequence[Scenario] = (Scenario.SINGLE_STREAM,),
    *,
    seed: int,
    max_err: float,
) -> tuple[Case, ...]:
    if file.is_dir():
        raise BenchError(f"{file}: a folder. give the model's file in it")
    if not file.is_file():
        raise BenchError(f"{file}: no such file")
    fitting = [scenario for scenario in scenarios if scenario is not Scenario.GENERATE]
    if not fitting:
        raise BenchError("--scenario generate: only models of the zoo, whose past and present are known. try `bench run zoo`")
    parsed: dict[str, tuple[int, ...]] = {}
    for name, shape in map(parse_shape, shapes):
        if parsed.setdefault(name, shape) != shape:
            raise BenchError(f"--shape {name}: given twice. give one of them")
    case = Case(model=file.name, seed=seed, max_err=max_err, file=str(file.resolve()), shapes=parsed)
    return tuple(expand(case, threads, batches, fitting))


def expand(case: Case, threads: Sequence[int], batches: Sequence[int], scenarios: Sequence[Scenario]) -> Iterator[Case]:
    """The case in every scenario with every batch and every thread count that means something there."""
    for scenario in scenarios:
        several = scenario in (Scenario.SCALING, Scenario.OFFLINE)
        counts = [count for count in threads if count > 1] or [2] if several else threads
        sizes = batches
        if scenario is Scenario.MULTI_STREAM:
            sizes = [batch for batch in batches if batch > 1] or [MULTI_STREAM_BATCH]
        for batch in sizes:
            for i, count in enumerate(counts):
                # Memory hardly depends on the threads, and measuring it takes a process for each contender.
                memory = scenario is Scenario.SINGLE_STREAM and i == 0
                yield replace(case, scenario=scenario, batch=batch, threads=count, memory=memory)


def with_bound(cases: Sequence[Case], p99_bound_ms: float | None) -> tuple[Case, ...]:
    if p99_bound_ms is not None and p99_bound_ms <= 0:
        raise BenchError(f"--p99-bound {p99_bound_ms:g}: not a time. give milliseconds above 0")
    return tuple(replace(case, p99_bound_ms=p99_bound_ms) for case in cases)


def budget_of(*, quick: bool, min_time_s: float | None, max_time_s: float | None) -> Budget:
    """As the options of a command say. A time limit that is given may cut a case short."""
    budget = QUICK if quick else FULL
    budget = replace(budget, min_time_s=budget.min_time_s if min_time_s is None else min_time_s)
    return budget if max_time_s is None else replace(budget, max_time_s=max_time_s, may_cut=True)


def parse_scenarios(text: str) -> tuple[Scenario, ...]:
    """
    >>> parse_scenarios("scaling,offline")
    (<Scenario.SCALING: 'scaling'>, <Scenario.OFFLINE: 'offline'>)
    """
    known = [scenario.value for scenario in Scenario]
    names = known if text == "all" else [part.strip() for part in text.split(",")]
    if wrong := [name for name in names if name not in known]:
        raise BenchError(f"--scenario '{wrong[0]}': no such scenario. there are {', '.join(known)}, and all")
    return tuple(Scenario(name) for name in dict.fromkeys(names))


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """
    >>> parse_shape("input_ids=1x128")
    ('input_ids', (1, 128))
    """
    if re.search(r"=[\dx]*,", text):
        each = " ".join(f"--shape {shape.strip()}" for shape in text.split(","))
        raise BenchError(f"shape '{text}': one input at a time. give {each}")
    name, equals, dims = text.rpartition("=")
    parts = dims.split("x") if dims else []
    if not equals or not name or not all(part.isdecimal() for part in parts):
        raise BenchError(f"shape '{text}': not NAME=1x128. a scalar is written NAME=")
    return name, tuple(int(part) for part in parts)


def parse_counts(text: str, what: str) -> tuple[int, ...]:
    """
    >>> parse_counts("1,2", "threads")
    (1, 2)
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise BenchError(f"{what} '{text}': not a list of positive numbers. write 1 or 1,2")
    return tuple(dict.fromkeys(int(part) for part in parts))
