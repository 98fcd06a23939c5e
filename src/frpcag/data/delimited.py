"""Tables of numbers in text: csv and tsv, with or without a line of names, with empty cells."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

Array = np.ndarray

logger = logging.getLogger(__name__)

_DELIMITERS = ",;\t"
_MISSING = {"", "na", "n/a", "null"}


def read_delimited(path: Path) -> tuple[Array, list[str] | None]:
    """Read a table of numbers whose cells are separated by commas, semicolons or tabs.

    Parameters
    ----------
    path : Path
        A UTF-8 text file. The first line names the features when one of its cells is not a number.
        Empty cells, ``NA``, ``N/A``, ``NULL`` and ``NaN`` become NaN; empty lines are skipped.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        float64.
    feature_names : list of str or None
        The cells of the first line, if it names the features.

    Notes
    -----
    A first column without a name that counts 0, 1, 2, ... or 1, 2, 3, ... is the row index that pandas
    and R write beside a table; it is left out, and a log record says so.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from frpcag.data.delimited import read_delimited
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.tsv")
    ...     _ = path.write_text("1\\t2\\n3\\tNA\\n")
    ...     read_delimited(path)
    (array([[ 1.,  2.],
            [ 3., nan]]), None)
    """
    try:
        first = _first_line(path)
        delimiter = max(_DELIMITERS, key=first.count)
        cells = next(csv.reader([first], delimiter=delimiter))
        names = None if all(_is_number(cell) for cell in cells) else [cell.strip() for cell in cells]
        X = _read_numbers(path, delimiter=delimiter, names=names, n_columns=len(cells))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a text table in UTF-8 ({error}); save it as UTF-8 csv.") from error
    if names and names[0] == "" and len(names) > 1 and _counts_up(X[:, 0]):
        logger.warning("%s: the first column has no name and counts the rows; it is left out.", path)
        return X[:, 1:].copy(), names[1:]
    return X, names


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line in file:
            if line.strip():
                return line
    raise ValueError(f"{path} holds no text but white space; write it again.")


def _read_numbers(path: Path, *, delimiter: str, names: list[str] | None, n_columns: int) -> Array:
    """Read the rows after the names, by NumPy's fast parser where it can, else cell by cell."""
    skip = 0 if names is None else 1
    if next(_rows(path, delimiter, skip), None) is None:
        raise ValueError(f"{path} holds a line of names ({', '.join(names or [])}) but no rows; add rows.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = islice((line for line in file if line.strip()), skip, None)
            X = np.loadtxt(lines, delimiter=delimiter, quotechar='"', comments=None, ndmin=2)
        if X.shape[1] == n_columns:
            return X
    except ValueError:
        pass
    # An empty cell, or a cell that is no number: read slowly, which fills the one and names the other.
    rows = _rows(path, delimiter, skip)
    return np.array([_numbers(path, line, cells, n_columns, names) for line, cells in rows])


def _rows(path: Path, delimiter: str, skip: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) of each line that is not empty, after the first ``skip``."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        filled = ((reader.line_num, row) for row in reader if len(row) > 1 or (row and row[0].strip()))
        yield from islice(filled, skip, None)


def _numbers(path: Path, line: int, cells: list[str], n_columns: int, names: list[str] | None) -> list[float]:
    if len(cells) != n_columns:
        raise ValueError(
            f"{path}, line {line}: {len(cells)} cells where the first line has {n_columns}; give every line "
            "the same number of cells (an empty one is read as missing)."
        )
    for column, cell in enumerate(cells):
        if not _is_number(cell):
            title = f" ({names[column]})" if names else ""
            raise ValueError(
                f"{path}, line {line}, column {column + 1}{title}: {cell!r} is not a number; leave the cell "
                "empty where the value is missing, or drop or encode the column."
            )
    return [_number(cell) for cell in cells]


def _is_number(cell: str) -> bool:
    try:
        _number(cell)
    except ValueError:
        return False
    return True


def _number(cell: str) -> float:
    cell = cell.strip()
    if cell.lower() in _MISSING:
        return np.nan
    if "_" in cell:  # float() takes 1_000 for a thousand; in a table it is a name
        raise ValueError(cell)
    return float(cell)


def _counts_up(column: Array) -> bool:
    return column[0] in (0, 1) and bool(np.array_equal(column, np.arange(len(column)) + column[0]))
