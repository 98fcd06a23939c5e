"""Every figure of the pages beside the record it comes from: ``python docs/check_figures.py``.

On the pages of `PAGES` a line with figures ends in a comment that says where they come from,
``<!-- = images("ours"); _ -->``: one Python expression over `figure_sources.py` for each figure of the line, in order,
separated by semicolons. ``_`` stands for a figure that is no measurement, such as a size or a share of pixels that was
chosen, ``*4`` for four of them, ``*fits(3)`` for a list of values, and ``*_`` alone for a line without measurements.
The script prints figure, value and expression, and fails where a figure is not its value rounded as shown, or has no
expression. Code, links and what stands in backticks are left out.

Of the pages of `GENERATED` every row of a table must stand in a file that a script wrote from its records. On all
other pages, such as the decisions, lines with a source are checked. With ``--all`` every figure there is printed with
those of the records that the page names which hold a value that rounds to it, or ``?`` where none does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
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
FIGURE = re.compile(r"(?<![\w./,-])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:e-?\d+)?(?![\w-]|\.\d|,\d)")
SOURCE = re.compile(r"<!-- = (.*?) -->")
# Numbers of headings and of lists.
NUMBERED = re.compile(r"^(#+ +|)\d+\. ")
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
        figures = FIGURE.findall(PASSED.sub(" ", NUMBERED.sub("", SOURCE.sub(" ", line))))
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
    """Yield whether each figure of a page is right, with a line that says so; without ``every`` those with a source."""
    for number, figures, source in lines_with_figures(text):
        where = f"{page}:{number}"
        if source is None:
            if every:
                yield False, f"{where}: {', '.join(figures)}: no source"
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


def check_rows(page: str, text: str, made: str) -> Iterator[tuple[bool, str]]:
    """Yield whether each row of figures of a page stands in one of the files that scripts write."""
    files = sorted(ROOT.glob(made))
    written = {line.strip(): file for file in files for line in file.read_text().splitlines()}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("|") and SOURCE.search(line) is None and re.search(r"\d\.\d", line.partition("|")[2]):
            file = written.get(line.strip())
            yield file is not None, f"{page}:{number}: a row of {file.relative_to(ROOT) if file else 'no record'}"


def other_pages() -> list[str]:
    """Return the pages where a figure may stand without a source."""
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
