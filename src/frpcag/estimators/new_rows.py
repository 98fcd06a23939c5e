"""New rows against a fitted model: cleaned, embedded, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from frpcag.data.preprocess import restore, validate_matrix
from frpcag.engines.base import call_on_rows
from frpcag.estimators.frames import as_asked
from frpcag.estimators.linked_rows import clean_rows
from frpcag.runtime.memory import require_memory

Array = np.ndarray

# Entries cleaned at a time: millions of rows take no more memory than their result.
_ENTRIES = 1 << 24
# Sizes of float32 data from which on rows are cleaned in float32.
_LEAST_SINGLE = 1e-30


class NewRowsMixin(TransformerMixin):
    """``transform``, ``denoise`` and ``inverse_transform`` of :class:`frpcag.FRPCAG`, on what its ``fit`` left."""

    low_rank_: Any
    sparse_: Any
    components_: Any
    mean_: Array
    center_: Array
    scale_: Array
    sample_graph_: Any
    feature_graph_: Any
    gamma1_: float
    gamma2_: float
    n_neighbors: int
    metric: str
    loss: str
    huber_delta: float
    n_jobs: int | None

    def transform(self, X):
        """Clean new rows against the fitted samples and return them in the principal directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            New samples. Each row is treated on its own; rows of the training data give their ``embedding_``.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        return call_on_rows(self, "_transform_rows", X)

    def denoise(self, X):
        """Return new rows cleaned against the fitted samples, in the units of ``X``.

        A frame if ``set_output`` says so.
        """
        check_is_fitted(self)
        return as_asked(self, call_on_rows(self, "_denoise_rows", X), X)

    def inverse_transform(self, X):
        """Return the data, in the units of the training data, that the rows of an embedding stand for.

        A frame if ``set_output`` says so.
        """
        check_is_fitted(self)
        return as_asked(self, call_on_rows(self, "_rows_of_embedding", X), X)

    def _transform_rows(self, X) -> Array:
        origin = (self.mean_ - self.center_) / self.scale_
        parts = [(clean - origin.astype(clean.dtype)) @ self.components_.T for clean in self._cleaned(X)]
        return np.concatenate(parts)

    def _denoise_rows(self, X) -> Array:
        return np.concatenate([restore(clean, self.center_, self.scale_) for clean in self._cleaned(X)])

    def _rows_of_embedding(self, X) -> Array:
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != len(self.components_):
            raise ValueError(
                f"X has {X.shape[1]} columns, but the embedding has {len(self.components_)} components; pass what "
                "transform returns."
            )
        return restore(X @ self.components_, self.mean_, self.scale_)

    def _cleaned(self, X) -> Iterator[Array]:
        """Give the rows of ``X`` cleaned, centred and scaled, a few at a time."""
        X = validate_matrix(self, X, reset=False)
        (n, p), (n_fitted, _) = X.shape, self.low_rank_.shape
        step = max(1, _ENTRIES // p)
        needed = 4 * self.low_rank_.nbytes + 2 * n * p * X.dtype.itemsize + 16 * min(n, step) * p
        require_memory(needed, f"cleaning X with shape {X.shape} against {n_fitted} fitted rows")
        # One over a number as small as these leaves the range of float32.
        tiny = X.dtype == np.float32 and not np.abs(self.low_rank_).max() > _LEAST_SINGLE
        dtype = np.dtype(np.float64) if tiny else X.dtype
        fitted = {
            "X": self._as_solved(self.low_rank_ + self.sparse_, dtype),  # missing entries as predicted
            "U": self._as_solved(self.low_rank_, dtype),
        }
        for start in range(0, n, step):
            rows = X[start : start + step]
            clean = clean_rows(
                self._as_solved(rows.toarray() if hasattr(rows, "toarray") else rows, dtype),
                **fitted,
                sample_graph=self.sample_graph_,
                feature_graph=self.feature_graph_,
                gamma1=self.gamma1_,
                gamma2=self.gamma2_,
                n_neighbors=min(self.n_neighbors, n_fitted - 1),
                metric=self.metric,
                loss=self.loss,
                huber_delta=self.huber_delta,
                n_jobs=self.n_jobs,
            )
            yield clean.astype(X.dtype, copy=False)

    def _as_solved(self, rows: Array, dtype: Any) -> Array:
        """Return rows centred and scaled as for the solve."""
        return ((rows - self.center_) / self.scale_).astype(dtype, copy=False)
