"""Pure functions from stored results to tables, plots and pages. Nothing here can measure."""

from reports.bars import bars, bars_page
from reports.gate import Floors, check_floors, gate_table
from reports.readme import render_report, update_file
from reports.registry import Part, Report, parts, reports
from reports.site import write_site

__all__ = [
    "Floors",
    "Part",
    "Report",
    "bars",
    "bars_page",
    "check_floors",
    "gate_table",
    "parts",
    "render_report",
    "reports",
    "update_file",
    "write_site",
]
