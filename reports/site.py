"""One static site of all reports: an overview, a page for each model, the tables, the pictures as files.

Needs no server and no network: what a page shows is in it or beside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from xyntra_bench.environment import Environment
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import CaseResult, Run
from xyntra_bench.show import mebibytes, summary
from xyntra_bench.store import Stored
from xyntra_reports import history, machine
from xyntra_reports._html import CSS, figure, from_markdown, page, section, slug
from xyntra_reports._markdown import plain, provenance, table
from xyntra_reports._published import standing
from xyntra_reports.history import Trend
from xyntra_reports.registry import Picture, Report, Section, parts, reports

FIGURES = "figures"
MODELS = "models"
NO_TABLE = ("roofline", "latency", "machine", "ratios", "scenarios")  # what they say is on other pages, or is other tables


def write_site(results: Stored, out: Path) -> list[Path]:
    """The pages, `index.html` first: of the newest runs, with earlier ones as their history."""
    latest, run = _main_run(results)
    earlier = {} if results.by_name else history.trends(list(results.runs.values()), run)
    site = _Site(out=out)
    models = list(dict.fromkeys(case.model for case in run.cases if case.scenario is Scenario.SINGLE_STREAM))
    if run.target is Target.MICRO:  # its table says all, and has a hundred points
        models = []
    for model in models:
        site.add_model(model, run, latest.name, earlier.get(model, ()))
    tables = {name: _run_for(reports[name], results) for name in reports.names() if name not in NO_TABLE}
    site.add_tables({name: found for name, found in tables.items() if found})
    site.add_index(run, latest.name, models, earlier)
    site.write("style.css", CSS)
    return [site.out / "index.html", *site.pages]


def _main_run(results: Stored) -> tuple[Path, Run]:
    """The newest of models, else of other sizes of theirs or of single operators; a run of other scenarios only has tables and no
    pages."""
    for wanted in (lambda run: _has_pages(run) and run.target in (Target.ZOO, Target.MODEL), _has_pages):
        try:
            return results.newest(wanted)
        except BenchError:
            continue
    return results.newest()


def _has_pages(run: Run) -> bool:
    return any(case.scenario is Scenario.SINGLE_STREAM for case in run.cases)


def _run_for(report: Report, results: Stored) -> tuple[Run, str] | None:
    """The newest run that the report has something to say about."""
    applying = [(run, path.name) for path, run in results.runs.items() if report.applies(run)]
    return applying[-1] if applying else None


@dataclasses.dataclass(slots=True)
class _Site:
    out: Path
    pages: list[Path] = dataclasses.field(default_factory=list)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.out / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise BenchError(f"{path}: cannot be written ({error.strerror}). name another folder with --html") from None
        return path

    def keep(self, pictures: Iterable[Picture]) -> None:
        for picture in pictures:
            name = f"{FIGURES}/{slug(picture.name)}"
            self.write(f"{name}.svg", picture.svg)
            if picture.png:
                self.write(f"{name}.png", picture.png)

    def add_model(self, model: str, run: Run, source: str, trends: Sequence[Trend]) -> None:
        body = [from_markdown(provenance(run, source))]
        cases = [case for case in run.cases if case.model == model and case.scenario is Scenario.SINGLE_STREAM]
        body.append(from_markdown(_main_table(dataclasses.replace(run, cases=tuple(cases)), source)))
        for number, case in enumerate(cases):
            body.append(self._case(case, run, number))
        if trends:
            by_case = {trend.case: [t for t in trends if t.case == trend.case] for trend in trends}
            pictures = tuple(history.picture(f"{model} {case}", found) for case, found in by_case.items())
            self.keep(pictures)
            content = Section(text=history.changes_table(trends), pictures=pictures)
            body.append(f"<h2>History</h2>{section('', content, 'history', f'../{FIGURES}')}")
        body.append(f"<h2>Environment</h2>{from_markdown(environment_table(run.environment))}")
        links = [("All models", "../index.html"), ("Tables", "../tables.html")]
        text = page(model, "\n".join(body), links=links, style="../style.css")
        self.pages.append(self.write(f"{MODELS}/{slug(model)}.html", text))

    def _case(self, case: CaseResult, run: Run, number: int) -> str:
        title = f"{case.shape}, {case.threads} thread{'s' if case.threads > 1 else ''}"
        text = [f"<h2>{from_markdown(title).removeprefix('<p>').removesuffix('</p>')}</h2>"]
        if case.error:
            text.append(from_markdown(f"{case.status}: {plain(case.error)}"))
        text += [from_markdown(f"**{m.label}** {m.status}: {plain(m.error)}") for m in case.measurements if m.error]
        for part in sorted(parts, key=lambda row: row.order):
            content = part.render(run, case)
            if content:
                self.keep(content.pictures)
                text.append(section(part.title, content, f"c{number}-{part.name}", f"../{FIGURES}"))
        return "\n".join(text)

    def add_tables(self, found: Mapping[str, tuple[Run, str]]) -> None:
        body = [f'<h2 id="{name}">{reports[name].title}</h2>{_rendered(name, *run)}' for name, run in found.items()]
        links = [("All models", "index.html"), *((reports[name].title, f"#{name}") for name in found)]
        text = page("Tables", "\n".join(body), links=links)
        self.pages.append(self.write("tables.html", text))

    def add_index(self, run: Run, source: str, models: Sequence[str], earlier: Mapping[str, Sequence[Trend]]) -> None:
        body = [from_markdown(provenance(run, source))]
        if means := [text.partition(": ") for text in summary(run)]:
            lines = [f"**{label}**: {told}" for label, _, told in means]
            body.append(
                from_markdown("\n\n".join(["The CPU provider's time over each contender's, above 1x is faster:", *lines]))
            )
        body.append(f"<h2>Results</h2>{from_markdown(_main_table(run, source))}")
        pictures = machine.pictures(run)
        self.keep(pictures)
        if pictures:
            body.append("<h2>The models under the roofs</h2>")
            body += [figure(picture, f"overview-{i}", FIGURES) for i, picture in enumerate(pictures)]
            body.append(from_markdown(_without_provenance(reports["machine"].render(run, source))))
        changed = [(model, trend) for model, found in earlier.items() for trend in found if trend.steps]
        if changed:
            rows = [
                [model, trend.case, trend.label, ", ".join(f"{factor:.2f}x at {point.when}" for point, factor in trend.changes)]
                for model, trend in changed
            ]
            body.append(f"<h2>What changed</h2>{from_markdown(table(('model', 'case', 'provider', 'steps'), rows, left=4))}")
        bar = [("Tables", "tables.html"), *((model, f"{MODELS}/{slug(model)}.html") for model in models)]
        self.write("index.html", page("Benchmarks", "\n".join(body), links=bar))


def _rendered(name: str, run: Run, source: str) -> str:
    report = reports[name]
    return from_markdown("\n\n".join(filter(None, (standing(run, report), report.page(run, source)))))


def _main_table(run: Run, source: str) -> str:
    report = reports["micro" if run.target is Target.MICRO else "zoo"]
    return "\n\n".join(filter(None, (standing(run, report), _without_provenance(report.render(run, source)), report.note)))


def _without_provenance(text: str) -> str:
    """Which a page has once, at its head."""
    return text.rpartition("\n\n")[0]


def environment_table(e: Environment) -> str:
    """Every field that is known."""
    rows = []
    for field in dataclasses.fields(e):
        value = getattr(e, field.name)
        if value in (None, "", ()):
            continue
        if field.name.endswith("_bytes"):
            shown = f"{mebibytes(value)} MiB"
        elif isinstance(value, bool):
            shown = "yes" if value else "no"
        elif isinstance(value, Mapping):
            shown = ", ".join(f"{name} {version}" for name, version in value.items())
        elif isinstance(value, tuple):
            shown = " ".join(map(str, value))
        else:
            shown = str(value)
        rows.append([field.name.removesuffix("_bytes").replace("_", " "), shown])
    return table(("", ""), rows, left=2)
