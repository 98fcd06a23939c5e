"""Tables in text: csv, tsv and the like, split into cells; what is written again keeps the text of each other cell."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from frpcag.tables.kinds import DEFAULT, EXACT, Kind, NumberFormat, kind_of_cells, kind_of_numbers, parse_number
from frpcag.tables.source import New, Source

Array = np.ndarray

_DELIMITERS = ",;\t|"
# Lines that are looked at to tell names from data.
_LOOKED_AT = 20
# First cells of a line of names whose other cells are numbers, such as years.
_INDEX_NAMES = {"", "id", "index", "name", "sample", "date", "time", "timestamp", "day", "row", "key", "code", "label"}
_QUOTED = re.compile(r'"[^"]*"')
# A number that begins with a nought, such as 007: not one in 0.5, 100 or 1e-07.
_PADDED = re.compile(r"(?<![\d.eE])(?<![eE][+-])0\d")


def read_text(path: Path, *, delimiter: str | None, encoding: str | None, numbers: NumberFormat) -> Source:
    """Split a text table into columns.

    Parameters
    ----------
    path : Path
        Empty lines are skipped.
    delimiter : str or None
        One character, or ``" "`` for any white space; by default the one of comma, semicolon, tab and bar that
        gives the first line the most cells, else white space where that gives all lines the same number of cells.
    encoding : str or None
        By default UTF-8, or UTF-16 where the file starts with its mark.
    numbers : NumberFormat
        How numbers and missing cells are written.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"delimiter={delimiter!r} must be one character; ' ' stands for any white space.")
    content = path.read_bytes()
    marks = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
    encoding = encoding or marks.get(content[:2], "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        raise ValueError(
            f"{path} is not a text table in {encoding.upper()} ({error}); pass encoding='latin-1' or what it was saved "
            "in, or save it as UTF-8."
        ) from error
    except LookupError as error:
        raise ValueError(f"encoding={encoding!r} is not known; pass one such as 'utf-8' or 'latin-1'.") from error
    if not text.removeprefix("\ufeff").strip():
        raise ValueError(f"{path} holds no text but white space; check that it was saved completely.")
    delimiter = delimiter or _delimiter(text, numbers)
    try:
        head = [cells for *_, cells in islice(_rows(text, delimiter), _LOOKED_AT)]
        names = [cell.strip() for cell in head[0]] if _is_header(head, numbers) else None
        if names is not None and len(head) == 1:
            raise ValueError(f"{path} holds a line of names ({', '.join(names)}) but no rows; add rows.")
        skip = int(names is not None)
        lines: list[int] = []
        columns: list = []
        X = _plain_numbers(text, delimiter, head[skip:], skip, numbers)
        if X is not None and X.shape[1] == len(head[0]):
            columns = list(X.T)
            kinds = [kind_of_numbers(column, numbers) for column in columns]
        else:
            columns, lines = _columns(path, text, delimiter, skip, len(head[0]))
            kinds = [kind_of_cells(cells, numbers) for cells in columns]
    except csv.Error as error:
        raise ValueError(
            f"{path} is not a table with {delimiter!r} between its cells ({error}); look for a quotation mark that is "
            "not closed, or pass delimiter."
        ) from error

    def write(target: Path, new: New, dropped: set[int]) -> None:
        changed = _edited(text, delimiter, skip, new, dropped, decimal=numbers.decimal, kinds=kinds)
        target.write_bytes("".join(changed).encode(encoding))

    return Source(names, columns, kinds, write, lines=lines)


def _delimiter(text: str, numbers: NumberFormat) -> str:
    head = list(islice((line for line in io.StringIO(text, newline="") if line.strip("\ufeff \t\r\n")), _LOOKED_AT))
    first = _QUOTED.sub("", head[0])
    best = max(_DELIMITERS.replace(numbers.decimal, ""), key=first.count)
    if best not in first:
        sizes = {len(line.split()) for line in head}
        if len(sizes) == 1 and sizes != {1}:
            return " "
    return best


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, int, int, list[str]]]:
    """Yield (number of the last line, begin, end, cells) of each row that is not empty."""
    begin = end = int(text.startswith("\ufeff"))

    def lines() -> Iterator[str]:
        nonlocal end
        for line in io.StringIO(text[end:], newline=""):
            end += len(line)
            yield line

    if delimiter == " ":
        rows = ((line, cells.split()) for line, cells in enumerate(lines(), start=1))
    else:
        reader = csv.reader(lines(), delimiter=delimiter)
        rows = ((reader.line_num, cells) for cells in reader)
    for line, cells in rows:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield line, begin, end, cells
        begin = end


def _is_header(head: list[list[str]], numbers: NumberFormat) -> bool:
    """Say whether the first line names the columns: it has text where the lines below it have numbers."""

    def is_number(cell: str) -> bool:
        return parse_number(cell, numbers) is not None

    first, below = head[0], head[1:]
    text = [j for j, cell in enumerate(first) if not is_number(cell)]
    if not text:
        return False
    if len(text) == len(first) or not below:
        return True
    if any(is_number(row[j]) for j in text for row in below if j < len(row) and row[j].strip()):
        return True
    return first[0].strip().lower() in _INDEX_NAMES


def _plain_numbers(text: str, delimiter: str, head: list, skip: int, numbers: NumberFormat) -> Array | None:
    """Read a table of nothing but plain numbers by NumPy's fast parser; return None for any other."""
    plain = numbers.decimal == "." and all(parse_number(cell, DEFAULT) is not None for row in head for cell in row)
    if not plain or _PADDED.search(text):
        return None
    lines = (line for line in io.StringIO(text.removeprefix("\ufeff"), newline="") if line.strip())
    between = None if delimiter == " " else delimiter
    try:
        X = np.loadtxt(islice(lines, skip, None), delimiter=between, quotechar='"', comments=None, ndmin=2)
    except ValueError:  # an empty cell, or one that is no number
        return None
    return None if (np.abs(X) > EXACT).any() else X


def _columns(path: Path, text: str, delimiter: str, skip: int, width: int) -> tuple[list[list[str]], list[int]]:
    columns: list[list[str]] = [[] for _ in range(width)]
    lines: list[int] = []
    for line, _, _, cells in islice(_rows(text, delimiter), skip, None):
        if len(cells) != width:
            raise ValueError(
                f"{path}, line {line}: {len(cells)} cells where the first line has {width}; give every line the same "
                "number of cells (an empty one is missing), delete lines above the names, or pass delimiter."
            )
        lines.append(line)
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    return columns, lines


def _edited(
    text: str, delimiter: str, skip: int, new: New, dropped: set[int], *, decimal: str, kinds: list[Kind]
) -> Iterator[str]:
    """Yield pieces of a text that is the same but for some cells, and without the columns that are dropped."""
    mark = re.escape(delimiter)
    # What stands before a cell, and the cell as it is.
    cell = re.compile(r"(\s*)(\S+)" if delimiter == " " else rf'(^|{mark})((?:"(?:[^"]|"")*")?[^{mark}]*)')
    touched = np.any([changed for _, changed in new.values()], axis=0)
    written = 0
    for i, (_, begin, end, _) in enumerate(_rows(text, delimiter), start=-skip):
        if not dropped and (i < 0 or not touched[i]):
            continue
        yield text[written:begin]
        row = text[begin:end].rstrip("\r\n")
        parts = [list(part) for part in cell.findall(row)]
        for j, (values, changed) in new.items():
            if i >= 0 and changed[i]:
                parts[j][1] = _as_cell(values[i], parts[j][1], delimiter, decimal, kinds[j].mark)
        kept = [part for j, part in enumerate(parts) if j not in dropped]
        kept[0][0] = parts[0][0]
        yield "".join(between + said for between, said in kept)
        written = begin + len(row)
    yield text[written:]


def _as_cell(value: float, given: str, delimiter: str, decimal: str, mark: str) -> str:
    """Return a number to the last digit, with the marks and quotes of the cell that it replaces."""
    if np.isnan(value):
        return "NaN" if delimiter == " " else ""
    cell = f"{float(str(value)):,}".removesuffix(".0").translate({ord(","): mark, ord("."): decimal})
    return f'"{cell}"' if given.lstrip()[:1] == '"' or delimiter in cell else cell
