"""A graph: its weights, its Laplacian, and its origin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.graphs.exchange import edge_lengths, to_igraph
from frpcag.graphs.laplacian import build_laplacian, check_laplacian, degrees, null_vector
from frpcag.linalg.lanczos import largest_eigenvalue
from frpcag.linalg.small_indices import with_small_indices


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected weighted graph and its Laplacian.

    Parameters
    ----------
    weights : csr_array of shape (n_nodes, n_nodes)
        Symmetric non-negative weights, float64, empty diagonal, indices sorted. Indices are 32 bits wide where they
        fit, here and in ``laplacian``, as scikit-learn wants them.
    laplacian : csr_array of shape (n_nodes, n_nodes)
        Normalised or combinatorial, see `frpcag.graphs.build_laplacian`.
    sigma : float or None
        Width of the Gaussian weights; None for weights that are not Gaussian.
    method : str
        How the edges were found: "exact", "approximate", "grid", "precomputed" or "transformer".
    normalized : bool
        Whether the Laplacian is the normalised one, not the combinatorial.
    metric : str or None
        Of the distances between neighbours, as `build_graph` has it; None for a graph whose edges were given.

    Examples
    --------
    >>> from sklearn.cluster import SpectralClustering
    >>> from frpcag import build_graph
    >>> A = build_graph(np.linspace(0, 9, 40)[:, None]).to_scipy()
    >>> labels = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(A)
    >>> len(set(labels[:15])), len(set(labels[-15:]))
    (1, 1)
    """

    weights: sp.csr_array
    laplacian: sp.csr_array
    sigma: float | None
    method: str
    normalized: bool
    metric: str | None = None

    def __post_init__(self) -> None:
        for name in ("weights", "laplacian"):
            object.__setattr__(self, name, with_small_indices(getattr(self, name)))

    @cached_property
    def lmax(self) -> float:
        """An upper estimate of the largest eigenvalue of the Laplacian, about one percent above it."""
        return largest_eigenvalue(self.laplacian)

    @property
    def null_vector(self) -> np.ndarray:
        """A positive vector that the Laplacian maps to zero: the square root of the degree, or ones."""
        return null_vector(degrees(self.weights), normalized=self.normalized)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.weights.shape[0]

    @property
    def n_edges(self) -> int:
        """Number of edges, each counted once."""
        return self.weights.nnz // 2

    def edges_kept_by(self, other: Graph) -> float:
        """Return the share of the edges that ``other``, a graph of the same nodes, also has; 1 without edges."""
        shared = (self.weights != 0).multiply(other.weights != 0).nnz
        return shared / self.weights.nnz if self.weights.nnz else 1.0

    def to_scipy(self) -> sp.csr_array:
        """Return a copy of the weights, for scikit-learn and other libraries that take an adjacency."""
        return self.weights.copy()

    def to_networkx(self) -> Any:
        """Return the graph as an undirected `networkx.Graph`: nodes 0, 1, ..., each edge with its ``weight``.

        Raises
        ------
        ImportError
            If NetworkX is not installed.
        """
        try:
            from networkx import from_scipy_sparse_array
        except ImportError as error:
            raise ImportError("Graph.to_networkx needs NetworkX; install frpcag[graphs].") from error
        return from_scipy_sparse_array(sp.triu(self.weights))

    def to_igraph(self) -> Any:
        """Return the graph as an undirected `igraph.Graph` whose edges have a ``weight``, for Leiden and the like."""
        return to_igraph(self.weights)

    def distances(self, X: Any = None) -> sp.csr_array:
        """Return the lengths of the edges, for methods that take ``metric="precomputed"``.

        Weights are similarities: they are large for near nodes. Such methods need the opposite.

        Parameters
        ----------
        X : array-like of shape (n_nodes, n_features), optional
            The points; the result holds their Euclidean distances along the edges. Without them the distances are
            computed from Gaussian weights, ``sigma * sqrt(-log w)``. Edges that were found from one end only are then
            longer than they really are.

        Returns
        -------
        csr_array of shape (n_nodes, n_nodes)
            Stored zeros are edges of length zero.
        """
        return edge_lengths(self.weights, self.sigma, X)

    def __repr__(self) -> str:
        sigma = "None" if self.sigma is None else f"{self.sigma:.4g}"
        metric = "" if self.metric in (None, "euclidean") else f", metric={self.metric!r}"
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, method={self.method!r}, sigma={sigma}{metric})"


def weighted_graph(
    A: sp.csr_array, *, laplacian: str, sigma: float | None, method: str, metric: str | None = None
) -> Graph:
    """Return the graph of weights that are known to be symmetric and non-negative, with an empty diagonal."""
    return Graph(A, build_laplacian(A, laplacian), sigma, method, check_laplacian(laplacian), metric)
