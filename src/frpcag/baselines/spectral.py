"""Models that use only the sample graph: normalised cuts, Laplacian eigenmaps."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from frpcag.baselines.base import Array, GraphBaseline
from frpcag.graphs import Graph, graph_from_weights
from frpcag.linalg.eigenpairs import low_eigenpairs


class NCut(GraphBaseline):
    """Normalised cuts (Shi and Malik 2000), relaxed: rows of the lowest eigenvectors, scaled to unit length.

    Parameters
    ----------
    n_components : int, default=2
        Number of eigenvectors, usually the number of clusters. Embeddings are nested; ``first_components`` scales the
        rows again.
    n_neighbors : int, default=10
        Neighbours of each sample in the graph.
    sample_graph : str, sparse array, neighbour transformer or Graph, default="auto"
        As ``method`` of :func:`~frpcag.build_graph`.
    random_state : int, RandomState or None, default=None
        Seed of the graph search and of the eigensolver.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Rows of unit length (Ng, Jordan and Weiss 2002; Yu and Shi 2003). A row is zero where all eigenvectors are.
    eigenvalues_ : ndarray of shape (n_components,)
        Of the normalised Laplacian, ascending.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Before the scaling.
    sample_graph_ : Graph
        The graph.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from frpcag.baselines import NCut
    >>> pairs = sp.csr_array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    >>> embedding = NCut(2, sample_graph=pairs, n_neighbors=1).fit_transform([[0.0], [0.0], [1.0], [1.0]])
    >>> embedding + 0.0  # no minus before a zero
    array([[1., 0.],
           [1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    nested = True

    def __init__(self, n_components: int = 2, *, n_neighbors: int = 10, sample_graph="auto", random_state=None):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit to ``X``, array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        self._check_n_components(X, len(X))
        graph = _normalized(self._fit_graph(X))
        values, vectors = low_eigenpairs(graph.laplacian, self.n_components, random_state=self.random_state)
        self.eigenvalues_, self.eigenvectors_ = values, vectors.astype(X.dtype)
        self.embedding_ = _unit_rows(self.eigenvectors_)
        return self

    def first_components(self, n_components: int) -> Array:
        """Return the embedding of the first eigenvectors, from 1 to the number fitted, rows of unit length."""
        super().first_components(n_components)
        return _unit_rows(self.eigenvectors_[:, :n_components])


class LaplacianEigenmaps(GraphBaseline):
    """Laplacian eigenmaps (Belkin and Niyogi 2003): lowest non-trivial solutions of ``(D - A) y = lambda D y``.

    Parameters
    ----------
    n_components : int, default=2
        Number of eigenvectors, at most ``n_samples - 1``. Embeddings are nested.
    n_neighbors, sample_graph, random_state
        As in :class:`NCut`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Columns ``y`` with ``y' D y = 1``, at right angles in ``D`` to each other and to the constant.
    eigenvalues_ : ndarray of shape (n_components,)
        Ascending.
    sample_graph_ : Graph
        The graph.

    Notes
    -----
    ``y = D^-1/2 v`` for an eigenvector ``v`` of the normalised Laplacian. In a graph of several components the constant
    is one of many solutions at zero; it alone is trivial, and the others are kept. A node without edges counts with
    degree one.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from frpcag.baselines import LaplacianEigenmaps
    >>> path = sp.csr_array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> LaplacianEigenmaps(1, sample_graph=path, n_neighbors=1).fit([[0.0], [1.0], [2.0]]).eigenvalues_
    array([1.])
    """

    nested = True

    def __init__(self, n_components: int = 2, *, n_neighbors: int = 10, sample_graph="auto", random_state=None):
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit to ``X``, array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        self._check_n_components(X, len(X) - 1)
        graph = _normalized(self._fit_graph(X))
        m, _ = connected_components(graph.weights, directed=False)
        k = max(self.n_components + 1, m)
        values, vectors = low_eigenpairs(graph.laplacian, k, random_state=self.random_state)
        root = graph.null_vector
        # The first m span the null space; turn it so that the first of them is the trivial one.
        vectors[:, :m] = _turn_first_to(vectors[:, :m], root / np.linalg.norm(root))
        kept = slice(1, self.n_components + 1)
        self.eigenvalues_ = values[kept]
        self.embedding_ = (vectors[:, kept] / root[:, None]).astype(X.dtype)
        return self


def _normalized(graph: Graph) -> Graph:
    """Return the graph with its normalised Laplacian, which a graph that was passed in may lack."""
    return graph if graph.normalized else graph_from_weights(graph.weights)


def _turn_first_to(basis: Array, direction: Array) -> Array:
    """Return the orthonormal basis reflected such that ``direction``, in its span, is the first vector."""
    t = basis.T @ direction
    t /= np.linalg.norm(t)
    h = t.copy()
    h[0] += 1.0 if t[0] >= 0 else -1.0
    return basis - np.outer(basis @ h, h) * (2 / (h @ h))


def _unit_rows(vectors: Array) -> Array:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)
