"""Edge weights: the Gaussian kernel, its sigma rule, symmetrisation."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from frpcag.linalg.small_indices import with_small_indices

WEIGHTS = ("gaussian", "binary")

# Gaussian weights underflow to 0 beyond 27 sigma and would cut an outlier off the graph, as if nothing at all
# were known about it. In the normalised Laplacian an outlier of K such edges couples to a node of degree d
# with sqrt(w / (K d)): the floor 1e-12 keeps that coupling above the rounding of the unit diagonal in float32
# (1e-7), and touches only edges longer than 5.2 sigma. When sigma is so small that all edges meet the floor,
# they all weigh the same, and the normalised Laplacian, which does not see the scale of the weights, is that
# of the binary graph.
WEIGHT_FLOOR = 1e-12


def mean_length(distances: NDArray[np.float64]) -> float:
    """Return the sigma of "auto": the mean length of the edges (Shahid et al. 2016, Sec. III); finite ones count."""
    distances = distances[np.isfinite(distances)]
    # Through the largest length, so that the sum of lengths near the end of the range of float64 stays in it.
    largest = float(np.max(distances, initial=0.0))
    return largest * float(np.mean(distances / largest)) if largest > 0 else 0.0


def gaussian_weights(distances: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """Return ``exp(-d^2 / sigma^2)`` (Shahid et al. 2016, Sec. III).

    Parameters
    ----------
    distances : ndarray
        Lengths of the edges, any shape. Infinitely far are points that share no observed entry.
    sigma : float
        Not negative. 0 is what `mean_length` gives when all points joined by an edge coincide; all weights
        are 1 then.

    Returns
    -------
    weights : ndarray of the shape of ``distances``
        Between 1e-12 and 1: an edge never weighs so little that it is lost. 0, no edge, for an infinite length.

    Examples
    --------
    >>> from frpcag.graphs.weights import gaussian_weights
    >>> gaussian_weights(np.array([0.0, 2.0]), 1.0).round(4)
    array([1.    , 0.0183])
    """
    distances = np.asarray(distances, dtype=np.float64)
    near = np.isfinite(distances)
    if sigma == 0:
        return near.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.maximum(np.exp(-np.square(distances / sigma)), WEIGHT_FLOOR) * near


def symmetrize_weights(A: sp.csr_array) -> sp.csr_array:
    """Return ``(A + A') / 2``: an edge found from both ends weighs twice one found from one end.

    Parameters
    ----------
    A : csr_array of shape (n_nodes, n_nodes)
        Weights of the edges from each node to its nearest neighbours.

    Returns
    -------
    A : csr_array of shape (n_nodes, n_nodes)
        Symmetric to the last bit, indices sorted.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from frpcag.graphs.weights import symmetrize_weights
    >>> symmetrize_weights(sp.csr_array([[0.0, 1.0], [0.0, 0.0]])).toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    A = sp.csr_array(A)
    both = sp.csr_array((A + A.T) * 0.5)
    both.sort_indices()
    return both


def edges_to_matrix(indices: NDArray[np.int64], weights: NDArray[np.float64]) -> sp.csr_array:
    """Return the symmetric weight matrix of a neighbour list.

    Parameters
    ----------
    indices, weights : ndarray of shape (n_nodes, n_neighbors)
        Neighbours of each node, itself not among them, and the weights of the edges to them; 0 is no edge.

    Returns
    -------
    A : csr_array of shape (n_nodes, n_nodes)

    Examples
    --------
    >>> from frpcag.graphs.weights import edges_to_matrix
    >>> edges_to_matrix(np.array([[1], [0]]), np.ones((2, 1))).toarray()
    array([[0., 1.],
           [1., 0.]])
    """
    n, k = indices.shape
    directed = sp.csr_array((weights.ravel(), indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return symmetrize_weights(with_small_indices(directed))
