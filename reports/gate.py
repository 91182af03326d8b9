"""Does a run hold its floors? For a build server, where times differ from machine to machine and ratios hardly do. Pure.

Both floors are relative to what was measured in the same run: the CPU provider that took turns with the contender, and
the ceilings of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Measurement, Run
from xyntra_bench.show import AGAINST_THE_CPU
from xyntra_reports._kernels import groups, of_roof, roofs_for
from xyntra_reports._markdown import speed_up, table

HEADER = ("case", "provider", "what", "measured", "floor", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """`ratio`: of the CPU provider's time over the contender's; the whole interval below it is a failure. `roof`: of the
    least time that the machine could need for the kernels' work; 0 asks for none."""

    ratio: float
    roof: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One floor of one contender in one case. `measured` says why when there is nothing to hold against the floor."""

    case: str
    contender: str
    what: str
    measured: str
    floor: str
    held: bool


def check_floors(run: Run, provider: str, floors: Floors) -> tuple[Held, ...]:
    """Every contender of the provider in every case. What could not be measured, or is wrong, holds nothing."""
    return tuple(row for case in run.cases for row in _of_case(case, run, provider, floors))


def _of_case(case: CaseResult, run: Run, provider: str, floors: Floors) -> Iterator[Held]:
    if why := case.failure:
        yield Held(case=case.label, contender=provider, what="result", measured=why, floor="-", held=False)
        return
    for m in case.contenders:
        if m.provider != provider:
            continue
        if why := m.lacking:
            yield Held(case=case.label, contender=m.label, what="result", measured=why, floor="-", held=False)
            continue
        if case.scenario in AGAINST_THE_CPU and m.against:  # one call at a time stands beside several, compared with nothing
            yield _ratio(case, m, floors)
        if floors.roof and case.scenario is Scenario.SINGLE_STREAM:
            yield _roof(case, m, run, floors)


def _ratio(case: CaseResult, m: Measurement, floors: Floors) -> Held:
    return Held(
        case=case.label,
        contender=m.label,
        what="speed-up [95 %]",
        measured=speed_up(m.ratio) if m.ratio else "no ratio: too few iterations",
        floor=f"{floors.ratio:.2f}x",
        held=m.ratio is not None and m.ratio.high >= floors.ratio,
    )


def _roof(case: CaseResult, m: Measurement, run: Run, floors: Floors) -> Held:
    roofs = roofs_for(run, case.threads, m.inside.device if m.inside else "")
    found = of_roof(groups(m.inside, roofs)) if m.inside and m.inside.kernels and roofs else None
    return Held(
        case=case.label,
        contender=m.label,
        what="% of roof",
        measured="no profile or no ceilings" if found is None else f"{found:.0%}",
        floor=f"{floors.roof:.0%}",
        held=found is not None and found >= floors.roof,
    )


def gate_table(rows: tuple[Held, ...]) -> str:
    """Markdown, which a terminal and a build server's summary both show; what fails once more, at its end."""
    text = table(HEADER, ([r.case, r.contender, r.what, r.measured, r.floor, _verdict(r)] for r in rows), left=3)
    failing = [f"{r.case} {r.contender}: {r.what} {r.measured}, floor {r.floor}" for r in rows if not r.held]
    last = f"{len(rows) - len(failing)} of {len(rows)} floors hold"
    return "\n\n".join([text, *(f"FAILS: {line}" for line in failing), last])


def _verdict(row: Held) -> str:
    return "holds" if row.held else "FAILS"
