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
from frpcag.estimators.known_rows import prepared
from frpcag.runtime.memory import require_memory

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
    loss: str
    nonnegative: bool

    def transform(self, X):
        """Clean new rows against the fitted samples and return them in the principal directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            New samples. Each row is treated on its own, alone or in a batch alike to the last bit; rows of the
            training data give their ``embedding_``.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
        """
        check_is_fitted(self)
        return call_on_rows(self, "_transform_rows", X)

    def denoise(self, X):
        """Return new rows cleaned against the fitted samples, in the units of ``X``.

        With ``loss="l1"``, cells that the fitted samples explain stay, wrong and missing ones are predicted. Other
        losses take noise in every cell for granted, and all cells are predicted. What rows are compared with is
        prepared on the first call after a fit, and kept. A row of the training data gets its row of ``low_rank_``.

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
        parts = []
        for clean in self._cleaned(X):
            about = ((clean - self.center_) / self.scale_ - origin).astype(clean.dtype)
            # Not a matrix product, whose last bit depends on the number of rows.
            parts.append(np.einsum("ij,kj->ik", about, self.components_.astype(clean.dtype, copy=False)))
        return np.concatenate(parts)

    def _denoise_rows(self, X) -> Array:
        return np.concatenate(list(self._cleaned(X)))

    def _rows_of_embedding(self, X) -> Array:
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != len(self.components_):
            raise ValueError(
                f"X has {X.shape[1]} columns, but the embedding has {len(self.components_)} components; pass what "
                "transform returns."
            )
        return restore(X @ self.components_, self.mean_, self.scale_)

    def _cleaned(self, X) -> Iterator[Array]:
        """Give the rows of ``X`` cleaned, a few at a time."""
        X = validate_matrix(self, X, reset=False)
        (n, p), (n_fitted, _) = X.shape, self.low_rank_.shape
        step = max(1, _ENTRIES // p)
        needed = 4 * self.low_rank_.nbytes + 2 * n * p * X.dtype.itemsize + 16 * min(n, step) * p
        require_memory(needed, f"cleaning X with shape {X.shape} against {n_fitted} fitted rows")
        known = prepared(self)
        for start in range(0, n, step):
            rows = X[start : start + step]
            clean = known.clean(rows.toarray() if hasattr(rows, "toarray") else rows, keep=self.loss == "l1")
            yield np.maximum(clean, 0) if self.nonnegative else clean
