"""The contract of the comparison models, and the sample graph they share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from frpcag.graphs import Graph, GraphOptions, graph_of
from frpcag.runtime.warn import warn_user

Array = np.ndarray


class Baseline(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A comparison model: ``fit`` gives ``embedding_``, the points that k-means labels afterwards.

    Models with a basis have ``transform`` (:class:`BasisBaseline`), those with a graph alone do not. ``fit`` does not
    preprocess ``X``: the attribute ``preprocess`` names what the paper does with the data first, and
    :func:`~frpcag.baselines.preprocess` does it.

    Attributes
    ----------
    preprocess : {"none", "standardize", "standardize+unit", "unit"}
        Pre-processing of the data (class attribute; Shahid et al. 2016, Sec. VI).
    uses_graph : bool
        Whether the model has a sample graph (class attribute).
    nonnegative : bool
        Whether it refuses negative data (class attribute).
    nested : bool
        Whether ``first_components(c)`` of a fit with more components is the fit with ``c`` (class attribute).
    embedding_ : ndarray of shape (n_samples, n_components)
        The points, in the dtype of ``X``.

    Examples
    --------
    >>> from frpcag.baselines import BASELINES
    >>> [name for name, model in BASELINES.items() if model.uses_graph]
    ['NCut', 'LE', 'GLPCA', 'MMF', 'GNMF', 'RPCAG']
    """

    preprocess: ClassVar[str] = "none"
    uses_graph: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = False
    nested: ClassVar[bool] = False

    embedding_: Array

    def fit_transform(self, X, y=None) -> Array:
        """Fit and return ``embedding_``."""
        return self.fit(X).embedding_

    def first_components(self, n_components: int) -> Array:
        """Return the embedding with fewer components than were fitted.

        Parameters
        ----------
        n_components : int
            From 1 to the number fitted.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        fitted = self.embedding_.shape[1]
        if not self.nested:
            raise ValueError(f"n_components={n_components}: {type(self).__name__} is not nested; fit it again.")
        if not 1 <= n_components <= fitted:
            raise ValueError(f"n_components={n_components!r} must be an integer from 1 to {fitted}, the number fitted.")
        return self.embedding_[:, :n_components]

    def _validate(self, X, *, reset: bool = True) -> Array:
        """Return ``X`` as a finite float array, to fit of two samples at least."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=1 + reset, reset=reset)
        if self.nonnegative and X.min() < 0:
            name = type(self).__name__
            raise ValueError(
                f"Negative values in data passed to {name}: the lowest entry of X is {X.min():.4g}, and {name} needs "
                "X >= 0; skip the centring, or shift the features."
            )
        return X

    def _check_n_components(self, X: Array, limit: int) -> None:
        c = self.n_components
        if not isinstance(c, Integral) or isinstance(c, bool) or not 1 <= int(c) <= limit:
            n, p = X.shape
            raise ValueError(
                f"n_components={c!r} must be an integer from 1 to {limit} for n_samples={n} and n_features={p}."
            )

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.nonnegative
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class BasisBaseline(Baseline):
    """A comparison model with a basis, ``components_``, so that it maps new rows, too.

    ``embedding_`` holds the points of the paper; ``fit_transform(X)`` is ``fit(X).transform(X)``, so that a pipeline
    treats the rows of the fit as it treats new ones.

    Examples
    --------
    >>> from frpcag.baselines import BASELINES, BasisBaseline
    >>> [name for name, model in BASELINES.items() if issubclass(model, BasisBaseline)]
    ['k-means', 'PCA', 'MMF', 'NMF', 'GNMF', 'RPCA', 'RPCAG']
    """

    components_: Array

    def fit_transform(self, X, y=None) -> Array:
        """Fit, and return ``transform(X)``."""
        return self.fit(X).transform(X)

    def transform(self, X) -> Array:
        """Return rows in the basis of the fit, each by itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self._coordinates(self._validate(X, reset=False))

    def _coordinates(self, X: Array) -> Array:
        """Return the least squares of ``X ~ Z components_``."""
        return X @ np.linalg.pinv(self.components_).astype(X.dtype)


class GraphBaseline(Baseline):
    """A comparison model with a sample graph, ``sample_graph_`` once fitted."""

    uses_graph = True

    def _fit_graph(self, X: Array, *, laplacian: str = "normalized") -> Graph:
        """Build the sample graph, or take the one given, and note it."""
        k = self.n_neighbors
        if isinstance(k, Real) and float(k) >= len(X):
            k = len(X) - 1
            warn_user(f"n_neighbors={self.n_neighbors} is not smaller than n_samples={len(X)}; using {k}.")
        options = GraphOptions(
            n_neighbors=k, laplacian=laplacian, random_state=self.random_state, argument="sample_graph"
        )
        self.sample_graph_ = graph_of(X, self.sample_graph, options)
        return self.sample_graph_


def check_weight(name: str, value, *, most: float = np.inf) -> float:
    """Return ``value`` as a float; raise unless it is a finite number from 0 to ``most``."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    if not (0 <= number <= most and number < np.inf):
        limit = ">= 0" if most == np.inf else f"from 0 to {most:g}"
        raise ValueError(f"{name}={value!r} must be a finite number {limit}.")
    return number
