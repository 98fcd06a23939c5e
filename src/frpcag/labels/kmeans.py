"""Labels of points by k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from frpcag.runtime.threads import openmp_after_fork

Array = np.ndarray


def kmeans(points: Array, n_clusters: int, *, n_init: int = 10, random_state: Any = None) -> tuple[Array, float]:
    """Return the labels of points and how tight the clusters are.

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_coordinates)
    n_clusters : int
    n_init : int, default=10
        Starts; the best is kept.
    random_state : int, RandomState or None
        Seed of the starts.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
    inertia : float
        Sum of squared distances to the centres.
    """
    with openmp_after_fork():
        fitted = KMeans(n_clusters, n_init=n_init, random_state=random_state).fit(points)
    return fitted.labels_, float(fitted.inertia_)
