"""The lowest eigenpairs of a Laplacian."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import check_random_state

from frpcag.linalg.factorize import fix_signs
from frpcag.linalg.lanczos import largest_eigenvalue
from frpcag.runtime.threads import block_pool

Array = NDArray[np.float64]
Eigenpairs = tuple[Array, Array]

# Below this many nodes a dense eigendecomposition is faster than Lanczos.
DENSE_NODES = 500


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
        Seed of the start vector. None is a fixed seed: the result is always deterministic.

    Returns
    -------
    eigenvalues : ndarray of shape (k,)
        Ascending.
    eigenvectors : ndarray of shape (n_nodes, k)
        Orthonormal columns; the entry of largest magnitude of each is positive.

    Notes
    -----
    Lanczos on ``lmax I - L``, whose top is the bottom of ``L``: no factorisation, ``O(nnz(L))`` a step. Every
    connected component is solved by itself. Its zero eigenvalue is then simple, whereas one Lanczos run
    over all of them finds copies of the zero one by one; and an eigenvector lives on one component.

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

    def solve(nodes: NDArray[np.intp]) -> list[tuple[float, NDArray[np.intp], Array]]:
        part = L[nodes][:, nodes] if n_components > 1 else L
        values, vectors = _low_of_component(part, min(k, len(nodes)), lmax, rng)
        return [(value, nodes, vector) for value, vector in zip(values, vectors.T, strict=True)]

    with block_pool(1) as run:  # one thread: the parts share the random numbers
        pairs = [pair for found in run(solve, parts) for pair in found]
    pairs.sort(key=lambda pair: (pair[0], pair[1][0]))
    eigenvalues = np.array([value for value, _, _ in pairs[:k]])
    eigenvectors = np.zeros((n, k))
    for column, (_, nodes, vector) in enumerate(pairs[:k]):
        eigenvectors[nodes, column] = vector
    return eigenvalues, fix_signs(eigenvectors)[0]


def _low_of_component(L: sp.csr_array, k: int, lmax: float, rng: np.random.RandomState) -> Eigenpairs:
    """Return the ``k`` lowest eigenpairs of a connected graph."""
    n = L.shape[0]
    if n <= DENSE_NODES or 2 * k >= n:
        values, vectors = np.linalg.eigh(L.toarray())
        return np.maximum(values[:k], 0.0), vectors[:, :k]
    values, vectors = _lanczos(L, k, lmax, rng, found=np.empty((n, 0)))
    while True:
        # A symmetric graph, such as a square grid, has double eigenvalues, and a single start vector holds
        # but one direction of each pair. So look again, at right angles to what was found, until nothing
        # lower turns up.
        missed = _lanczos(L, 1, lmax, rng, found=vectors)
        if missed[0][0] >= values[-1] - 1e-9 * lmax:
            # Rounding leaves the zero of a positive semi-definite matrix at about -1e-16.
            return np.maximum(values, 0.0), vectors
        values, vectors = np.append(values, missed[0]), np.column_stack([vectors, missed[1]])
        lowest = np.argsort(values, kind="stable")[:k]
        values, vectors = values[lowest], vectors[:, lowest]


def _lanczos(L: sp.csr_array, k: int, lmax: float, rng: np.random.RandomState, *, found: Array) -> Eigenpairs:
    """Return the ``k`` lowest eigenpairs at right angles to the eigenvectors already found."""
    n = L.shape[0]

    def flipped(v: Array) -> Array:
        v = v - found @ (found.T @ v)
        image = lmax * v - L @ v
        return image - found @ (found.T @ image)

    operator = LinearOperator(L.shape, matvec=flipped, dtype=np.float64)
    values, vectors = eigsh(
        operator, k, which="LA", v0=flipped(rng.standard_normal(n)), ncv=min(n, max(64, 3 * k)), tol=1e-10
    )
    order = np.argsort(-values, kind="stable")
    return lmax - values[order], vectors[:, order]
