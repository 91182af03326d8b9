"""What a report file declares: `REPORTS`, one row per table of a document, and `PARTS`, one row per section of a case's page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xyntra_bench.contenders import is_on_device
from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import CaseResult, Run
from xyntra_bench.store import Stored
from xyntra_zoo.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`render` turns a stored run into Markdown; `source` is the name of the file it came from. `note` says how to read it.
    `pictures` stand above it in a document, as files beside, and `nothing` in its place where no run is stored that it could be
    about. With `by_isa` a document has a table for each class of processors; `across` has one text of all runs instead.
    Runs where XyntraEP had no compiler are for reports with `without_compiler` alone, and these for no others."""

    name: str
    title: str
    render: Callable[[Run, str], str]
    target: Target | None = Target.ZOO  # None: any
    on_device: bool = False  # whether it is about runs on a device, which say nothing of the CPU's speed; with a target
    scenario: Scenario = Scenario.SINGLE_STREAM  # a run without such cases has nothing to say here
    needs: Callable[[Run], bool] | None = None  # what else it has to hold
    pictures: Callable[[Run], tuple[Picture, ...]] | None = None
    nothing: str = ""
    note: str = ""
    by_isa: bool = False
    without_compiler: bool = False
    across: Callable[[Stored], str] | None = None

    def page(self, run: Run, source: str) -> str:
        """With its note."""
        return "\n".join(filter(None, (self.render(run, source), self.note)))

    def applies(self, run: Run) -> bool:
        fits = self.target is None or (
            run.target is self.target
            and on_device(run) is self.on_device
            and (self.on_device or (not run.environment.compiler) is self.without_compiler)
        )
        return fits and any(case.scenario is self.scenario for case in run.cases) and (self.needs is None or self.needs(run))


def on_device(run: Run) -> bool:
    """Whether XyntraEP ran on one, or was to."""
    return any(is_on_device(m.backend) for case in run.cases for m in case.contenders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A plot as a document of its own, and what one who cannot see it is told. `png`: for where SVG does not go."""

    name: str
    alt: str
    svg: str
    png: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Markdown, and pictures above it."""

    text: str = ""
    pictures: tuple[Picture, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section on the page of a model, for each of its cases. `render` returns None where it has nothing to say, as a part
    about a device has of a case that used none. Parts stand in the order of their numbers."""

    name: str
    title: str
    order: int
    render: Callable[[Run, CaseResult], Section | None]


reports: Registry[Report] = Registry("xyntra_reports", "REPORTS")
parts: Registry[Part] = Registry("xyntra_reports", "PARTS")
