"""The clean matrix in factors, ``U = W Sigma V'`` through the Gram matrix of the smaller side; arrays or tensors."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd

from frpcag.runtime.arrays import is_tensor, library_of

Array = np.ndarray

# Singular values below this share of the largest count as noise when no number of components is asked for.
RANK_TOL = 0.01
# Both sides above this: a Gram matrix would cost more than a randomised sketch.
_GRAM_SIDE, _TENSOR_GRAM_SIDE = 4096, 16384
# Components of the sketch when none are asked for.
SKETCH_RANK = 256
# Rows per block of the Gram sum: bounds the float64 copy of a float32 block.
_BLOCK, _TENSOR_BLOCK = 4096, 1 << 16


def gram_svd(U: Any, n_components: int | float | None = None, *, random_state=None) -> tuple[Any, Any, Any]:
    """Factorise ``U`` as ``W @ diag(Sigma) @ V.T`` (Shahid et al. 2016, Sec. VI-B2).

    Parameters
    ----------
    U : ndarray or tensor of shape (n_samples, n_features)
        The matrix, float32 or float64; the factors are of its kind.
    n_components : int or float, optional
        Number of components; a float in (0, 1) keeps the fewest that hold this share of the squared singular
        values; None keeps every singular value above ``RANK_TOL`` times the largest.
    random_state : int, RandomState or None
        Used by the randomised route, taken when both sides exceed 4096, or 16384 on tensors.

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
    unit = power_unit(max(float(U.max()), -float(U.min())), U.itemsize)
    scaled = U if unit == 1.0 else U / unit
    if min(n, p) > (_TENSOR_GRAM_SIDE if is_tensor(U) else _GRAM_SIDE):
        rank = int(n_components) if isinstance(n_components, Integral) else SKETCH_RANK
        sketched_svd = _sketched_svd if is_tensor(U) else randomized_svd
        W, Sigma, Vt = sketched_svd(scaled, min(rank, n, p), random_state=random_state)
        c = count_components(Sigma, n_components)
        W, Sigma, V = W[:, :c], Sigma[:c], Vt[:c].T
    else:
        A = scaled if p <= n else scaled.T
        Sigma, V = gram_factors(gram_sum(A), n_components)
        inverse = 1 / library_of(U).where(Sigma > 0, Sigma, np.inf)
        other = A @ _cast(V * inverse, U.dtype)
        W, V = (other, V) if p <= n else (V, other)
    V, W = fix_signs(V, W)
    return _cast(W, U.dtype), _cast(Sigma * unit, U.dtype), _cast(V, U.dtype)


def _sketched_svd(U: Any, rank: int, *, random_state) -> tuple[Any, Any, Any]:
    """Return the largest singular triplets of a tensor from a random sketch, refined by four power steps."""
    torch = library_of(U)
    rng = check_random_state(random_state)
    Q = torch.linalg.qr(U @ torch.from_numpy(rng.standard_normal((U.shape[1], min(rank + 10, *U.shape)))).to(U)).Q
    for _ in range(4):
        Q = torch.linalg.qr(U @ torch.linalg.qr(U.T @ Q).Q).Q
    W, Sigma, Vt = torch.linalg.svd(Q.T @ U, full_matrices=False)
    return (Q @ W)[:, :rank], Sigma[:rank], Vt[:rank]


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


def count_components(Sigma: Any, n_components: int | float | None) -> int:
    """Return how many of the singular values, descending, to keep; as `gram_svd` says."""
    if isinstance(n_components, Integral):
        return int(n_components)
    Sigma = Sigma.cpu().numpy() if is_tensor(Sigma) else Sigma
    if n_components is None:
        return max(int(np.sum(Sigma[0] * RANK_TOL < Sigma)), 1)
    energy = np.cumsum(np.square(Sigma / (Sigma[0] or 1.0)))
    return int(np.searchsorted(energy, n_components * energy[-1])) + 1 if energy[-1] > 0 else 1


def power_unit(largest: float, itemsize: int) -> float:
    """Return 1, or a power of two near the largest magnitude where products with it would leave the range.

    Parameters
    ----------
    largest : float
        Largest magnitude of a matrix.
    itemsize : int
        Bytes of its entries: 4 for float32, 8 for float64.
    """
    reach = 1e15 if itemsize == 4 else 1e100
    if largest == 0 or 1 / reach < largest < reach:
        return 1.0
    return float(2.0 ** np.clip(np.floor(np.log2(largest)), -1000, 1000))  # the rest, 2**74 at most, does no harm


def fix_signs(*matrices: Any) -> tuple[Any, ...]:
    """Return matrices with the signs of their columns fixed: in the first, the largest magnitude is positive.

    The columns of the others go with those of the first. Arrays or tensors.

    Notes
    -----
    The rule of `sklearn.utils.extmath.svd_flip`, which takes no tensors, writes to its arguments, and erases a vector
    whose partner is zero.

    Examples
    --------
    >>> fix_signs(np.array([[1.0, 0.0], [-2.0, 3.0]]))[0]
    array([[-1.,  0.],
           [ 2.,  3.]])
    """
    first = matrices[0]
    largest = first[abs(first).argmax(0), list(range(first.shape[1]))]
    signs = largest**0
    signs[largest < 0] = -1
    return tuple(matrix * signs for matrix in matrices)


def gram_sum(A: Any) -> Any:
    """Return ``A.T @ A``, summed in float64 block by block; of row blocks of a matrix these add up."""
    gram: Any = 0.0
    for start in range(0, A.shape[0], block := _TENSOR_BLOCK if is_tensor(A) else _BLOCK):
        rows = _cast(A[start : start + block], library_of(A).float64)
        gram += rows.T @ rows
    return gram


def gram_factors(gram: Any, n_components: int | float | None) -> tuple[Any, Any]:
    """Return the singular values and right singular vectors of a matrix from its Gram matrix ``A.T @ A``.

    Parameters
    ----------
    gram : ndarray or tensor of shape (p, p)
    n_components : int, float or None
        As in `gram_svd`.

    Returns
    -------
    Sigma : ndarray or tensor of shape (c,)
        Descending.
    V : ndarray or tensor of shape (p, c)
        Signs are fixed by `fix_signs`.
    """
    xp = library_of(gram)
    try:
        values, vectors = xp.linalg.eigh(gram)
    except RuntimeError:  # a GPU's solver gives up on many equal eigenvalues; LAPACK does not
        values, vectors = (part.to(gram.device) for part in xp.linalg.eigh(gram.cpu()))
    Sigma = xp.sqrt(xp.clip(xp.flip(values, (0,)), 0, None))
    c = count_components(Sigma, n_components)
    return Sigma[:c], fix_signs(xp.flip(vectors, (1,))[:, :c])[0]


def _cast(A: Any, dtype: Any) -> Any:
    return A.to(dtype) if is_tensor(A) else A.astype(dtype, copy=False)
