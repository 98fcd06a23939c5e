"""How many clusters: gaps in the spectrum of the neighbour graph, and whether parts of the samples agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from frpcag.graphs import graph_from_weights
from frpcag.labels.labellers import label
from frpcag.labels.points import cloud_of
from frpcag.linalg.eigenpairs import low_eigenpairs

Array = np.ndarray

# The range of the search, and rows that are looked at.
LEAST, MOST = 2, 100
MOST_ROWS = 2000
# Fewer samples than this in the mean cluster show nothing.
LEAST_SIZE = 4
# Gaps are taken relative to the eigenvalue above them, and those below this level count as one: zeros of islands.
LEVEL = 0.02
# The largest gaps that are looked at again, in so many parts of the samples.
LOOKED_AT, PARTS, SHARE = 6, 3, 0.7


def count_clusters(points: Array, *, random_state: int = 0, n_jobs: int | None = None) -> tuple[int, dict[str, Array]]:
    """Return a number of clusters, from 2 to 100, and what it was chosen by.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        At most 2000 rows are looked at.
    random_state : int, default=0
        Seed of the parts and of k-means.
    n_jobs : int, optional

    Returns
    -------
    n_clusters : int
        That of the largest score.
    counts : dict of str to ndarray
        For every number in the range: ``n_clusters``, ``gap`` (the relative gap of the eigenvalues of the normalised
        Laplacian above it), ``stability`` (mean adjusted Rand index between the labels of all samples and of parts of
        70 %; NaN where the gap is not among the largest six) and ``score``, their product.
    """
    n = len(points)
    points = points[np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int))]
    most = min(MOST, len(points) // LEAST_SIZE)
    if most < LEAST + 1:
        one = np.array([LEAST]), np.array([0.0]), np.array([np.nan]), np.array([np.nan])
        return min(LEAST, n), dict(zip(("n_clusters", "gap", "stability", "score"), one, strict=True))
    options: dict[str, Any] = {"n_init": 3, "random_state": random_state}
    cloud = cloud_of(points, random_state=random_state, n_jobs=n_jobs)
    values = low_eigenpairs(graph_from_weights(cloud.affinity).laplacian, most + 1, random_state=random_state)[0]
    tried = np.arange(LEAST, most + 1)
    gap = (values[tried] - values[tried - 1]) / (values[tried] + LEVEL)
    # SFC64, so that the parts are no choice that a user's seed has made elsewhere.
    rng = np.random.Generator(np.random.SFC64([random_state, 9]))
    parts = [np.sort(rng.permutation(len(points))[: int(SHARE * len(points))]) for _ in range(PARTS)]
    clouds = [cloud_of(points[part], random_state=random_state, n_jobs=n_jobs) for part in parts]
    stability = np.full(len(tried), np.nan)
    for place in np.argsort(-gap, kind="stable")[:LOOKED_AT]:
        k = int(tried[place])
        whole = label("spectral", cloud, k, **options)
        again = (label("spectral", one, k, **options) for one in clouds)
        agree = [adjusted_rand_score(whole[part], labels) for part, labels in zip(parts, again, strict=True)]
        stability[place] = max(float(np.mean(agree)), 0.0)
    score = gap * stability
    return int(tried[np.nanargmax(score)]), {"n_clusters": tried, "gap": gap, "stability": stability, "score": score}
