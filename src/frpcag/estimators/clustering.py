"""FRPCAGClustering: FRPCAG, then labels."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from frpcag.data.preprocess import validate_matrix
from frpcag.estimator import FRPCAG
from frpcag.factorize import gram_svd
from frpcag.graphs import Graph, build_graph, graph_from_weights
from frpcag.graphs.laplacian import low_eigenpairs
from frpcag.saved import SavedModel
from frpcag.solvers import Progress
from frpcag.threads import openmp_after_fork

Array = np.ndarray

# The graph that is clustered: fewer neighbours than for smoothing, and a share of the graph of the data as given, which
# keeps what smoothing may have blurred. Measured in docs/decisions/clustering.md.
CLUSTER_NEIGHBORS = 6
RAW_SHARE = 0.5
# Whitened components for each cluster, and how tight the clusters in their graph must be, as a share of what the mixed
# graph gives, to be taken alone: where a few strong directions, such as the lighting, hide the classes.
WHITENED_PER_CLUSTER = 2
WHITENED_FLOOR = 1e-3
TIGHTER = 0.5

ASSIGNMENTS = ("auto", "spectral", "kmeans", "components")


class FRPCAGClustering(SavedModel, ClusterMixin, BaseEstimator):
    """Clusters of corrupted data: clean it with :class:`FRPCAG`, then label the samples.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    assign : {"auto", "spectral", "kmeans", "components"}, default="auto"
        "spectral" rebuilds the sample graph from the clean data, adds half of that of the data as given (unless it
        was refined and nothing is missing), and clusters it spectrally; "kmeans" runs k-means on the clean data, as
        the paper does; "components" runs it on the ``n_components`` principal components ``W``. "auto" adds the graph
        of the whitened components, two for each cluster, to that of "spectral", and takes it alone where the clusters
        in it are twice as tight.
    n_init : int, default=10
        Starts of k-means; the best is kept.
    n_components, gamma1, gamma2, n_neighbors, sample_graph, feature_graph, sigma, laplacian, loss, huber_delta, \
center, scale, n_refine, tol, max_iter, stop, backend, feature_shape, random_state, n_jobs, callback
        As in :class:`FRPCAG`. ``random_state`` also seeds k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    estimator_ : FRPCAG
        The fitted model behind the labels.
    n_iter_ : int
        Its solver steps.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import FRPCAGClustering
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(3 * rng.normal(size=(3, 20)), 20, axis=0) + rng.normal(size=(60, 20))
    >>> labels = FRPCAGClustering(3, random_state=0).fit_predict(X)
    >>> [len(set(labels[i : i + 20])) for i in (0, 20, 40)]
    [1, 1, 1]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        assign: str = "auto",
        n_init: int = 10,
        n_components: int | float | None = None,
        gamma1: str | float = "auto",
        gamma2: str | float = "auto",
        n_neighbors: int = 10,
        sample_graph="auto",
        feature_graph="auto",
        sigma: str | float = "auto",
        laplacian: str = "normalized",
        loss: str = "l1",
        huber_delta: float = 1.0,
        center: bool = True,
        scale: bool = False,
        n_refine: int | str = "auto",
        tol: float = 1e-3,
        max_iter: int = 500,
        stop: str = "gap",
        backend: str = "auto",
        feature_shape: tuple[int, int] | None = None,
        random_state=None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], object] | None = None,
    ):
        self.n_clusters = n_clusters
        self.assign = assign
        self.n_init = n_init
        self.n_components = n_components
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.feature_graph = feature_graph
        self.sigma = sigma
        self.laplacian = laplacian
        self.loss = loss
        self.huber_delta = huber_delta
        self.center = center
        self.scale = scale
        self.n_refine = n_refine
        self.tol = tol
        self.max_iter = max_iter
        self.stop = stop
        self.backend = backend
        self.feature_shape = feature_shape
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, X, y=None):
        """Clean ``X`` and label its samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.

        Returns
        -------
        FRPCAGClustering
            The fitted estimator.
        """
        X = validate_matrix(self, X, reset=True)
        if self.assign not in ASSIGNMENTS:
            raise ValueError(f"assign={self.assign!r} is unknown; choose one of {', '.join(map(repr, ASSIGNMENTS))}.")
        k = self.n_clusters
        if not isinstance(k, Real) or isinstance(k, bool) or not 1 <= k <= X.shape[0] or int(k) != k:
            raise ValueError(f"n_clusters={self.n_clusters!r} must be an integer from 1 to n_samples={X.shape[0]}.")
        random_state = check_random_state(self.random_state)
        shared = set(FRPCAG().get_params(deep=False)) - {"random_state"}
        params = {name: getattr(self, name) for name in shared}
        self.estimator_ = FRPCAG(random_state=random_state, **params).fit(X)
        self.n_iter_ = self.estimator_.n_iter_
        if self.assign == "auto":
            self.labels_ = self._tightest(X, random_state)
        else:
            self.labels_ = self._kmeans(self._points(X, random_state), random_state).labels_
        return self

    def _kmeans(self, points: Array, random_state) -> KMeans:
        with openmp_after_fork():
            return KMeans(self.n_clusters, n_init=self.n_init, random_state=random_state).fit(points)

    def _tightest(self, X, random_state) -> Array:
        """Return the labels of the mixed graph, or of the whitened components where these are far tighter."""
        of_W = self._unit_graph(self._whitened(random_state), random_state)
        mixed, whitened = (
            self._kmeans(self._embed(A, random_state), random_state)
            for A in (self._clean_and_raw_graph(X, random_state) + of_W, of_W)
        )
        return (whitened if whitened.inertia_ < TIGHTER * mixed.inertia_ else mixed).labels_

    def _points(self, X, random_state) -> Array:
        """Return the points that k-means labels."""
        model = self.estimator_
        if self.assign == "components":
            return model.embedding_ / np.where(model.singular_values_ > 0, model.singular_values_, 1)
        if self.assign == "kmeans":
            # All singular directions: distances between rows are those of U, in min(n, p) coordinates.
            U = self._centred(model.low_rank_)
            W, Sigma, _ = gram_svd(U - U.mean(axis=0), min(U.shape), random_state=random_state)
            # Clusters do not depend on the unit, but the squares of the extremes of float64 leave its range.
            return W * Sigma if 1e-100 < Sigma[0] < 1e100 else W * (Sigma / (Sigma[0] or 1.0))
        return self._embed(self._clean_and_raw_graph(X, random_state), random_state)

    def _centred(self, X: Array) -> Array:
        return (X - self.estimator_.center_) / self.estimator_.scale_

    def _whitened(self, random_state) -> Array:
        """Return the first principal components of the clean data, all of unit length."""
        U = self._centred(self.estimator_.low_rank_)
        n_components = min(WHITENED_PER_CLUSTER * self.n_clusters, *U.shape)
        W, Sigma, _ = gram_svd(U - U.mean(axis=0), n_components, random_state=random_state)
        return W[:, Sigma >= WHITENED_FLOOR * Sigma[0]]  # below lies noise, which whitening would blow up

    def _clean_and_raw_graph(self, X, random_state):
        """Return the weights of the graph of the clean data, with a share of that of the data as given."""
        Xc = self._centred(X.toarray() if hasattr(X, "toarray") else X)
        A = self._unit_graph(self._centred(self.estimator_.low_rank_), random_state)
        # A graph that had to be refined was mostly noise: none of it, unless what is wrong with the data is marked as
        # missing and does not enter the graph.
        if self.estimator_.n_refine_ == 0 or np.isnan(Xc).any():
            A = A + RAW_SHARE * self._unit_graph(Xc, random_state)
        return A

    def _unit_graph(self, Z: Array, random_state):
        n_neighbors = min(CLUSTER_NEIGHBORS, len(Z) - 1)
        return _unit_degrees(build_graph(Z, n_neighbors=n_neighbors, random_state=random_state, n_jobs=self.n_jobs))

    def _embed(self, A, random_state) -> Array:
        return spectral_embedding(graph_from_weights(A).laplacian, self.n_clusters, random_state=random_state)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _unit_degrees(graph: Graph):
    """Return ``D^-1/2 A D^-1/2``, so that graphs of different data can be added."""
    s = sp.diags_array(1 / graph.null_vector)
    return s @ graph.weights @ s


def spectral_embedding(L, n_clusters: int, *, random_state=None) -> Array:
    """Return the rows of the lowest eigenvectors of ``L``, scaled to unit length (Ng, Jordan and Weiss 2002)."""
    _, vectors = low_eigenpairs(L, min(n_clusters, L.shape[0]), random_state=random_state)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)
