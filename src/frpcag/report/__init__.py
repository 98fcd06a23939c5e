"""A fit as one self-contained HTML page: words, pictures, tables, plots (needs no network)."""

from frpcag.report.card import fit_card
from frpcag.report.fit import Fit, Pictures
from frpcag.report.inline import InlineReport
from frpcag.report.render import render_report, write_report

__all__ = ["Fit", "InlineReport", "Pictures", "fit_card", "render_report", "write_report"]
