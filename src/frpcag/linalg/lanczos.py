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

# From a random start, whatever the matrix, the largest Ritz value of k steps lies less than (SURE / (2 k - 1))^2 of the
# largest eigenvalue below it but for a probability of 1.65 sqrt(n) exp(-SURE) (Kuczynski and Wozniakowski 1992), which
# is 1e-6 for 100,000 rows. A small residual tells less: a start nearly orthogonal to the last eigenvector settles at
# the one before.
SURE = 20.0


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

    start: Any  # the same in every run
    apply: Callable[[Any], Any]  # the product with the matrix, divided by the bound of its eigenvalues
    look: Callable[[Any, Any], tuple[float, float]] = look  # a run asks for this once a step
    combine: Callable[..., Any] = combine
    steps: int = 100  # the margin is then a percent; of 40 steps, six


def top_eigenvalue(vectors: Vectors, bound: float) -> float:
    """Return an upper estimate of the largest eigenvalue of a symmetric positive semi-definite matrix.

    Parameters
    ----------
    vectors : Vectors
        The matrix and its vectors. A new one is made orthogonal to the last two only, which is all the recurrence asks
        for in exact arithmetic; in floating point eigenvalues that were found come up again, none of them beyond the
        largest.
    bound : float
        Upper bound of the eigenvalues, such as the largest absolute row sum (Gershgorin).

    Returns
    -------
    lmax : float
        The largest Ritz value and its margin, or ``bound`` where that is smaller.
    """
    if bound == 0.0:
        return 0.0
    v, before, length_before = vectors.start, None, 1.0
    alphas: list[float] = []
    betas: list[float] = []
    while True:
        image = vectors.apply(v)
        square, inner = vectors.look(v, image)
        length = float(np.sqrt(square))
        # A length of zero: the start vector spans an invariant subspace.
        if len(alphas) == vectors.steps or length == 0.0:
            theta = float(eigh_tridiagonal(alphas, betas, eigvals_only=True)[-1])
            return min(theta / (1 - (SURE / (2 * vectors.steps - 1)) ** 2), 1.0) * bound
        if alphas:
            betas.append(length)
        alphas.append(inner / square)
        # The lengths are known now, not when the vectors were made: one look a step is enough.
        numbers, parts = [1 / length, -alphas[-1] / length], [image, v]
        if before is not None:
            numbers, parts = [*numbers, -length / length_before], [*parts, before]
        v, before, length_before = vectors.combine(numbers, *parts), v, length


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
    Shahid et al. 2016, Sec. III bounds the eigenvalues of the normalised Laplacian by 2; the k-NN graphs of real data
    have about 1.5, which gives a step a third longer. 100 steps of ``O(nnz(L))``. Sums are taken without BLAS, in a
    fixed order, so that the result does not depend on the number of threads.

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
    A = L / bound
    return top_eigenvalue(Vectors(start_vector(np.arange(L.shape[0])), lambda v: A @ v), bound)
