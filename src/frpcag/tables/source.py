"""What every format gives: columns as they are in the file, what they hold, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from frpcag.tables.kinds import Kind

Array = np.ndarray

# By the number of a column in the file: its numbers, and which of them differ from those that were read.
New = dict[int, tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class Source:
    """A file that was read.

    Parameters
    ----------
    names : list of str or None
    columns : list of sequences
        As they are in the file.
    kinds : list of Kind
    write : callable
        ``write(path, new, dropped)`` writes the file again: the same but for the cells in ``new``, and without the
        columns in ``dropped``.
    ids : ndarray of shape (n_samples,) or None
        Names of the rows, where the format has a place for them.
    lines : list of int
        The line of the file at which each row ends; empty where there are none, or all is numbers.
    """

    names: list[str] | None
    columns: list[Any]
    kinds: list[Kind]
    write: Callable[[Path, New, set[int]], None]
    ids: Array | None = None
    lines: list[int] = field(default_factory=list)
