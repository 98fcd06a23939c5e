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
from frpcag.estimators.prepared_rows import PreparedRows, prepared
from frpcag.runtime.memory import require_memory

Array = np.ndarray

# Entries cleaned at a time, and the bytes that each takes: millions of rows take no more memory than their result.
_ENTRIES, _BYTES = 1 << 21, 80


class NewRowsMixin(TransformerMixin):
    """``transform``, ``denoise`` and ``inverse_transform`` of :class:`frpcag.FRPCAG`, on what its ``fit`` left."""

    low_rank_: Any
    sparse_: Any
    components_: Any
    mean_: Array
    center_: Array
    scale_: Array

    def transform(self, X):
        """Return new rows in the principal directions, cleaned as the fitted samples were.

        The answer to "where does this row lie among the fitted ones?": each row is linked to the fitted rows that are
        nearest once its wrong cells are repaired, and smoothed as these were, so that what was learnt on ``embedding_``
        holds for it. What rows are compared with is prepared on the first call after a fit, and kept.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_rows, n_features)
            New samples; NaN is missing. Each row is treated on its own, alone or in a batch alike to the last bit (on a
            GPU to rounding); rows of the training data give their ``embedding_``, equal ones that of one of them.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            A tensor for a model that was fitted on one, computed on its device.
        """
        check_is_fitted(self)
        return call_on_rows(self, "_transform_rows", X)

    def denoise(self, X):
        """Return new rows without their errors, in the units of ``X``.

        The answer to "what would this row be without its errors?": with ``loss="l1"`` cells that are fine stay as they
        are, and wrong and missing ones are predicted. Other losses take noise in every cell for granted, and all cells
        are predicted. Nothing else is smoothed, unlike ``low_rank_``; a row of the training data gets its row of that.

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
        return np.concatenate([self._prepared_rows().embed(rows) for rows in self._in_blocks(X)])

    def _denoise_rows(self, X) -> Array:
        return np.concatenate([self._prepared_rows().denoise(rows) for rows in self._in_blocks(X)])

    def _prepared_rows(self) -> PreparedRows:
        """Return what new rows are answered with, prepared on the first call after a fit."""
        return prepared(self)

    def _rows_of_embedding(self, X) -> Array:
        X = check_array(X, dtype=[np.float64, np.float32])
        if X.shape[1] != len(self.components_):
            raise ValueError(
                f"X has {X.shape[1]} columns, but the embedding has {len(self.components_)} components; pass what "
                "transform returns."
            )
        return restore(X @ self.components_, self.mean_, self.scale_)

    def _in_blocks(self, X) -> Iterator[Array]:
        """Give the rows of ``X``, checked, a few at a time."""
        X = validate_matrix(self, X, reset=False)
        (n, p), (n_fitted, _) = X.shape, self.low_rank_.shape
        step = max(1, _ENTRIES // p)
        needed = 4 * self.low_rank_.nbytes + n * p * X.dtype.itemsize + _BYTES * min(n, step) * p
        require_memory(needed, f"cleaning X with shape {X.shape} against {n_fitted} fitted rows")
        for start in range(0, n, step):
            rows = X[start : start + step]
            yield rows.toarray() if hasattr(rows, "toarray") else rows
