"""Predict a column from the other columns: a robust Gaussian model for tables of few columns.

The prediction of a cell is its conditional mean given the other cells of the row, so it never uses the cell itself.
Cells that do not fit are not removed; the model gives them extra noise instead. With weight ``w`` a cell counts as
measured with variance ``(1 / w - 1)`` of its column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frpcag.cells.low_rank import column_medians
from frpcag.cells.predictors import Prediction

Array = np.ndarray

MOST_COLUMNS = 128
CLIP = 2.0
CUTS = (6.0, 4.0, 3.0, 3.0, 3.0)
SHRINK = 0.02
BLOCK = 256


@dataclass
class ColumnPredictor:
    """Predict each column by a robust regression on all others.

    Parameters
    ----------
    robust : bool, default=True
        False is the plain conditional mean under the covariance of the observed cells.
    """

    robust: bool = True

    def fit(self, X: Array, observed: Array) -> Prediction:
        """Learn centre, scale and correlation of the columns, then predict every cell from the rest of its row."""
        n = len(X)
        self.center_ = column_medians(X, observed).astype(np.float64)
        deviation = np.where(observed, np.abs(X - self.center_), 0)
        counts = np.clip(observed.sum(0), 1, None)
        limit = 3 * (deviation.sum(0) / counts) + 1e-12
        scale = np.where(deviation < limit, deviation, limit).sum(0) / counts * 1.2533
        typical = float(scale[scale > 0].mean()) if (scale > 0).any() else 1.0
        self.scale_ = np.where(scale > 1e-9 * typical, scale, typical)
        Z = np.where(observed, (X - self.center_) / self.scale_, 0).astype(np.float64)
        start = np.clip(Z, -CLIP, CLIP) if self.robust else Z
        shared = observed.astype(np.float64)
        common = np.clip(shared.T @ shared, 1, None)
        # clipping shrinks variances: back to one on the diagonal, then towards no correlation
        self.C_ = _shrunk((start.T @ start) / common, n)
        weight = self._first_weights(Z, observed)
        for cut in CUTS if self.robust else (np.inf,) * 2:
            P, sd, filled, left = _conditional(self.C_, Z, weight)
            if self.robust:
                weight = np.where(observed, 1 / np.square(1 + np.square((Z - P) / (cut * sd))), 0.0)
            self.C_ = _shrunk((filled.T @ filled + left) / n, n)
        P, sd, _, _ = _conditional(self.C_, Z, weight)
        return self._restored(P, sd, X.dtype)

    def predict(self, rows: Array, observed: Array) -> Prediction:
        """Predict every cell of new rows from the rest of its row."""
        Z = np.where(observed, (rows - self.center_) / self.scale_, 0).astype(np.float64)
        weight = self._first_weights(Z, observed)
        for cut in CUTS if self.robust else ():
            P, sd, _, _ = _conditional(self.C_, Z, weight)
            weight = np.where(observed, 1 / np.square(1 + np.square((Z - P) / (cut * sd))), 0.0)
        P, sd, _, _ = _conditional(self.C_, Z, weight)
        return self._restored(P, sd, rows.dtype)

    def _first_weights(self, Z: Array, observed: Array) -> Array:
        return np.where(observed, 1 / (1 + np.square(Z / 6.0)) ** 2, 0.0) if self.robust else observed.astype(Z.dtype)

    def _restored(self, P: Array, sd: Array, dtype) -> Prediction:
        return Prediction((P * self.scale_ + self.center_).astype(dtype), (sd * self.scale_).astype(dtype))


def _shrunk(C: Array, n: int) -> Array:
    """Return the correlations of a covariance, shrunk towards none."""
    d = np.sqrt(np.clip(C.diagonal(), 1e-6, None))
    share = min(0.5, SHRINK + len(C) / (4.0 * n))
    return (1 - share) * (C / (d[:, None] * d)) + share * np.eye(len(C))


def _conditional(C: Array, Z: Array, weight: Array) -> tuple[Array, Array, Array, Array]:
    """Return the mean and deviation of every cell given the rest of its row, the filled rows and what is left open.

    With ``K = (C + D)^-1`` and ``D`` the extra noise of a row, the mean of cell j given the others is
    ``z_j - (K z)_j / K_jj`` and its variance ``1 / K_jj - D_jj``; ``C K z`` are the filled rows.
    """
    n, p = Z.shape
    P, sd, filled = np.empty_like(Z), np.empty_like(Z), np.empty_like(Z)
    left = np.zeros((p, p))
    noise = np.clip(1 / np.clip(weight, 1e-4, None) - 1, None, 1e4)
    diagonal = np.arange(p)
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        S = np.repeat(C[None], len(Z[rows]), axis=0)
        S[:, diagonal, diagonal] += noise[rows] + 1e-9
        K = np.linalg.inv(S)
        Kz = (K @ Z[rows][:, :, None])[:, :, 0]
        own = K[:, diagonal, diagonal]
        P[rows] = Z[rows] - Kz / own
        sd[rows] = np.sqrt(np.clip(1 / own - noise[rows], 1e-4, None))
        filled[rows] = Kz @ C
        left += len(K) * C - C @ K.sum(0) @ C
    return P, sd, filled, left
