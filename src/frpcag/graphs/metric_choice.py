"""The choice of the metric: the one whose neighbours predict the entries best. It uses no labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from frpcag.graphs.metric import ELIGIBLE, METRICS, Metric
from frpcag.graphs.points import prepare_points
from frpcag.graphs.search import HostSearch
from frpcag.runtime.threads import block_pool

# Rows whose entries are predicted, and neighbours that predict them.
JUDGED_ROWS = 400
JUDGES = 10


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
    metrics = [METRICS[name].fitted(sample) for name in ELIGIBLE]
    with block_pool(n_jobs) as run:
        points = prepare_points(sample, run)
        rows = np.unique(np.linspace(0, n - 1, min(n, JUDGED_ROWS)).astype(np.int64))
        k, found = min(JUDGES, n - 1), {}
        for metric in metrics:
            mapped = points if metric.rows is None else prepare_points(sample, run, metric=metric)
            under = replace(mapped, metric=metric)
            found[metric] = HostSearch(under, run).exact(under.take(rows), k, skip=rows)[0]
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
    from frpcag.graphs.kernels import neighbor_medians

    middle = np.empty((len(rows), X.shape[1]), X.dtype)
    neighbor_medians(X, observed, neighbors, middle)
    errors = np.abs(X[rows] - middle)[observed[rows]]
    return float(errors.mean(dtype=np.float64)) if errors.size else 0.0
