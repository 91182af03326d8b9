"""Why each kernel is the one that it is: what was predicted, what it took, who chose it, and what would have been chosen next."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_bench.results import CaseResult, Choice, Inside, KernelTime, Run
from xyntra_reports._kernels import Group, Roofs, groups, likeness, microseconds, profiled, roofs_for
from xyntra_reports._markdown import plain, table
from xyntra_reports.registry import Part, Section

HEADER = (
    "kernel",
    "variant",
    "configuration",
    "chosen by",
    "runner-up",
    "its estimate µs",
    "predicted µs",
    "measured µs",
    "measured / predicted",
    "% of roof",
)
ROWS = 24
MATTERS = 0.01  # of the time of all kernels; what takes less is in the table, and not in the summary
ALONE = "nothing else admits it"
HOW_TO_READ = (
    "Predicted is the estimate that the variant was chosen by, for all calls of a run. Estimates are for one core and for usual "
    "sizes. They are scaled to the sizes of the run as the plan's own cost formulas are, and divided by the threads that share "
    "the kernel: as many as the session has, at most one for each part that the work is cut into. So predicted assumes that "
    "threads share perfectly, and measured has what sharing costs. On a device the estimate is for all of it. Where tuning "
    "chose, predicted is the estimate of what would be chosen without it, divided by how much faster tuning found its choice to "
    "be. The runner-up is the variant that would have been chosen next, with its estimate in the same terms. % of roof is the "
    "least time that the kernel could need over the time it took."
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Kernels that are alike, in their choice, too. ``choice`` has the sum of their predictions."""

    group: Group
    choice: Choice

    @property
    def ratio(self) -> float | None:
        """Measured over predicted: above 1 they took longer. None where nothing was predicted."""
        return self.group.ns / self.choice.predicted_ns if self.choice.predicted_ns and self.group.ns else None


def chosen(inside: Inside, roofs: Roofs | None) -> list[Chosen]:
    """Of the kernels whose choice is recorded, the hottest first."""
    alike: dict[object, list[tuple[KernelTime, Choice]]] = {}
    for kernel in inside.kernels:
        if (choice := kernel.choice) is not None:
            key = (likeness(kernel), tuple(choice.config.items()), choice.tuned, choice.runner_up)
            alike.setdefault(key, []).append((kernel, choice))
    found = []
    for members in alike.values():
        (group,) = groups(dataclasses.replace(inside, kernels=tuple(kernel for kernel, _ in members)), roofs)
        predicted_ns, runner_up_ns = (sum(ns) for ns in zip(*((c.predicted_ns, c.runner_up_ns) for _, c in members), strict=True))
        choice = dataclasses.replace(members[0][1], predicted_ns=predicted_ns, runner_up_ns=runner_up_ns)
        found.append(Chosen(group, choice))
    return sorted(found, key=lambda c: -c.group.ns)


def choices_table(found: Sequence[Chosen], rows: int = ROWS) -> str:
    """The hottest kernels; the last row has the others together."""
    lines = [_row(c) for c in found[:rows]]
    if rest := found[rows:]:
        count, predicted_ns = sum(c.group.count for c in rest), sum(c.choice.predicted_ns for c in rest)
        lines.append([f"{count} more", *["-"] * 5, *_times(predicted_ns, sum(c.group.ns for c in rest)), "-"])
    return table(HEADER, lines, left=5)


def _row(c: Chosen) -> list[str]:
    return [
        c.group.name,
        c.group.variant,
        " ".join(f"{name}={value}" for name, value in c.choice.config.items()) or "-",
        "tuning" if c.choice.tuned else "estimate",
        c.choice.runner_up or ALONE,
        microseconds(c.choice.runner_up_ns) if c.choice.runner_up else "-",
        *_times(c.choice.predicted_ns, c.group.ns),
        "-" if c.group.of_roof is None else f"{c.group.of_roof:.0%}",
    ]


def _times(predicted_ns: int, ns: int) -> list[str]:
    """
    >>> _times(4_000, 5_000), _times(0, 5_000)
    (['4.00', '5.00', '1.25'], ['-', '5.00', '-'])
    """
    if not predicted_ns:
        return ["-", microseconds(ns), "-"]
    return [microseconds(predicted_ns), microseconds(ns), f"{ns / predicted_ns:.2f}"]


def summary(found: Sequence[Chosen]) -> str:
    """What the table comes to: how far predictions are off, and how much of the time measurements chose."""
    whole_ns = sum(c.group.ns for c in found)
    tuned_ns = sum(c.group.ns for c in found if c.choice.tuned)
    texts = []
    told = [(c, ratio) for c in found if (ratio := c.ratio) is not None]
    if counted := [(c, ratio) for c, ratio in told if c.group.ns >= MATTERS * whole_ns] or told:
        logs = [math.log(ratio) for _, ratio in counted]
        mean, spread = math.exp(sum(logs) / len(logs)), math.exp(sum(map(abs, logs)) / len(logs))
        worst, ratio = max(counted, key=lambda row: abs(math.log(row[1])))
        texts += [
            f"{_kernels(len(counted))} of {MATTERS:.0%} of the time or more took {mean:.2f} times as long as predicted, by "
            f"geometric mean, and the typical prediction is off by a factor of {spread:.2f}.",
            f"The furthest off is {plain(worst.group.name)} by {worst.group.variant}: {ratio:.2f} times as long as predicted.",
        ]
    share = tuned_ns / max(whole_ns, 1)
    texts.append(f"Measurement (tuning) chose kernels of {share:.0%} of the time, estimates those of the rest.")
    return " ".join(texts)


def _kernels(count: int) -> str:
    return "One kernel" if count == 1 else f"{count} kernels"


def part(run: Run, case: CaseResult) -> Section | None:
    texts = []
    for m, inside in profiled(case):
        if found := chosen(inside, roofs_for(run, case.threads, inside.device)):
            texts += [f"**{m.label}**", choices_table(found), summary(found)]
    return Section(text="\n\n".join([*texts, HOW_TO_READ])) if texts else None


PARTS = [Part(name="choices", title="Choices", order=32, render=part)]
