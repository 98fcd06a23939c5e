"""Every figure on the front pages beside the record it comes from: ``python docs/check_figures.py``.

A line with figures ends in a comment that says where they come from, ``<!-- = images("ours"); _ -->``: one Python
expression over `figure_sources.py` for each figure of the line, in order, separated by semicolons; ``_`` stands for a
figure that is no measurement, such as a size or a share of pixels that was chosen. The script prints figure, value and
expression, and fails where a figure is not its value rounded as shown, or has no expression. Code, links and what
stands in backticks are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import figure_sources

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/index.md", "paper/paper.md")
FIGURE = re.compile(r"(?<![\w./-])\d+(?:\.\d+)?(?![\w-]|\.\d)")
SOURCE = re.compile(r"<!-- = (.*?) -->")
# What is passed over: code and formulas in a line, targets of links and pictures, references to literature.
PASSED = re.compile(r"`[^`]*`|\$[^$]+\$|\]\([^)]*\)|arXiv:[\d.]+|et al\. \(?\d{4}\)?|, (?:19|20)\d\d\b|Python 3\.\d+")


def lines_with_figures(text: str) -> Iterator[tuple[int, list[str], str | None]]:
    """Yield number, figures and source of every line outside code that has figures."""
    fenced = in_head = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(("```", "$$")) or (line == "---" and (number == 1 or in_head)):
            fenced = not fenced
            in_head = number == 1
        if fenced or line.startswith("    "):
            continue
        source = SOURCE.search(line)
        figures = FIGURE.findall(PASSED.sub(" ", SOURCE.sub(" ", line)))
        if figures or source:
            yield number, figures, source[1] if source else None


def rounded_as(value: float, shown: str) -> str:
    """Return a value with as many decimals as a figure shows."""
    return f"{value:.{len(shown.partition('.')[2])}f}"


def check(page: str, text: str) -> Iterator[tuple[bool, str]]:
    """Yield whether each figure of a page is right, with a line that says so."""
    for number, figures, source in lines_with_figures(text):
        where = f"{page}:{number}"
        if source is None:
            yield False, f"{where}: {', '.join(figures)}: no source"
            continue
        expressions = [one.strip() for one in source.split(";")]
        if len(expressions) != len(figures):
            yield False, f"{where}: {len(figures)} figures, {len(expressions)} sources"
            continue
        for shown, expression in zip(figures, expressions, strict=True):
            if expression == "_":
                continue
            value = float(eval(expression, vars(figure_sources)))
            yield rounded_as(value, shown) == shown, f"{where}: {shown}  {value:.6g}  {expression}"


def main() -> int:
    results = [one for page in PAGES for one in check(page, (ROOT / page).read_text())]
    for right, line in results:
        print("      " if right else "WRONG ", line)
    wrong = sum(not right for right, _ in results)
    print(f"{len(results)} figures, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
