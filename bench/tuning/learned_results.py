"""What `bench learn` stores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xyntra_bench.codec import CodecError, decode
from xyntra_bench.errors import BenchError
from xyntra_bench.store import read_json

SCHEMA = "xyntra-learned/1"
TOP = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Configurations in an order: its rank correlation (Spearman's) with their times; the best of the first `TOP`, and the first
    one, over the best of all."""

    correlation: float
    top: float
    first: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedKernel:
    """`estimate`: the ranking by which kernels are chosen untuned; the others are of models that were fitted without this kernel,
    or without runs of its instruction set. `needed`: the trials of a search's seeds to come near the best, as in a
    `KernelSearch`; `needed_seeded`: of one that begins with what the model ranks first, too."""

    name: str
    isa: str
    kind: str
    points: int
    estimate: Ranking
    unseen_shape: Ranking
    unseen_machine: Ranking | None
    needed: tuple[int, ...]
    needed_seeded: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRun:
    """One stored file. `sources`: the runs that were learned from, and the machines that these are of."""

    schema: str = SCHEMA
    command: str
    made: str
    sources: tuple[str, ...]
    machines: tuple[str, ...]
    better_for: tuple[str, ...]
    kernels: tuple[LearnedKernel, ...]


def load_learned_run(path: Path) -> LearnedRun:
    data = read_json(path)
    found = str(data.get("schema")) if isinstance(data, dict) else ""
    if found != SCHEMA:
        raise BenchError(f"{path}: schema {found!r}, this version reads {SCHEMA!r}. run `bench learn` again")
    try:
        return decode(LearnedRun, data)
    except CodecError as error:
        raise BenchError(f"{path}: {error}. the file is damaged or was edited") from None
