"""RobustGraphImputer: it fills in missing values with FRPCAG, alone or in a pipeline."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from frpcag.cells import Units, find_shape, find_units
from frpcag.data.preprocess import validate_matrix
from frpcag.engines.base import UnitsWarning, refuse_dask
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.heldout import FRPCAGCV
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import fit_as_far_as_possible, raise_if_interrupted, whole_fit
from frpcag.linalg.factorize import gram_svd
from frpcag.saving import SavedModel

Array = np.ndarray

# Relative duality gap of the default model: a filled-in value needs no more digits.
TOL = 3e-3
# Gammas that predict best may be large, and hubs of the graph then make the steps short.
MAX_ITER = 2000
# Multiples of the scale-free gammas from which they are searched.
START = (0.1, 0.3)
# Entries count up to this many median deviations when columns are turned.
CLIP = 3.0


class RobustGraphImputer(SavedModel, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill in missing values with the clean part that :class:`FRPCAG` finds; gross errors do not spread.

    Parameters
    ----------
    estimator : FRPCAG, optional
        The model. By default an :class:`FRPCAGCV` of ``FRPCAG(laplacian="combinatorial", n_neighbors=5)``, which
        chooses its gammas with held-out entries. It is fitted to columns that are centred and divided by their median
        deviations; the pixels of images share one unit. A model that is given is fitted to the data as they are.
    keep_observed : bool, default=True
        Leave observed entries as they are. False also replaces them by their clean values.

    Attributes
    ----------
    estimator_ : FRPCAG
        The fitted model.
    units_ : object or None
        Level and scale of the columns that the default model is fitted to, and the range within which it fills.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import RobustGraphImputer
    >>> X = np.outer(np.arange(1.0, 31.0), [1.0, 2.0, 3.0])
    >>> X[3, 1] = np.nan
    >>> filled = RobustGraphImputer().fit_transform(X)
    >>> bool(abs(filled[3, 1] - 8.0) < 3)
    True
    """

    def __init__(self, estimator=None, *, keep_observed: bool = True):
        self.estimator = estimator
        self.keep_observed = keep_observed

    def fit(self, X, y=None):
        """Fit the model to ``X``; NaN is missing."""
        refuse_dask(X, "RobustGraphImputer")
        with whole_fit(self) as fresh:
            Z = validate_matrix(fresh, X, reset=True)
            model, fresh.units_ = (
                (_default_model(), _units(_dense(Z))) if self.estimator is None else (clone(self.estimator), None)
            )
            with warnings.catch_warnings():
                if self.estimator is None:
                    warnings.simplefilter("ignore", UnitsWarning)  # the columns are on one scale
                fresh.estimator_ = fit_as_far_as_possible(model, fresh._scaled(Z))
        raise_if_interrupted(self.estimator_)
        return self

    def fit_transform(self, X, y=None) -> Array:
        """Fit the model to ``X`` and return it with its missing entries filled in, each row by its own clean part."""
        U = getattr(self.fit(X).estimator_, "low_rank_", None)
        Z = validate_matrix(self, X, reset=False)
        # What answers new rows takes longer to prepare than the fit; it is not needed here.
        return self._filled(Z, np.array(U)) if isinstance(U, np.ndarray) and U.shape == Z.shape else self.transform(X)

    def transform(self, X) -> Array:
        """Return ``X`` with its missing entries filled in; ``X`` may hold new rows."""
        check_is_fitted(self)
        X = validate_matrix(self, X, reset=False)
        return self._filled(X, self.estimator_.denoise(self._scaled(X)))

    def _scaled(self, X):
        if self.units_ is None:
            return X
        X = _dense(X)
        return ((X - self.units_.center) / self.units_.scale).astype(X.dtype)

    def _filled(self, X, clean: Array) -> Array:
        if self.units_ is not None:
            clean = self.units_.restore(clean).astype(X.dtype)
        if not self.keep_observed:
            return clean
        dense = _dense(X)
        return np.where(np.isnan(dense), clean, dense)

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())


def _default_model() -> FRPCAGCV:
    """Return a model that keeps levels and uses few neighbours (docs/decisions/imputer.md)."""
    model = FRPCAG(laplacian="combinatorial", n_neighbors=5, tol=TOL, max_iter=MAX_ITER, random_state=0)
    return FRPCAGCV(model, multiples1=START[:1], multiples2=START[1:], search="walk", random_state=0)


def _units(X: Array) -> Units:
    seen = ~np.isnan(X)
    units = find_units(X, seen, one_level=False)
    Z = units.apply(X)
    if find_shape(Z, seen) is not None:
        return find_units(X, seen, one_level=True)
    # Columns that run against the others are turned: the feature graph links what runs alike.
    along = gram_svd(np.clip(Z, -CLIP, CLIP), 1, random_state=0)[2][:, 0]
    return replace(units, scale=np.where(along < 0, -units.scale, units.scale))


def _dense(X) -> Array:
    return X.toarray() if hasattr(X, "toarray") else X
