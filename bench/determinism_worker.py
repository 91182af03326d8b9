"""The child process that hashes a contender's outputs: `python -m xyntra_bench.determinism_worker JOB RESULT`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xyntra_bench.codec import decode, encode
from xyntra_bench.determinism import Hashes
from xyntra_bench.feeds import case_feeds, case_path
from xyntra_bench.ort_sessions import plain_session
from xyntra_bench.plan import Case
from xyntra_bench.sessions import factory_for, make_available
from xyntra_bench.setups import Setup

DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HashJob:
    case: Case
    setup: Setup
    seeds: tuple[int, ...]
    runs: int
    process: int
    cache_dir: str


def main(job_file: Path, result_file: Path) -> None:
    job = decode(HashJob, json.loads(job_file.read_text()))
    result_file.write_text(json.dumps(encode(hash_outputs(job))))


def hash_outputs(job: HashJob) -> tuple[Hashes, ...]:
    """The seeds in turn, so that a run follows one of other inputs."""
    make_available(job.setup.contender.provider)
    path = case_path(job.case)
    asked = plain_session(path)
    inputs, names = asked.get_inputs(), [output.name for output in asked.get_outputs()]
    feeds = {seed: case_feeds(dataclasses.replace(job.case, seed=seed), inputs) for seed in job.seeds}
    del asked
    session, _ = factory_for(path, job.setup, Path(job.cache_dir)).create()
    found: dict[int, list[str]] = {seed: [] for seed in job.seeds}
    for _ in range(job.runs):
        for seed in job.seeds:
            found[seed].append(digest(names, session.outputs(feeds[seed], names)))
    return tuple(Hashes(process=job.process, seed=seed, runs=tuple(found[seed])) for seed in job.seeds)


def digest(names: Sequence[str], outputs: Sequence[npt.NDArray[Any]]) -> str:
    """Of names, types, shapes and bits; -0.0 is another than 0.0."""
    hashed = hashlib.sha256()
    for name, output in zip(names, outputs, strict=True):
        hashed.update(f"{name} {output.dtype.str} {output.shape}".encode())
        # The elements of strings are pointers.
        hashed.update(repr(output.tolist()).encode() if output.dtype.hasobject else np.ascontiguousarray(output).tobytes())
    return hashed.hexdigest()[:DIGITS]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
