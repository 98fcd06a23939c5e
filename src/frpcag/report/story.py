"""A page of a few findings, each with words, a table and a picture: one HTML file that loads nothing."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frpcag.report.figures import data_address
from frpcag.report.render import page_from

# Dots per inch of the pictures: sharp on screens of twice the usual density.
_DPI = 180


@dataclass(frozen=True)
class Finding:
    """One part of the page.

    Parameters
    ----------
    title : str
    words : str
        What was done, and how to read the table.
    rows : mapping of str to mapping of str to float
        Figures in per cent by method and cell, smaller is better.
    figure : Figure, optional
        A picture of it; it is closed when it has been drawn.
    caption : str
        How to read the picture.
    """

    title: str
    words: str
    rows: Mapping[str, Mapping[str, float]]
    figure: Any = None
    caption: str = ""


def render_story(title: str, lead: str, findings: Sequence[Finding], *, closing: str = "") -> str:
    """Return the page.

    Parameters
    ----------
    title, lead : str
        Heading, and the sentence below it.
    findings : sequence of Finding
    closing : str
        Words at the end.

    Returns
    -------
    str
        HTML with styles and pictures inside.
    """
    parts = [
        {
            "title": one.title,
            "words": one.words,
            "columns": list(next(iter(one.rows.values()))),
            "rows": one.rows,
            "best": least(one.rows),
            "picture": None if one.figure is None else _drawn(one.figure),
            "caption": one.caption,
        }
        for one in findings
    ]
    return page_from("story.html", title=title, lead=lead, parts=parts, closing=closing)


def least(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the smallest figure of each column.

    Examples
    --------
    >>> from frpcag.report.story import least
    >>> least({"ours": {"a": 1.0, "b": 3.0}, "theirs": {"a": 2.0, "b": 2.0}})
    {'a': 1.0, 'b': 2.0}
    """
    columns = next(iter(rows.values()))
    return {column: min(values[column] for values in rows.values()) for column in columns}


def _drawn(figure: Any) -> str:
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=_DPI, format="png", metadata={"Software": None})
    plt.close(figure)
    return data_address(buffer.getvalue(), "image/png")
