"""The choice of the metric: the one whose neighbours predict the entries best. It uses no labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from frpcag.graphs.metric import METRICS, Metric, check_metric, sampled_rows
from frpcag.graphs.neighbors import brute_force
from frpcag.graphs.points import prepare_points
from frpcag.runtime.arrays import is_tensor
from frpcag.runtime.threads import block_pool

# Rows whose entries are predicted, and neighbours that predict them.
JUDGED_ROWS = 400
JUDGES = 10


def find_metric(metric: str, X: Any, *, n_jobs: int | None = None) -> Metric:
    """Return the distance that ``metric`` stands for on the rows of a matrix.

    Parameters
    ----------
    metric : str
        A key of `frpcag.graphs.metric.METRICS`, or "auto".
    X : ndarray, csr_array or tensor of shape (n, p)
        At most 2000 of its rows are looked at, spread evenly. NaN is missing.
    n_jobs : int, optional

    Returns
    -------
    Metric
    """
    check_metric(metric)
    if metric in ("euclidean", "l1"):
        return METRICS[metric](np.empty((0, 0)))
    rows = X[sampled_rows(X.shape[0])]
    # On the host for every engine: the choice must not depend on where the rows are.
    sample = rows.toarray() if sp.issparse(rows) else rows.cpu().numpy() if is_tensor(rows) else np.asarray(rows)
    return choose_metric(sample, n_jobs=n_jobs) if metric == "auto" else METRICS[metric](sample)


def choose_metric(sample: NDArray, *, n_jobs: int | None = None) -> Metric:
    """Return the metric of "auto": the one with the smallest of the `prediction_errors`, the earlier on a tie."""
    errors = prediction_errors(sample, n_jobs=n_jobs)
    return min(errors, key=lambda metric: errors[metric])


def prediction_errors(sample: NDArray, *, n_jobs: int | None = None) -> dict[Metric, float]:
    """Return how far, on average, entries lie from the median of their row's ten neighbours, by metric.

    Parameters
    ----------
    sample : ndarray of shape (n, p)
        Rows; NaN is missing. Up to 400 of them, spread evenly, are compared with all others, ``O(400 n p)``.
    n_jobs : int, optional

    Returns
    -------
    dict of Metric to float
        In units of the entries.

    Examples
    --------
    >>> from frpcag.graphs.metric_choice import prediction_errors
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(10, 50)), 20, axis=0) + 20.0 * (rng.random((200, 50)) < 0.1)
    >>> errors = {metric.name: error for metric, error in prediction_errors(X).items()}
    >>> bool(errors["truncated"] < errors["euclidean"])
    True
    """
    n = len(sample)
    metrics = [find(sample) for find in METRICS.values()]
    with block_pool(n_jobs) as run:
        points = prepare_points(sample, run)
        rows = np.unique(np.linspace(0, n - 1, min(n, JUDGED_ROWS)).astype(np.int64))
        queries = points.take(rows)
        k = min(JUDGES, n - 1)
        found = {metric: brute_force(queries, points, k, run=run, metric=metric, skip=rows)[0] for metric in metrics}
    observed = np.ones(points.Z.shape, bool) if points.seen is None else points.seen
    return {metric: points.unit * median_error(points.Z, observed, rows, near) for metric, near in found.items()}


def median_error(X: NDArray, observed: NDArray, rows: NDArray, neighbors: NDArray) -> float:
    """Return the mean of ``|x - median of its neighbours|`` over the observed entries of some rows.

    Parameters
    ----------
    X, observed : ndarray of shape (n, p)
        Entries that are not observed neither predict nor count.
    rows : ndarray of shape (m,)
    neighbors : ndarray of shape (m, k)
        Of these rows.
    """
    from frpcag.graphs.robust_kernels import neighbor_medians

    middle = np.empty((len(rows), X.shape[1]), X.dtype)
    neighbor_medians(X, observed, neighbors, middle)
    errors = np.abs(X[rows] - middle)[observed[rows]]
    return float(errors.mean(dtype=np.float64)) if errors.size else 0.0
