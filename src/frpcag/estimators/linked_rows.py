"""New rows joined to a fitted sample graph: each is cleaned with the fitted rows held fixed."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Graph
from frpcag.graphs.laplacian import degrees, edge_entries
from frpcag.graphs.metric import Metric
from frpcag.graphs.metric_choice import find_metric
from frpcag.graphs.neighbors import query_neighbors
from frpcag.problem import Problem
from frpcag.solvers.rows import solve_rows

Array = np.ndarray

# Rows cleaned at a time: bounds memory, not the result.
_BLOCK = 1024
# Entries this many times the mean |X - U| of the training data off their first estimate do not count as links.
_STANDS_OUT = 6.0


def clean_rows(
    rows: Array,
    *,
    X: Array,
    U: Array,
    sample_graph: Graph | None,
    feature_graph: Graph | None,
    gamma1: float,
    gamma2: float,
    n_neighbors: int,
    metric: str = "euclidean",
    loss: str = "l1",
    huber_delta: float = 1.0,
    n_jobs: int | None = None,
) -> Array:
    """Solve the problem of Shahid et al. 2016, Eq. (1), for each new row, with the fitted ``U`` held fixed.

    A new row ``x`` is linked to its nearest training rows. With the other rows fixed the sample term is
    ``gamma1 (q |u|^2 - 2 <u, b>)``, ``q`` its entry on the Laplacian's diagonal and ``b`` the weighted sum of its
    neighbours' clean rows. This is done twice: entries that stand out from the first result are left out of the second
    search for neighbours (not of the data term). NaN is missing. A row of the training data is known already: it gets
    its fitted clean row. A row costs ``O(n p)`` for its neighbours and ``O(nnz(L2))`` for each of some 50 steps.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        New rows, centred and scaled like ``X``.
    X, U : ndarray of shape (n_samples, n_features)
        The training data and its clean part.
    sample_graph, feature_graph : Graph or None
        The fitted graphs.
    gamma1, gamma2 : float
        Their weights.
    n_neighbors : int
        Training rows each new row is linked to.
    metric : str, default="euclidean"
        What they are near by, if the sample graph does not say; see `frpcag.build_graph`.
    loss, huber_delta : str and float
        As in :class:`~frpcag.problem.Problem`.
    n_jobs : int, optional
        Threads of the neighbour search.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Clean rows; each depends on its own row alone, not on the batch.
    """
    nearest, dist = query_neighbors(X, rows, 1, n_jobs=n_jobs)
    # Rows within rounding of a training row are that row.
    seen = dist[:, 0] <= 1e-5 * np.abs(X).max(initial=0.0)
    out = np.empty_like(rows)
    out[seen] = U[nearest[seen, 0]]
    new = np.flatnonzero(~seen)
    noise = _STANDS_OUT * float(np.mean(np.abs(X - U), dtype=np.float64))
    if sample_graph is not None:
        metric = sample_graph.metric or metric
    distance = find_metric(metric, X, n_jobs=n_jobs)
    L2 = null2 = None
    lmax2 = 0.0
    if feature_graph is not None:
        L2, null2, lmax2 = feature_graph.laplacian, feature_graph.null_vector, feature_graph.lmax

    def clean(x: Array, guide: Array) -> Array:
        """Solve for the rows ``x``, linked to the neighbours of ``guide``, the same rows with gaps perhaps."""
        q, b = np.zeros(len(x)), np.zeros_like(x)
        if sample_graph is not None and gamma1 > 0:
            q, b = _link(*_clean_neighbors(guide, U, n_neighbors, distance, n_jobs), U, sample_graph)
        problem = Problem(x, None, L2, 0.0, gamma2, loss=loss, huber_delta=huber_delta, null2=null2)
        return solve_rows(problem, pull=gamma1 * q, target=gamma1 * b, lmax2=lmax2)

    for start in range(0, len(new), _BLOCK):
        at = new[start : start + _BLOCK]
        x = rows[at]
        first = clean(x, x)
        guide = np.where(np.abs(x - first) > noise, x.dtype.type(np.nan), x)
        # A row that stands out as a whole keeps its entries: there is nothing better to link it by.
        lost = np.isnan(guide).mean(axis=1) > 0.9
        guide[lost] = x[lost]
        out[at] = clean(x, guide)
    return out


def _clean_neighbors(rows: Array, U: Array, k: int, metric: Metric, n_jobs: int | None) -> tuple[Array, Array]:
    """Return the ``k`` clean rows nearest to each row, and their distances.

    In a Euclidean graph, too, new rows must not be misled by gross errors, which absolute differences count once, not
    squared: these choose among the Euclidean neighbours, thirty times as many as are kept.
    """
    if not metric.euclidean:
        return query_neighbors(U, rows, k, metric=metric, n_jobs=n_jobs)
    idx, dist = query_neighbors(U, rows, min(30 * k, len(U)), n_jobs=n_jobs)
    absolute = np.empty(idx.shape)
    step = max(1, 2**23 // (idx.shape[1] * rows.shape[1]))
    for start in range(0, len(rows), step):
        at = slice(start, start + step)
        absolute[at] = np.nanmean(np.abs(rows[at, None] - U[idx[at]]), axis=2)
    order = np.argsort(absolute, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(idx, order, axis=1), np.take_along_axis(dist, order, axis=1)


def _link(idx: Array, dist: Array, U: Array, graph: Graph) -> tuple[Array, Array]:
    """Return the new rows' diagonal entries of the Laplacian and the weighted sums of their neighbours."""
    A = np.ones_like(dist)
    if graph.sigma is not None:
        # A corrupted row is far from all others: in its own mean distance it is linked as strongly as any.
        A = np.exp(-np.square(dist / np.maximum(dist.mean(axis=1, keepdims=True), max(graph.sigma, 1e-300))))
    degree = A.sum(axis=1)
    if graph.normalized:
        fitted = degrees(graph.weights)[idx]
        links_to = -edge_entries(A, degree[:, None], np.where(fitted > 0, fitted, 1.0), normalized=True)
        A = np.where(fitted > 0, links_to, 0.0)
        degree = np.ones(len(A))
    m, k = A.shape
    links = sp.csr_array((A.ravel(), idx.ravel(), np.arange(0, m * k + 1, k)), shape=(m, len(U)))
    return degree, (links @ U).astype(U.dtype, copy=False)
