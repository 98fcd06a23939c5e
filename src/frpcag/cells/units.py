"""Common units: a level for every column, and one scale for all of them unless their units differ wildly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frpcag.cells.low_rank import column_medians

Array = np.ndarray

# Columns are scaled one by one when the largest spread is this many times the median one: litres beside millimetres,
# not bright pixels beside dark ones.
MIXED = 50.0


@dataclass(frozen=True)
class Units:
    """Level and scale of the columns.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
    mixed : bool
        Whether columns were scaled one by one.
    """

    center: Array
    scale: Array
    mixed: bool

    def apply(self, X: Array) -> Array:
        """Return the rows in common units, float32, zero where missing."""
        with np.errstate(over="ignore", invalid="ignore"):  # entries at the end of the range are refused by the fit
            return np.nan_to_num((X - self.center) / self.scale, nan=0.0).astype(np.float32)

    def restore(self, P: Array) -> Array:
        """Return predictions in the units of the data, float64."""
        return P.astype(np.float64) * self.scale + self.center


def find_units(X: Array, observed: Array, *, one_level: bool) -> Units:
    """Return the units of the data.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    observed : bool ndarray of the same shape
    one_level : bool
        Take one level for all columns: pixels side by side, whose raw values are neighbours, too.
    """
    Z = np.where(observed, X, 0).astype(np.float64)
    medians = column_medians(Z, observed)
    counts = np.maximum(observed.sum(0), 1)
    with np.errstate(over="ignore", invalid="ignore"):  # entries at the end of the range are refused by the fit
        deviation = np.where(observed, np.abs(Z - medians), 0)
        # Mean deviation, no cell beyond three times the first mean: one gross error must not scale its column away.
        spread = np.minimum(deviation, 3 * deviation.sum(0) / counts).sum(0) / counts
    positive = spread[spread > 0]
    typical = float(np.median(positive)) if len(positive) else 1.0
    mixed = bool(len(positive) and positive.max() > MIXED * typical)
    if mixed:
        return Units(medians, np.where(spread > 1e-9 * np.abs(medians) + 1e-300, spread, 1.0), True)
    center = np.full(X.shape[1], float(np.median(medians))) if one_level else medians
    whole = float(deviation.sum() / counts.sum()) or 1.0
    return Units(center, np.full(X.shape[1], whole), False)
