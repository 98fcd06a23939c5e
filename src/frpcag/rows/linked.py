"""New rows linked to fitted ones, which stay as they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Graph, Index, Links, Metric
from frpcag.rows.terms import RowTerms, solve_linked
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Rows taken at a time by a thread, in entries.
_ENTRIES = 1 << 19


class Near(NamedTuple):
    """Fitted rows near some others, and whether a row is its nearest one."""

    indices: Array
    distances: Array
    known: Array


class LinkedRows:
    """Clean rows of a fit, which other rows are linked to.

    The row ``u`` of a new row ``x`` minimises its own part of the problem of the fit, Shahid et al. 2016, Eq. (1):
    ``sum phi(x - u) + gamma1 (q |u|^2 - 2 <u, b>) + gamma2 u L2 u'``, with ``q`` its entry on the Laplacian's diagonal
    and ``b`` the weighted sum of the clean rows that it is linked to.

    Parameters
    ----------
    points, U : ndarray of shape (n_samples, n_features)
        Rows that others are near to, and the clean rows, centred and scaled as for the solve.
    graph : Graph
        Of the fitted rows.
    metric : Metric
    gamma1 : float
    terms : RowTerms
        Loss and feature graph.
    joined : bool
        Whether an edge counts in the degree of its fitted row, too.
    n_jobs : int, optional
    """

    def __init__(
        self, points: Array, U: Array, *, graph: Graph, metric: Metric, gamma1: float, terms: RowTerms, joined: bool,
        n_jobs: int | None,
    ) -> None:  # fmt: skip
        self.points, self.U, self.n_jobs = points, U, n_jobs
        self.graph, self.gamma1, self.terms, self.joined = graph, gamma1, terms, joined
        self.index = Index(points, metric, random_state=0, n_jobs=n_jobs)
        self._links = Links(graph)

    def links(self, indices: Array, distances: Array) -> tuple[Array, sp.csr_array]:
        """Return the entries of rows on the Laplacian's diagonal, and their edges."""
        diagonal, weights = self._links.of(indices, distances, joined=self.joined)
        m, k = indices.shape
        edges = sp.csr_array((weights.ravel(), indices.ravel(), np.arange(0, m * k + 1, k)), shape=(m, len(self.U)))
        return np.maximum(diagonal, np.finfo(np.float64).tiny), edges

    def place(self, rows: Array, indices: Array, distances: Array) -> Array:
        """Return the clean part of rows, centred and scaled; NaN is missing."""
        diagonal, edges = self.links(indices, distances)
        edges = edges.astype(self.U.dtype)  # or the product would copy U
        middle, step = np.empty_like(rows), max(1, _ENTRIES // rows.shape[1])

        def fill(start: int) -> None:
            at = slice(start, start + step)
            middle[at] = edges[at] @ self.U / diagonal[at, None]

        with block_pool(self.n_jobs) as run:
            run(fill, range(0, len(rows), step))
        if not self.gamma1 > 0:  # nothing pulls; only gaps are filled
            middle = np.where(np.isnan(rows), middle, rows)
        return solve_linked(rows, self.terms, pull=self.gamma1 * diagonal, middle=middle, n_jobs=self.n_jobs)
