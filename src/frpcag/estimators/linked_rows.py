"""New rows joined to a fitted sample graph: each is cleaned with the fitted rows held fixed."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Graph
from frpcag.graphs.neighbors import query_neighbors
from frpcag.problem import Problem, shrinkage

Array = np.ndarray

# Rows cleaned at a time: bounds memory, not the result.
_BLOCK = 1024
_MAX_STEPS = 1000
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
    loss: str = "l1",
    delta: float = 1.0,
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
    loss, delta : str and float
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
    L2, lmax2 = (feature_graph.laplacian, feature_graph.lmax) if feature_graph is not None else (None, 0.0)

    def clean(x: Array, guide: Array) -> Array:
        """Solve for the rows ``x``, linked to the neighbours of ``guide``, the same rows with gaps perhaps."""
        q, b = np.zeros(len(x)), np.zeros_like(x)
        if sample_graph is not None and gamma1 > 0:
            q, b = _link(*_robust_neighbors(guide, U, n_neighbors, n_jobs), U, sample_graph)
        return _solve_rows(x, q, b, L2, lmax2, gamma1, gamma2, loss, delta)

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


def _robust_neighbors(rows: Array, U: Array, k: int, n_jobs: int | None) -> tuple[Array, Array]:
    """Return the ``k`` clean rows nearest to each row in mean absolute difference, and their Euclidean distances.

    Absolute differences count gross errors once, not squared. They are taken among the Euclidean neighbours, thirty
    times as many as are kept.
    """
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
    if graph.kind == "normalized":
        fitted = np.asarray(graph.weights.sum(axis=1)).ravel()[idx]
        A = np.where(fitted > 0, A / np.sqrt(degree[:, None] * np.where(fitted > 0, fitted, 1.0)), 0.0)
        degree = np.ones(len(A))
    m, k = A.shape
    links = sp.csr_array((A.ravel(), idx.ravel(), np.arange(0, m * k + 1, k)), shape=(m, len(U)))
    return degree, (links @ U).astype(U.dtype, copy=False)


def _solve_rows(x, q, b, L2, lmax2, gamma1, gamma2, loss, delta) -> Array:
    """Run accelerated steps, as many as each row's own conditioning asks for: no row depends on the others."""
    curved = 2 * gamma1 * q  # strong convexity of each row's problem
    beta = curved + 2 * gamma2 * lmax2
    if not beta.max(initial=0.0) > 0:
        return np.nan_to_num(x, nan=0.0)
    ratio = np.maximum(curved / np.where(beta > 0, beta, 1.0), 1e-4)
    root = np.sqrt(ratio)[:, None].astype(x.dtype)
    momentum = (1 - root) / (1 + root)
    n_steps = np.minimum(np.ceil(20 / np.sqrt(ratio)), _MAX_STEPS)[:, None]
    lam = (1 / np.where(beta > 0, beta, 1.0))[:, None].astype(x.dtype)
    unit = Problem(np.zeros((1, 1)), None, None, 0.0, 0.0, loss=loss, delta=delta)
    keep, edge, limit = (np.asarray(v, dtype=x.dtype) for v in shrinkage(unit, lam))
    pull = (2 * gamma1 * q)[:, None].astype(x.dtype)
    missing = np.isnan(x)
    u = y = np.where(missing, x.dtype.type(0), x)
    for step in range(int(n_steps.max())):
        g = pull * y - (2 * gamma1) * b
        if L2 is not None and gamma2 > 0:
            g = g + (2 * gamma2) * (L2 @ y.T).T.astype(x.dtype, copy=False)
        z = y - lam * g
        d = z - x
        u_next = np.where(np.abs(d) <= edge, x + keep * d, z - np.sign(d) * limit)
        u_next = np.where(missing, z, u_next)
        going = step < n_steps
        u, y = np.where(going, u_next, u), np.where(going, u_next + momentum * (u_next - u), y)
    return u
