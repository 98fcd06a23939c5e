"""Points in which the clusters of a graph lie apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Graph
from frpcag.linalg.eigenpairs import low_eigenpairs

Array = np.ndarray


def spectral_embedding(L: Any, n_clusters: int, *, random_state: Any = None) -> Array:
    """Return the rows of the lowest eigenvectors of ``L``, scaled to unit length (Ng, Jordan and Weiss 2002).

    Parameters
    ----------
    L : sparse matrix of shape (n_nodes, n_nodes)
        A Laplacian.
    n_clusters : int
        Eigenvectors to take.
    random_state : int, RandomState or None
        Seed of the eigensolver's start vector.

    Returns
    -------
    ndarray of shape (n_nodes, n_clusters)
    """
    _, vectors = low_eigenpairs(L, min(n_clusters, L.shape[0]), random_state=random_state)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def unit_degrees(graph: Graph) -> sp.csr_array:
    """Return ``D^-1/2 A D^-1/2``, so that graphs of different data can be added."""
    s = sp.diags_array(1 / graph.null_vector)
    return s @ graph.weights @ s
