"""Nearest rows under a robust distance: wrong cells must not choose the neighbours.

A gross error of one cell moves a Euclidean distance by its square. The sum of absolute differences grows with it once,
the truncated sum not beyond a bound. Which of them is right depends on the data (docs/decisions/cleaning.md), so
``"auto"`` takes the one whose neighbours predict the entries best; no label is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.runtime.threads import block_pool

Array = np.ndarray

METRICS = ("euclidean", "l1", "truncated")

# Truncation of a difference, in mean absolute entries of the centred data.
CUT = 2.0
# Rows of a block of distances: the only array of n numbers a row that is made.
BLOCK = 128
# Rows whose entries are predicted to compare metrics, and neighbours that predict them.
JUDGED_ROWS = 400
JUDGES = 10
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


def robust_neighbors(
    X: Array,
    observed: Array | None = None,
    *,
    n_neighbors: int = 5,
    metric: str = "truncated",
    queries: tuple[Array, Array | None] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Neighbors:
    """Return the nearest rows under a metric that gross errors cannot fool.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Centred, finite data; entries that are not observed are ignored.
    observed : bool ndarray of the same shape, optional
        What may be compared. Distances are means over the entries that both rows have.
    n_neighbors : int, default=5
    metric : {"euclidean", "l1", "truncated"}, default="truncated"
    queries : (rows, observed), optional
        Find the neighbours of these rows instead; without it a row is not its own neighbour.
    random_state : int, default=0
        For the candidates of the approximate search, which large data take.
    n_jobs : int, optional

    Returns
    -------
    Neighbors
    """
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is unknown; choose one of {', '.join(map(repr, METRICS))}.")
    return all_neighbors(
        X, observed, n_neighbors=n_neighbors, metrics=(metric,), queries=queries, random_state=random_state,
        n_jobs=n_jobs,
    )[metric]  # fmt: skip


def all_neighbors(
    X: Array, observed: Array | None, *, n_neighbors: int, metrics=METRICS, queries=None, random_state=0, n_jobs=None
) -> dict[str, Neighbors]:
    """Return the neighbours under several metrics; the absolute ones share their pass over the pairs."""
    from frpcag.cells.candidates import candidate_rows

    points = _prepare(X, observed)
    asked = points if queries is None else _prepare(*queries)
    n, n_points = len(asked[0]), len(points[0])
    k = min(n_neighbors, n_points - (queries is None))
    cut = np.float32(CUT * mean_size(X, observed))
    found: dict[str, list[Neighbors]] = {metric: [] for metric in metrics}
    approximate = float(n) * n_points > EXACT_PAIRS
    if approximate:
        options = {"cut": float(cut), "random_state": random_state}
        lists = {metric: candidate_rows(points, asked, k, metric=metric, **options) for metric in metrics}

    def search(rows: slice) -> dict[str, Neighbors]:
        own = np.arange(n)[rows] if queries is None else None
        part = (asked[0][rows], None if asked[1] is None else asked[1][rows])
        if approximate:
            return {m: _rank(points, part, lists[m][rows], k, metric=m, cut=cut, own=own) for m in metrics}
        return _brute_force(points, part, k, metrics=metrics, cut=cut, own=own)

    with block_pool(n_jobs) as run:
        for part in run(search, [slice(start, start + BLOCK) for start in range(0, n, BLOCK)]):
            for metric, one in part.items():
                found[metric].append(one)
    return {
        metric: Neighbors(np.concatenate([o.indices for o in parts]), np.concatenate([o.distances for o in parts]))
        for metric, parts in found.items()
    }


def column_folds(p: int, *, random_state: int = 0) -> list[Array]:
    """Return the columns in folds: the neighbours that predict a fold are found without it.

    In a table of few columns a wrong cell would else choose the very rows that agree with it. With many columns one
    cell hardly matters, and there is one fold.
    """
    if p > FOLDED_COLUMNS or p < 2:
        return [np.arange(p)]
    order = np.random.Generator(np.random.SFC64([random_state, 3])).permutation(p)
    return [np.sort(part) for part in np.array_split(order, min(N_FOLDS, p))]


def folded_neighbors(
    X: Array, observed: Array, folds: list[Array], *, n_neighbors: int, metrics=METRICS, random_state=0, n_jobs=None
) -> dict[str, list[Neighbors]]:
    """Return for each metric the neighbours of every fold, found from the columns outside it."""
    found: dict[str, list[Neighbors]] = {metric: [] for metric in metrics}
    for fold in folds:
        rest = slice(None) if len(folds) == 1 else np.setdiff1d(np.arange(X.shape[1]), fold)
        near = all_neighbors(
            X[:, rest], observed[:, rest], n_neighbors=n_neighbors, metrics=metrics, random_state=random_state,
            n_jobs=n_jobs,
        )  # fmt: skip
        for metric in metrics:
            found[metric].append(near[metric])
    return found


def prediction_errors(
    X: Array, observed: Array, folds: list[Array], neighbors: dict[str, list[Neighbors]], *, random_state: int = 0
) -> dict[str, float]:
    """Return how far, on average, entries lie from the median of their neighbours, by metric."""
    from frpcag.cells.kernels import neighbor_medians

    rng = np.random.Generator(np.random.SFC64([random_state, 5]))
    rows = np.sort(rng.permutation(len(X))[:JUDGED_ROWS])
    errors = {}
    for metric, parts in neighbors.items():
        middle = np.empty((len(rows), X.shape[1]), X.dtype)
        for fold, near in zip(folds, parts, strict=True):
            some = np.empty((len(rows), len(fold)), X.dtype)
            columns = np.ascontiguousarray(X[:, fold]), np.ascontiguousarray(observed[:, fold])
            neighbor_medians(*columns, near.indices[rows][:, :JUDGES], some)
            middle[:, fold] = some
        errors[metric] = float(np.abs(X[rows] - middle)[observed[rows]].mean())
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


def _prepare(X: Array, observed: Array | None) -> tuple[Array, Array | None]:
    """Return float32 rows, zero where missing, and their weights; None where nothing is missing."""
    X = np.ascontiguousarray(X, np.float32)
    if observed is None or observed.all():
        return X, None
    return np.where(observed, X, np.float32(0)), observed.astype(np.float32)


def pair_distances(points, part, *, metrics, cut) -> dict[str, Array]:
    """Return the mean distances of a block of rows to all points, one matrix a metric."""
    from frpcag.cells.kernels import absolute_sums, masked_absolute_sums

    (B, Bm), (A, Am) = points, part
    p = A.shape[1]
    common = None
    if Am is not None or Bm is not None:
        Am = np.ones_like(A) if Am is None else Am
        Bm = np.ones_like(B) if Bm is None else Bm
        common = Am @ Bm.T
    sums = {}
    if "euclidean" in metrics:
        if common is None:
            squares = np.square(A).sum(1)[:, None] + np.square(B).sum(1) - 2 * (A @ B.T)
        else:
            squares = np.square(A) @ Bm.T + Am @ np.square(B).T - 2 * (A @ B.T)
        sums["euclidean"] = np.maximum(squares, 0)
    if "l1" in metrics or "truncated" in metrics:
        plain, capped = (np.empty((len(A), len(B)), np.float32) for _ in range(2))
        if common is None:
            absolute_sums(A, B, cut, plain, capped)
        else:
            masked_absolute_sums(A, B, Am, Bm, cut, plain, capped)
        sums["l1"], sums["truncated"] = plain, capped
    for metric in metrics:
        if common is None:
            sums[metric] /= p
        else:
            sums[metric] = np.where(common < max(LEAST_COMMON * p, 1), np.inf, sums[metric] / np.maximum(common, 1))
    if "euclidean" in metrics:
        sums["euclidean"] = np.sqrt(sums["euclidean"])
    return {metric: sums[metric] for metric in metrics}


def _brute_force(points, part, k: int, *, metrics, cut, own) -> dict[str, Neighbors]:
    return {
        metric: _smallest(d, k, own) for metric, d in pair_distances(points, part, metrics=metrics, cut=cut).items()
    }


def _smallest(d: Array, k: int, own: Array | None) -> Neighbors:
    if own is not None:
        d[np.arange(len(d)), own] = np.nan  # sorts behind infinity: never chosen
    indices = np.argpartition(d, k - 1, axis=1)[:, :k] if k < d.shape[1] else np.argsort(d, axis=1)[:, :k]
    values = np.take_along_axis(d, indices, axis=1)
    order = np.lexsort((indices, values), axis=1)
    return Neighbors(np.take_along_axis(indices, order, axis=1), np.take_along_axis(values, order, axis=1))


def _rank(points, part, lists: Array, k: int, *, metric: str, cut, own) -> Neighbors:
    """Return the nearest of each row's candidates under the metric itself."""
    indices = np.empty((len(lists), k), np.intp)
    values = np.empty((len(lists), k), np.float32)
    for i, candidates in enumerate(lists):
        candidates = np.unique(candidates)
        candidates = (
            candidates[candidates >= 0] if own is None else candidates[(candidates >= 0) & (candidates != own[i])]
        )
        some = (points[0][candidates], None if points[1] is None else points[1][candidates])
        row = (part[0][i : i + 1], None if part[1] is None else part[1][i : i + 1])
        d = pair_distances(some, row, metrics=(metric,), cut=cut)[metric]
        best = _smallest(d, k, None)
        indices[i], values[i] = candidates[best.indices[0]], best.distances[0]
    return Neighbors(indices, values)
