"""A seam for code that runs on NumPy arrays and on PyTorch tensors alike: the functions whose spelling differs.

``arrays_of(X)`` gives one of two namespaces of the same names. What both libraries spell alike (operators, slices,
``sum``, ``mean``, ``T``) needs no seam. The tensors' namespace is in `frpcag.linalg.torch_arrays`, which alone imports
PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.runtime.arrays import is_tensor

Array = np.ndarray


class HostArrays:
    """NumPy's spelling."""

    where, abs, clip, square, sqrt, sign = np.where, np.abs, np.clip, np.square, np.sqrt, np.sign
    zeros_like, empty_like = np.zeros_like, np.empty_like
    inv, solve, eigh, qr = np.linalg.inv, np.linalg.solve, np.linalg.eigh, np.linalg.qr
    double = np.float64

    @staticmethod
    def cast(A: Array, dtype: Any) -> Array:
        """Return a copy in another dtype."""
        return A.astype(dtype)

    @staticmethod
    def copy(A: Array) -> Array:
        """Return a copy, rows in one piece."""
        return A.copy()

    @staticmethod
    def of(A: Array, like: Array) -> Array:
        """Return a host array as one of the kind, dtype and device of ``like``."""
        return A.astype(like.dtype)

    @staticmethod
    def index(A: Array, like: Array) -> Array:
        """Return whole numbers of the host on the device of ``like``."""
        return A

    @staticmethod
    def host(A: Array) -> Array:
        """Return a NumPy array."""
        return A

    @staticmethod
    def float_type(A: Array) -> np.dtype:
        """Return NumPy's name of the dtype."""
        return A.dtype

    @staticmethod
    def zeros(shape: tuple[int, ...], like: Array) -> Array:
        """Return zeros of the kind of ``like``."""
        return np.zeros(shape, like.dtype)

    @staticmethod
    def empty(shape: tuple[int, ...], like: Array) -> Array:
        """Return an array to be filled, of the kind of ``like``."""
        return np.empty(shape, like.dtype)

    @staticmethod
    def tiled(C: Array, n: int) -> Array:
        """Return ``n`` copies of a matrix."""
        return np.repeat(C[None], n, axis=0)

    @staticmethod
    def weighed(weight: Any, A: Array) -> Array:
        """Return the product with a number that NumPy computed."""
        return weight * A

    @staticmethod
    def leading(V: Array, rank: int) -> Array:
        """Return the last columns, last first: the largest eigenvalues come last."""
        return V[:, ::-1][:, :rank]

    @staticmethod
    def sorted(A: Array) -> Array:
        """Return each column in ascending order."""
        return np.sort(A, axis=0)

    @staticmethod
    def medians(A: Array) -> Array:
        """Return the median of each column, of a vector its own."""
        with np.errstate(over="ignore"):  # the mean of two entries at the end of the range
            return np.median(A, axis=0)

    @staticmethod
    def mean_of_smallest(flat: Array, count: int) -> float:
        """Return the mean of the smallest entries."""
        return float(np.partition(flat, count - 1)[:count].mean(dtype=np.float64))

    @staticmethod
    def deviation(flat: Array) -> float:
        """Return the standard deviation."""
        return float(flat.std(dtype=np.float64))

    @staticmethod
    def sparse(L: sp.csr_array, like: Array) -> Any:
        """Return a sparse matrix as solvers take it beside arrays of this kind."""
        return L

    @staticmethod
    def product(W: sp.csr_array, Z: Array) -> Array:
        """Return ``W @ Z`` for a sparse matrix of the host."""
        return W @ Z


def arrays_of(X: Any) -> Any:
    """Return the namespace for arrays like ``X``."""
    return import_module("frpcag.linalg.torch_arrays").TorchArrays if is_tensor(X) else HostArrays
