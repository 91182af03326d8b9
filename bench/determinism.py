"""Are outputs bitwise equal, run after run? What was hashed, and the verdict. Pure.

Within one configuration (model, shape, contender with options, threads) bitwise equality is expected over runs, sessions and
processes. Over thread counts it is not, because sums may be divided differently; whether they are equal is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from xyntra_bench.environment import Environment
from xyntra_bench.results import Status

SCHEMA = "xyntra-determinism/3"


class Bits(StrEnum):
    EQUAL = "equal"
    DIFFER = "differ"
    SEED_IGNORED = "seed ignored"  # other inputs, the same outputs: equality proves nothing
    NO_DATA = "no data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hashes:
    """Of all outputs together, of each run in a process with a session of its own."""

    process: int
    seed: int
    runs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    model: str
    shape: str
    contender: str
    threads: int
    status: Status
    error: str = ""
    hashes: tuple[Hashes, ...] = ()

    @property
    def bits(self) -> Bits:
        if self.status is not Status.OK or not self.hashes:
            return Bits.NO_DATA
        found = self.by_seed
        if any(len(values) > 1 for values in found.values()):
            return Bits.DIFFER
        if len(found) > 1 and len(set().union(*found.values())) < len(found):
            return Bits.SEED_IGNORED
        return Bits.EQUAL

    @property
    def by_seed(self) -> Mapping[int, frozenset[str]]:
        seeds = dict.fromkeys(hashes.seed for hashes in self.hashes)
        return {seed: frozenset(h for hashes in self.hashes if hashes.seed == seed for h in hashes.runs) for seed in seeds}

    @property
    def first_difference(self) -> str:
        """Where the first hash that is not that of the seed's first run was found."""
        first: dict[int, str] = {}
        for hashes in self.hashes:
            for run, value in enumerate(hashes.runs):
                if first.setdefault(hashes.seed, value) != value:
                    return f"seed {hashes.seed}, process {hashes.process}, run {run}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Determinism:
    """One stored file."""

    schema: str = SCHEMA
    command: str = ""
    started: str = ""
    finished: str = ""
    environment: Environment
    seeds: tuple[int, ...]
    runs: int
    processes: int
    configurations: tuple[Configuration, ...] = field(default=())

    @property
    def good(self) -> bool:
        """Equal within every configuration."""
        return bool(self.configurations) and all(c.bits is Bits.EQUAL for c in self.configurations)


def over_threads(configuration: Configuration, everyone: Sequence[Configuration]) -> str:
    """Against the same contender with the fewest threads: `equal`, `differ`, or which configuration it is itself."""
    same = [
        c
        for c in everyone
        if (c.model, c.shape, c.contender) == (configuration.model, configuration.shape, configuration.contender) and c.hashes
    ]
    if not configuration.hashes or len(same) < 2:
        return "-"
    fewest = min(same, key=lambda c: c.threads)
    if fewest is configuration:
        return "reference"
    return f"{'equal to' if fewest.by_seed == configuration.by_seed else 'differs from'} {fewest.threads}"
