"""The lowest eigenpairs of a Laplacian: an answer for every graph, in bounded time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from frpcag.linalg.factorize import fix_signs
from frpcag.linalg.lanczos import largest_eigenvalue

Array = NDArray[np.float64]
Eigenpairs = tuple[Array, Array]

# Up to this many nodes a dense eigendecomposition is fastest.
DENSE_NODES = 500
# Up to this many a dense factor of the shifted Laplacian takes about a second; its inverse takes over where weights of
# very different size make the filter slow.
FACTOR_NODES = 3500
# Shift of that factor, as a share of the largest eigenvalue: above the rounding of the factor, below what matters.
SHIFT = 1e-9
# Vectors beyond the ones asked for: an eigenvalue that comes this often is found in full.
GUARD = 6
# Blocks in the basis of one cycle, cycles at most, and the residual that ends them, as a share of the largest
# eigenvalue. An eigenvalue is then right to the square of it.
BLOCKS = 5
CYCLES = 6
RESIDUAL = 1e-6
# Degree of the polynomial filter: it starts low, and doubles while the residual falls slowly.
DEGREE, MOST_DEGREE = 8, 64
SLOW = 0.1
# Products with the Laplacian at most, per vector: the bound of the time. The first where the inverse can take over.
FEW_PRODUCTS, MOST_PRODUCTS = 300, 3000


def low_eigenpairs(
    L: sp.csr_array,
    k: int,
    *,
    lmax: float | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Eigenpairs:
    """Return the ``k`` lowest eigenvalues and eigenvectors of a Laplacian.

    Parameters
    ----------
    L : sparse array of shape (n_nodes, n_nodes)
        A Laplacian, of either kind.
    k : int
        Number of eigenpairs, from 1 to ``n_nodes``.
    lmax : float, optional
        An upper bound of the largest eigenvalue, estimated when not given.
    random_state : int, RandomState or None, default=None
        Seed of the start vectors. None is a fixed seed: the result is always deterministic.

    Returns
    -------
    eigenvalues : ndarray of shape (k,)
        Ascending.
    eigenvectors : ndarray of shape (n_nodes, k)
        Orthonormal columns; the entry of largest magnitude of each is positive.

    Notes
    -----
    Each connected component is solved on its own, since every eigenvector belongs to one component. For equal
    eigenvalues, the larger component comes first. Small components use a dense solver. Others use a block Krylov
    method with restarts; blocks find multiple eigenvalues, such as those of a square grid. Its operator is a Chebyshev
    filter, ``O(nnz(L) k)`` per product. Up to 3500 nodes, if weights of very different size make that slow, it uses the
    inverse of the slightly shifted Laplacian. The number of products is bounded. If the bound is reached, the best
    vectors so far are returned; their residuals may then exceed a millionth.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from frpcag.graphs import build_laplacian, low_eigenpairs
    >>> path = build_laplacian(sp.csr_array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]), "combinatorial")
    >>> low_eigenpairs(path, 2)[0].round(6)
    array([0., 1.])
    """
    n = L.shape[0]
    if not 1 <= k <= n:
        raise ValueError(f"k={k} must be between 1 and n_nodes={n}; ask for at most {n} eigenpairs.")
    L = sp.csr_array(L, dtype=np.float64)
    rng = check_random_state(0 if random_state is None else random_state)
    lmax = largest_eigenvalue(L) if lmax is None else lmax
    n_components, component = connected_components(L, directed=False)
    parts = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    parts.sort(key=lambda nodes: (-len(nodes), nodes[0]))
    # Every component has a zero eigenvalue: no component gives more than what is left beside those of the others.
    most = max(k - n_components + 1, 1)
    pairs: list[tuple[float, int, Array]] = []
    for number, nodes in enumerate(parts[:k]):
        part = L if n_components == 1 else sp.csr_array(L[nodes][:, nodes])
        values, vectors = _low_of_component(part, min(most, len(nodes)), lmax, rng)
        pairs += [(value, number, vector) for value, vector in zip(values, vectors.T, strict=True)]
    pairs.sort(key=lambda pair: pair[:2])
    eigenvalues = np.array([value for value, _, _ in pairs[:k]])
    eigenvectors = np.zeros((n, k))
    for column, (_, number, vector) in enumerate(pairs[:k]):
        eigenvectors[parts[number], column] = vector
    return eigenvalues, fix_signs(eigenvectors)[0]


def _low_of_component(L: sp.csr_array, k: int, lmax: float, rng: np.random.RandomState) -> Eigenpairs:
    """Return the ``k`` lowest eigenpairs of a connected graph; its lowest eigenvalue is zero."""
    n = L.shape[0]
    if n <= DENSE_NODES or 4 * (k + GUARD) >= n or lmax == 0:
        values, vectors = _dense(L, k)
    else:
        block = _orthonormal(rng.standard_normal((n, k + GUARD)))
        values, block, small = _filter_cycles(L, k, lmax, block, FEW_PRODUCTS if n <= FACTOR_NODES else MOST_PRODUCTS)
        if not small and n <= FACTOR_NODES:
            values, block = _inverse_cycles(L, k, lmax, block)
        values, vectors = values[:k], block[:, :k]
    values = np.maximum(values, 0.0)  # rounding leaves the zero at about -1e-16
    values[0] = 0.0
    return values, vectors


def _dense(L: sp.csr_array, k: int) -> Eigenpairs:
    values, vectors = eigh(L.toarray(), subset_by_index=(0, k - 1), check_finite=False)
    return values, vectors


def _filter_cycles(L: sp.csr_array, k: int, lmax: float, block: Array, most: int) -> tuple[Array, Array, bool]:
    """Return Ritz pairs after cycles of the Chebyshev filter, and whether their residuals are small."""
    degree, products, before, cut = DEGREE, 0, np.inf, 0.5 * lmax
    while True:
        values, block, size = _cycle(L, k, lmax, block, partial(_filtered, L, degree, cut, lmax))
        products += (BLOCKS - 1) * degree
        if size <= RESIDUAL or products >= most:
            return values, block, size <= RESIDUAL
        if size > SLOW * before:
            degree = min(2 * degree, MOST_DEGREE)
        # The next filter damps all beyond the Ritz values that are kept.
        before, cut = size, float(np.clip(values[k + GUARD], 1e-6 * lmax, 0.9 * lmax))


def _inverse_cycles(L: sp.csr_array, k: int, lmax: float, block: Array) -> Eigenpairs:
    """Return Ritz pairs after cycles of the inverse of the slightly shifted Laplacian."""
    shifted = L.toarray()
    shifted[np.diag_indices(len(shifted))] += SHIFT * lmax
    factor = cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
    for _ in range(CYCLES):
        values, block, size = _cycle(L, k, lmax, block, lambda V: cho_solve(factor, V, check_finite=False))
        if size <= RESIDUAL:
            break
    return values, block


def _cycle(
    L: sp.csr_array, k: int, lmax: float, block: Array, apply: Callable[[Array], Array]
) -> tuple[Array, Array, float]:
    """Return the Ritz values of the Krylov space of a block, its best block, and the largest of k residuals."""
    basis = [block]
    for _ in range(BLOCKS - 1):
        basis.append(_orthonormal(apply(basis[-1]), against=basis))
    V = np.hstack(basis)
    H = V.T @ (L @ V)
    values, rotation = eigh((H + H.T) / 2, check_finite=False)
    block = _orthonormal(V @ rotation[:, : block.shape[1]])
    residual = L @ block[:, :k] - block[:, :k] * values[:k]
    return values, block, float(np.sqrt(np.square(residual).sum(axis=0).max())) / lmax


def _orthonormal(V: Array, *, against: list[Array] | None = None) -> Array:
    """Return an orthonormal basis of the columns, at right angles to the bases before."""
    for _ in range(2):  # once is not enough in rounding
        for Q in against or ():
            V = V - Q @ (Q.T @ V)
        V = np.linalg.qr(V)[0]
    return V


def _filtered(L: sp.csr_array, degree: int, cut: float, lmax: float, V: Array) -> Array:
    """Return a Chebyshev polynomial of ``L`` times ``V``, at most one on [cut, lmax] and growing fast below it."""
    half, centre = (lmax - cut) / 2, (lmax + cut) / 2
    # Scaled so that the polynomial is one at zero: no overflow (Zhou, Saad, Tiago and Chelikowsky 2006).
    ratio = first = -half / centre
    before, now = V, (L @ V - centre * V) * (ratio / half)
    for _ in range(degree - 1):
        following = 1 / (2 / first - ratio)
        before, now = now, (L @ now - centre * now) * (2 * following / half) - (ratio * following) * before
        ratio = following
    return now
