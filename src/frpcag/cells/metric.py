"""Nearest rows under a robust distance: wrong cells must not choose the neighbours.

A gross error of one cell moves a Euclidean distance by its square. The sum of absolute differences grows with it once,
the truncated sum not beyond a bound. Which of them is right depends on the data (docs/decisions/cleaning.md), so
``"auto"`` takes the one whose neighbours predict the entries best; it uses no labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import ELIGIBLE, METRICS
from frpcag.graphs.index import approximate
from frpcag.graphs.metric import CUT
from frpcag.graphs.metric_choice import JUDGED_ROWS, JUDGES, median_error
from frpcag.graphs.points import Points
from frpcag.graphs.search import HostSearch
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Neighbours that a sample graph links a row to.
N_NEIGHBORS = 5
# Above this many distances a search first collects candidates.
EXACT_PAIRS = 2.5e7
# Tables of at most this many columns are predicted in folds.
FOLDED_COLUMNS = 48
N_FOLDS = 4
# Pairs of rows that share fewer entries than this share are as far apart as can be.
LEAST_COMMON = 0.02


class Neighbors(NamedTuple):
    """Indices and mean distances (n, k) of the nearest rows, nearest first."""

    indices: Array
    distances: Array


def robust_neighbors(X: Array, observed: Array | None = None, *, metric: str, **options) -> Neighbors:
    """Return the neighbours under one metric, with the options of `all_neighbors`."""
    return all_neighbors(X, observed, metrics=(metric,), **options)[metric]


def all_neighbors(
    X: Array, observed: Array | None, *, n_neighbors: int, metrics=ELIGIBLE, queries=None, n_jobs=None
) -> dict[str, Neighbors]:
    """Return the nearest rows under metrics that are robust to gross errors.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Centred, finite data; entries that are not observed are ignored.
    observed : bool ndarray of the same shape, optional
        What may be compared. Distances are means over the entries that both rows have.
    n_neighbors : int
    metrics : sequence of str
    queries : (rows, observed), optional
        Find the neighbours of these rows instead; without it a row is not its own neighbour.
    n_jobs : int, optional
    """
    points = _prepare(X, observed)
    asked = points if queries is None else _prepare(*queries)
    n, n_points = len(asked.Z), len(points.Z)
    k = min(n_neighbors, n_points - (queries is None))
    cut = CUT * mean_size(X, observed)
    least = max(LEAST_COMMON * X.shape[1], 1)
    by_lists = queries is None and float(n) * n_points > EXACT_PAIRS
    found = {}
    with block_pool(n_jobs) as run:
        for name in metrics:
            metric = METRICS[name] if METRICS[name].bound is None else replace(METRICS[name], cut=cut)
            search = HostSearch(replace(points, metric=metric), run, least_common=least)
            if by_lists:
                indices, distances = approximate(search, k, np.random.RandomState(0))
            else:
                indices, distances = search.exact(asked, k, skip=np.arange(n) if queries is None else None)
            scale = X.shape[1] ** (0.5 if metric.euclidean else 1.0)
            found[name] = Neighbors(indices, (distances / scale).astype(np.float32))
    return found


def column_folds(p: int) -> list[Array]:
    """Return the columns in folds: the neighbours that predict a fold are found without it.

    In a table of few columns a wrong cell would else choose the very rows that agree with it. With many columns one
    cell hardly matters, and there is one fold.
    """
    if p > FOLDED_COLUMNS or p < 2:
        return [np.arange(p)]
    order = np.random.Generator(np.random.SFC64([0, 3])).permutation(p)
    return [np.sort(part) for part in np.array_split(order, min(N_FOLDS, p))]


def fold_columns(folds: list[Array]) -> Iterator[tuple[Array | slice, Array | slice]]:
    """Yield the columns of every fold and those outside it; of a single fold, all columns are both."""
    if len(folds) == 1:
        yield slice(None), slice(None)
        return
    everything = np.sort(np.concatenate(folds))
    for fold in folds:
        yield fold, np.setdiff1d(everything, fold)


def folded_neighbors(
    X: Array, observed: Array, folds: list[Array], *, n_neighbors: int, metrics=ELIGIBLE, n_jobs=None
) -> dict[str, list[Neighbors]]:
    """Return for each metric the neighbours of every fold, found from the columns outside it."""
    found: dict[str, list[Neighbors]] = {metric: [] for metric in metrics}
    for _, rest in fold_columns(folds):
        near = all_neighbors(X[:, rest], observed[:, rest], n_neighbors=n_neighbors, metrics=metrics, n_jobs=n_jobs)
        for metric in metrics:
            found[metric].append(near[metric])
    return found


def sample_graphs(X: Array, observed: Array, folds: list[Array], metric: str, *, n_jobs=None) -> list[sp.csr_array]:
    """Return the weights of the sample graph of every fold."""
    near = folded_neighbors(X, observed, folds, n_neighbors=N_NEIGHBORS, metrics=(metric,), n_jobs=n_jobs)
    return [neighbor_weights(one, n_neighbors=N_NEIGHBORS) for one in near[metric]]


def prediction_errors(
    X: Array, observed: Array, folds: list[Array], neighbors: dict[str, list[Neighbors]]
) -> dict[str, float]:
    """Return how far, on average, entries lie from the median of their neighbours, by metric."""
    rng = np.random.Generator(np.random.SFC64([0, 5]))
    rows = np.sort(rng.permutation(len(X))[:JUDGED_ROWS])
    counts = [int(observed[rows][:, fold].sum()) for fold in folds]
    errors = {}
    for metric, parts in neighbors.items():
        total = 0.0
        for fold, near, count in zip(folds, parts, counts, strict=True):
            columns = np.ascontiguousarray(X[:, fold]), np.ascontiguousarray(observed[:, fold])
            total += count * median_error(*columns, rows, near.indices[rows][:, :JUDGES])
        errors[metric] = total / max(sum(counts), 1)
    return errors


def neighbor_weights(near: Neighbors, *, n_neighbors: int) -> sp.csr_array:
    """Return symmetric Gaussian weights of the nearest rows, scaled to a mean degree of one."""
    indices, d = near.indices[:, :n_neighbors], near.distances[:, :n_neighbors].astype(np.float64)
    n, k = indices.shape
    width = d[np.isfinite(d)].mean() if np.isfinite(d).any() else 1.0
    w = np.exp(-np.square(np.where(np.isfinite(d), d, 3 * width) / max(width, 1e-300)))
    w = np.maximum(w, 1e-6)  # a row far from all others keeps its neighbours
    A = sp.csr_array((w.ravel(), (np.repeat(np.arange(n), k), indices.ravel())), shape=(n, n))
    A = sp.csr_array(A.maximum(A.T))
    A.sort_indices()
    return A / (A.sum() / n)


def mean_size(X: Array, observed: Array | None) -> float:
    """Return the mean absolute entry, one for data of zeros."""
    sizes = np.abs(X) if observed is None else np.abs(X[observed])
    return float(sizes.mean(dtype=np.float64)) or 1.0


def _prepare(X: Array, observed: Array | None) -> Points:
    """Return float32 rows, zero where missing, in their own units."""
    seen = None if observed is None or observed.all() else observed
    Z = np.ascontiguousarray(X, np.float32)
    Z = Z if seen is None else np.where(seen, Z, np.float32(0))
    return Points(Z, seen=seen)
