"""A fit as one self-contained HTML page: words, pictures, tables, diagnostics (needs no network)."""

from frpcag.report.fit import Fit, Pictures
from frpcag.report.render import render_report, write_report

__all__ = ["Fit", "Pictures", "render_report", "write_report"]
