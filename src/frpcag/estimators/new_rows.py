"""New rows against a fitted model: cleaned, embedded, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from frpcag.backends import is_tensor
from frpcag.data.preprocess import restore, validate_matrix
from frpcag.data.row_chunks import is_dask
from frpcag.extend import clean_rows
from frpcag.memory import require_memory

Array = np.ndarray

# Entries cleaned at a time: millions of rows take no more memory than their result.
_ENTRIES = 1 << 24


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
        if is_tensor(getattr(self, "low_rank_", None)):
            return self._on_host("transform", X)
        if is_dask(X):
            return self._on_chunks("transform", X)
        origin = (self.mean_ - self.center_) / self.scale_
        parts = [(clean - origin.astype(clean.dtype)) @ self.components_.T for clean in self._cleaned(X)]
        return np.concatenate(parts)

    def denoise(self, X):
        """Return new rows cleaned against the fitted samples, in the units of ``X``."""
        if is_tensor(getattr(self, "low_rank_", None)):
            return self._on_host("denoise", X)
        if is_dask(X):
            return self._on_chunks("denoise", X)
        return np.concatenate([restore(clean, self.center_, self.scale_) for clean in self._cleaned(X)])

    def inverse_transform(self, X):
        """Return the data, in the units of the training data, that the rows of an embedding stand for."""
        check_is_fitted(self)
        if is_tensor(self.low_rank_):
            return self._on_host("inverse_transform", X)
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != len(self.components_):
            raise ValueError(
                f"X has {X.shape[1]} columns, but the embedding has {len(self.components_)} components; pass what "
                "transform returns."
            )
        return restore(X @ self.components_, self.mean_, self.scale_)

    def _cleaned(self, X) -> Iterator[Array]:
        """Give the rows of ``X`` cleaned, centred and scaled, a few at a time."""
        check_is_fitted(self)
        self._require_arrays()
        X = validate_matrix(self, X, reset=False)
        (n, p), (n_fitted, _) = X.shape, self.low_rank_.shape
        step = max(1, _ENTRIES // p)
        needed = 4 * self.low_rank_.nbytes + 2 * n * p * X.dtype.itemsize + 16 * min(n, step) * p
        require_memory(needed, f"cleaning X with shape {X.shape} against {n_fitted} fitted rows")
        fitted = {
            "X": self._as_solved(self.low_rank_ + self.sparse_, X.dtype),  # missing entries as predicted
            "U": self._as_solved(self.low_rank_, X.dtype),
        }
        for start in range(0, n, step):
            rows = X[start : start + step]
            yield clean_rows(
                self._as_solved(rows.toarray() if hasattr(rows, "toarray") else rows, X.dtype),
                **fitted,
                sample_graph=self.sample_graph_,
                feature_graph=self.feature_graph_,
                gamma1=self.gamma1_,
                gamma2=self.gamma2_,
                n_neighbors=min(self.n_neighbors, n_fitted - 1),
                loss=self.loss,
                delta=self.huber_delta,
                n_jobs=self.n_jobs,
            )

    def _as_solved(self, rows: Array, dtype: Any) -> Array:
        """Return rows centred and scaled as for the solve."""
        return ((rows - self.center_) / self.scale_).astype(dtype, copy=False)

    def _on_chunks(self, method: str, X):
        """Call a method on every row chunk of a Dask array, lazily."""
        check_is_fitted(self)
        self._require_arrays()
        from frpcag import outofcore

        return outofcore.transform_chunks(self, method, X)

    def _require_arrays(self) -> None:
        if is_dask(self.low_rank_):
            raise NotImplementedError(
                "new rows are cleaned against all training rows, which are Dask arrays here; fit on a subsample that "
                "fits in memory and transform Dask arrays with that model."
            )

    def _on_host(self, method: str, X):
        """Call a method on a copy of the model in NumPy arrays; the result is a tensor on the device of the fit."""
        from frpcag import gpu

        return gpu.on_host(self, method, X)
