"""Largest eigenvalue of a Laplacian by a few Lanczos steps, over vectors that live on the host or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh_tridiagonal

from frpcag.runtime.arrays import library_of

Array = np.ndarray

MAX_STEPS = 30
# Relative margin added to the result: a Ritz value is below the eigenvalue.
MARGIN = 0.01
# A Ritz value may rest near a lower eigenvalue before the largest one, of a small component say, comes up. So
# stop only once it has settled far below the margin.
SETTLED = 0.01


def look(v: Any, image: Any) -> tuple[float, float]:
    """Return ``<v, v>`` and ``<v, image>``; without BLAS, in an order that no number of threads changes."""
    xp = library_of(v)
    return float(xp.einsum("i,i->", v, v)), float(xp.einsum("i,i->", v, image))


def combine(numbers: Sequence[float], *vectors: Any) -> Any:
    """Return the sum of numbers times vectors."""
    total = numbers[0] * vectors[0]
    for number, vector in zip(numbers[1:], vectors[1:], strict=True):
        total += number * vector
    return total


@dataclass(frozen=True)
class Vectors:
    """A matrix, and the arithmetic of vectors of float64 with it, wherever they live: a run never looks inside them."""

    n: int
    start: Any  # the same in every run
    apply: Callable[[Any], Any]  # the product with the matrix, divided by the bound of its eigenvalues
    look: Callable[[Any, Any], tuple[float, float]] = look  # a run asks for this once a step
    combine: Callable[..., Any] = combine
    keep_all: bool = True


def top_eigenvalue(vectors: Vectors, bound: float) -> float:
    """Return an upper estimate of the largest eigenvalue of a symmetric positive semi-definite matrix.

    Parameters
    ----------
    vectors : Vectors
        The matrix and its vectors. With ``keep_all`` each new one, an array or a tensor, is made orthogonal to all
        before. Without it a new vector is made orthogonal to the last two only, which is all the recurrence asks for in
        exact arithmetic; in floating point, eigenvalues that were found early come up again and take the place of new
        ones, so that the result may be some tenths of a percent looser after 30 steps. It takes the memory of four
        vectors instead of 34.
    bound : float
        Upper bound of the eigenvalues, such as the largest absolute row sum (Gershgorin).

    Returns
    -------
    lmax : float
        ``(1 + MARGIN) * (theta + residual)`` for the largest Ritz value ``theta``, or ``bound`` where that is smaller.
    """
    if bound == 0.0:
        return 0.0
    v, before, length_before = vectors.start, None, 1.0
    Q = library_of(v).stack([v] * min(vectors.n, MAX_STEPS)) if vectors.keep_all else None
    alphas: list[float] = []
    betas: list[float] = []
    while True:
        image = vectors.apply(v)
        square, inner = vectors.look(v, image)
        length = float(np.sqrt(square))
        if alphas:
            values, ritz = eigh_tridiagonal(alphas, betas)
            theta, residual = float(values[-1]), abs(length * float(ritz[-1, -1]))
            # A length of zero ends the run here too: the start vector spans an invariant subspace, theta is exact.
            if residual <= SETTLED * MARGIN * abs(theta) or len(alphas) == min(vectors.n, MAX_STEPS):
                return min((1 + MARGIN) * (theta + residual), 1.0) * bound
            betas.append(length)
        alphas.append(inner / square)
        # The lengths are known now, not when the vectors were made: one look a step is enough.
        numbers, parts = [1 / length, -alphas[-1] / length], [image, v]
        if before is not None:
            numbers, parts = [*numbers, -length / length_before], [*parts, before]
        following = vectors.combine(numbers, *parts)
        if Q is not None:
            Q[len(alphas) - 1] = (1 / length) * v
            following = _less(Q[: len(alphas)], following)
        v, before, length_before = following, v, length


def _less(Q: Any, v: Any) -> Any:
    """Return ``v`` less its parts along the rows of ``Q``."""
    einsum = library_of(v).einsum
    return v - einsum("ij,i->j", Q, einsum("ij,j->i", Q, v))


def start_vector(nodes: Array) -> Array:
    """Return the entries, in [-1, 1), that every run starts from at these nodes.

    Each is a hash of the number of its node (splitmix64), so that a row block makes its part alone, and a graph has the
    same start wherever its rows are.
    """
    z = (np.asarray(nodes).astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1


def largest_eigenvalue(L: sp.sparray | sp.spmatrix) -> float:
    """Return an upper estimate of the largest eigenvalue of a Laplacian.

    Parameters
    ----------
    L : sparse array of shape (n_nodes, n_nodes)
        Symmetric positive semi-definite.

    Returns
    -------
    lmax : float
        As `top_eigenvalue` gives it, under the Gershgorin bound (largest absolute row sum); 0 for an empty or zero
        matrix.

    Notes
    -----
    Shahid et al. 2016, Sec. III bounds the eigenvalues of the normalised Laplacian by 2; the k-NN graphs of
    real data have about 1.5, which gives a step a third longer. At most 30 steps of ``O(nnz(L) + 30
    n_nodes)``. Sums are taken without BLAS, in a fixed order, so that the result does not depend on the
    number of threads.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from frpcag.linalg.lanczos import largest_eigenvalue
    >>> print(largest_eigenvalue(sp.csr_array([[1.0, -1.0], [-1.0, 1.0]])))
    2.0
    """
    L = sp.csr_array(L, dtype=np.float64)
    bound = float(abs(L).sum(axis=1).max()) if L.shape[0] else 0.0
    if bound == 0.0:
        return 0.0
    n, A = L.shape[0], L / bound
    return top_eigenvalue(Vectors(n, start_vector(np.arange(n)), lambda v: A @ v), bound)
