"""Every way to label a cloud of points, under one contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from frpcag.graphs import graph_from_weights
from frpcag.labels.linkage import linkage, numbered
from frpcag.labels.points import Cloud, unit_rows
from frpcag.linalg.eigenpairs import low_eigenpairs
from frpcag.runtime.threads import openmp_after_fork

Array = np.ndarray


def kmeans(points: Array, n_clusters: int, *, n_init: int = 10, random_state: Any = None) -> Array:
    """Return the labels of the best of ``n_init`` runs of k-means."""
    with openmp_after_fork():
        return KMeans(n_clusters, n_init=n_init, random_state=random_state).fit(points).labels_


def centres(cloud: Cloud, n_clusters: int, *, n_init: int = 10, random_state: Any = None) -> Array:
    """Return labels by k-means on the points themselves; what is missing counts as the mean of its column."""
    P = cloud.points
    missing = np.isnan(P)
    if missing.any():
        P = np.where(missing, np.nanmean(P, axis=0), P)
    return kmeans(P, n_clusters, n_init=n_init, random_state=random_state)


def spectral(cloud: Cloud, n_clusters: int, *, n_init: int = 10, random_state: Any = None) -> Array:
    """Return labels by k-means on the spectral embedding of the graph of a cloud (Ng, Jordan and Weiss 2002)."""
    L = graph_from_weights(cloud.affinity).laplacian
    points = spectral_embedding(L, n_clusters, random_state=random_state)
    return kmeans(points, n_clusters, n_init=n_init, random_state=random_state)


def spectral_embedding(L: Any, n_clusters: int, *, random_state: Any = None) -> Array:
    """Return the rows of the lowest eigenvectors of a Laplacian, scaled to unit length (Ng, Jordan and Weiss 2002).

    Parameters
    ----------
    L : sparse matrix of shape (n_nodes, n_nodes)
    n_clusters : int
        Eigenvectors to take.
    random_state : int, RandomState or None
        Seed of the eigensolver's start vectors.

    Returns
    -------
    ndarray of shape (n_nodes, n_clusters)
    """
    return unit_rows(low_eigenpairs(L, min(n_clusters, L.shape[0]), random_state=random_state)[1])


LABELLERS: dict[str, Callable[..., Array]] = {
    "linkage": linkage,
    "spectral": spectral,
    "kmeans": centres,
}


def label(name: str, cloud: Cloud, n_clusters: int, *, n_init: int = 10, random_state: Any = None) -> Array:
    """Return exactly ``n_clusters`` labels of a cloud, none of them empty, numbered as they come up.

    Parameters
    ----------
    name : str
        One of `LABELLERS`.
    cloud : Cloud
    n_clusters : int
        From 1 to the number of points.
    n_init : int, default=10
        Starts of k-means, where it takes part.
    random_state : int, RandomState or None
        Seed of k-means and of the eigensolver.

    Returns
    -------
    int64 ndarray of shape (n,)
    """
    if n_clusters in (1, cloud.n):
        return np.zeros(cloud.n, np.int64) if n_clusters == 1 else np.arange(cloud.n)
    options = {} if name == "linkage" else {"n_init": n_init}
    labels = LABELLERS[name](cloud, n_clusters, random_state=random_state, **options)
    return numbered(fill_empty(cloud.points, labels, n_clusters))


def fill_empty(points: Array, labels: Array, n_clusters: int) -> Array:
    """Return labels with no cluster empty: each takes the point that lies farthest from its own centre."""
    labels = numbered(labels)
    for new in range(int(labels.max()) + 1, n_clusters):
        P = np.nan_to_num(points)
        sums = np.zeros((new, P.shape[1]))
        np.add.at(sums, labels, P)
        size = np.bincount(labels, minlength=new)
        away = np.square(P - (sums / size[:, None])[labels]).sum(axis=1)
        away[size[labels] == 1] = -1.0
        labels[np.argmax(away)] = new
    return labels
