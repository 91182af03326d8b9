"""The contenders of a run beside their peers, each pair with its interval: what `bench run torch` is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from xyntra_bench.results import CaseResult, Measurement, Ratio, Run, Verdict
from xyntra_bench.show import STYLES, SURE, mean_of
from xyntra_bench.text_table import show_table
from xyntra_bench.verdicts import judge

GOAL = 1.10  # of xyntra over inductor: what is told, and no gate
COLUMNS = ("model", "shape", "thr", "contender", "beside", "ratio [95 %]", "n", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """`ratio` is the time of `other`, by its label, over that of `m`: above 1 `m` is faster. There is none where one of them
    failed or was wrong."""

    case: CaseResult
    m: Measurement
    other: str
    ratio: Ratio | None

    @property
    def verdict(self) -> Verdict:
        return judge(self.ratio)


def pairs_of(run: Run) -> Iterator[Pair]:
    """Of those that have peers: first beside what all are compared with, then beside each peer that was measured."""
    beside = {(m.label, peer) for case in run.cases for m in case.contenders for peer in m.peers}
    for case in run.cases:
        for m in case.contenders:
            others = [other for label, other in sorted(beside) if label == m.label]
            for other in (m.against, *others) if others else ():
                yield Pair(case=case, m=m, other=other, ratio=m.ratio if other == m.against else m.peers.get(other))


def show_beside(console: Console, run: Run) -> None:
    pairs = list(pairs_of(run))
    if not pairs:
        return
    show_table(console, COLUMNS, [(_cells(pair), STYLES.get(pair.verdict, "")) for pair in pairs])
    for line in told(run):
        console.print(Text(line), soft_wrap=True)


def told(run: Run) -> Iterator[str]:
    """A line for each contender and peer: how its cases ended, the mean of those that are sure, how many reach the goal."""
    by_names: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs_of(run):
        by_names.setdefault((pair.m.label, pair.other), []).append(pair)
    for (label, other), pairs in by_names.items():
        ended = Counter(pair.verdict for pair in pairs)
        counts = ", ".join(f"{how} in {ended[how]}" for how in (*SURE, Verdict.UNSURE, Verdict.NO_DATA) if ended[how])
        sure = [pair.ratio.middle for pair in pairs if pair.ratio and pair.verdict in SURE]
        reached = sum(pair.ratio is not None and pair.ratio.middle >= GOAL for pair in pairs)
        yield f"{label} beside {other}: {counts}; {mean_of(sure)}; at least {GOAL:.1f}x in {reached} of {len(pairs)}"


def _cells(pair: Pair) -> list[str]:
    head = [pair.case.model, pair.case.shape, str(pair.m.threads), pair.m.label, pair.other]
    ratio = pair.ratio
    if ratio is None:
        return [*head, "-", "-", str(pair.verdict)]
    return [*head, f"{ratio.middle:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]", str(ratio.pairs), str(pair.verdict)]
