"""Laplacians: their entries, null vectors and the links of other rows; one rule for arrays and tensors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.runtime.arrays import is_tensor

LAPLACIANS = ("normalized", "combinatorial")


def check_laplacian(laplacian: str) -> bool:
    """Return whether a word means the normalised Laplacian; raise ValueError if it means none."""
    if not (isinstance(laplacian, str) and laplacian in LAPLACIANS):
        raise ValueError(f"laplacian={laplacian!r} is unknown; pass one of {', '.join(map(repr, LAPLACIANS))}.")
    return laplacian == "normalized"


def edge_entries(weights: Any, degree_i: Any, degree_j: Any, *, normalized: bool) -> Any:
    """Return the entries of a Laplacian for edges, given by weight and degrees of both ends; arrays or tensors."""
    if not normalized:
        return -weights
    # Not w / sqrt(d_i d_j): the product of two tiny or huge degrees leaves the range of float64. Each
    # factor here is at most 1, and their product is the same for (i, j) and (j, i).
    return -(((weights / degree_i) * (weights / degree_j)) ** 0.5)


def diagonal_entries(degree: Any, *, normalized: bool) -> Any:
    """Return the diagonal of a Laplacian: 0 for isolated nodes, see `build_laplacian`; array or tensor."""
    return (degree > 0) * degree**0 if normalized else degree


def null_vector(degree: Any, *, normalized: bool) -> Any:
    """Return a positive vector that the Laplacian maps to zero: the square root of the degree, or ones.

    An isolated node, whose row is zero, has 1.
    """
    return (degree + (degree == 0)) ** (0.5 if normalized else 0)


def laplacian_rows(A: Any, degree: np.ndarray, *, normalized: bool) -> sp.csr_array:
    """Return the first rows of a Laplacian.

    Parameters
    ----------
    A : sparse array of shape (n_rows, n_nodes)
        The same rows of the weights.
    degree : ndarray of shape (n_nodes,)
        Of all nodes.
    normalized : bool

    Returns
    -------
    L : csr_array of shape (n_rows, n_nodes)
        No zeros stored, indices sorted.
    """
    A = sp.coo_array(A, dtype=np.float64)
    nodes = np.arange(A.shape[0], dtype=A.row.dtype)
    off_diagonal = edge_entries(A.data, degree[A.row], degree[A.col], normalized=normalized)
    entries = np.concatenate([off_diagonal, diagonal_entries(degree[: len(nodes)], normalized=normalized)])
    places = (np.concatenate([A.row, nodes]), np.concatenate([A.col, nodes]))
    L = sp.csr_array((entries, places), shape=A.shape)
    L.eliminate_zeros()
    L.sort_indices()
    return L


def build_laplacian(A: sp.csr_array, laplacian: str = "normalized") -> sp.csr_array:
    """Return the Laplacian of a weighted graph (Shahid et al. 2016).

    Parameters
    ----------
    A : sparse array of shape (n_nodes, n_nodes)
        Symmetric non-negative weights with an empty diagonal.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        ``I - D^-1/2 A D^-1/2`` or ``D - A``, with ``D`` the diagonal of the degrees (row sums of ``A``).

    Returns
    -------
    L : csr_array of shape (n_nodes, n_nodes)
        float64, symmetric to the last bit, indices sorted.

    Notes
    -----
    An isolated node has a zero row in both kinds, because its graph gives no information about it. (The formula would
    leave the 1 of ``I`` on its diagonal, which pulls the node towards zero.)

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from frpcag.graphs import build_laplacian
    >>> build_laplacian(sp.csr_array([[0.0, 2.0], [2.0, 0.0]])).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    normalized = check_laplacian(laplacian)
    return laplacian_rows(A, degrees(A), normalized=normalized)


def degrees(A: Any) -> np.ndarray:
    """Return the row sums of a sparse array, in float64."""
    return np.asarray(A.sum(axis=1, dtype=np.float64)).ravel()


class Links:
    """Edges from other rows to the nodes of a fitted graph: what they weigh in its Laplacian.

    Parameters
    ----------
    graph : Graph
        Of the fitted rows, on the host.
    """

    def __init__(self, graph: Any) -> None:
        self.sigma, self.normalized = graph.sigma, graph.normalized
        self._degrees = degrees(graph.weights)

    def of(self, indices: Any, distances: Any, *, joined: bool = False) -> tuple[Any, Any]:
        """Return the diagonal entries of the rows and their edges, the entries off the diagonal without their sign.

        Parameters
        ----------
        indices, distances : ndarray or tensor of shape (m, k)
            Fitted rows near each row.
        joined : bool, default=False
            Whether an edge counts in the degree of its fitted row, too, as if the row were the one to join the graph:
            no fitted row of hardly any degree then counts beyond measure.
        """
        xp = sys.modules["torch"] if is_tensor(distances) else np
        A = xp.ones_like(distances)
        if self.sigma is not None:
            # A corrupted row is far from all others: in its own mean distance it is linked as strongly as any.
            A = xp.exp(-((distances / distances.mean(1)[:, None].clip(max(self.sigma, 1e-300))) ** 2))
        diagonal = A.sum(1)
        if self.normalized:
            known = self._degrees if xp is np else xp.as_tensor(self._degrees, device=distances.device)
            fitted = known[indices] + (A if joined else 0)
            linked = -edge_entries(A, diagonal[:, None], xp.where(fitted > 0, fitted, 1.0), normalized=True)
            A, diagonal = xp.where(fitted > 0, linked, 0.0), xp.ones_like(diagonal)
        return diagonal, A
