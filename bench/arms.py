"""The sessions of a case and who is compared with whom, by scenario. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bench.contenders import BASELINE, PEERS, Contender
from bench.plan import Case, Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One session that takes turns with the others.

    `streams` is how many Run calls go on at a time, each on a thread of its own; with 0 the measuring thread calls.
    `against` is the label of the arm whose time is divided by this one's, empty for none; `peers` those of others
    that are worth a ratio too.
    """

    label: str
    contender: Contender
    threads: int
    specialised: bool = False
    streams: int = 0
    against: str = ""
    peers: tuple[str, ...] = ()


def arms_of(case: Case, contenders: Sequence[Contender]) -> tuple[Arm, ...]:
    """The first is the CPU provider, whose outputs are the reference for all."""
    baseline = Contender(provider=BASELINE)
    everyone = [baseline, *(c for c in contenders if c != baseline)]
    match case.scenario:
        case Scenario.SINGLE_STREAM | Scenario.MULTI_STREAM | Scenario.GENERATE:
            return _against_baseline(contenders, Arm(label=BASELINE, contender=baseline, threads=case.threads))
        case Scenario.SERVER:
            return _against_baseline(contenders, Arm(label=BASELINE, contender=baseline, threads=1, streams=case.threads))
        case Scenario.OFFLINE:
            return _offline(everyone, case.threads)
        case Scenario.SCALING | Scenario.SPECIALISED:
            return tuple(arm for contender in everyone for arm in _against_itself(case, contender))


def _against_baseline(contenders: Sequence[Contender], reference: Arm) -> tuple[Arm, ...]:
    arms = [replace(reference, label=c.label, contender=c, against=reference.label) for c in contenders]
    return _distinct([reference, *(replace(arm, peers=tuple(_peers(arm, arms))) for arm in arms)])


def _offline(everyone: Sequence[Contender], calls: int) -> tuple[Arm, ...]:
    """With `calls` at a time against the CPU provider with as many, and beside it against itself with one."""
    one = [Arm(label=f"{c.label} x1", contender=c, threads=1, streams=1) for c in everyone]
    several = [Arm(label=f"{c.label} x{calls}", contender=c, threads=1, streams=calls) for c in everyone]
    reference = several[0].label
    arms = []
    for alone, arm in zip(one, several, strict=True):
        against = "" if arm.label == reference else reference
        arms += [replace(arm, against=against, peers=(alone.label, *_peers(arm, several))), alone]
    return tuple(arms)


def _against_itself(case: Case, contender: Contender) -> Iterator[Arm]:
    name, n = contender.label, case.threads
    if case.scenario is Scenario.SCALING:
        yield Arm(label=f"{name} t1", contender=contender, threads=1)
        yield Arm(label=f"{name} t{n}", contender=contender, threads=n, against=f"{name} t1")
    else:
        theirs, theirs_fixed = ((BASELINE,), (f"{BASELINE} fixed",)) if contender.provider != BASELINE else ((), ())
        yield Arm(label=name, contender=contender, threads=n, peers=theirs)
        yield Arm(label=f"{name} fixed", contender=contender, threads=n, specialised=True, against=name, peers=theirs_fixed)


def _peers(arm: Arm, arms: Sequence[Arm]) -> Iterator[str]:
    """Other runtimes in the same precision."""
    for other in arms:
        same_precision = other.contender.precision == arm.contender.precision
        if same_precision and other.contender.provider in PEERS and other.contender.provider != arm.contender.provider:
            yield other.label


def _distinct(arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """The CPU provider against itself: the second of the name is told apart."""
    seen: set[str] = set()
    named = []
    for arm in arms:
        named.append(replace(arm, label=f"{arm.label} again") if arm.label in seen else arm)
        seen.add(arm.label)
    return tuple(named)
