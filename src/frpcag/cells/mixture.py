"""The probability that a cell is wrong: residuals of right cells against a uniform over the range of the data."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, pi

import numpy as np

Array = np.ndarray

DEGREES = 4.0
BINS = 20
# The scale of right cells is the mean of this share of the smaller residuals, times what makes it one for Gaussians.
TRUSTED = 0.9
TO_SCALE = 1.35
# Cells that the parameters are estimated from.
SAMPLE = 300_000
MOST_WRONG = 0.5
# A row with more than this share of wrong cells is wrong as a whole.
WRONG_ROW = 0.7


@dataclass(frozen=True)
class Mixture:
    """Right cells follow Student's t around the prediction, wrong cells lie anywhere in the range.

    Attributes
    ----------
    edges, scales : ndarray
        The scale of right residuals as a step function, never falling, of the local disagreement.
    floor : float
        Least scale.
    width : float
        Factor on the scales, found with the share.
    share : float
        Share of wrong cells.
    span : float
        Range of the data.
    """

    edges: Array
    scales: Array
    floor: float
    width: float
    share: float
    span: float

    def scale(self, spread: Array) -> Array:
        """Return the scale of right residuals at cells with this local disagreement."""
        steps = np.maximum(self.scales * TO_SCALE, self.floor).astype(spread.dtype)
        return steps[np.searchsorted(self.edges, spread)]

    def posterior(self, residual: Array, spread: Array) -> Array:
        """Return the probability that each cell is wrong."""
        scale = self.scale(spread) * self.width
        right = (1 - self.share) * np.exp(_log_student(residual / scale)) / scale
        wrong = self.share / self.span
        return (wrong / (wrong + right)).astype(residual.dtype)


def fit_mixture(residual: Array, spread: Array, observed: Array, span: float, *, n_iter: int = 30) -> Mixture:
    """Estimate scales and share of wrong cells by expectation maximisation.

    Parameters
    ----------
    residual, spread : ndarray of shape (n_samples, n_features)
        ``x - prediction`` and the local disagreement of what predicted it.
    observed : bool ndarray of the same shape
        Cells that take part.
    span : float
        Range of the data.
    """
    z, q = np.abs(residual[observed]), spread[observed]
    step = max(1, len(z) // SAMPLE)
    z, q = z[::step].astype(np.float64), q[::step].astype(np.float64)
    edges = np.unique(np.quantile(q, np.linspace(0, 1, BINS + 1)[1:-1])) if len(q) else np.zeros(0)
    place = np.searchsorted(edges, q)
    scales = np.full(len(edges) + 1, np.nan)
    for b in range(len(scales)):
        inside = np.sort(z[place == b])
        if len(inside):
            scales[b] = inside[: max(1, int(TRUSTED * len(inside)))].mean()
    typical = float(z.mean()) if len(z) else 1.0
    scales = np.maximum.accumulate(np.where(np.isnan(scales), 0.0, scales))
    floor = 0.1 * typical + 1e-3 * span
    t = z / np.maximum(scales * TO_SCALE, floor)[place]
    scale = np.maximum(scales * TO_SCALE, floor)[place]
    share, width = 0.05, 1.0
    for _ in range(n_iter if len(z) else 0):
        right = (1 - share) * np.exp(_log_student(t / width)) / (scale * width)
        wrong = share / span
        post = wrong / (wrong + right)
        share = float(np.clip(post.mean(), 1e-5, MOST_WRONG))
        keep = 1 - post
        pull = keep * np.square(t) * (DEGREES + 1) / (DEGREES + np.square(t / width))
        width = float(np.clip(np.sqrt(pull.sum() / max(keep.sum(), 1.0)), 0.3, 3.0))
    return Mixture(edges, scales, floor, width, share, span)


def row_probability(post: Array, observed: Array) -> Array:
    """Return the probability that a row is wrong as a whole, from the share of its cells that are.

    A row of right cells has about the usual share of wrong ones; the probability is that of a share beyond
    `WRONG_ROW`, a logistic in the logarithm of the odds of the row's own share.
    """
    share = (post * observed).sum(1, dtype=np.float64) / np.maximum(observed.sum(1), 1)
    share = np.clip(share, 1e-9, 1 - 1e-9)
    odds = np.log(share / (1 - share)) - np.log(WRONG_ROW / (1 - WRONG_ROW))
    return 1 / (1 + np.exp(-4 * odds))


def _log_student(t: Array) -> Array:
    constant = lgamma((DEGREES + 1) / 2) - lgamma(DEGREES / 2) - 0.5 * log(DEGREES * pi)
    return constant - (DEGREES + 1) / 2 * np.log1p(np.square(t) / DEGREES)
