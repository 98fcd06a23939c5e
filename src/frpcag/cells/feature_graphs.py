"""Which features lie side by side: a grid that is told or found, else the nearest columns."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from frpcag.cells.metric import CUT, mean_size, neighbor_weights, robust_neighbors

Array = np.ndarray

N_NEIGHBORS = 10
MOST_FEATURES = 6000
# Rows that are looked at for a grid, and the least side of one.
ROWS = 300
LEAST_SIDE = 4
# A grid is believed when columns one step apart, in both directions, are nearer than columns at large by this share.
LEAST_CONTRAST = 0.08
# Both directions must do so about alike.
ALIKE = 0.4
LAGS = 40


def feature_candidates(
    X: Array, observed: Array, *, shape: tuple[int, int] | None = None, n_jobs: int | None = None
) -> dict[str, sp.csr_array | None]:
    """Return the feature graphs that take part in the search, the one that tells neighbours first.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data in common units.
    observed : bool ndarray of the same shape
    shape : (height, width), optional
        Of the image behind a row. Without it a grid is looked for.
    """
    p = X.shape[1]
    shape = find_shape(X, observed) if shape is None else shape
    if shape is not None:
        return {f"grid {shape[0]} x {shape[1]}": grid_weights(*shape)}
    if not 3 <= p <= MOST_FEATURES:
        return {"none": None}
    # Columns can be alike in their raw values or in their ups and downs; here the latter.
    rows = _some_rows(len(X), 2000)
    T, seen = np.ascontiguousarray(X[rows].T), np.ascontiguousarray(observed[rows].T)
    near = robust_neighbors(T, seen, n_neighbors=min(N_NEIGHBORS, p - 1), metric="l1", n_jobs=n_jobs)
    return {"k-NN": neighbor_weights(near, n_neighbors=N_NEIGHBORS), "none": None}


def grid_weights(height: int, width: int) -> sp.csr_array:
    """Return the graph of an image, each pixel linked to the next ones, scaled to a mean degree of one."""
    nodes = np.arange(height * width).reshape(height, width)
    starts = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    ends = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    half = sp.coo_array((np.ones(len(starts)), (starts, ends)), shape=(nodes.size, nodes.size))
    A = sp.csr_array(half + half.T)
    return A / (A.sum() / nodes.size)


def find_shape(X: Array, observed: Array) -> tuple[int, int] | None:
    """Return the height and width of the image behind a row, if columns show one; else None.

    In an image stored row by row, columns one step apart and columns one width apart are alike; columns half a width
    apart are not. The mean distance of columns by their lag has a dip at the width.
    """
    p = X.shape[1]
    if p < LEAST_SIDE**2:
        return None
    rows = _some_rows(len(X), ROWS)
    Z, seen = X[rows], observed[rows]
    # The median deviation of a pixel jumps where damage ties more than half of its cells; the mean one does not.
    Z = Z * (seen.sum(axis=0) / np.maximum(np.abs(Z).sum(axis=0, where=seen), 1e-30))
    cut = np.float32(CUT * mean_size(Z, seen))
    widths = [width for width in range(LEAST_SIDE, p // LEAST_SIDE + 1) if p % width == 0]
    others = np.unique(np.linspace(2, p // 2, LAGS).astype(int))
    lags = {1, *others.tolist(), *(w + shift for w in widths for shift in (-1, 0, 1))}
    apart = {lag: _distance(Z, seen, lag, cut) for lag in sorted(lags)}
    at_large = float(np.median([apart[lag] for lag in others.tolist()]))
    step = at_large - apart[1]
    if not step > LEAST_CONTRAST * at_large:
        return None
    dips = [w for w in widths if apart[w] < min(apart[w - 1], apart[w + 1]) and at_large - apart[w] > ALIKE * step]
    if not dips:
        return None
    width = min(dips, key=lambda w: apart[w])
    return p // width, width


def _distance(Z: Array, seen: Array, lag: int, cut: np.float32) -> float:
    both = seen[:, lag:] & seen[:, :-lag]
    d = np.minimum(np.abs(Z[:, lag:] - Z[:, :-lag]), cut)
    return float(d[both].mean(dtype=np.float64)) if both.any() else np.inf


def _some_rows(n: int, most: int) -> Array:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))
