"""Pure functions from stored results to tables. Nothing here can measure."""

from reports.readme import render_report, update_file
from reports.registry import Report, reports

__all__ = ["Report", "render_report", "reports", "update_file"]
