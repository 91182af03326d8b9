"""Tables and figures between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`, of the newest stored run with such cases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from bench.errors import BenchError
from bench.plan import Scenario
from bench.store import Stored
from reports.registry import reports

OPEN = re.compile(r"<!-- bench:([\w-]+) -->")


def render_report(name: str, results: Stored) -> str:
    """The Markdown of one report, of the newest run that it is about."""
    path, run = results.newest(reports[name].applies)
    return reports[name].render(run, path.name)


def update_file(readme: Path, results: Stored, *, write: bool) -> list[str]:
    """Names of the reports whose block, or a figure in it, differs from the stored results; rewritten when `write`."""
    try:
        old = readme.read_text()
    except FileNotFoundError:
        raise BenchError(f"{readme}: no such file. name another with --readme") from None
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
    source: str = ""  # the file with the results
    figures: Mapping[Path, str] = field(default_factory=dict)

    def figures_are_there(self) -> bool:
        """Made from the same file. Not compared by content: another version of the plotter draws the same otherwise."""
        return all(path.is_file() and self._stamp in path.read_text() for path in self.figures)

    def write_figures(self) -> None:
        for path, svg in self.figures.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(re.sub(r"(<svg[^>]*>)", lambda tag: tag.group(1) + self._stamp, svg, count=1))

    @property
    def _stamp(self) -> str:
        return f"<desc>{escape(self.source)}</desc>"


def _block(name: str, results: Stored, figures: Path, home: Path) -> _Block:
    report = reports[name]
    special = report.scenario is not Scenario.SINGLE_STREAM or report.needs is not None or report.on_device
    if special and not results.by_name and not any(map(report.applies, results.runs.values())):
        if report.nothing:
            return _Block(text=report.nothing)
        what = report.scenario if report.scenario is not Scenario.SINGLE_STREAM else "zoo"
        how = f" --scenario {report.scenario}" if report.scenario is not Scenario.SINGLE_STREAM else ""
        return _Block(text=f"Nothing is stored yet: `bench run zoo{how} --json {results.place / f'{what}.json'}`.\n")
    path, run = results.newest(report.applies)
    text = report.render(run, path.name)
    if report.pictures is None:
        return _Block(text=text)
    drawn = {figures / f"{picture.name}.svg": picture for picture in report.pictures(run)}
    shown = [f"![{picture.alt}]({file.relative_to(home).as_posix()})" for file, picture in drawn.items()]
    svgs = {file: picture.svg for file, picture in drawn.items()}
    return _Block(text="\n\n".join([*shown, text]), source=path.name, figures=svgs)


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
