"""What a column of a table holds: numbers, dates, ids, categories or text, judged over the whole file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray

# Cells without a value, in lower case, as R, Excel, pandas and databases write them.
_MISSING = frozenset(("", "na", "n/a", "nan", "-nan", "null", "none", "<na>", "#n/a", "#na", "#div/0!", "#value!"))
_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{1,2}[- ]?[A-Za-z]{3,9}[- ]?\d{2,4})"
    r"([T ]+\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?)?"
)
_TIME = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?")
_WITH_UNIT = re.compile(r"[$€£]? ?[-+]?\d[\d.,' ]* ?([A-Za-z%°µ$€£][^\d]{0,8})?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?|[-+]?\d{1,3}([.' ]\d{3})+(,\d*)?")
_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_ID_NAME = re.compile(r"(|id|.*[_ ]id|.*[a-z]I[dD]|index|unnamed: 0|uuid|row|row_?number|nr|no\.?|#)")
# A column with fewer different words than this share of its cells holds categories.
_FEW = 0.5


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are written.

    Parameters
    ----------
    decimal : str
        The decimal mark.
    missing : frozenset of str
        Cells that stand for "no value", in lower case, beside the empty cell, NA, NaN, NULL and the like.
    sentinels : frozenset of float
        Numbers that stand for "no value".
    """

    decimal: str = "."
    missing: frozenset[str] = frozenset()
    sentinels: frozenset[float] = frozenset()

    @classmethod
    def of(cls, *, decimal: str | None, missing: Sequence[Any]) -> NumberFormat:
        """Return the format that a user describes; ``missing`` holds words and numbers."""
        if decimal not in (None, ".", ","):
            raise ValueError(f"decimal={decimal!r} must be '.' or ','.")
        words = frozenset(str(word).strip().lower() for word in missing)
        decimal = decimal or "."
        numbers = (parse_number(word, cls(decimal)) for word in words)
        return cls(decimal, words, frozenset(number for number in numbers if number is not None and number == number))


DEFAULT = NumberFormat()


def parse_number(cell: str, numbers: NumberFormat) -> float | None:
    """Return the number in a cell, NaN for a missing one, None if there is something else in it.

    Examples
    --------
    >>> from frpcag.data.column_kinds import DEFAULT, NumberFormat, parse_number
    >>> parse_number(" 4,5", NumberFormat(decimal=",")), parse_number("NA", DEFAULT), parse_number("x", DEFAULT)
    (4.5, nan, None)
    """
    cell = cell.strip()
    if is_missing(cell, numbers):
        return np.nan
    if "_" in cell:  # float() takes 1_000 for a thousand; in a table it is a name
        return None
    if numbers.decimal == ",":
        if "." in cell:  # a thousands mark, or a date
            return None
        cell = cell.replace(",", ".")
    try:
        value = float(cell)
    except ValueError:
        return None
    return np.nan if value in numbers.sentinels else value


def is_missing(cell: str, numbers: NumberFormat) -> bool:
    """Say whether a cell stands for "no value"."""
    word = cell.strip().lower()
    return word in _MISSING or word in numbers.missing


@dataclass(frozen=True)
class Kind:
    """What a column holds.

    Parameters
    ----------
    word : str
        ``"numbers"``, ``"dates"``, ``"times of day"``, ``"truth values"``, ``"numbers with units"``, ``"numbers with
        marks between the thousands"``, ``"categories"``, ``"text"``, ``"nothing"`` or ``"mixed"``, which is numbers
        with foreign cells among them.
    values : ndarray of shape (n_samples,) or None
        The numbers, NaN where a cell is missing; 0 and 1 for truth values.
    example : str
        A cell, quoted, that is not a number.
    row : int
        Where the example is, from 0.
    advice : str
        What makes the column numbers.
    """

    word: str
    values: Array | None = None
    example: str = ""
    row: int = 0
    advice: str = ""


def kind_of_cells(cells: Sequence[str], numbers: NumberFormat) -> Kind:
    """Return what a column of text holds.

    Examples
    --------
    >>> from frpcag.data.column_kinds import DEFAULT, kind_of_cells
    >>> kind_of_cells(["1", "?", "3", "4"], DEFAULT).advice
    "missing='?'"
    """
    parsed = [parse_number(cell, numbers) for cell in cells]
    foreign = [i for i, value in enumerate(parsed) if value is None]
    if not foreign:
        values = np.array(parsed, dtype=np.float64)
        return Kind("numbers" if not np.isnan(values).all() else "nothing", values)
    words = [cells[i].strip() for i in foreign]
    row, example = foreign[0], repr(words[0])
    n_numbers = sum(value is not None and value == value for value in parsed)
    others = [word for word in words if numbers.decimal == "," or not _COMMA.fullmatch(word)]
    if n_numbers + len(words) - len(others) >= len(others):
        advice = [f"missing={','.join(list(dict.fromkeys(others))[:5])!r}"] if others else []
        advice += ["decimal=','"] if len(others) < len(words) else []
        return Kind("mixed", example=example, row=row, advice=" and ".join(advice))
    if n_numbers == 0:
        for pattern, word in ((_DATE, "dates"), (_TIME, "times of day")):
            if all(pattern.fullmatch(text) for text in words):
                return Kind(word, example=example, row=row)
        if {word.lower() for word in words} <= set(_TRUTH):
            values = np.array([_TRUTH.get(cell.strip().lower(), np.nan) for cell in cells])
            return Kind("truth values", values, example=example, row=row)
        if all(_THOUSANDS.fullmatch(word) for word in words):
            return Kind("numbers with marks between the thousands", example=example, row=row)
        if all(_WITH_UNIT.fullmatch(word) for word in words):
            return Kind("numbers with units", example=example, row=row)
    return Kind(_text_or_categories(len(set(words)), len(words)), example=example, row=row)


def _text_or_categories(n_different: int, n: int) -> str:
    return "categories" if n_different <= max(2, _FEW * n) and n > n_different else "text"


def counts_rows(values: Array) -> bool:
    """Say whether numbers count 0, 1, 2, ... or 1, 2, 3, ..."""
    return values[0] in (0, 1) and bool(np.array_equal(values, np.arange(len(values)) + values[0]))


def is_id(name: str | None, values: Array) -> bool:
    """Say whether numbers are ids: their name says so, and they are whole and all different."""
    if name is None or not _ID_NAME.fullmatch(name.strip().lower() if not name.endswith(("Id", "ID")) else name):
        return False
    whole = bool(np.isfinite(values).all() and (values == np.round(values)).all())
    if name.strip() == "":
        return whole and counts_rows(values)
    return whole and len(np.unique(values)) == len(values)
