"""New rows among the fitted ones: linked to their nearest clean rows, and smoothed as these were."""

from __future__ import annotations

import numpy as np

from frpcag.graphs import Graph
from frpcag.graphs.anchors import Anchors, Links
from frpcag.graphs.metric import EUCLIDEAN
from frpcag.solvers.linked_rows import RowTerms, solve_linked

Array = np.ndarray


class FittedRows:
    """Clean rows of a fit, which other rows are linked to while they stay as they are.

    The row ``u`` of a new row ``x`` minimises its own part of the problem of the fit, Shahid et al. 2016, Eq. (1):
    ``sum phi(x - u) + gamma1 (q |u|^2 - 2 <u, b>) + gamma2 u L2 u'``, with ``q`` its entry on the Laplacian's diagonal
    and ``b`` the weighted sum of the clean rows that it is linked to.

    Parameters
    ----------
    U : ndarray of shape (n_samples, n_features)
        Clean rows, centred and scaled as for the solve.
    sample_graph, feature_graph : Graph or None
        Of the fit.
    gamma1, gamma2 : float
        Their weights.
    n_neighbors : int
    loss, huber_delta : str and float
    n_jobs : int, optional
    """

    def __init__(
        self,
        U: Array,
        *,
        sample_graph: Graph | None,
        feature_graph: Graph | None,
        gamma1: float,
        gamma2: float,
        n_neighbors: int,
        loss: str,
        huber_delta: float,
        n_jobs: int | None,
    ) -> None:
        self.U, self.n_neighbors, self.gamma1, self.n_jobs = U, n_neighbors, gamma1, n_jobs
        self.graph = sample_graph if gamma1 > 0 else None
        self.links = Links(self.graph) if self.graph is not None else None
        self.anchors = None if self.links is None else Anchors(U, metric=EUCLIDEAN, random_state=0, n_jobs=n_jobs)
        feature = {} if feature_graph is None or not gamma2 > 0 else {
            "L2": feature_graph.laplacian, "gamma2": gamma2, "lmax2": feature_graph.lmax
        }  # fmt: skip
        self.terms = RowTerms(loss, huber_delta, **feature)

    def place(self, rows: Array, repaired: Array) -> Array:
        """Return the clean part of rows.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            Centred and scaled; NaN is missing.
        repaired : ndarray of the same shape
            The same rows without wrong and missing cells: these say which fitted rows are near.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        pull, middle = np.zeros(len(rows)), np.where(np.isnan(rows), repaired, rows)
        if self.links is not None and self.anchors is not None:
            diagonal, edges = self.links.of(*self.anchors.nearest(repaired, self.n_neighbors), joined=True)
            pull = self.gamma1 * diagonal
            middle = edges.astype(self.U.dtype) @ self.U / diagonal[:, None]
        # A squared loss has no bound to what a wrong cell pulls.
        given = repaired if self.terms.loss == "l2" else rows
        return solve_linked(given, self.terms, pull=pull, middle=middle, n_jobs=self.n_jobs)
