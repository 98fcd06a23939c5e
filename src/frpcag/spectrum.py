"""Largest eigenvalue of a Laplacian by a few Lanczos steps."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh_tridiagonal

MAX_STEPS = 30

# A Ritz value may rest near a lower eigenvalue before the largest one, of a small component say, comes up. So
# stop only once it has settled far below the margin.
SETTLED = 0.01


def largest_eigenvalue(L: sp.sparray | sp.spmatrix, *, margin: float = 0.01) -> float:
    """Return an upper estimate of the largest eigenvalue of a Laplacian.

    Parameters
    ----------
    L : sparse array of shape (n_nodes, n_nodes)
        Symmetric positive semi-definite.
    margin : float, default=0.01
        Relative margin added to the result of the Lanczos run.

    Returns
    -------
    lmax : float
        ``(1 + margin) * (theta + residual)`` for the largest Ritz value ``theta``, or the Gershgorin bound
        (largest absolute row sum) where that is smaller; 0 for an empty or zero matrix.

    Notes
    -----
    Shahid et al. 2016, Sec. III bounds the eigenvalues of the normalised Laplacian by 2; the k-NN graphs of
    real data have about 1.5, which gives a step a third longer. At most 30 steps of ``O(nnz(L) + 30
    n_nodes)``. Sums are taken without BLAS, in a fixed order, so that the result does not depend on the
    number of threads.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from frpcag.spectrum import largest_eigenvalue
    >>> print(largest_eigenvalue(sp.csr_array([[1.0, -1.0], [-1.0, 1.0]])))
    2.0
    """
    L = sp.csr_array(L, dtype=np.float64)
    n = L.shape[0]
    gershgorin = float(abs(L).sum(axis=1).max()) if n else 0.0
    if gershgorin == 0.0:
        return 0.0
    theta, residual = _lanczos_top(L / gershgorin, margin)
    return min((1 + margin) * (theta + residual), 1.0) * gershgorin


def _lanczos_top(L: sp.csr_array, margin: float) -> tuple[float, float]:
    """Return the largest Ritz value of ``L`` (norm at most 1) and the norm of its residual."""
    n = L.shape[0]
    q = np.random.RandomState(0).standard_normal(n)
    Q = np.empty((min(n, MAX_STEPS), n))
    alphas: list[float] = []
    betas: list[float] = []
    norm = _norm(q)
    for step in range(1, len(Q) + 1):
        q /= norm
        Q[step - 1] = q
        q = L @ q
        alphas.append(float(np.einsum("i,i->", q, Q[step - 1])))
        for _ in range(2):  # once is not enough in floating point, twice is
            q -= np.einsum("ij,i->j", Q[:step], np.einsum("ij,j->i", Q[:step], q))
        norm = _norm(q)
        values, vectors = eigh_tridiagonal(alphas, betas)
        theta, residual = float(values[-1]), abs(norm * float(vectors[-1, -1]))
        exhausted = norm <= 1e-12  # the start vector spans an invariant subspace: theta is exact
        if exhausted or residual <= SETTLED * margin * theta:
            break
        betas.append(norm)
    return theta, residual


def _norm(q: np.ndarray) -> float:
    return float(np.sqrt(np.einsum("i,i->", q, q)))
