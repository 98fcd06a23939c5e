"""A matrix that is read a block of rows at a time: an array in memory, or a memory-mapped file larger than it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from frpcag.data.preprocess import check_shape, refuse_infinite, refuse_lost, validate_matrix

Array = np.ndarray

# Entries of a block of rows.
BLOCK = 1 << 22
# Rows here and there that are read from a memory map at a time.
_SCATTERED = 512


class RowSource:
    """Rows of a matrix as dense floats, checked as a fit checks them.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, memory map or path of a ``.npy``
        A memory map is never read as a whole.
    estimator : BaseEstimator
        Whose features are noted, or compared with.
    reset : bool, default=True
        True in fit.
    """

    def __init__(self, X: Any, estimator: Any, *, reset: bool = True) -> None:
        if isinstance(X, (str, Path)):
            if not str(X).endswith(".npy"):
                raise ValueError(f"X={str(X)!r} is not the path of a matrix; pass one that ends in .npy, or an array.")
            X = np.load(X, mmap_mode="r")
        self._map = X if isinstance(X, np.memmap) else None
        if self._map is None:
            X = validate_matrix(estimator, X, reset=reset)
        else:
            check_shape(estimator, X.shape, X.dtype)
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        self._X = X
        self.shape: tuple[int, int] = X.shape
        self.dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        if self._map is not None:
            self._check(reset)

    def take(self, rows: Any) -> Array:
        """Return some rows, given by a slice or by indices, as an array of their own."""
        if self._map is not None and not isinstance(rows, slice):
            # Around each row that is read the system maps many pages: let go before they are the whole file.
            out = np.empty((len(rows), self.shape[1]), self.dtype)
            for start in range(0, len(rows), _SCATTERED):
                out[start : start + _SCATTERED] = self._X[rows[start : start + _SCATTERED]]
                let_go(self._map)
            return out
        found = self._X[rows]
        found = found.toarray() if hasattr(found, "toarray") else found
        return np.array(found, dtype=self.dtype, order="C")

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Give the rows, a block at a time; the pages of a memory map are let go after each."""
        n, p = self.shape
        step = block_rows(p)
        for start in range(0, n, step):
            at = slice(start, min(start + step, n))
            yield at, self.take(at)
            if self._map is not None:
                let_go(self._map)

    def _check(self, reset: bool) -> None:
        lost = np.ones(self.shape[1], bool)
        for at, rows in self.blocks():
            with np.errstate(over="ignore", invalid="ignore"):
                if np.isfinite(rows.sum()):
                    lost[:] = False
                    continue
            refuse_infinite(int(np.isinf(rows).sum()))
            missing = np.isnan(rows)
            refuse_lost("row", at.start + np.flatnonzero(missing.all(axis=1)))
            lost &= missing.all(axis=0)
        if reset:
            refuse_lost("column", np.flatnonzero(lost))


def block_rows(p: int) -> int:
    """Return how many rows of ``p`` features make a block."""
    return max(1, BLOCK // max(p, 1))


def let_go(A: np.memmap) -> None:
    """Let go of the pages of a memory map that were read or written: they count as memory of the process."""
    base = getattr(A, "_mmap", None)
    # A map that is copied when written would lose what was written.
    if isinstance(base, mmap.mmap) and A.mode in ("r", "r+", "w+") and hasattr(mmap, "MADV_DONTNEED"):
        if A.mode != "r":
            base.flush()
        base.madvise(mmap.MADV_DONTNEED)
