"""Singular values and right vectors of a matrix of very many columns, from products with its Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np

from frpcag.linalg.factorize import SKETCH_RANK, count_components, fix_signs

Array = np.ndarray

# Directions beyond those wanted, and products.
_MORE, _PRODUCTS = 10, 5


def subspace_factors(
    product: Callable[[Array], Array], shape: tuple[int, int], n_components: int | float | None, *, seed: int
) -> tuple[Array, Array]:
    """Return the singular values and right vectors of a matrix ``A`` as `gram_factors`, by subspace iteration.

    Parameters
    ----------
    product : callable
        ``A.T @ (A @ Q)`` for an array of shape (p, r).
    shape : (int, int)
        Of ``A``.
    n_components : int, float or None
        As in `gram_svd`; where it is no number, of `SKETCH_RANK` directions.
    seed : int
        Of the directions to begin with.

    Returns
    -------
    Sigma : ndarray of shape (c,)
    V : ndarray of shape (p, c)

    Examples
    --------
    >>> A = np.outer([1.0, 2.0, 2.0], [0.0, 1.0])
    >>> Sigma, V = subspace_factors(lambda Q: A.T @ (A @ Q), A.shape, 1, seed=0)
    >>> Sigma.round(6), abs(V.T).round(6)
    (array([3.]), array([[0., 1.]]))
    """
    n, p = shape
    rank = n_components if isinstance(n_components, Integral) else SKETCH_RANK
    r = min(int(rank) + _MORE, n, p)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((p, r)))[0]
    for _ in range(_PRODUCTS - 1):
        Q = np.linalg.qr(product(Q))[0]
    small = Q.T @ product(Q)
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    Sigma = np.sqrt(np.maximum(values[::-1], 0.0))[: min(int(rank), n, p)]
    c = count_components(Sigma, n_components)
    return Sigma[:c], fix_signs(Q @ vectors[:, ::-1][:, :c])[0]
