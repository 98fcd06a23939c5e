"""Single rows explained by a few directions, with the cells that no direction explains set apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frpcag.runtime.arrays import is_tensor
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Steps, and how many times wider than at the end residuals may be in the first ones: no bad start is final.
N_STEPS, FIRST_WIDTH, NARROWING = 60, 3.0, 0.8
# Longer than a step that surely goes down, shorter than twice that: every step still goes down.
RELAX = 1.7
MOMENTUM = 0.7
# A row whose step is this small, squared and relative, in deviations of the directions, has settled.
SETTLED = 1e-6
# Most of a row that can be wrong.
MOST_WRONG = 0.6
# Entries beyond so many deviations are as wrong as can be; float32 holds their powers.
FARTHEST = 1e5
# Rows of a block: bounds memory, not the result.
_BLOCK = 32


@dataclass(frozen=True, eq=False)
class CellModel:
    """What right cells of a row are like: Student's t of 4 degrees around ``B a``, the entries of ``a`` normal.

    Wrong cells lie anywhere in the range of the data, or repeat one value.

    Parameters
    ----------
    B : ndarray of shape (n_features, rank)
        Directions, float32.
    prior : ndarray of shape (rank,)
        One over the variance along each.
    scale : ndarray of shape (n_features,)
        Of right residuals.
    density : float
        One over the range of the data.
    usual : (float, float), default=(0, 0)
        Shares of cells off the prediction, and repeating a value unexpectedly, that right rows have, too.
    """

    B: Array
    prior: Array
    scale: Array
    density: float
    usual: tuple[float, float] = (0.0, 0.0)

    @cached_property
    def inverse(self) -> Array:
        """Inverse of a matrix that no row's curvature exceeds."""
        B = self.B.astype(np.float64)
        bound = (B.T * (1.25 / np.square(self.scale.astype(np.float64)))) @ B + np.diag(self.prior.astype(np.float64))
        return np.ascontiguousarray(np.linalg.inv(bound), np.float32) if len(bound) else np.zeros((0, 0), np.float32)


class Explained(NamedTuple):
    """What a model says of rows: its prediction of every cell, and the probability that an observed cell is wrong."""

    values: Array
    wrong: Array


def widths(model: CellModel) -> Array:
    """Return by how much residuals of each step are taken as wider than they are, 1 in the end.

    At the start, when nothing is explained, residuals are as wide as the rows: else every cell would look wrong.
    """
    squares = np.square(model.B.astype(np.float64) / model.scale[:, None])
    reach = squares.mean(axis=0) @ (1 / model.prior.astype(np.float64))
    first = max(FIRST_WIDTH, 2 * float(np.sqrt(reach)))
    return np.maximum(first * NARROWING ** np.arange(N_STEPS + 1), 1).astype(np.float32)


def explain_rows(model: CellModel, rows: Any, seen: Any, rate: Any, *, n_jobs: int | None = None) -> Explained:
    """Find the most probable directions of each row, and its wrong cells, by generalised expectation maximisation.

    A step bounds the log-likelihood from below by a quadratic whose matrix is the same for all rows, so it costs
    ``O(n_features rank)`` for a row. Each row is computed by itself: on the host its result is the same, to the last
    bit, in any batch.

    Parameters
    ----------
    model : CellModel
    rows : ndarray or tensor of shape (n_rows, n_features)
        Centred, float32; 0 where missing.
    seen : ndarray or tensor of the same shape
        1 where observed, 0 elsewhere, float32.
    rate : ndarray or tensor of the same shape
        Where a cell repeats a value, how often right cells have that value there; -1 elsewhere.
    n_jobs : int, optional

    Returns
    -------
    Explained

    Examples
    --------
    >>> from frpcag.rows.explain import CellModel, explain_rows
    >>> line = CellModel(np.ones((9, 1), "f4") / 3, np.ones(1, "f4"), np.full(9, 0.1, "f4"), 0.1)
    >>> row = np.array([[2, 2, 2, 2, 7, 2, 2, 2, 2]], "f4")
    >>> values, wrong = explain_rows(line, row, np.ones_like(row), -np.ones_like(row))
    >>> values[0, 4].round(1), wrong[0].round(1)
    (np.float32(2.0), array([0., 0., 0., 0., 1., 0., 0., 0., 0.], dtype=float32))
    """
    if is_tensor(rows):
        from frpcag.backends.torch.robust_rows import fit_rows as fit_tensors

        return Explained(
            *fit_tensors(
                model,
                rows,
                seen,
                rate,
                widths=widths(model),
                relax=RELAX,
                momentum=MOMENTUM,
                settled=SETTLED,
                most=MOST_WRONG,
            )
        )
    from frpcag.backends.numba.robust_rows import fit_rows

    values, wrong = np.empty(rows.shape, np.float32), np.empty(rows.shape, np.float32)
    numbers = (
        np.float32(model.density),
        np.asarray(model.usual, np.float32),
        widths(model),
        np.float32(RELAX),
        np.float32(MOMENTUM),
        np.float32(SETTLED),
    )
    parts = (np.ascontiguousarray(model.B, np.float32), model.scale, model.prior, model.inverse)

    def fit(start: int) -> None:
        at = slice(start, start + _BLOCK)
        out = values[at], wrong[at]
        fit_rows(rows[at], seen[at], rate[at], *parts, *numbers, np.float32(MOST_WRONG), *out)

    if len(rows) <= _BLOCK:
        fit(0)
    else:
        with block_pool(n_jobs) as run:
            run(fit, range(0, len(rows), _BLOCK))
    return Explained(values, wrong)


class Repeats(NamedTuple):
    """Training rows, how near equal values are, values that many of their cells hold, and how many, by column."""

    X: Array
    tol: float
    common: Array
    rates: Array


def repeat_rates(rows: Array, near: Array, weights: Array, training: Repeats, *, least: int) -> Array:
    """Return how often right cells hold a value that a row repeats, where it does; -1 elsewhere.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        In the units of the data; NaN is missing.
    near, weights : ndarray of shape (n_rows, n_neighbors)
        Training rows near each row, and their weights, sum one.
    training : Repeats
    least : int
        Cells that make a repeat. The two commonest values of a row are looked at.
    """
    from frpcag.backends.numba.robust_rows import rates_of_repeats, repeated

    values = np.empty((len(rows), 2), rows.dtype)
    rate = np.empty(rows.shape, np.float32)
    repeated(rows, least, values)
    rates_of_repeats(rows, values, near, weights, *training, rate)
    return rate


def same_cells(rows: Any, X: Any, U: Any, eps: float, *, level: Any = 0.0) -> Any:
    """Return where cells are those of training rows, but for the rounding of ``U + S`` and of a copy in less precision.

    ``level`` was subtracted from all three after the rounding.
    """
    return abs(rows - X) <= 2 * eps * (abs(X) + abs(U) + abs(level))


def coarser_eps(*dtypes: np.dtype) -> float:
    """Return the relative rounding of the dtype that has fewest digits."""
    return max(float(np.finfo(dtype).eps) for dtype in dtypes)
