"""RobustGraphImputer: it fills in missing values with FRPCAG, alone or in a pipeline."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from frpcag.cells.units import find_units
from frpcag.data.preprocess import validate_matrix
from frpcag.engines.base import refuse_dask
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.heldout import FRPCAGCV
from frpcag.estimators.saved import SavedModel
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import fit_as_far_as_possible, raise_if_interrupted, whole_fit

Array = np.ndarray

# Relative duality gap of the default model: a filled-in value needs no more digits.
TOL = 3e-3
# Multiples of the scale-free gammas from which they are searched.
START = (0.1, 0.3)


class RobustGraphImputer(SavedModel, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill in missing values with the clean part that :class:`FRPCAG` finds; gross errors do not spread.

    Parameters
    ----------
    estimator : FRPCAG, optional
        The model. By default an :class:`FRPCAGCV` of ``FRPCAG(laplacian="combinatorial", n_neighbors=5)``, which
        chooses its gammas with held-out entries. If the columns have very different units, ``scale=True`` is added.
    keep_observed : bool, default=True
        Leave observed entries as they are. False also replaces them by their clean values.

    Attributes
    ----------
    estimator_ : FRPCAG
        The fitted model.

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
            fresh.estimator_ = fit_as_far_as_possible(fresh._model(Z), Z)
        raise_if_interrupted(self.estimator_)
        return self

    def _model(self, X):
        """Return the model to fit; by default one that keeps levels and uses few neighbours.

        Columns of very different units are divided by their standard deviations: else the widest would choose the
        neighbours of all.
        """
        if self.estimator is not None:
            return clone(self.estimator)
        # Measured in docs/decisions/imputer.md.
        mixed = isinstance(X, np.ndarray) and find_units(X, ~np.isnan(X), one_level=False).mixed
        model = FRPCAG(laplacian="combinatorial", n_neighbors=5, scale=bool(mixed), tol=TOL, random_state=0)
        return FRPCAGCV(model, multiples1=START[:1], multiples2=START[1:], search="walk", random_state=0)

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
        return self._filled(X, self.estimator_.denoise(X))

    def _filled(self, X, clean: Array) -> Array:
        if not self.keep_observed:
            return clean
        dense = X.toarray() if hasattr(X, "toarray") else X
        return np.where(np.isnan(dense), clean, dense)

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())
