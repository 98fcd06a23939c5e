"""Data over graph frequencies: energy, eigengaps, attenuation, distance to the low-rank matrices on graphs."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Graph, low_eigenpairs

Array = np.ndarray


def graph_basis(graph: Graph | sp.sparray, k: int | None = None) -> tuple[Array, Array]:
    """Return the lowest graph frequencies and their eigenvectors, the paper's ``Q`` (samples) or ``P`` (features).

    Parameters
    ----------
    graph : Graph or sparse Laplacian
        Of ``n_nodes`` nodes.
    k : int, optional
        How many, at most ``n_nodes``. The default is all of them, which costs ``O(n_nodes^3)``. A few of them come from
        Lanczos steps of ``O(nnz)``, which is fast even for 100,000 nodes.

    Returns
    -------
    eigenvalues : ndarray of shape (k,)
        Ascending, not negative.
    eigenvectors : ndarray of shape (n_nodes, k)
        Orthonormal columns.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import build_graph
    >>> from frpcag.insight import graph_basis
    >>> X = np.repeat([[0.0], [9.0]], 5, axis=0) + np.arange(10.0)[:, None] / 100
    >>> eigenvalues, Q = graph_basis(build_graph(X, n_neighbors=3), 3)
    >>> (eigenvalues < 1e-9).sum()  # one zero for each component
    np.int64(2)
    """
    L, lmax = (graph.laplacian, graph.lmax) if isinstance(graph, Graph) else (graph, None)
    if k is None:
        eigenvalues, eigenvectors = np.linalg.eigh(L.toarray())
        return np.maximum(eigenvalues, 0.0), eigenvectors
    return low_eigenpairs(L, k, lmax=lmax)


def frequency_energy(X: Array, basis: Array, *, axis: int = 0) -> Array:
    """Return the share of the energy of ``X`` at each graph frequency, ``|q_j' X|^2 / |X|^2``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite; ``X`` or its clean part ``U``, centred as for the fit.
    basis : ndarray of shape (n_nodes, k)
        Eigenvectors, from :func:`graph_basis`.
    axis : {0, 1}, default=0
        0 for the sample graph, 1 for the feature graph.

    Returns
    -------
    ndarray of shape (k,)
        The rest, up to a sum of 1, lies at the higher frequencies.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import frequency_energy
    >>> frequency_energy(np.array([[3.0, 0.0], [0.0, 4.0]]), np.eye(2))
    array([0.36, 0.64])
    """
    coefficients = _along(X, axis) @ basis
    energy = np.einsum("ij,ij->j", coefficients, coefficients, dtype=np.float64)
    total = float(np.einsum("ij,ij->", X, X, dtype=np.float64))
    return energy / total if total > 0 else np.zeros_like(energy)


def project_low_rank(X: Array, Q: Array | None, P: Array | None) -> Array:
    """Return the nearest matrix that is low-rank on the graphs, ``Q Q' X P P'`` (Shahid et al. 2016, Definition 1).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite.
    Q : ndarray of shape (n_samples, k1) or None
        First eigenvectors of the sample graph; None projects along the features only.
    P : ndarray of shape (n_features, k2) or None
        First eigenvectors of the feature graph; None projects along the samples only.

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import project_low_rank
    >>> project_low_rank(np.array([[1.0, 2.0], [3.0, 4.0]]), np.full((2, 1), 0.5**0.5), None)
    array([[2., 3.],
           [2., 3.]])
    """
    if Q is not None:
        X = Q @ (Q.T @ X)
    return X if P is None else (X @ P) @ P.T


def low_rank_distance(X: Array, Q: Array | None, P: Array | None) -> float:
    """Return the distance of ``X`` to the low-rank matrices on the graphs, as a share of its norm.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite.
    Q, P : ndarray or None
        As in :func:`project_low_rank`.

    Returns
    -------
    float
        ``|X - Q Q' X P P'| / |X|`` in Frobenius norms: 0 inside ``LR(Q_k1, P_k2)``, at most 1.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import low_rank_distance
    >>> low_rank_distance(np.array([[3.0], [4.0]]), np.array([[1.0], [0.0]]), None)
    0.8
    """
    norm = float(np.linalg.norm(X))
    return float(np.linalg.norm(X - project_low_rank(X, Q, P))) / norm if norm > 0 else 0.0


def eigengaps(eigenvalues: Array) -> Array:
    """Return ``lambda_{k+1} - lambda_k`` for k = 1, 2, ...

    Parameters
    ----------
    eigenvalues : ndarray of shape (m,)
        Ascending.

    Returns
    -------
    ndarray of shape (m - 1,)
        Entry ``k - 1`` is the gap after the first ``k`` eigenvalues. "One should have large eigengaps" (Shahid et al.
        2016, Sec. IV-E): the bound of Theorem 1 is small where the gap is large.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import eigengaps
    >>> eigengaps(np.array([0.0, 0.0, 0.5, 0.75]))
    array([0.  , 0.5 , 0.25])
    """
    return np.diff(np.asarray(eigenvalues, dtype=np.float64))


def suggest_k(eigenvalues: Array, *, k_min: int = 1) -> int:
    """Return the number of clusters that the largest eigengap suggests.

    Parameters
    ----------
    eigenvalues : ndarray of shape (m,)
        The ``m`` lowest, ascending; no more than ``m - 1`` clusters can be suggested.
    k_min : int, default=1
        The least answer.

    Returns
    -------
    int

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import suggest_k
    >>> suggest_k(np.array([0.0, 0.01, 0.5, 0.75]))
    2
    """
    gaps = eigengaps(eigenvalues)
    if not 1 <= k_min <= len(gaps):
        raise ValueError(f"k_min={k_min} must lie between 1 and {len(gaps)}, one less than there are eigenvalues.")
    return int(np.argmax(gaps[k_min - 1 :])) + k_min


def attenuation(eigenvalues1: Array, eigenvalues2: Array, *, gamma1: float, gamma2: float) -> Array:
    """Return ``1 / ((1 + gamma1 lambda_i) (1 + gamma2 omega_i))``, the damping of the i-th singular value.

    Parameters
    ----------
    eigenvalues1, eigenvalues2 : ndarray of shape (m,)
        Graph frequencies of the samples and of the features, ascending. The shorter one sets the length.
    gamma1, gamma2 : float
        Weights of the two graph terms.

    Returns
    -------
    ndarray of shape (m,)
        A prediction: exact for ``U = (I + gamma1 L1)^-1 X (I + gamma2 L2)^-1`` when the singular vectors of ``X`` are
        the eigenvectors of the graphs in their order (Shahid et al. 2016, Sec. V-A); the l1 loss and real data differ.
        Compare with :func:`singular_value_ratio`.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import attenuation
    >>> attenuation(np.array([0.0, 1.0]), np.array([0.0, 0.5]), gamma1=1.0, gamma2=2.0)
    array([1.  , 0.25])
    """
    m = min(len(eigenvalues1), len(eigenvalues2))
    return 1 / ((1 + gamma1 * np.asarray(eigenvalues1)[:m]) * (1 + gamma2 * np.asarray(eigenvalues2)[:m]))


def singular_value_ratio(Sigma_X: Array, Sigma_U: Array) -> Array:
    """Return how much of each singular value of ``X`` is left in ``U``.

    Parameters
    ----------
    Sigma_X, Sigma_U : ndarray of shape (m,)
        Descending. The shorter one sets the length.

    Returns
    -------
    ndarray of shape (m,)
        ``Sigma_U / Sigma_X``; 0 where ``Sigma_X`` is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import singular_value_ratio
    >>> singular_value_ratio(np.array([4.0, 2.0, 1.0]), np.array([3.0, 1.0]))
    array([0.75, 0.5 ])
    """
    m = min(len(Sigma_X), len(Sigma_U))
    before, after = (np.asarray(Sigma, dtype=np.float64)[:m] for Sigma in (Sigma_X, Sigma_U))
    return np.divide(after, before, out=np.zeros(m), where=before > 0)


def _along(X: Array, axis: int) -> Array:
    """Return the nodes of the graph as columns."""
    if axis not in (0, 1):
        raise ValueError(f"axis={axis!r} must be 0 for the sample graph or 1 for the feature graph.")
    return X.T if axis == 0 else X
