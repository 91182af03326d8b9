"""Which stored runs a document shows: the newest of those that keep the rules of publishing. One that misses a rule is refused.

A run that was made before there were rules stands, with what it misses, until one made under them takes its place.
"""

from __future__ import annotations

from pathlib import Path

from xyntra_bench.environment import IsaClass
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import PUBLISHED
from xyntra_bench.publish import missed, refusal
from xyntra_bench.results import Run
from xyntra_bench.store import Stored
from xyntra_reports._markdown import plain
from xyntra_reports.registry import Report


def published(results: Stored, report: Report, isa: IsaClass | None = None) -> tuple[Path, Run] | None:
    """The run that a document shows of a report, of one class of processors or of any; None when there is none."""
    found = [
        (path, run)
        for path, run in results.runs.items()
        if (results.by_name or report.applies(run)) and isa in (None, run.environment.isa)
    ]
    under_rules = [(path, run) for path, run in found if run.rules]
    if not found:
        return None
    path, run = (under_rules or found)[-1]
    if run.rules and (misses := missed(run, report.scenario)):
        raise BenchError(f"{path.name}: not for publishing: {refusal(misses)}. take the file away to keep the tables as they are")
    return path, run


def heading(run: Run, level: int = 3) -> str:
    return f"{'#' * level} {run.environment.isa}: {plain(run.environment.cpu)}"


def standing(run: Run, report: Report) -> str:
    """What stands above the table of a run that misses rules; empty of others. A document has none of those that were made
    under them; a page of one run, as a build server keeps it, may."""
    if run.target not in PUBLISHED:  # a model of somebody's, single operators: nothing that a document shows
        return ""
    misses = missed(run, report.scenario)
    if run.rules:
        return f"**Not for publishing**: {plain(refusal(misses))}." if misses else ""
    return (
        f"**Made before tables had rules, on {run.started[:10]}; do not quote its numbers.** It breaks: "
        f"{'; '.join(plain(str(one)) for one in misses)}. A run on such a machine will replace it."
    )
