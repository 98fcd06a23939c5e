"""Do graph and data fit together? Covariance and singular vectors in the basis of graph eigenvectors."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def graph_covariance(X: Array, P: Array) -> Array:
    """Return ``Gamma = P' C P``, the covariance of the features in a graph basis (Shahid et al. 2016, Eq. (5)).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Finite.
    P : ndarray of shape (n_features, k)
        Eigenvectors of the feature graph, from :func:`graph_basis`.

    Returns
    -------
    ndarray of shape (k, k)
        Nearly diagonal if the eigenvectors of the graph are close to those of the covariance.

    Notes
    -----
    ``C = (X - mu)' (X - mu) / n`` with ``mu`` the mean of **all** entries, not of each feature: the paper's definition
    (footnote 1), which leaves the mean sample in the data. Costs ``O(n p k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import graph_covariance
    >>> graph_covariance(np.array([[1.0, -1.0], [3.0, -3.0]]), np.eye(2))
    array([[ 5., -5.],
           [-5.,  5.]])
    """
    mean = X.mean(dtype=np.float64)
    # (X - mu) P without a centred copy of X.
    Z = (X @ P).astype(np.float64) - mean * P.sum(axis=0)
    return Z.T @ Z / len(X)


def alignment_ratio(Gamma: Array) -> float:
    """Return ``s_r``, the share of ``Gamma`` on its diagonal (Shahid et al. 2016, Eq. (6)).

    Parameters
    ----------
    Gamma : ndarray of shape (k, k)
        From :func:`graph_covariance`.

    Returns
    -------
    float
        ``|diag(Gamma)| / |Gamma|`` in Euclidean norms: 1 if covariance and Laplacian are simultaneously
        diagonalisable. For a part of the basis it is the ratio within that part.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import alignment_ratio
    >>> alignment_ratio(np.diag([3.0, 1.0]))
    1.0
    >>> round(alignment_ratio(np.ones((4, 4))), 6)
    0.5
    """
    norm = float(np.linalg.norm(Gamma))
    return float(np.linalg.norm(np.diagonal(Gamma))) / norm if norm > 0 else 1.0


def vector_alignment(W: Array, Sigma: Array, basis: Array) -> Array:
    """Return ``Sigma W' Q`` (or ``Sigma V' P``): singular vectors in the graph's basis, weighted by importance.

    Parameters
    ----------
    W : ndarray of shape (n_nodes, c)
        Singular vectors of ``U`` as columns: ``W`` with the sample graph, ``V`` with the feature graph.
    Sigma : ndarray of shape (c,)
        Singular values.
    basis : ndarray of shape (n_nodes, k)
        Eigenvectors of the graph.

    Returns
    -------
    ndarray of shape (c, k)
        Large entries in the first columns mean that ``U`` consists of low graph frequencies (Shahid et al. 2016, Sec.
        V-B and Fig. 4).

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import vector_alignment
    >>> vector_alignment(np.eye(2), np.array([5.0, 2.0]), np.eye(2))
    array([[5., 0.],
           [0., 2.]])
    """
    return np.asarray(Sigma)[:, None] * (W.T @ basis)


def shape_interaction(W: Array) -> Array:
    """Return the shape interaction matrix ``W W'`` of samples (Ji et al. 2015; Shahid et al. 2016).

    Parameters
    ----------
    W : ndarray of shape (m, c)
        Rows of the left singular vectors of ``U``: all of them, or those of the samples to show, sorted by class.

    Returns
    -------
    ndarray of shape (m, m)
        Block diagonal when the classes lie in orthogonal subspaces.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.insight import shape_interaction
    >>> shape_interaction(np.array([[0.0], [1.0]]))
    array([[0., 0.],
           [0., 1.]])
    """
    return W @ W.T
