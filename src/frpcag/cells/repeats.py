"""Exact repeats: one value that overwrote cells here and there, or whole connected patches.

Dead pixels, stuck sensors, saturation and zeros for "no reading" repeat one value exactly. For such a value let
``r(m)`` be the share of cells equal to it among the cells of which ``m`` of four feature neighbours equal it.
Scattered overwriting strikes cells whose neighbours do not have the value, too, so ``r(0)`` reads off its rate;
natural regions of one value have ``r(0)`` near zero. A rectangle shows in ``r(2)`` near one with ``r(1)`` near zero:
a cell outside touches it once, a cell at its corner twice; natural shapes have edges that lean.

A stuck sensor is one column that repeats a value in row after row while the other columns move. Rows are in order, as
readings in time. If a column seldom equals the row before, it does not do so many times in a row by chance. The
prediction from the other columns then tells whether the value is wrong: a stuck reading drifts away from it, a quiet
one does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.cells.guard import MOST_BY_COLUMN, variation

Array = np.ndarray

# A value is looked at when this share of the cells has it.
COMMON = 0.02
# It must be spread over this share of the columns, and this many (counted as one over the sum of squared shares).
SPREAD_OUT = 0.2
LEAST_COLUMNS = 3
# Rate of scattered overwriting that is believed; clean data were seen with up to 0.03.
LEAST_RATE = 0.04
MOST_RATE = 0.6
# An overwriting value is this many times as common as the value of a typical other cell.
STANDS_OUT = 4.0
# Cells a column must have for its rate to be compared with that of others.
LEAST_IN_COLUMN = 8
# Rates may differ this much between groups: a fixed number of errors in each row makes neighbours differ.
UNEVEN = 1.5
# Fewer cells than this say nothing of a rate.
LEAST_CELLS = 200
# A group's own rate counts as much as its surroundings at this many cells.
PRIOR_CELLS = 30
FLAT_INSIDE = 0.8
FLAT_OUTSIDE = 0.03
WITNESSES = 4
# Witnesses at the corner of a rectangle.
CORNER = 2
# Distances of a prediction from the value, in standard deviations of the data, that are told apart.
EDGES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)
LEAST_LENGTH = 4
# Expected number of such runs in the whole table, if ties came by chance.
BY_CHANCE = 1e-3
# Share of the columns that may tie at once: the others move.
MOST_TIED = 0.5
# Times the usual deviation from the prediction at which a run is wrong.
DRIFT = 2.0


@dataclass(frozen=True)
class Repeat:
    """A value that overwrote cells, and how to tell which ones.

    Attributes
    ----------
    value : float
    kind : {"scattered", "patch"}
    rate : float
        Share of the cells that were overwritten.
    table : ndarray
        Probability of a cell that has the value, by witnesses and, where a prediction is known, its distance.
    scale : float
        Unit of that distance; 0 where no prediction was known.
    """

    value: float
    kind: str
    rate: float
    table: Array
    scale: float = 0.0

    def posterior(self, X: Array, observed: Array, W2: sp.csr_array | None, predicted: Array | None = None) -> Array:
        """Return the probability that each cell was overwritten with the value; zero where it has another."""
        equal = (self.value == X) & observed
        near = equal_witnesses(equal, W2)
        if self.kind == "patch":
            return (equal & (near >= CORNER)).astype(np.float32)
        groups = _groups(near, None if not self.scale else predicted, self.value, self.scale)
        return np.where(equal, self.table[groups], 0).astype(np.float32)


def common_values(X: Array, observed: Array) -> list[float]:
    """Return the values that more than `COMMON` of the observed cells have exactly, in columns of all kinds.

    A value that only a few columns have is a category or a limit of theirs.
    """
    values, counts = np.unique(X[observed], return_counts=True)
    found = []
    for value in values[counts > max(COMMON * counts.sum(), 2)]:
        by_column = ((value == X) & observed).sum(axis=0)
        if np.square(by_column.sum()) >= max(LEAST_COLUMNS, SPREAD_OUT * X.shape[1]) * np.square(by_column).sum():
            found.append(float(value))
    return found


def equal_witnesses(equal: Array, W2: sp.csr_array | None) -> Array:
    """Return how many of four feature neighbours are equal: the share of each cell's neighbour weight, times four.

    Without a graph of features that lie side by side there are no witnesses, and the rate of a value is its share.
    """
    if W2 is None:
        return np.zeros(equal.shape, np.int8)
    A = sp.csr_array(W2, dtype=np.float32)
    degree = np.asarray(A.sum(axis=1)).ravel()
    A = sp.csr_array(sp.diags_array(1 / np.where(degree > 0, degree, 1)) @ A)
    return np.rint(WITNESSES * (A @ equal.T.astype(np.float32)).T).astype(np.int8)


def find_repeats(
    X: Array, observed: Array, W2: sp.csr_array | None, *, predicted: Array | None = None, scale: float = 1.0,
    values: list[float] | None = None, kind: str | None = None,
) -> list[Repeat]:  # fmt: skip
    """Return the values that overwrote cells.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data as given: equality is exact.
    observed : bool ndarray of the same shape
    W2 : sparse array of shape (n_features, n_features) or None
        Weights of a graph of features that lie side by side, if any do.
    predicted : ndarray of shape (n_samples, n_features), optional
        What the cells should be. Where the prediction is far from the value, only overwriting explains it.
    scale : float, default=1
        Standard deviation of the data, the unit of "far".
    values, kind : list of float and str, optional
        Look at these values only, and for this kind only.
    """
    found = []
    for value in common_values(X, observed) if values is None else values:
        equal = (value == X) & observed
        near = equal_witnesses(equal, W2)
        by_witness = _rates_by_witness(near, equal, observed)
        groups = _groups(near, predicted, value, scale)
        n_groups = (WITNESSES + 1) * (1 if predicted is None else len(EDGES) + 1)
        cells = np.bincount(groups[observed], minlength=n_groups)
        hits = np.bincount(groups[equal], minlength=n_groups)
        rate, in_group = _overwriting(cells, hits, by_witness, predicted is not None)
        if kind is None:
            believed = LEAST_RATE <= rate <= MOST_RATE and _is_even(near, equal, observed, by_witness)
            believed = believed and (W2 is not None or not _is_a_level(X, equal, observed))
        else:
            believed = kind == "scattered" and rate >= LEAST_RATE / 2  # believed already: less to prove
        if believed:
            rates = _smoothed_rates(cells, hits)
            table = in_group / np.maximum(rates, np.maximum(in_group, 1e-12))
            found.append(Repeat(value, "scattered", rate, table, 0.0 if predicted is None else scale))
        elif by_witness.get(CORNER, 0) > FLAT_INSIDE and by_witness.get(1, 1) < FLAT_OUTSIDE:
            found.append(Repeat(value, "patch", float((equal & (near >= CORNER)).mean()), np.ones(1)))
    return found


def _is_a_level(X: Array, equal: Array, observed: Array) -> bool:
    """Say whether other values are about as common: levels of a scale, such as answers from 1 to 5."""
    others = X[observed & ~equal]
    if not len(others):
        return True
    _, place, counts = np.unique(others, return_inverse=True, return_counts=True)
    return bool(equal.sum() < STANDS_OUT * np.median(counts[place]))


def _is_even(near: Array, equal: Array, observed: Array, by_witness: dict[int, float]) -> bool:
    """Say whether cells with the fewest witnesses have the value at the same rate in all columns, sampling aside."""
    at = (near == min(by_witness, default=0)) & observed
    cells, hits = at.sum(axis=0), (equal & at).sum(axis=0)
    enough = cells >= LEAST_IN_COLUMN
    if enough.sum() < max(LEAST_COLUMNS, SPREAD_OUT / 2 * len(cells)):
        return False
    return variation(hits[enough], cells[enough]) <= MOST_BY_COLUMN


def _smoothed_rates(cells: Array, hits: Array) -> Array:
    """Return the share of cells with the value by group; groups of few cells lean on their distance, then on all."""
    overall = hits.sum() / max(cells.sum(), 1)
    by_witness = cells.reshape(WITNESSES + 1, -1), hits.reshape(WITNESSES + 1, -1)
    at_distance = (by_witness[1].sum(0) + PRIOR_CELLS * overall) / (by_witness[0].sum(0) + PRIOR_CELLS)
    return ((by_witness[1] + PRIOR_CELLS * at_distance) / (by_witness[0] + PRIOR_CELLS)).ravel()


def _groups(near: Array, predicted: Array | None, value: float, scale: float) -> Array:
    """Return the row of the table that each cell belongs to."""
    groups = near.astype(np.int64)
    if predicted is None:
        return groups
    return groups * (len(EDGES) + 1) + np.searchsorted(EDGES, np.abs(predicted - value) / max(scale, 1e-30))


def _rates_by_witness(near: Array, equal: Array, observed: Array) -> dict[int, float]:
    rates = {}
    for m in range(WITNESSES + 1):
        at = (near == m) & observed
        if (count := int(at.sum())) > LEAST_CELLS:
            rates[m] = float((equal & at).sum() / count)
    return rates


def _overwriting(cells: Array, hits: Array, by_witness: dict[int, float], with_prediction: bool) -> tuple[float, Array]:
    """Return the rate of overwriting, overall and in each group: how often cells have the value without a reason to."""
    fewest = min(by_witness, default=WITNESSES)
    plain = by_witness[fewest] if fewest <= CORNER else 0.0
    if not with_prediction:
        return plain, np.full(len(cells), plain)
    # The farthest predictions with enough cells: from there on, nothing but overwriting gives the value.
    far_cells, far_hits = (np.cumsum(a.reshape(-1, len(EDGES) + 1)[:, ::-1], axis=1) for a in (cells, hits))
    rate = _first_rate(far_cells.sum(0), far_hits.sum(0), plain)
    # Overwriting does not look at its neighbours; a group with a much higher rate has a natural reason.
    by_count = [min(_first_rate(c, h, rate), UNEVEN * rate) for c, h in zip(far_cells, far_hits, strict=True)]
    return rate, np.repeat(by_count, len(EDGES) + 1)


def _first_rate(cells: Array, hits: Array, otherwise: float) -> float:
    enough = np.flatnonzero(cells[: len(EDGES) // 2 + 1] > LEAST_CELLS)
    return float(hits[enough[0]] / cells[enough[0]]) if len(enough) else otherwise


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
