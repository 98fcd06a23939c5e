"""A fit as one self-contained HTML page: words, pictures, tables, plots (needs no network)."""

from frpcag.report.fit import Fit, Pictures
from frpcag.report.notebook import InlineReport, fit_card
from frpcag.report.render import render_report, write_report

__all__ = ["Fit", "InlineReport", "Pictures", "fit_card", "render_report", "write_report"]
