"""The child process of one case: `python -m xyntra_bench.worker JOB RESULT`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from xyntra_bench.codec import decode, encode
from xyntra_bench.contenders import Contender
from xyntra_bench.measure import measure
from xyntra_bench.plan import Budget, Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    case: Case
    contenders: tuple[Contender, ...]
    budget: Budget
    quick: bool


def main(job_file: Path, result_file: Path) -> None:
    job = decode(Job, json.loads(job_file.read_text()))
    result = measure(job.case, job.contenders, job.budget, job_file.parent, quick=job.quick)
    result_file.write_text(json.dumps(encode(result)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
