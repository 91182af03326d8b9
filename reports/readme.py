"""Tables between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`, filled from the newest stored run that has such cases."""

from __future__ import annotations

import re
from pathlib import Path

from bench.errors import BenchError
from bench.plan import Scenario
from bench.store import load, newest
from reports.registry import reports

OPEN = re.compile(r"<!-- bench:([\w-]+) -->")


def render_report(name: str, results: Path) -> str:
    """The Markdown of one report. `results` is a file, or a folder of which the newest run counts."""
    report = reports[name]
    path = newest(results, report.applies) if results.is_dir() or not results.suffix else results
    return report.render(load(path), path.name)


def update_file(readme: Path, results: Path, *, write: bool) -> list[str]:
    """Names of the reports whose block differs from the stored results; rewritten when `write`."""
    try:
        old = readme.read_text()
    except FileNotFoundError:
        raise BenchError(f"{readme}: no such file. name another with --readme") from None
    blocks = find_blocks(old, readme.name)
    if not blocks:
        raise BenchError(f"{readme}: no markers. put <!-- bench:zoo --> and <!-- /bench:zoo --> around a table's place")
    stale, new = [], old
    for name, (begin, end) in sorted(blocks.items(), key=lambda item: -item[1][0]):  # back to front: offsets hold
        text = f"\n{_block(name, results)}"
        if old[begin:end] != text:
            stale.append(name)
            new = new[:begin] + text + new[end:]
    if write and stale:
        readme.write_text(new)
    return stale[::-1]


def _block(name: str, results: Path) -> str:
    scenario = reports[name].scenario
    if (
        results.is_dir()
        and scenario is not Scenario.SINGLE_STREAM
        and not any(reports[name].applies(load(path)) for path in results.glob("*.json"))
    ):
        return f"Nothing is stored yet: `bench run zoo --scenario {scenario} --json {results / f'{scenario}.json'}`.\n"
    return render_report(name, results)


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
