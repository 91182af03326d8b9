"""Compares two stored runs, for example of two revisions: did a contender become faster or slower? Pure.

Times of two runs are from different moments, perhaps from different machines. Each run measured its contenders interleaved with
the CPU provider, so the speed-ups over the CPU provider are compared: a ratio of ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xyntra_bench.results import CaseResult, Measurement, Ratio, Run, Status, Verdict
from xyntra_bench.verdicts import judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A contender in a case of both runs. `ratio` is new over old, above 1 is better; without one `why` says what is
    lacking, and `worse` whether it was there before."""

    case: str
    contender: str
    old: Ratio | None
    new: Ratio | None
    ratio: Ratio | None
    verdict: Verdict
    why: str = ""
    worse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`notes` say what differs between the runs beside the revision."""

    changes: tuple[Change, ...]
    mean: float | None  # geometric, over the cases that both runs measured
    notes: tuple[str, ...]

    @property
    def passing(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.ratio)

    @property
    def failing(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if not change.ratio)

    @property
    def slower(self) -> tuple[Change, ...]:
        """The worst first."""
        found = [change for change in self.passing if change.verdict is Verdict.SLOWER]
        return tuple(sorted(found, key=lambda change: change.ratio.middle if change.ratio else 0.0))

    @property
    def good(self) -> bool:
        return not self.slower and not any(change.worse for change in self.failing)


def compare_runs(old: Run, new: Run) -> Comparison:
    before, after = {case.label: case for case in old.cases}, {case.label: case for case in new.cases}
    changes = [
        change for label in dict.fromkeys((*after, *before)) for change in _changes(label, before.get(label), after.get(label))
    ]
    ratios = [change.ratio.middle for change in changes if change.ratio]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    return Comparison(changes=tuple(changes), mean=mean, notes=tuple(_notes(old, new)))


def _changes(label: str, old: CaseResult | None, new: CaseResult | None) -> Iterator[Change]:
    before = {m.label: m for m in _compared(old)}
    after = {m.label: m for m in _compared(new)}
    lost = new is not None and new.status is not Status.OK
    for name in dict.fromkeys((*after, *before)):
        a, b = before.get(name), after.get(name)
        why = new.failure if lost and new else _why(a, b)
        first, second = a.ratio if a else None, b.ratio if b else None
        ratio = ratio_of_ratios(first, second) if first and second and not why else None
        was_good = first is not None
        yield Change(
            case=label,
            contender=name,
            old=first,
            new=second,
            ratio=ratio,
            verdict=judge(ratio),
            why="" if ratio else why,
            worse=was_good and (lost or (b is not None and second is None)),
        )
    if lost and not before and new:
        yield Change(
            case=label,
            contender="",
            old=None,
            new=None,
            ratio=None,
            verdict=Verdict.NO_DATA,
            why=new.failure,
        )


def _compared(case: CaseResult | None) -> Sequence[Measurement]:
    return [m for m in case.measurements if m.against] if case else []


def _why(old: Measurement | None, new: Measurement | None) -> str:
    if old is None or new is None:
        return "only in the old run" if new is None else "only in the new run"
    for when, m in (("now", new), ("before", old)):
        if m.lacking:
            return f"{when} {m.lacking}"
        if m.ratio is None:
            return f"{when} without a ratio"
    return "" if old.backend == new.backend else f"backend {old.backend} before, now {new.backend}"


def ratio_of_ratios(old: Ratio, new: Ratio) -> Ratio:
    """New over old. The two are independent, so the distances of their bounds, as logarithms, add up as deviations do."""
    middle = math.log(new.middle / old.middle)
    down = math.hypot(math.log(new.middle / new.low), math.log(old.high / old.middle))
    up = math.hypot(math.log(new.high / new.middle), math.log(old.middle / old.low))
    return Ratio(
        middle=round(math.exp(middle), 4),
        low=round(math.exp(middle - down), 4),
        high=round(math.exp(middle + up), 4),
        pairs=min(old.pairs, new.pairs),
        rounds=min(old.rounds, new.rounds),
    )


def _notes(old: Run, new: Run) -> Iterator[str]:
    a, b = old.environment, new.environment
    if a.cpu != b.cpu:
        yield f"two machines: {a.cpu}, then {b.cpu}. measure both revisions on one"
    for name in ("onnxruntime", "openvino"):
        if a.packages.get(name) != b.packages.get(name):
            yield f"{name} {a.packages.get(name, 'not there')}, then {b.packages.get(name, 'not there')}"
    if a.cores_usable != b.cores_usable or a.quota_cores != b.quota_cores:
        yield "other cores or another quota"
    for name, run in (("old", old), ("new", new)):
        if run.quick:
            yield f"the {name} run is a quick one: small changes cannot be told"
        if not run.finished:
            yield f"the {name} run was interrupted: {len(run.cases)} of {run.planned} cases"
