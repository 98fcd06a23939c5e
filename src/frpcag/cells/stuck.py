"""Stuck sensors: one column that repeats a value in row after row while the other columns move.

Rows are in order, as readings in time. If a column seldom equals the row before, it does not do so many times in a row
by chance. The prediction from the other columns then tells whether the value is wrong: a stuck reading drifts away from
it, a quiet one does not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

LEAST_LENGTH = 4
# Expected number of such runs in the whole table, if ties came by chance.
BY_CHANCE = 1e-3
# Share of the columns that may tie at once: the others move.
MOST_TIED = 0.5
# Times the usual deviation from the prediction at which a run is wrong.
DRIFT = 2.0


class Run(NamedTuple):
    """Rows of a column, one after another, that all have one value."""

    column: int
    rows: Array


def find_runs(X: Array, observed: Array, order: Array) -> list[Run]:
    """Return the runs of one value in a column that are too long for chance.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data as given: equality is exact.
    observed : bool ndarray of the same shape
    order : ndarray of shape (n_samples,)
        The rows as they came, one after another.
    """
    n, p = X.shape
    X, observed = X[order], observed[order]
    ties = (X[1:] == X[:-1]) & observed[1:] & observed[:-1]
    ties &= (ties.mean(axis=1) < MOST_TIED)[:, None]  # a row that is repeated as a whole is not a stuck sensor
    # A value at the end of a column's range is a limit: what lies beyond it is unknown, but the sensor is not stuck.
    low, high = np.where(observed, X, np.inf).min(axis=0), np.where(observed, X, -np.inf).max(axis=0)
    limits = np.stack([low, high])
    found = []
    for column in np.flatnonzero(ties.sum(axis=0) >= LEAST_LENGTH - 1):
        steps = np.diff(np.concatenate([[0], ties[:, column], [0]]).astype(np.int8))
        starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
        lengths = ends - starts  # in ties, one less than in rows
        for start, end, length in zip(starts, ends, lengths, strict=True):
            # Ties elsewhere in the column; a column of categories or counts has many.
            usual = (lengths.sum() - length + 1) / max(n - length, 1)
            if X[start, column] in limits[:, column]:
                continue
            if length >= LEAST_LENGTH - 1 and n * p * min(usual, 1.0) ** int(length) < BY_CHANCE:
                found.append(Run(int(column), order[start : end + 1]))
    return found


def in_runs(runs: list[Run], shape: tuple[int, ...]) -> Array:
    """Return the cells of the runs."""
    inside = np.zeros(shape, bool)
    for run in runs:
        inside[run.rows, run.column] = True
    return inside


def drifting(runs: list[Run], residual: Array, observed: Array) -> list[Run]:
    """Return the runs that lie farther from their prediction than the rest of their column does.

    Parameters
    ----------
    runs : list of Run
    residual : ndarray of shape (n_samples, n_features)
        Data less prediction, the prediction made without the cells of the runs.
    observed : bool ndarray of the same shape
    """
    others = observed & ~in_runs(runs, residual.shape)
    wrong = []
    for run in runs:
        usual = np.abs(residual[others[:, run.column], run.column])
        off = np.median(np.abs(residual[run.rows, run.column]))
        if len(usual) and off > DRIFT * np.median(usual):
            wrong.append(run)
    return wrong
