"""Every figure of the pages beside the record it comes from: ``python docs/check_figures.py``.

On the pages of `PAGES` a line with figures ends in a comment that says where they come from,
``<!-- = images("ours"); _ -->``: one Python expression over `figure_sources.py` for each figure of the line, in order,
separated by semicolons. ``_`` stands for a figure that is no measurement, such as a size or a share of pixels that was
chosen, ``*4`` for four of them, ``*fits(3)`` for a list of values, and ``*_`` alone for a line without measurements.
The script prints figure, value and expression, and fails where a figure is not its value rounded as shown, or has no
expression. Code, links and what stands in backticks are left out.

On all other pages of the site and of results/, a figure of performance (one with a decimal point, or followed by a unit
such as % or ms) must have a source, too; sizes and defaults need none there. Rows of the tables of `GENERATED` must
stand in a file that a script wrote from its records, and those of `TABLES` must hold the values of their record. Only
the decisions may tell figures without a source: they report what was tried, with scripts that are no longer kept. With
``--all`` every figure there is printed with those of the records that the page names which hold a value that rounds to
it, or ``?`` where none does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import figure_sources

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "paper/paper.md",
    "docs/index.md",
    "docs/start.md",
    "docs/choose.md",
    "docs/gpu.md",
    "docs/report.md",
    "docs/guide/clean.md",
    "docs/guide/cleaning.md",
    "docs/guide/clusters.md",
    "docs/guide/missing.md",
    "docs/guide/tables.md",
)
# Pages with tables that scripts write, and where these tables are.
GENERATED = {"results/RESULTS.md": "results/*/*.md", "results/peers.md": "results/peers/*.md"}
# Pages that `make reproduce` and the fuzzer write whole.
WRITTEN = ("results/faults.md", "results/fuzz.md")
# Pages with tables of one record: the values of each row, by its first cells; None is not in the record.
TABLES = {"docs/video.md": figure_sources.video_rows, "docs/scaling.md": figure_sources.scaling_rows}
MAY_TELL = "docs/decisions/"
FIGURE = re.compile(r"(?<![\w./,-])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:e-?\d+)?(?![\w-]|\.\d|,\d)")
# A figure that says how well something does: it has a decimal point, or one of these units.
UNITS = r"%|s|ms|seconds|minutes|hours?|MB|GB|points?|times as|times ours"
PERFORMANCE = re.compile(rf"(?<![\w./,-])(?:(?:\d[\d,]*)?\.\d+(?!\.?\d)|\d+(?= ?(?:{UNITS})(?![\w/])))")
SOURCE = re.compile(r"<!-- = (.*?) -->")
# Numbers of headings and of lists.
NUMBERED = re.compile(r"^(#+ +|)\d+\. ")
# What is passed over: code and formulas in a line, targets of links and pictures, references to literature.
PASSED = re.compile(r"`[^`]*`|\$[^$]+\$|\]\([^)]*\)|arXiv:[\d.]+|et al\. \(?\d{4}\)?|, (?:19|20)\d\d\b|Python 3\.\d+")


def without_passed(line: str) -> str:
    """Return a line without what is passed over."""
    return PASSED.sub(" ", NUMBERED.sub("", SOURCE.sub(" ", line)))


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
        figures = FIGURE.findall(without_passed(line))
        if figures or source:
            yield number, figures, source[1] if source else None


def rounded_as(value: float, shown: str) -> str:
    """Return a value as a figure shows it: with as many decimals, as 1e-4, as 10,000 or as .25."""
    digits, e, _ = shown.partition("e")
    decimals = len(digits.partition(".")[2])
    text = f"{value:{',' if ',' in shown else ''}.{decimals}{'e' if e else 'f'}}"
    if e:
        return text if len(shown.partition("e")[2]) > 2 else re.sub(r"e(-?)\+?0", r"e\1", text)
    return text.removeprefix("0") if shown.startswith(".") else text


def values_of(source: str) -> list[tuple[str, float | None]]:
    """Return the expressions of a line with their values, None for what is no measurement."""
    found: list[tuple[str, float | None]] = []
    for one in (part.strip() for part in source.split(";")):
        many = one.startswith("*")
        if one == "_" or (many and one[1:].isdigit()):  # *3: three figures that are no measurement
            found += [(one, None)] * int(one[1:] or 1)
        else:
            value = eval(one.removeprefix("*"), vars(figure_sources))
            found += [(one, None if x is None else float(x)) for x in (value if many else [value])]
    return found


def check(page: str, text: str, *, every: bool = True) -> Iterator[tuple[bool, str]]:
    """Yield whether each figure of a page is right, with a line that says so.

    Without ``every`` a line without a source is wrong only if it has a figure of performance, outside of tables that
    are checked by their rows.
    """
    lines = text.splitlines()
    for number, figures, source in lines_with_figures(text):
        where = f"{page}:{number}"
        if source is None:
            told = figures if every else told_without_source(page, lines[number - 1])
            if told:
                yield False, f"{where}: {', '.join(told)}: no source"
            continue
        if source == "*_":
            continue
        values = values_of(source)
        if len(values) != len(figures):
            yield False, f"{where}: {len(figures)} figures, {len(values)} sources"
            continue
        for shown, (expression, value) in zip(figures, values, strict=True):
            if value is not None:
                yield rounded_as(value, shown) == shown, f"{where}: {shown}  {value:.6g}  {expression}"


def told_without_source(page: str, line: str) -> list[str]:
    """Return the figures of performance of a line that need a source and have none."""
    checked_as_row = line.startswith("|") and (page in GENERATED or page in TABLES)
    generated = page in GENERATED and line.strip() in written_lines(GENERATED[page])
    if line.startswith("#") or checked_as_row or generated or page in WRITTEN or page.startswith(MAY_TELL):
        return []
    return PERFORMANCE.findall(without_passed(line))


def check_table(page: str, text: str, rows: Iterable[tuple[str, list[float | None]]]) -> Iterator[tuple[bool, str]]:
    """Yield whether the page has each row of a record, and with its values."""
    lines = text.splitlines()
    for start, values in rows:
        found = [number for number, line in enumerate(lines, start=1) if line.startswith(start)]
        if not found:
            yield False, f"{page}: no row starts with {start}"
        for number in found:
            shown = FIGURE.findall(without_passed(lines[number - 1].removeprefix(start)))
            same = len(shown) == len(values) and all(
                value is None or rounded_as(value, figure) == figure
                for figure, value in zip(shown, values, strict=True)
            )
            known = ", ".join("-" if value is None else f"{value:.4g}" for value in values)
            yield same, f"{page}:{number}: {', '.join(shown)}  {known}"


@cache
def written_lines(made: str) -> dict[str, Path]:
    """Return the lines of the files that scripts write, with their files."""
    return {line.strip(): file for file in sorted(ROOT.glob(made)) for line in file.read_text().splitlines()}


def check_rows(page: str, text: str, made: str) -> Iterator[tuple[bool, str]]:
    """Yield whether each row of figures of a page stands in one of the files that scripts write."""
    written = written_lines(made)
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("|") and SOURCE.search(line) is None and re.search(r"\d\.\d", line.partition("|")[2]):
            file = written.get(line.strip())
            yield file is not None, f"{page}:{number}: a row of {file.relative_to(ROOT) if file else 'no record'}"


def other_pages() -> list[str]:
    """Return the pages where sizes and defaults may stand without a source."""
    found = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("results/*.md")]
    names = (
        str(path.relative_to(ROOT)) for path in found if not {"_build", "auto_examples", "generated"} & {*path.parts}
    )
    return sorted(name for name in names if name not in PAGES)


def check_pages() -> Iterator[tuple[bool, str]]:
    """Yield whether each figure of all pages is right."""
    for page in PAGES:
        yield from check(page, (ROOT / page).read_text())
    for page in other_pages():
        text = (ROOT / page).read_text()
        yield from check(page, text, every=False)
        if page in GENERATED:
            yield from check_rows(page, text, GENERATED[page])
        if page in TABLES:
            yield from check_table(page, text, TABLES[page]())


def figures_found(page: str, text: str) -> Iterator[str]:
    """Yield every figure of a page with the records, among those that the page names, that hold it."""
    known = figure_sources.known_figures()
    named = set(re.findall(r"(?:results|benchmarks)/([a-z_]+)", text)) | {Path(page).stem}
    for number, figures, _ in lines_with_figures(text):
        for shown in figures:
            names = [name for name in known.get(shown, []) if re.split(r"[./]", name)[0] in named]
            yield f"{page}:{number}: {shown}  {', '.join(names) or '?'}"


def main(words: list[str]) -> int:
    """Print every figure with its source, and return 1 if one is wrong."""
    results = list(check_pages())
    for right, line in results:
        print("      " if right else "WRONG ", line)
    if "--all" in words:
        for page in other_pages():
            for line in figures_found(page, (ROOT / page).read_text()):
                print("      ", line)
    wrong = sum(not right for right, _ in results)
    print(f"{len(results)} figures and rows of figures, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
