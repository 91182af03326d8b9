"""What `bench run tune` stores."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xyntra_bench.codec import CodecError, decode
from xyntra_bench.environment import Environment
from xyntra_bench.errors import BenchError
from xyntra_bench.store import read_json

SCHEMA = "xyntra-search/2"
KIND_GP, KIND_RANDOM = "Gaussian process", "random"
NEAR = 1.02  # times the best: what a search has to find


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSearch:
    """`points`: of the whole space, `failed` of them; `near`: so many are within `NEAR` of the best. `default_ratio`: what is
    chosen without tuning over the best. `curves`, by kind of search: the best so far over the best, the median over seeds, after
    each trial. `needed`: the trials that each seed took to come near; 0: it did not. `times`, by configuration: what it was
    estimated to take, in nanoseconds, and its time over the default's, unless it failed. `op` is as the tuning cache writes it,
    `flops` and `bytes` what it must at least do."""

    name: str
    op: str
    flops: int
    bytes: int
    points: int
    failed: int
    near: int
    default: str
    best: str
    default_ratio: float
    rank_correlation: float
    top5: float
    curves: Mapping[str, tuple[float, ...]]
    needed: Mapping[str, tuple[int, ...]]
    times: Mapping[str, tuple[float, ...]]

    def median_needed(self, kind: str) -> float:
        """Infinite where more than half of the seeds did not come near."""
        return statistics.median(n or float("inf") for n in self.needed[kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRun:
    """One stored file; `finished` stays empty when it was interrupted. `machine`: what kernels are chosen by there, as in
    `xyntra_ep/tracea/optimizer/cost_model.py`."""

    schema: str = SCHEMA
    command: str
    started: str
    finished: str = ""
    environment: Environment
    kernels_isa: str
    machine: Mapping[str, float]
    kernels: tuple[KernelSearch, ...] = ()


def load_search_run(path: Path) -> SearchRun:
    data = read_json(path)
    found = str(data.get("schema")) if isinstance(data, dict) else ""
    if found != SCHEMA:
        raise BenchError(f"{path}: schema {found!r}, this version reads {SCHEMA!r}. measure again")
    try:
        return decode(SearchRun, data)
    except CodecError as error:
        raise BenchError(f"{path}: {error}. the file is damaged or was edited") from None
