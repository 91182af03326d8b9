"""Tables and figures between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`, of the newest stored run with such cases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from xyntra_bench.environment import TABLED, IsaClass
from xyntra_bench.errors import BenchError, reason_of
from xyntra_bench.plan import Scenario
from xyntra_bench.results import Run
from xyntra_bench.store import Stored
from xyntra_reports._published import heading, published, standing
from xyntra_reports.registry import Report, reports

OPEN = re.compile(r"<!-- bench:([\w-]+) -->")


def render_report(name: str, results: Stored) -> str:
    """The Markdown of one report, of the newest run that it is about."""
    report = reports[name]
    if report.across:
        return report.across(results)
    path, run = results.newest(report.applies)
    return "\n\n".join(filter(None, (standing(run, report), report.page(run, path.name))))


def update_file(readme: Path, results: Stored, *, write: bool) -> list[str]:
    """Names of the reports whose block, or a figure in it, differs from the stored results; rewritten when `write`."""
    try:
        old = readme.read_text()
    except FileNotFoundError:
        raise BenchError(f"{readme}: no such file. name another with --readme") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{readme}: cannot be read ({reason_of(error)}). name another with --readme") from None
    blocks = find_blocks(old, readme.name)
    if not blocks:
        raise BenchError(f"{readme}: no markers. put <!-- bench:zoo --> and <!-- /bench:zoo --> around a table's place")
    stale, new = [], old
    for name, (begin, end) in sorted(blocks.items(), key=lambda item: -item[1][0]):  # back to front: offsets hold
        block = _block(name, results, figures_of(readme), readme.parent)
        text = f"\n{block.text}"
        if old[begin:end] != text or not block.figures_are_there():
            stale.append(name)
            new = new[:begin] + text + new[end:]
            if write:
                block.write_figures()
    if write and new != old:
        readme.write_text(new)
    return stale[::-1]


def figures_of(readme: Path) -> Path:
    """Where a document's figures lie: with the documentation, where there is any."""
    docs = readme.parent / "docs"
    return (docs if docs.is_dir() else readme.parent) / "figures"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    text: str
    figures: Mapping[Path, str] = field(default_factory=dict)  # stamped with the file that they were drawn from
    stamps: Mapping[Path, str] = field(default_factory=dict)

    def figures_are_there(self) -> bool:
        """Made from the same file. Not compared by content: another version of the plotter draws the same otherwise."""
        return all(path.is_file() and self.stamps[path] in path.read_text() for path in self.figures)

    def write_figures(self) -> None:
        for path, svg in self.figures.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(svg)


def _block(name: str, results: Stored, figures: Path, home: Path) -> _Block:
    report = reports[name]
    if report.across:
        return _Block(text=report.across(results))
    classes = list(IsaClass) if report.by_isa and not results.by_name else [None]
    shown = [(isa, found) for isa in classes if (found := published(results, report, isa))]
    if not shown:
        return _Block(text=report.nothing or _nothing(report, results))
    blocks = [_of_run(report, path, run, figures, home, titled=isa is not None) for isa, (path, run) in shown]
    lacking = [isa for isa in TABLED if report.by_isa and not results.by_name and isa not in dict(shown)]
    more = [f"Not measured yet: {', '.join(lacking)}.\n"] if lacking else []
    return _Block(
        text="\n".join([*(block.text for block in blocks), *more, *filter(None, [report.note])]),
        figures={path: svg for block in blocks for path, svg in block.figures.items()},
        stamps={path: stamp for block in blocks for path, stamp in block.stamps.items()},
    )


def _nothing(report: Report, results: Stored) -> str:
    what = report.scenario if report.scenario is not Scenario.SINGLE_STREAM else "zoo"
    how = f" --scenario {report.scenario}" if report.scenario is not Scenario.SINGLE_STREAM else ""
    return f"Nothing is stored yet: `bench run zoo{how} --json {results.place / f'{what}.json'}`.\n"


def _of_run(report: Report, source: Path, run: Run, figures: Path, home: Path, *, titled: bool) -> _Block:
    """A run's part of a block: its class of processors, what it misses of the rules, its pictures and its table. The pictures
    of each class are files of their own."""
    suffix = f"-{run.environment.isa.lower().replace('-', '')}" if titled else ""
    drawn = {figures / f"{picture.name}{suffix}.svg": picture for picture in (report.pictures(run) if report.pictures else ())}
    images = [f"![{picture.alt}]({file.relative_to(home).as_posix()})" for file, picture in drawn.items()]
    parts = [heading(run) if titled else "", standing(run, report), *images, report.render(run, source.name)]
    stamp = f"<desc>{escape(source.name)}</desc>"
    return _Block(
        text="\n\n".join(filter(None, parts)),
        figures={path: re.sub(r"(<svg[^>]*>)", lambda tag: tag.group(1) + stamp, p.svg, count=1) for path, p in drawn.items()},
        stamps=dict.fromkeys(drawn, stamp),
    )


def find_blocks(text: str, where: str) -> dict[str, tuple[int, int]]:
    """Name to the span between its markers.

    >>> find_blocks("a<!-- bench:zoo -->b<!-- /bench:zoo -->c", "x")
    {'zoo': (19, 20)}
    """
    blocks: dict[str, tuple[int, int]] = {}
    for match in OPEN.finditer(text):
        name = match.group(1)
        closing = f"<!-- /bench:{name} -->"
        end = text.find(closing, match.end())
        if end < 0:
            raise BenchError(f"{where}: <!-- bench:{name} --> is not closed. add {closing}")
        if name in blocks:
            raise BenchError(f"{where}: <!-- bench:{name} --> stands there twice. remove one")
        blocks[name] = (match.end(), end)
    return blocks
