"""Labels from the lowest eigenvectors of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Graph, graph_from_weights
from frpcag.labels.cloud import Cloud
from frpcag.labels.kmeans import kmeans
from frpcag.linalg.eigenpairs import low_eigenpairs

Array = np.ndarray


def spectral(cloud: Cloud, n_clusters: int, *, n_init: int = 10, random_state: Any = None) -> Array:
    """Return labels by k-means on the spectral embedding of the graph of a cloud (Ng, Jordan and Weiss 2002)."""
    L = graph_from_weights(cloud.affinity).laplacian
    points = spectral_embedding(L, n_clusters, random_state=random_state)
    return kmeans(points, n_clusters, n_init=n_init, random_state=random_state)[0]


def spectral_embedding(L: Any, n_clusters: int, *, random_state: Any = None) -> Array:
    """Return the rows of the lowest eigenvectors of ``L``, scaled to unit length (Ng, Jordan and Weiss 2002).

    Parameters
    ----------
    L : sparse matrix of shape (n_nodes, n_nodes)
        A Laplacian.
    n_clusters : int
        Eigenvectors to take.
    random_state : int, RandomState or None
        Seed of the eigensolver's start vectors.

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
