"""Common units: level and scale of every column, or one of each for the pixels of images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frpcag.cells.low_rank import column_medians

Array = np.ndarray

# Pixels, too, are scaled one by one when the largest spread is this many times the median one.
MIXED = 50.0
# No cell is farther off than this many times nearly all others: else one absurd value decides every sum and span.
FAR, NEARLY_ALL = 10.0, 0.99


@dataclass(frozen=True)
class Units:
    """Level and scale of the columns.

    Attributes
    ----------
    center, scale : ndarray of shape (n_features,)
    low, high : ndarray of shape (n_features,)
        The range of the observed cells.
    far : float
        Farthest that a cell lies off, in common units.
    mixed : bool
        Whether columns were scaled one by one.
    """

    center: Array
    scale: Array
    low: Array
    high: Array
    far: float
    mixed: bool

    def apply(self, X: Array) -> Array:
        """Return the rows in common units, float32, zero where missing."""
        with np.errstate(over="ignore", invalid="ignore"):  # entries at the end of the range are refused by the fit
            return np.nan_to_num(np.clip((X - self.center) / self.scale, -self.far, self.far)).astype(np.float32)

    def restore(self, P: Array) -> Array:
        """Return predictions in the units of the data, float64, within their range."""
        with np.errstate(over="ignore"):
            return np.clip(P.astype(np.float64) * self.scale + self.center, self.low, self.high)


def find_units(X: Array, observed: Array, *, one_level: bool) -> Units:
    """Return the units of the data.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    observed : bool ndarray of the same shape
    one_level : bool
        Take one level and one scale for all columns: pixels side by side, whose raw values are neighbours, too.
    """
    Z = np.where(observed, X, 0).astype(np.float64)
    medians = column_medians(Z, observed)
    with np.errstate(over="ignore", invalid="ignore"):  # entries at the end of the range are refused by the fit
        deviation = np.abs(Z - medians)
    spread = np.nan_to_num(column_medians(deviation, observed))
    # Where more than half of a column is one value, the others tell its unit.
    spread = np.where(spread > 0, spread, column_medians(deviation, observed & (deviation > 0)))
    positive = spread[spread > 0]
    typical = float(np.median(positive)) if len(positive) else 1.0
    mixed = bool(len(positive) and positive.max() > MIXED * typical)
    low, high = np.where(observed, X, np.inf).min(axis=0), np.where(observed, X, -np.inf).max(axis=0)
    if mixed or not one_level:
        center, scale = medians, np.where(spread > 1e-9 * np.abs(medians) + 1e-300, spread, 1.0)
    else:
        center, scale = np.full(X.shape[1], float(np.median(medians))), np.full(X.shape[1], typical)
    with np.errstate(over="ignore"):
        off = np.abs((Z - center) / scale)[observed]
    far = FAR * float(np.quantile(off[off > 0], NEARLY_ALL)) if off.any() else 1.0
    return Units(center, scale, low, high, far, mixed)
