"""Tables in text: csv, tsv and the like, split into cells, with or without a line of names."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from frpcag.data.column_kinds import DEFAULT, NumberFormat, parse_number

Array = np.ndarray

_DELIMITERS = ",;\t|"
# Lines that are looked at to tell names from data.
_LOOKED_AT = 20
# First cells of a line of names whose other cells are numbers, such as years.
_INDEX_NAMES = {"", "id", "index", "name", "sample", "date", "time", "timestamp", "day", "row", "key", "code", "label"}


@dataclass(frozen=True)
class TextTable:
    """A table in text, before its columns have types.

    Parameters
    ----------
    names : list of str or None
        The cells of the first line, if it names the columns.
    columns : list
        One array of floats or one list of cells per column.
    lines : sequence of int
        The line of the file at which each row ends; empty where all columns are numbers.
    delimiter, encoding : str
        As found or given; ``" "`` is any white space.
    """

    names: list[str] | None
    columns: list[Array | list[str]]
    lines: list[int]
    delimiter: str
    encoding: str


def read_delimited(
    path: Path, *, delimiter: str | None = None, encoding: str | None = None, numbers: NumberFormat = DEFAULT
) -> TextTable:
    """Split a text table into columns; those of a table of plain numbers come as floats.

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

    Returns
    -------
    TextTable

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from frpcag.data.delimited import read_delimited
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.tsv")
    ...     _ = path.write_text("day\\ta\\nmonday\\t2\\n")
    ...     table = read_delimited(path)
    >>> table.names, table.columns
    (['day', 'a'], [['monday'], ['2']])
    """
    encoding = encoding or _encoding(path)
    try:
        delimiter = delimiter or _delimiter(path, encoding, numbers)
        head = [cells for _, cells in islice(_rows(path, delimiter, encoding), _LOOKED_AT)]
        if not head:
            raise ValueError(f"{path} holds no text but white space; check that it was saved completely.")
        names = [cell.strip() for cell in head[0]] if _is_header(head, numbers) else None
        if names is not None and len(head) == 1:
            raise ValueError(f"{path} holds a line of names ({', '.join(names)}) but no rows; add rows.")
        columns, lines = _read_columns(path, delimiter, encoding, head, names, numbers)
    except (UnicodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a text table in {encoding.upper().replace('-SIG', '')} ({error}); pass encoding='latin-1' "
            "or what it was saved in, or save it as UTF-8."
        ) from error
    except LookupError as error:
        raise ValueError(f"encoding={encoding!r} is not known; pass one such as 'utf-8' or 'latin-1'.") from error
    return TextTable(names, columns, lines, delimiter, encoding)


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(3)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    return "utf-8-sig" if start == b"\xef\xbb\xbf" else "utf-8"


def _delimiter(path: Path, encoding: str, numbers: NumberFormat) -> str:
    with path.open(encoding=encoding, newline="") as file:
        head = list(islice((line for line in file if line.strip()), _LOOKED_AT))
    if not head:
        raise ValueError(f"{path} holds no text but white space; check that it was saved completely.")
    choices = _DELIMITERS.replace(numbers.decimal, "")
    best = max(choices, key=lambda choice: len(next(csv.reader(head[:1], delimiter=choice))))
    if best not in head[0]:
        sizes = {len(line.split()) for line in head}
        if len(sizes) == 1 and sizes != {1}:
            return " "
    return best


def _rows(path: Path, delimiter: str, encoding: str, skip: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of each line that is not empty, after the first ``skip``."""
    with path.open(encoding=encoding, newline="") as file:
        if delimiter == " ":
            split = ((line, cells) for line, text in enumerate(file, start=1) if (cells := text.split()))
            yield from islice(split, skip, None)
            return
        reader = csv.reader(file, delimiter=delimiter)
        filled = ((reader.line_num, row) for row in reader if len(row) > 1 or (row and row[0].strip()))
        yield from islice(filled, skip, None)


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


def _read_columns(
    path: Path, delimiter: str, encoding: str, head: list[list[str]], names: list[str] | None, numbers: NumberFormat
) -> tuple[list[Array | list[str]], list[int]]:
    """Read the rows after the names, by NumPy's fast parser where all are numbers, else cell by cell."""
    skip, width = int(names is not None), len(head[0])
    plain = numbers.decimal == "." and all(
        parse_number(cell, DEFAULT) is not None for row in head[skip:] for cell in row
    )
    if plain:
        X = _load_numbers(path, delimiter, encoding, skip)
        if X is not None and X.shape[1] == width:
            return list(X.T), []
    columns: list[list[str]] = [[] for _ in range(width)]
    lines: list[int] = []
    for line, cells in _rows(path, delimiter, encoding, skip):
        if len(cells) != width:
            raise ValueError(
                f"{path}, line {line}: {len(cells)} cells where the first line has {width}; give every line the same "
                "number of cells (an empty one is missing), delete lines above the names, or pass delimiter."
            )
        lines.append(line)
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    return list(columns), lines


def _load_numbers(path: Path, delimiter: str, encoding: str, skip: int) -> Array | None:
    try:
        with path.open(encoding=encoding, newline="") as file:
            lines = islice((line for line in file if line.strip()), skip, None)
            between = None if delimiter == " " else delimiter
            return np.loadtxt(lines, delimiter=between, quotechar='"', comments=None, ndmin=2)
    except UnicodeError:
        raise
    except ValueError:  # an empty cell, or one that is no number
        return None
