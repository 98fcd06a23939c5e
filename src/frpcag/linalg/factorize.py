"""The clean matrix in factors: ``U = W Sigma V'`` through the Gram matrix of the smaller side."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils.extmath import randomized_svd

Array = np.ndarray

# Singular values below this share of the largest count as noise when no number of components is asked for.
RANK_TOL = 0.01
# Both sides above this: a Gram matrix would cost more than a randomised sketch.
_GRAM_SIDE = 4096
# Components of the sketch when none are asked for.
_SKETCH_RANK = 256
# Rows per block of the Gram sum: bounds the float64 copy of a float32 block.
_BLOCK = 4096


def gram_svd(
    U: Array, n_components: int | float | None = None, *, rank_tol: float = RANK_TOL, random_state=None
) -> tuple[Array, Array, Array]:
    """Factorise ``U`` as ``W @ diag(Sigma) @ V.T`` (Shahid et al. 2016, Sec. VI-B2).

    Parameters
    ----------
    U : ndarray of shape (n_samples, n_features)
        The matrix, float32 or float64.
    n_components : int or float, optional
        Number of components; a float in (0, 1) keeps the fewest that hold this share of the squared singular
        values; None keeps every singular value above ``rank_tol`` times the largest.
    rank_tol : float, default=0.01
        Threshold of the rank rule.
    random_state : int, RandomState or None
        Used by the randomised route, taken when both sides exceed 4096.

    Returns
    -------
    W : ndarray of shape (n_samples, c)
        Left singular vectors, the principal components of the samples.
    Sigma : ndarray of shape (c,)
        Singular values, descending.
    V : ndarray of shape (n_features, c)
        Right singular vectors, the principal directions. The largest entry of each is positive.

    Notes
    -----
    Costs ``O(n p min(n, p))``. The Gram matrix squares the condition number: singular values below about
    1e-8 of the largest (1e-4 for float32) are rounding.

    Examples
    --------
    >>> import numpy as np
    >>> W, Sigma, V = gram_svd(np.outer([1.0, 2.0, 2.0], [0.0, 1.0]))
    >>> Sigma
    array([3.])
    """
    n, p = U.shape
    check_n_components(n_components, n, p)
    if min(n, p) > _GRAM_SIDE:
        rank = n_components if isinstance(n_components, Integral) else _SKETCH_RANK
        W, Sigma, Vt = randomized_svd(U, min(rank, n, p), random_state=random_state)
        V = Vt.T
    else:
        unit = _unit(U)
        side, V = _gram_eigh(U if p <= n else U.T, unit)
        Sigma = np.sqrt(np.maximum(side, 0.0)) * unit
        W = None
    c = _rank(Sigma, n_components, rank_tol)
    Sigma, V = Sigma[:c], V[:, :c]
    if W is None:
        scaled = U if unit == 1.0 else U / unit
        inverse = np.divide(unit, Sigma, out=np.zeros_like(Sigma), where=Sigma > 0)
        if p <= n:
            W = scaled @ (V * inverse).astype(U.dtype)
        else:  # the Gram matrix was that of the samples: what came out is W
            W, V = V, scaled.T @ (V * inverse).astype(U.dtype)
    else:
        W = W[:, :c]
    signs = np.sign(V[np.abs(V).argmax(axis=0), np.arange(c)])
    signs[signs == 0] = 1
    return tuple(A.astype(U.dtype, copy=False) for A in (W * signs, Sigma, V * signs))


def check_n_components(n_components, n: int, p: int) -> None:
    """Raise if ``n_components`` asks for what an ``n`` by ``p`` matrix cannot give."""
    if n_components is None:
        return
    whole = isinstance(n_components, Integral) and not isinstance(n_components, bool)
    if whole and 1 <= n_components <= min(n, p):
        return
    if isinstance(n_components, (float, np.floating)) and 0 < n_components < 1:
        return
    raise ValueError(
        f"n_components={n_components!r} must be None, an integer from 1 to min(n_samples, n_features)={min(n, p)}, "
        "or a share in (0, 1)."
    )


def _rank(Sigma: Array, n_components, rank_tol: float) -> int:
    if isinstance(n_components, Integral):
        return int(n_components)
    if n_components is None:
        return max(int(np.sum(Sigma[0] * rank_tol < Sigma)), 1)
    energy = np.cumsum(np.square(Sigma / (Sigma[0] or 1.0)))
    return int(np.searchsorted(energy, n_components * energy[-1])) + 1 if energy[-1] > 0 else 1


def _unit(U: Array) -> float:
    """Return 1, or a power of two near the largest entry where its square would leave the range of the dtype."""
    largest = max(float(U.max()), -float(U.min()))
    reach = 1e15 if U.dtype == np.float32 else 1e100
    if largest == 0 or 1 / reach < largest < reach:
        return 1.0
    return 2.0 ** np.clip(np.floor(np.log2(largest)), -1000, 1000)  # the rest, a factor of 2**74 at most, does no harm


def _gram_eigh(A: Array, unit: float = 1.0) -> tuple[Array, Array]:
    """Eigenpairs of ``A.T @ A / unit**2``, descending; float32 rows are summed in float64, block by block."""
    gram = np.zeros((A.shape[1], A.shape[1]))
    for start in range(0, A.shape[0], _BLOCK):
        block = A[start : start + _BLOCK].astype(np.float64, copy=False)
        block = block if unit == 1.0 else block / unit
        gram += block.T @ block
    values, vectors = np.linalg.eigh(gram)
    return values[::-1], vectors[:, ::-1]
