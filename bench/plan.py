"""What will be measured: cases (model, shape, threads) and contenders, decided before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import BenchError
from zoo import ZooModel, zoo

BASELINE = "CPUExecutionProvider"

# What a reduced precision may cost, relative to max|b|: 8 bits of mantissa through the depth of the zoo's
# models (4e-3 to 1e-2 measured with bf16), and quantised weights.
PRECISION_MAX_ERR = {"bf16": 2e-2, "fp16": 5e-3, "int8w": 5e-2}
DEFAULT_MAX_ERR = 2e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A provider with its options.

    >>> Contender.parse("XyntraEP:claim=all,precision=bf16").options
    {'claim': 'all', 'precision': 'bf16'}
    >>> Contender.parse("XyntraEP:claim=all").label
    'XyntraEP:claim=all'
    """

    provider: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, spec: str) -> Contender:
        provider, colon, rest = spec.partition(":")
        options = {}
        for part in rest.split(",") if colon else ():
            key, equals, value = part.partition("=")
            if not (key and equals):
                raise BenchError(f"provider '{spec}': '{part}' is not key=value. write NAME:key=value,key=value")
            options[key.strip()] = value.strip()
        if not provider:
            raise BenchError(f"provider '{spec}': the name is missing. write NAME:key=value,key=value")
        return cls(provider=provider, options=options)

    @property
    def label(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.provider}:{options}" if options else self.provider

    def max_err(self, fp32_max_err: float) -> float:
        return max(fp32_max_err, PRECISION_MAX_ERR.get(self.options.get("precision", "fp32"), 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a case stops: after `min_turns` and `min_time_s`, in any case after `max_time_s`.

    In each turn every session runs at least once untimed, which brings its own weights back into the caches,
    and then `runs_per_turn` times timed, or oftener when runs are short. The turns are spread over `rounds`;
    each begins with new sessions, because where memory falls makes equal sessions differ by up to 6 %.
    """

    rounds: int
    warmups: int
    min_turns: int
    runs_per_turn: int
    min_time_s: float
    max_time_s: float
    max_turns: int = 1000
    creations: int = 1  # warm session creations; their median counts


FULL = Budget(rounds=5, warmups=2, min_turns=50, runs_per_turn=2, min_time_s=10.0, max_time_s=150.0, creations=3)
QUICK = Budget(rounds=3, warmups=1, min_turns=12, runs_per_turn=2, min_time_s=3.0, max_time_s=20.0, max_turns=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A model at one shape with one number of threads. `model` names a zoo entry, unless `file` is set; then
    `shapes` fixes the dynamic dims of its inputs."""

    model: str
    family: str = ""
    batch: int = 1
    seq: int | None = None
    threads: int = 1
    seed: int = 0
    max_err: float = DEFAULT_MAX_ERR
    file: str = ""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def shape(self) -> str:
        if self.shapes:
            return " ".join(f"{name}={'x'.join(map(str, dims))}" for name, dims in self.shapes.items())
        return f"b{self.batch}" if self.seq is None else f"b{self.batch} s{self.seq}"

    @property
    def label(self) -> str:
        return f"{self.model} {self.shape} t{self.threads}".replace("  ", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    cases: tuple[Case, ...]
    contenders: tuple[Contender, ...]
    budget: Budget
    quick: bool


def zoo_cases(
    names: Sequence[str], threads: Sequence[int], batches: Sequence[int], seqs: Sequence[int], *, quick: bool
) -> tuple[Case, ...]:
    """Full-size models unless named. Without `seqs` each model's own lengths, with `quick` the first."""
    models: list[ZooModel] = [zoo[name] for name in names] or [model for model in zoo if not model.tiny]
    cases = []
    for model in models:
        lengths: Sequence[int | None] = [None]
        if model.seqs:
            lengths = list(seqs) or list(model.seqs[:1] if quick else model.seqs)
        cases += [
            Case(
                model=model.name,
                family=model.family.value,
                batch=batch,
                seq=seq,
                threads=count,
                seed=model.seed,
                max_err=model.max_err,
            )
            for batch in batches
            for seq in lengths
            for count in threads
        ]
    return tuple(cases)


def file_cases(file: Path, shapes: Sequence[str], threads: Sequence[int], *, seed: int, max_err: float) -> tuple[Case, ...]:
    if not file.is_file():
        raise BenchError(f"{file}: no such file")
    parsed = dict(parse_shape(shape) for shape in shapes)
    return tuple(
        Case(
            model=file.name,
            threads=count,
            seed=seed,
            max_err=max_err,
            file=str(file.resolve()),
            shapes=parsed,
        )
        for count in threads
    )


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """
    >>> parse_shape("input_ids=1x128")
    ('input_ids', (1, 128))
    """
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
