"""Cells that one value has overwritten, found cheaply: for what comes after and takes them as missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from frpcag.cells.feature_graphs import find_shape, grid_weights
from frpcag.cells.guard import Judge, Verdict
from frpcag.cells.metric import column_folds
from frpcag.cells.repeats import MOST_RATE, Repeat, find_repeats
from frpcag.cells.units import find_units

Array = np.ndarray

# Rows on which values are judged, and the fewest that say anything; all rows are then marked, so many at a time.
JUDGED_ROWS, LEAST_ROWS = 2000, 20
CHUNK = 4096


def without_overwritten(X: Array, *, shape: tuple[int, int] | None = None) -> Array:
    """Return data in which cells that one value overwrote, here and there or in patches, are missing.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN is missing.
    shape : (height, width), optional
        Of the image behind a row; without it a grid is looked for.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        ``X`` itself where there is nothing to change.
    """
    return find_overwriting(X[judged_rows(len(X))], shape=shape).applied(X)


def judged_groups(
    groups: Iterable[list], given: Array, observed: Array, W2: sp.csr_array | None, judge: Judge
) -> Iterator[tuple[list, Array, Verdict]]:
    """Yield groups of values with the probability of their cells and the verdict; a later one knows what was believed.

    Values that mark more than can be told from what is normal are left out.
    """
    left = observed
    for group in groups:
        post = np.maximum.reduce([one.posterior(given, observed, W2) for one in group])
        after = left & ~(post > 0.5)
        if after.sum() < (1 - MOST_RATE) * observed.sum():
            continue
        verdict = judge.compare(left, after, on=after)
        if verdict.favours_flags():
            left = after
        yield group, post, verdict


@dataclass(frozen=True, eq=False)
class Overwriting:
    """Values that overwrote cells here and there or in patches.

    Attributes
    ----------
    repeats : list of Repeat
        None where more cells would be marked than can be told from what is normal.
    W2 : csr_array or None
        The grid behind a row.
    left : bool ndarray of shape (n_features,)
        Columns of which something is left.
    """

    repeats: list[Repeat]
    W2: sp.csr_array | None = None
    left: Array | None = None

    def mark(self, X: Array) -> Array:
        """Return where overwritten cells stand in some rows, but for rows of which nothing would be left."""
        marked = np.zeros(X.shape, bool)
        for start in range(0, len(X) if self.repeats else 0, CHUNK):
            rows = slice(start, start + CHUNK)
            given, observed = np.nan_to_num(X[rows]), ~np.isnan(X[rows])
            for one in self.repeats:
                marked[rows] |= one.posterior(given, observed, self.W2) > 0.5
        if self.left is not None:
            marked &= self.left
        marked[~(~np.isnan(X) & ~marked).any(axis=1)] = False
        return marked

    def applied(self, X: Array) -> Array:
        """Return rows with overwritten cells missing; ``X`` itself where there are none."""
        if not self.repeats or not (marked := self.mark(X)).any():
            return X
        return np.where(marked, X.dtype.type(np.nan), X)


def judged_rows(n: int) -> Array:
    """Return the rows that show which values overwrote cells, some 2000 of them."""
    return np.unique(np.linspace(0, n - 1, min(n, JUDGED_ROWS)).astype(int))


def find_overwriting(rows: Array, *, shape: tuple[int, int] | None = None) -> Overwriting:
    """Return the values that overwrote cells of some rows; none where the rows are too few to tell."""
    if len(rows) < LEAST_ROWS:
        return Overwriting([])
    seen = ~np.isnan(rows)
    if shape is None:
        shape = find_shape(find_units(rows, seen, one_level=False).apply(rows), seen)
    W2 = None if shape is None else grid_weights(*shape)
    given = np.where(seen, rows, 0)
    repeats = find_repeats(given, seen, W2)
    if repeats:
        Z = find_units(rows, seen, one_level=shape is not None).apply(rows)
        judge = Judge(Z, seen, column_folds(rows.shape[1]), W2, np.random.Generator(np.random.SFC64(7)))
        scattered = [one for one in repeats if one.kind == "scattered"]
        groups = [*filter(None, [scattered]), *([one] for one in repeats if one.kind == "patch")]
        verdicts = judged_groups(groups, given, seen, W2, judge)
        repeats = [one for group, _, verdict in verdicts if verdict.favours_flags() for one in group]
    found = Overwriting(repeats, W2)
    marked = found.mark(rows)
    if marked.mean() > MOST_RATE:
        found, marked = Overwriting([], W2), np.zeros_like(marked)
    return replace(found, left=(seen & ~marked).any(axis=0))
