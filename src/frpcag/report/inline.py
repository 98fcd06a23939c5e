"""A report inside a notebook: the page in a frame of its own, so that its styles and its script stay there."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class InlineReport:
    """A page that a notebook shows; ``page`` is its HTML.

    Examples
    --------
    >>> from frpcag.report import InlineReport
    >>> InlineReport("<p>hello</p>")._repr_html_()[:24]
    '<iframe srcdoc="&lt;p&gt'
    """

    page: str

    def _repr_html_(self) -> str:
        style = "width:100%;height:80vh;border:1px solid #8884"
        return f'<iframe srcdoc="{escape(self.page)}" style="{style}" sandbox="allow-scripts"></iframe>'

    def __repr__(self) -> str:
        return f"InlineReport({len(self.page)} characters; a notebook shows it, report(path) writes it)"
