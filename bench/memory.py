"""Resident memory of one contender: `python -m xyntra_bench.memory JOB RESULT`, a process in which nothing else happens."""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

from xyntra_bench.codec import decode, encode
from xyntra_bench.feeds import load_feeds
from xyntra_bench.results import Memory
from xyntra_bench.sessions import factory_for, make_available
from xyntra_bench.setups import Setup

STATUS = Path("/proc/self/status")
RUNS = 5  # after the first; arenas have grown to their size by then


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryJob:
    setup: Setup
    model: str
    feeds: str
    cache_dir: str  # filled by the sessions that were timed


def main(job_file: Path, result_file: Path) -> None:
    job = decode(MemoryJob, json.loads(job_file.read_text()))
    result_file.write_text(json.dumps(encode(measure_memory(job))))


def measure_memory(job: MemoryJob) -> Memory:
    make_available(job.setup.contender.provider)
    feeds = load_feeds(Path(job.feeds))
    loaded = rss_bytes()
    session, _ = factory_for(Path(job.model), job.setup, Path(job.cache_dir)).create()
    created = rss_bytes()
    for _ in range(1 + RUNS):
        session.run(feeds)
    return Memory(
        loaded_bytes=loaded,
        created_bytes=created,
        steady_bytes=rss_bytes(),
        pss_bytes=_kibibytes(Path("/proc/self/smaps_rollup"), "Pss"),
        peak_bytes=peak_rss_bytes(),
    )


def rss_bytes() -> int:
    return _kibibytes(STATUS, "VmRSS") or peak_rss_bytes()


def peak_rss_bytes() -> int:
    """Of this program: getrusage's figure outlives exec, so a child would inherit that of its parent."""
    if own := _kibibytes(STATUS, "VmHWM"):
        return own
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _kibibytes(file: Path, field: str) -> int | None:
    """In bytes; None where the system does not tell."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return None
    values = [line.split()[1] for line in lines if line.startswith(f"{field}:")]
    return int(values[0]) * 1024 if values else None


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
