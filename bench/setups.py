"""Which sessions a case measures and which are compared, by scenario. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xyntra_bench.contenders import BASELINE, EAGER, INDUCTOR, PEERS, XYNTRA, Contender
from xyntra_bench.plan import Case, Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a session is made and called: a contender with its threads, its form of shapes and its concurrent calls.

    `streams` is the number of concurrent Run calls, each on a thread of its own; with 0 the measuring thread calls.
    `against` is the label of the setup whose time is divided by this one's, empty for none; `peers` are the labels of
    other setups that are worth a ratio too.
    """

    label: str
    contender: Contender
    threads: int
    specialised: bool = False
    streams: int = 0
    against: str = ""
    peers: tuple[str, ...] = ()


def reference_of(case: Case) -> str:
    """Whose outputs and times all others are held against: of a module of PyTorch's that module as it is."""
    return EAGER if case.module else BASELINE


def setups_of(case: Case, contenders: Sequence[Contender]) -> tuple[Setup, ...]:
    """The first is that of `reference_of`."""
    baseline = Contender(provider=reference_of(case))
    everyone = [baseline, *(c for c in contenders if c != baseline)]
    match case.scenario:
        case Scenario.SINGLE_STREAM | Scenario.MULTI_STREAM | Scenario.GENERATE:
            return _against_baseline(contenders, Setup(label=baseline.label, contender=baseline, threads=case.threads))
        case Scenario.SERVER:
            return _against_baseline(contenders, Setup(label=BASELINE, contender=baseline, threads=1, streams=case.threads))
        case Scenario.OFFLINE:
            return _offline(everyone, case.threads)
        case Scenario.SCALING | Scenario.SPECIALISED:
            return tuple(setup for contender in everyone for setup in _against_itself(case, contender))


def _against_baseline(contenders: Sequence[Contender], reference: Setup) -> tuple[Setup, ...]:
    setups = [replace(reference, label=c.label, contender=c, against=reference.label) for c in contenders]
    return _distinct([reference, *(replace(setup, peers=tuple(_peers(setup, setups))) for setup in setups)])


def _offline(everyone: Sequence[Contender], calls: int) -> tuple[Setup, ...]:
    """With `calls` at a time against the CPU provider with as many, and beside it against itself with one."""
    one = [Setup(label=f"{c.label} x1", contender=c, threads=1, streams=1) for c in everyone]
    several = [Setup(label=f"{c.label} x{calls}", contender=c, threads=1, streams=calls) for c in everyone]
    reference = several[0].label
    setups = []
    for alone, setup in zip(one, several, strict=True):
        against = "" if setup.label == reference else reference
        setups += [replace(setup, against=against, peers=(alone.label, *_peers(setup, several))), alone]
    return tuple(setups)


def _against_itself(case: Case, contender: Contender) -> Iterator[Setup]:
    name, n = contender.label, case.threads
    if case.scenario is Scenario.SCALING:
        yield Setup(label=f"{name} t1", contender=contender, threads=1)
        yield Setup(label=f"{name} t{n}", contender=contender, threads=n, against=f"{name} t1")
    else:
        theirs, theirs_fixed = ((BASELINE,), (f"{BASELINE} fixed",)) if contender.provider != BASELINE else ((), ())
        yield Setup(label=name, contender=contender, threads=n, peers=theirs)
        yield Setup(label=f"{name} fixed", contender=contender, threads=n, specialised=True, against=name, peers=theirs_fixed)


def _peers(setup: Setup, setups: Sequence[Setup]) -> Iterator[str]:
    """Other runtimes in the same precision. Those of our backend of torch.compile are what users of PyTorch have beside it."""
    peers = (INDUCTOR, BASELINE) if setup.contender.provider == XYNTRA else PEERS
    for other in setups:
        same_precision = other.contender.precision == setup.contender.precision
        if same_precision and other.contender.provider in peers and other.contender.provider != setup.contender.provider:
            yield other.label


def _distinct(setups: Sequence[Setup]) -> tuple[Setup, ...]:
    """The CPU provider against itself: the second of the name is told apart."""
    seen: set[str] = set()
    named = []
    for setup in setups:
        named.append(replace(setup, label=f"{setup.label} again") if setup.label in seen else setup)
        seen.add(setup.label)
    return tuple(named)
