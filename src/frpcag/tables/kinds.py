"""What a column of a table holds: numbers, dates, codes, categories or text, judged over the whole file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
# Numbers with a mark between the thousands, by the decimal mark.
_THOUSANDS = {
    ".": re.compile(r"[-+]?[1-9]\d{0,2}(?:([,'])\d{3})(?:\1\d{3})*(\.\d*)?"),
    ",": re.compile(r"[-+]?[1-9]\d{0,2}(?:([.'])\d{3})(?:\1\d{3})*(,\d*)?"),
}
_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_ID_NAME = re.compile(r"(|id|.*[_ ]id|.*[a-z]I[dD]|index|unnamed: 0|uuid|row|row_?number|nr|no\.?|#)")
# A column with fewer different words than this share of its cells holds categories.
_FEW = 0.5
# Whole numbers beyond are not all told apart in float64.
EXACT = 2**53
# Words for "no value" that a message proposes.
_MOST_WORDS = 5


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

    def floats(self, X: Array) -> Array:
        """Return numbers as floats, NaN where a number stands for "no value"."""
        X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        if self.sentinels:
            X = np.where(np.isin(X, np.array(list(self.sentinels), X.dtype)), X.dtype.type(np.nan), X)
        return X


DEFAULT = NumberFormat()


def parse_number(cell: str, numbers: NumberFormat) -> float | None:
    """Return the number in a cell, NaN for a missing one, None if there is something else in it.

    Examples
    --------
    >>> from frpcag.tables.kinds import DEFAULT, NumberFormat, parse_number
    >>> parse_number(" 4,5", NumberFormat(decimal=",")), parse_number("NA", DEFAULT), parse_number("x", DEFAULT)
    (4.5, nan, None)
    """
    cell = cell.strip()
    word = cell.lower()
    if word in _MISSING or word in numbers.missing:
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


@dataclass(frozen=True)
class Kind:
    """What a column holds.

    Parameters
    ----------
    word : str
        ``"numbers"``, ``"codes"``, ``"dates"``, ``"times of day"``, ``"truth values"``, ``"numbers with units"``,
        ``"categories"``, ``"text"``, ``"nothing"`` or ``"mixed"``, which is numbers with foreign cells among them.
    values : ndarray of shape (n_samples,) or None
        The numbers, NaN where a cell is missing; 0 and 1 for truth values.
    example : str
        A cell, quoted, that is not a number.
    row : int
        Where the example is, from 0.
    mark : str
        What stands between the thousands.
    """

    word: str
    values: Array | None = None
    example: str = ""
    row: int = 0
    mark: str = ""


def kind_of_numbers(values: Array, numbers: NumberFormat) -> Kind:
    """Return what an array of numbers holds."""
    if values.dtype == bool:
        return Kind("truth values", values.astype(np.float64), example=repr(str(values[0])))
    codes = values.dtype.kind in "iu" and are_codes(values)
    values = numbers.floats(values)
    return Kind("codes" if codes else "nothing" if np.isnan(values).all() else "numbers", values)


def are_codes(values: Array) -> bool:
    """Say whether most of some whole numbers are too large for float64 to tell apart."""
    return bool(np.mean((values > EXACT) | (values < -EXACT)) > 0.5)


def kind_of_cells(cells: Sequence[str], numbers: NumberFormat) -> Kind:
    """Return what a column of text holds.

    Examples
    --------
    >>> from frpcag.tables.kinds import DEFAULT, kind_of_cells
    >>> kind_of_cells(["172,000", "990.5"], DEFAULT).values.tolist(), kind_of_cells(["06083", "10115"], DEFAULT).word
    ([172000.0, 990.5], 'codes')
    """
    parsed = [parse_number(cell, numbers) for cell in cells]
    foreign = [i for i, value in enumerate(parsed) if value is None]
    if not foreign:
        values = np.array(parsed, dtype=np.float64)
        return Kind(_codes_or_numbers(cells, values), values)
    words = [cells[i].strip() for i in foreign]
    row, example = foreign[0], repr(words[0])
    found = [_THOUSANDS[numbers.decimal].fullmatch(word) for word in words]
    if len(marks := {match and match[1] for match in found}) == 1 and (mark := marks.pop()):
        for i, word in zip(foreign, words, strict=True):
            parsed[i] = parse_number(word.replace(mark, ""), numbers)
        return Kind("numbers", np.array(parsed, dtype=np.float64), mark=mark)
    n_numbers = sum(value is not None and value == value for value in parsed)
    others = sum(match is None and not _COMMA.fullmatch(word) for match, word in zip(found, words, strict=True))
    if n_numbers + len(words) - others >= others:
        return Kind("mixed", example=example, row=row)
    if n_numbers == 0:
        for pattern, name in ((_DATE, "dates"), (_TIME, "times of day")):
            if all(pattern.fullmatch(text) for text in words):
                return Kind(name, example=example, row=row)
        if {word.lower() for word in words} <= set(_TRUTH):
            values = np.array([_TRUTH.get(cell.strip().lower(), np.nan) for cell in cells])
            return Kind("truth values", values, example=example, row=row)
        if all(_WITH_UNIT.fullmatch(word) for word in words):
            return Kind("numbers with units", example=example, row=row)
    n_different = len(set(words))
    few = n_different <= max(2, _FEW * len(words)) and len(words) > n_different
    return Kind("categories" if few else "text", example=example, row=row)


def _codes_or_numbers(cells: Sequence[str], values: Array) -> str:
    """Tell codes, such as 06083 or an account number that float64 does not hold, from numbers."""
    observed = ~np.isnan(values)
    if not observed.any():
        return "nothing"
    whole = [word for cell, seen in zip(cells, observed, strict=True) if seen and (word := cell.strip()).isdecimal()]
    padded = any(word[0] == "0" < word[1:] for word in whole) and len({len(word) for word in whole}) == 1
    if padded and len(whole) == observed.sum():
        return "codes"
    return "codes" if 2 * sum(int(word) > EXACT for word in whole) > observed.sum() else "numbers"


def advice(cells: Sequence[str], others: Sequence[Sequence[str]], numbers: NumberFormat) -> str:
    """Return the arguments that make a column numbers and leave the other columns of numbers as they are; or nothing.

    Examples
    --------
    >>> from frpcag.tables.kinds import DEFAULT, advice
    >>> advice(["1", "?", "3", "4"], [], DEFAULT), advice(["1,5", "0,5"], [["7"]], DEFAULT)
    ("missing='?'", "decimal=','")
    """
    for form in (numbers, replace(numbers, decimal="." if numbers.decimal == "," else ",")):
        foreign = [cell.strip() for cell in cells if parse_number(cell, form) is None]
        words = list(dict.fromkeys(word for word in foreign if not _THOUSANDS[form.decimal].fullmatch(word)))
        if len(words) > _MOST_WORDS or any(set(word) & set(",\"'") for word in words):
            continue
        tried = replace(form, missing=form.missing | {word.lower() for word in words})
        if all(kind_of_cells(column, tried).word == "numbers" for column in (cells, *others)):
            said = [f"missing={','.join(words)!r}"] if words else []
            return " and ".join([*said, *([f"decimal={form.decimal!r}"] if form.decimal != numbers.decimal else [])])
    return ""


def is_id(name: str, values: Any) -> bool:
    """Say whether numbers are ids: their name says so, and they are whole and all different."""
    if not _ID_NAME.fullmatch(name.strip().lower() if not name.endswith(("Id", "ID")) else name):
        return False
    whole = bool(np.isfinite(values).all() and (values == np.round(values)).all())
    if name.strip() == "":
        return whole and counts_rows(values)
    return whole and len(np.unique(values)) == len(values)


def counts_rows(values: Array) -> bool:
    """Say whether numbers count 0, 1, 2, ... or 1, 2, 3, ..."""
    return values[0] in (0, 1) and bool(np.array_equal(values, np.arange(len(values)) + values[0]))
