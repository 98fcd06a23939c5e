"""Which columns a user means: names, numbers from 1, lists in one string."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

# Names that a message lists.
_MOST_NAMED = 30


def as_names(value: str | Sequence[Any] | None) -> list[Any]:
    """Return a list from a list, or from a string with commas; names with commas in them stand in quotes.

    Examples
    --------
    >>> from frpcag.tables.choice import as_names
    >>> as_names('a, "b, c"')
    ['a', 'b, c']
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [word.strip() for word in next(csv.reader([value], skipinitialspace=True), [])]
    return list(value)


def find_columns(path: Path, argument: str, wanted: Sequence[Any], names: Sequence[str]) -> list[int]:
    """Return the positions of columns; raise ValueError for one that is not there, with those that are."""
    found = []
    for word in map(str, wanted):
        if word in names:
            found.append(names.index(word))
        elif word.isdecimal() and 1 <= int(word) <= len(names):
            found.append(int(word) - 1)
        else:
            close = get_close_matches(word, names, n=3)
            some = ", ".join(map(repr, close or names[:_MOST_NAMED]))
            more = f" and {len(names) - _MOST_NAMED} more" if not close and len(names) > _MOST_NAMED else ""
            raise ValueError(
                f"{argument}={word!r} is not a column of {path}; pass one of {some}{more}, or a number from 1 to "
                f"{len(names)}."
            )
    return found
