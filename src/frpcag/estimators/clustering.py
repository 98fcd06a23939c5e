"""FRPCAGClustering: FRPCAG, then labels."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils import check_random_state

from frpcag.data.preprocess import validate_matrix
from frpcag.engines.base import on_host, refuse_dask
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.saved import SavedModel
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import fit_as_far_as_possible, raise_if_interrupted, whole_fit
from frpcag.graphs import build_graph, graph_from_weights
from frpcag.labels.kmeans import kmeans
from frpcag.labels.spectral import spectral_embedding, unit_degrees
from frpcag.linalg.factorize import gram_svd
from frpcag.runtime.arrays import is_tensor

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
    estimator : FRPCAG, optional
        The model that cleans the data; ``FRPCAG(n_refine="auto")`` by default.
    assign : {"auto", "spectral", "kmeans", "components"}, default="auto"
        "spectral" rebuilds the sample graph from the clean data, adds half of that of the data as given (unless it
        was refined and nothing is missing), and clusters it spectrally; "kmeans" runs k-means on the clean data, as
        the paper does; "components" runs it on the ``n_components`` principal components ``W``. "auto" adds the graph
        of the whitened components, two for each cluster, to that of "spectral", and takes it alone where the clusters
        in it are twice as tight.
    n_init : int, default=10
        Starts of k-means; the best is kept.
    random_state : int, RandomState or None
        Seed of k-means, and of the neighbour search where ``estimator`` is None.
    n_jobs : int, optional
        Number of threads, all cores by default.

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
        estimator: FRPCAG | None = None,
        *,
        assign: str = "auto",
        n_init: int = 10,
        random_state=None,
        n_jobs: int | None = None,
    ):
        self.n_clusters = n_clusters
        self.estimator = estimator
        self.assign = assign
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Clean ``X`` and label its samples.

        Parameters
        ----------
        X : array-like, sparse matrix or torch tensor of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.

        Returns
        -------
        FRPCAGClustering
            The fitted estimator.
        """
        refuse_dask(X, "FRPCAGClustering")
        with whole_fit(self) as fresh:
            fresh._fit(X)
        raise_if_interrupted(self.estimator_)
        return self

    def _fit(self, X) -> None:
        Z = validate_matrix(self, X, reset=True)
        if self.assign not in ASSIGNMENTS:
            raise ValueError(f"assign={self.assign!r} is unknown; choose one of {', '.join(map(repr, ASSIGNMENTS))}.")
        k = self.n_clusters
        if not isinstance(k, Real) or isinstance(k, bool) or not 1 <= k <= Z.shape[0] or int(k) != k:
            raise ValueError(f"n_clusters={self.n_clusters!r} must be an integer from 1 to n_samples={Z.shape[0]}.")
        random_state = check_random_state(self.random_state)
        model = FRPCAG(n_refine="auto", random_state=random_state, n_jobs=self.n_jobs)
        model = model if self.estimator is None else clone(self.estimator)
        # Frames are taken as arrays: their columns are checked and named here.
        self.estimator_: FRPCAG = on_host(fit_as_far_as_possible(model, X if is_tensor(X) else Z))
        self.n_iter_ = self.estimator_.n_iter_
        if self.assign == "auto":
            self.labels_: Array = self._tightest(Z, random_state)
        else:
            self.labels_ = self._kmeans(self._points(Z, random_state), random_state)[0]

    def _kmeans(self, points: Array, random_state) -> tuple[Array, float]:
        return kmeans(points, self.n_clusters, n_init=self.n_init, random_state=random_state)

    def _tightest(self, X, random_state) -> Array:
        """Return the labels of the mixed graph, or of the whitened components where these are far tighter."""
        of_W = self._unit_graph(self._whitened(random_state), random_state)
        mixed, whitened = (
            self._kmeans(self._embed(A, random_state), random_state)
            for A in (self._clean_and_raw_graph(X, random_state) + of_W, of_W)
        )
        return whitened[0] if whitened[1] < TIGHTER * mixed[1] else mixed[0]

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
        return unit_degrees(build_graph(Z, n_neighbors=n_neighbors, random_state=random_state, n_jobs=self.n_jobs))

    def _embed(self, A, random_state) -> Array:
        return spectral_embedding(graph_from_weights(A).laplacian, self.n_clusters, random_state=random_state)

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())
