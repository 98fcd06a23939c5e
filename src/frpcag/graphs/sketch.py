"""Rows in a few dimensions, near each other where a metric has them near: there, searches find their candidates.

Sums of absolute differences are sketched by the map ``x_f -> (cos w_f x_f, sin w_f x_f)`` with ``w_f ~ N(0, 1 / c^2)``.
Its squared distances have as expectation a bounded function of each difference (Welsch's, ``1 - exp(-d^2 / 2 c^2)``),
so gross errors of single cells cannot push neighbours away. Missing entries of Euclidean rows are filled in by
principal components of the others (the EM algorithm of a low-rank model).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from frpcag.graphs.points import Points

# Points with more features than this are searched in the space of their first principal components, as many
# as hold 90 % of the variance but never more than this. A matrix product of fewer columns than 100 is hardly
# faster.
MAX_DIMENSION = 128
# The same for points whose missing entries are filled in.
_MAX_FILLED = 64
# Points that the directions are fitted on, and rounds of filling in.
FITTED = 2000
_ROUNDS = 8


class Sketch:
    """A map of points, fitted on some of them.

    Parameters
    ----------
    points : Points
        Of arrays or tensors.
    rng : RandomState
        On the host: the same samples on every device.

    Attributes
    ----------
    per_neighbor : int
        Candidates for every neighbour that is kept: the more, the less their order can be trusted.
    """

    def __init__(self, points: Points, rng: np.random.RandomState) -> None:
        n, p = points.Z.shape
        self._waves = self._basis = None
        self._centre, self._fills, self.per_neighbor = np.float32(0), False, 1
        if points.metric.euclidean and points.seen is None and p <= MAX_DIMENSION:
            return
        self.per_neighbor = 4
        if not points.metric.euclidean:
            self.per_neighbor = 4 if points.seen is None else 12
            width = map_width(points.cut, float(abs(points.Z).mean(dtype=points.xp.float64)))
            self._waves = frequencies(p, width, rng)
        some = rng.permutation(n)[:FITTED]
        sample = points.take(some if self._waves is None else np.sort(some)).on_host()
        if self._waves is not None:
            mapped = self(sample)
            self._centre = mapped.mean(axis=0)
            if 2 * p > MAX_DIMENSION:
                self._basis = principal_directions(mapped - self._centre)
        elif sample.seen is None:
            self._basis = principal_directions(sample.Z)
        else:
            filled = sample.Z
            for _ in range(_ROUNDS):
                V = principal_directions(filled, most=_MAX_FILLED)
                filled = np.where(sample.seen, sample.Z, (filled @ V) @ V.T)
            self._basis, self._fills, self.per_neighbor = V, True, 10

    @property
    def is_identity(self) -> bool:
        """Whether points stay as they are."""
        return self._waves is None and self._basis is None

    def __call__(self, points: Points) -> NDArray[np.float32]:
        """Return points in the space of the sketch, missing entries at its centre or filled in."""
        Z, xp = points.Z, points.xp
        if self._waves is not None:
            angles = Z * points.put(self._waves)
            Z = xp.concatenate([xp.cos(angles), xp.sin(angles)], 1)
            Z = (Z if points.seen is None else Z * xp.tile(points.seen, (1, 2))) - points.put(self._centre)
        if self._basis is None:
            return Z
        basis = points.put(self._basis)
        for _ in range(_ROUNDS if self._fills and points.seen is not None else 0):
            Z = xp.where(points.seen, points.Z, (Z @ basis) @ basis.T)
        return Z @ basis


def map_width(cut: float, mean_size: float) -> float:
    """Return the width of the map for a bound of differences; without one it is that of twice the mean entry."""
    return max(cut if np.isfinite(cut) else 2 * mean_size, 1e-30)


def frequencies(p: int, width: float, rng: np.random.RandomState) -> NDArray[np.float32]:
    """Return the frequency of each feature; differences well beyond ``width`` count all the same."""
    return np.asarray(rng.standard_normal(p) / width, np.float32)


def principal_directions(sample: NDArray[np.float32], *, most: int = MAX_DIMENSION) -> NDArray[np.float32]:
    """Return the directions that hold 90 % of the variance of centred points, as columns, at most so many."""
    wide = sample.shape[1] > len(sample)
    gram = sample @ sample.T if wide else sample.T @ sample  # the smaller of the two
    most = min(most, len(gram))
    variance, vectors = eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))
    share = np.cumsum(variance[::-1]) / max(float(np.trace(gram)), np.finfo(np.float32).tiny)
    d = min(most, 1 + int(np.searchsorted(share, 0.9)))
    basis = np.ascontiguousarray(vectors[:, ::-1][:, :d])
    if wide:
        basis = sample.T @ (basis / np.sqrt(np.maximum(variance[::-1][:d], np.finfo(np.float32).tiny)))
    return basis
