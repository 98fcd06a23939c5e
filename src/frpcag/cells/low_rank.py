"""Robust low rank with missing cells: a mean and a few directions that gross errors cannot turn.

Alternating weighted least squares with redescending weights ``1 / (1 + (r / c s)^2)^2``. The normal equations of all
rows are one matrix product (weights times products of pairs of directions), so a round costs ``O(n p r^2)`` in BLAS and
``O(block r^2)`` memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from frpcag.cells.predictors import Prediction

Array = np.ndarray

RANKS = (0, 1, 2, 3, 5, 8, 12, 20, 35)
# Share of the residuals, the smaller ones, that their scale comes from, and one over its mean for a standard Gaussian.
KEPT, UNIT = 0.8, 1.79
# Cut-off of the weights in robust standard deviations: wide first, so that a bad start can still be left.
CUTS = (12.0, 12.0, 6.0, 6.0, 4.0)
# Least ridge, relative to the weighted squares.
RIDGE = 1e-4
BLOCK = 256
# Subspace iteration: directions beyond those asked for, its rounds, and how many times fewer it must be than all.
SPARE, POWERS, SEVERAL = 8, 4, 4
# No cell may be said to hold more of its own prediction than this.
MOST_LEVERAGE = 0.9


@dataclass
class LowRankPredictor:
    """Predict cells by ``mean + A B'``, each cell without its own share in the fit (its leverage).

    Parameters
    ----------
    rank : int
        Number of directions.
    n_iter : int, default=10
        Rounds of the alternating fit.
    robust : bool, default=True
        Redescending weights; False is plain least squares on the observed cells.
    """

    rank: int
    n_iter: int = 10
    robust: bool = True

    def fit(self, X: Array, observed: Array, *, start: tuple[Array, Array] | None = None) -> Prediction:
        """Fit mean and directions to the observed cells, from `top_directions` or a start that is given."""
        n, p = X.shape
        mean = column_medians(X, observed) if self.robust else column_means(X, observed)
        R = np.where(observed, X - mean, 0).astype(X.dtype)
        floor = 1e-3 * float(np.abs(R).mean() * (n * p) / max(int(observed.sum()), 1)) + 1e-30
        if self.rank == 0 or not observed.any():
            self.mean_, self.B_, self.scale_ = mean, np.zeros((p, 0), X.dtype), max(typical_size(R, observed), floor)
            return Prediction(mean + np.zeros_like(X), np.zeros_like(X))
        A, B = start if start is not None else top_directions(R, observed, self.rank, clip=self.robust)
        A, B = A[:, : self.rank].copy(), B[:, : self.rank].copy()
        weight = observed.astype(X.dtype)
        for t in range(self.n_iter):
            R = X - mean - A @ B.T
            scale = max(typical_size(R, observed), floor)
            if self.robust:
                weight = redescending(R, CUTS[min(t, len(CUTS) - 1)] * scale) * observed
            target = np.where(observed, X - mean, 0).astype(X.dtype) * weight
            A, _ = solve_rows(weight, target, B, ridge(weight, A, B, scale, axis=1))
            B, _ = solve_rows(weight.T, target.T, A, ridge(weight, B, A, scale, axis=0))
            R = np.where(observed, X - mean - A @ B.T, 0)
            mean = mean + (weight * R).sum(0) / np.clip(weight.sum(0), 1e-6, None)
        self.mean_, self.B_, self.scale_ = mean.astype(X.dtype), B, scale
        target = np.where(observed, X - self.mean_, 0).astype(X.dtype) * weight
        self.size_ = float(np.square(A).mean())
        A, own = solve_rows(weight, target, B, ridge(weight, A, B, scale, axis=1), leverage=True)
        P = self.mean_ + A @ B.T
        if own is not None:
            own = np.clip(own * weight, None, MOST_LEVERAGE)
            P = np.where(observed, X - (X - P) / (1 - own), P)
        return Prediction(P.astype(X.dtype), np.zeros_like(X))

    def predict(self, rows: Array, observed: Array) -> Prediction:
        """Return what the fitted directions say of new rows; a few rounds of redescending weights."""
        weight = observed.astype(rows.dtype)
        if not self.B_.shape[1]:
            return Prediction(self.mean_ + np.zeros_like(rows), np.zeros_like(rows))
        own = None
        centred = np.where(observed, rows - self.mean_, 0).astype(rows.dtype)
        clip = 3 * CUTS[-1] * self.scale_
        shrink = self.scale_**2 / max(self.size_, 1e-30) + 1e-9
        A, _ = solve_rows(weight, np.clip(centred, -clip, clip) * weight, self.B_, shrink)
        for cut in (*CUTS[1:], CUTS[-1], CUTS[-1]):
            R = centred - A @ self.B_.T
            weight = redescending(R, cut * self.scale_) * observed
            A, own = solve_rows(weight, centred * weight, self.B_, shrink, leverage=True)
        P = self.mean_ + A @ self.B_.T
        own = np.clip(own * weight, None, MOST_LEVERAGE)
        P = np.where(observed, rows - (rows - P) / (1 - own), P)
        return Prediction(P.astype(rows.dtype), np.zeros_like(rows))


def ridge(weight: Array, sought: Array, given: Array, scale: float, *, axis: int) -> float:
    """Return the ridge of one half-step: noise over signal, as a Gaussian prior on the sought factor has it.

    It vanishes with the noise. A ridge that does not biases an exact fit, and weights that shrink with the noise then
    take the bias for errors. The least ridge keeps rows of few cells solvable.
    """
    signal = float(np.square(sought).mean())
    least = RIDGE * float(weight.sum(axis).mean() * np.square(given).mean())
    return scale**2 / max(signal, 1e-30) + least + 1e-30


def redescending(R: Array, cut: float) -> Array:
    """Return the weights ``1 / (1 + (r / cut)^2)^2``."""
    with np.errstate(over="ignore"):  # a cell so far off has no weight
        return 1 / np.square(1 + np.square(R / cut))


def solve_rows(weight: Array, target: Array, B: Array, ridge: float, *, leverage: bool = False):
    """Return the ridge solutions of all rows and, when asked, ``b_j' G_i^-1 b_j`` of all cells: leverage over weight.

    ``G_i = sum_j w_ij b_j b_j' + ridge I``; for all rows at once ``W @ (pairs of B)``.
    """
    n, r = weight.shape[0], B.shape[1]
    upper = np.triu_indices(r)
    place = np.zeros((r, r), np.intp)
    place[upper] = np.arange(len(upper[0]))
    place = np.maximum(place, place.T)
    double = np.where(upper[0] == upper[1], 1, 2).astype(B.dtype)
    pairs = B[:, upper[0]] * B[:, upper[1]]  # (p, r (r + 1) / 2)
    right = target @ B
    A = np.empty((n, r), B.dtype)
    own = np.empty(weight.shape, B.dtype) if leverage else None
    eye = ridge * np.eye(r, dtype=B.dtype)
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        G = (weight[rows] @ pairs)[:, place] + eye
        if own is None:
            A[rows] = np.linalg.solve(G, right[rows][:, :, None])[:, :, 0]
        else:
            inverse = np.linalg.inv(G)
            A[rows] = (inverse @ right[rows][:, :, None])[:, :, 0]
            own[rows] = (inverse[:, upper[0], upper[1]] * double) @ pairs.T
    return A, own


def top_directions(R: Array, observed: Array, rank: int, *, clip: bool = True) -> tuple[Array, Array]:
    """Return the start: leading directions of the data, clipped so that no gross error leads."""
    C = R
    if clip:
        size = float(np.abs(R).sum(dtype=np.float64) / max(int(observed.sum()), 1))
        limit = 3 * size + 2 * 1.48 * sampled_median(np.abs(R), observed)
        C = np.clip(R, -limit, limit)
    k = min(rank + SPARE, *C.shape)
    if SEVERAL * k < min(C.shape):
        # A few directions of many: subspace iteration, from a start that is the same every time.
        V = np.random.Generator(np.random.SFC64(17)).standard_normal((C.shape[1], k)).astype(C.dtype)
        for _ in range(POWERS):
            V, _ = np.linalg.qr(C.T @ (C @ V))
        Z = C @ V
        _, turn = np.linalg.eigh((Z.T @ Z).astype(np.float64))
        turn = turn[:, ::-1][:, :rank].astype(C.dtype)
        return Z @ turn, V @ turn
    tall = C.shape[0] >= C.shape[1]
    gram = C.T @ C if tall else C @ C.T
    _, V = np.linalg.eigh(gram.astype(np.float64))
    V = V[:, ::-1][:, :rank].astype(R.dtype)
    if tall:
        return C @ V, V
    Z = C.T @ V
    norms = np.clip(np.sqrt(np.square(Z).sum(0)), 1e-12, None)
    return V * norms, Z / norms


def typical_size(R: Array, observed: Array, *, most: int = 50_000) -> float:
    """Return a robust standard deviation: UNIT times the mean of the smaller sizes, a share KEPT of them.

    The median would do for dense data; where most cells are exactly alike it is zero.
    """
    step = max(1, R.shape[0] * R.shape[1] // most) | 1  # odd: not always the same columns
    flat = np.abs(R.reshape(-1)[::step][observed.reshape(-1)[::step]])
    if not len(flat):
        return 0.0
    kept = max(1, int(KEPT * len(flat)))
    return UNIT * float(np.partition(flat, kept - 1)[:kept].mean(dtype=np.float64))


def sampled_median(values: Array, observed: Array, *, most: int = 200_000) -> float:
    """Return the median of the observed entries, of an even sample where there are many."""
    flat = values[observed] if not observed.all() else values.reshape(-1)
    flat = flat[:: max(1, len(flat) // most)]
    return float(np.median(flat)) if len(flat) else 0.0


def column_medians(X: Array, observed: Array) -> Array:
    """Return the median of each column over its observed cells, zero without any."""
    if observed.all():
        with np.errstate(over="ignore"):  # the mean of two entries at the end of the range
            return np.median(X, axis=0).astype(X.dtype)
    with np.errstate(invalid="ignore"):
        ordered = np.sort(np.where(observed, X, np.inf).astype(X.dtype), axis=0)
    counts = observed.sum(0)
    columns = np.arange(X.shape[1])
    low, high = (ordered[np.clip((counts - 1 + shift) // 2, 0, None), columns] for shift in (0, 1))
    low, high = (np.where(counts > 0, v, 0) for v in (low, high))
    return ((low + high) / 2).astype(X.dtype)


def column_means(X: Array, observed: Array) -> Array:
    """Return the mean of each column over its observed cells, zero without any."""
    return (np.where(observed, X, 0).sum(0, dtype=np.float64) / np.maximum(observed.sum(0), 1)).astype(X.dtype)
