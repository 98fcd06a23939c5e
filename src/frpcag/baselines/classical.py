"""Models without a graph, from scikit-learn: k-means on the data, PCA, NMF."""

from __future__ import annotations

from sklearn import decomposition

from frpcag.baselines.base import Array, BasisBaseline


class OriginalSpace(BasisBaseline):
    """The data themselves, for k-means without any model.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_features)
        A copy of the data.

    Examples
    --------
    >>> from frpcag.baselines import OriginalSpace
    >>> OriginalSpace().fit_transform([[0.0, 1.0], [2.0, 3.0]])
    array([[0., 1.],
           [2., 3.]])
    """

    def fit(self, X, y=None):
        """Note ``X``, array-like of shape (n_samples, n_features)."""
        self.embedding_ = self._validate(X).copy()
        return self

    def _coordinates(self, X: Array) -> Array:
        return X.copy()


class PCA(BasisBaseline):
    """Principal component analysis, scikit-learn's, exact.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, at most ``min(n_samples, n_features)``. Embeddings are nested.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The scores.
    components_ : ndarray of shape (n_components, n_features)
        The principal directions.
    estimator_ : sklearn.decomposition.PCA
        The fitted model.

    Examples
    --------
    >>> from frpcag.baselines import PCA
    >>> PCA(1).fit_transform([[0.0, 0.0], [0.0, 2.0]])
    array([[-1.],
           [ 1.]])
    """

    preprocess = "standardize"
    nested = True

    def __init__(self, n_components: int = 2):
        self.n_components = n_components

    def fit(self, X, y=None):
        """Fit to ``X``, array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        self._check_n_components(X, min(X.shape))
        # Not the randomised solver, which scikit-learn may choose: its components are neither exact nor nested.
        solver = "covariance_eigh" if X.shape[1] <= X.shape[0] else "full"
        self.estimator_ = decomposition.PCA(self.n_components, svd_solver=solver)
        self.embedding_ = self.estimator_.fit_transform(X)
        self.components_ = self.estimator_.components_
        return self

    def _coordinates(self, X: Array) -> Array:
        return self.estimator_.transform(X)


class NMF(BasisBaseline):
    """Non-negative matrix factorisation ``X ~ W H`` (Lee and Seung 1999), scikit-learn's, from a random start.

    Parameters
    ----------
    n_components : int, default=2
        Columns of ``W``.
    max_iter : int, default=200
        Most steps.
    tol : float, default=1e-4
        Tolerance of scikit-learn's stop.
    random_state : int, RandomState or None, default=None
        Seed of the start.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        ``W``.
    components_ : ndarray of shape (n_components, n_features)
        ``H``.
    n_iter_ : int
        Steps taken.
    estimator_ : sklearn.decomposition.NMF
        The fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.baselines import NMF
    >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 2.0])
    >>> model = NMF(1, random_state=0).fit(X)
    >>> np.allclose(model.embedding_ @ model.components_, X, atol=1e-3)
    True
    """

    preprocess = "unit"
    nonnegative = True

    def __init__(self, n_components: int = 2, *, max_iter: int = 200, tol: float = 1e-4, random_state=None):
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit to ``X``, non-negative array-like of shape (n_samples, n_features)."""
        X = self._validate(X)
        self._check_n_components(X, min(X.shape))
        self.estimator_ = decomposition.NMF(
            self.n_components, init="random", max_iter=self.max_iter, tol=self.tol, random_state=self.random_state
        )
        self.embedding_ = self.estimator_.fit_transform(X)
        self.components_, self.n_iter_ = self.estimator_.components_, self.estimator_.n_iter_
        return self

    def _coordinates(self, X: Array) -> Array:
        return self.estimator_.transform(X)
