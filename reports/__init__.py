"""Makes tables, plots and pages from stored results, by pure functions; nothing here can measure.

Comes in: result files that `bench` has stored. Goes out: the tables in README.md and docs, or a static site. `bench report` calls
it. A report is a row of `REPORTS` or `PARTS` in a file of its own. Read first: README.md, `registry.py`, then `zoo.py`.
"""

from xyntra_reports.bars import bars, bars_page
from xyntra_reports.gate import Floors, check_floors, gate_table
from xyntra_reports.learned import learned_page, learned_picture
from xyntra_reports.readme import render_report, update_file
from xyntra_reports.registry import Part, Report, parts, reports
from xyntra_reports.searches import searches_page, searches_picture
from xyntra_reports.site import write_site

__all__ = [
    "Floors",
    "Part",
    "Report",
    "bars",
    "bars_page",
    "check_floors",
    "gate_table",
    "learned_page",
    "learned_picture",
    "parts",
    "render_report",
    "reports",
    "searches_page",
    "searches_picture",
    "update_file",
    "write_site",
]
