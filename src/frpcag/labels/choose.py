"""Which labels to take and how many: candidates and the judges between them, without labels.

Two judges, for two kinds of points (docs/decisions/clustering.md). Data as given, of few features: the smallest
normalised cut of the neighbour graph. Whitened components: the labels that agree best with those of the other sizes.
The number of clusters: gaps in the spectrum of the neighbour graph, and whether parts of the samples agree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from frpcag.graphs import graph_from_weights
from frpcag.labels.labellers import label
from frpcag.labels.linkage import TINY
from frpcag.labels.points import Cloud, cloud_of, unit_rows
from frpcag.linalg.eigenpairs import low_eigenpairs
from frpcag.runtime.warn import warn_user

Array = np.ndarray

# Candidates on points as given: labeller and neighbours.
ON_POINTS = (("linkage", 10), ("linkage", 15), ("linkage", 20), ("spectral", 10), ("kmeans", 10))
# Candidates on whitened components: columns for each cluster, and neighbours.
COLUMNS = (1, 2, 3)
NEIGHBORS = (15, 20, 25)
MOST_NEIGHBORS = max(NEIGHBORS)
# The range of the search, and rows that are looked at.
LEAST, MOST = 2, 100
MOST_ROWS = 2000
# Fewer samples than this in the mean cluster show nothing.
LEAST_SIZE = 4
# Gaps are taken relative to the eigenvalue above them, and those below this level count as one: zeros of islands.
LEVEL = 0.02
# The largest gaps that are looked at again, in so many parts of the samples.
LOOKED_AT, PARTS, SHARE = 6, 3, 0.7


@dataclass(frozen=True, eq=False)
class Candidate:
    """Labels that were tried.

    Attributes
    ----------
    points : str
        What was labelled: "X", "U" or "W".
    labeller : str
    score : float
        Larger is better, among the candidates of one fit.
    labels : ndarray of shape (n,)
    cloud : Cloud
    """

    points: str
    labeller: str
    score: float
    labels: Array
    cloud: Cloud

    @property
    def n_coordinates(self) -> int:
        """Columns of the points."""
        return self.cloud.points.shape[1]

    @property
    def n_neighbors(self) -> int:
        """Neighbours of each point."""
        return self.cloud.indices.shape[1]

    @property
    def smallest(self) -> int:
        """Size of the smallest cluster."""
        return int(np.bincount(self.labels).min())

    @property
    def is_lopsided(self) -> bool:
        """Whether a cluster is far smaller than the mean."""
        return self.smallest < TINY * len(self.labels) / (int(self.labels.max()) + 1)


def best(candidates: list[Candidate]) -> Candidate:
    """Return the candidate of the largest score, one without a tiny cluster if there is any; warn if there is none."""
    even = [one for one in candidates if not one.is_lopsided]
    chosen = max(even or candidates, key=lambda one: one.score)
    if not even:
        warn_user(
            f"the smallest of {int(chosen.labels.max()) + 1} clusters has {chosen.smallest} of {len(chosen.labels)} "
            "samples; look for outlying rows, or ask for fewer clusters.",
        )
    return chosen


def on_points(
    name: str, points: Array, n_clusters: int, *, n_init: int = 10, random_state: Any = None, n_jobs: int | None = None
) -> list[Candidate]:
    """Return candidates on points as they are, scored by their normalised cut.

    Parameters
    ----------
    name : str
        Of the points.
    points : ndarray of shape (n, d)
    n_clusters, n_init, random_state, n_jobs
        As everywhere.
    """
    widest = max(k for _, k in ON_POINTS)
    whole = cloud_of(points, n_neighbors=widest, random_state=random_state, n_jobs=n_jobs)
    # Unweighted: with weights that fade, a few far points are cut off for nothing.
    edges = sp.csr_array((np.ones_like(whole.affinity.data), whole.affinity.indices, whole.affinity.indptr))
    found = []
    for labeller, k in ON_POINTS:
        cloud = whole.nearest(k)
        labels = label(labeller, cloud, n_clusters, n_init=n_init, random_state=random_state)
        found.append(Candidate(name, labeller, -normalized_cut(edges, labels), labels, cloud))
    return found


def on_components(W: Array, n_clusters: int, **search: Any) -> list[Candidate]:
    """Return linkages of whitened components, scored by how well each agrees with the others.

    Parameters
    ----------
    W : ndarray of shape (n, d)
        Components, strongest first; ``3 n_clusters`` of them or all there are.
    n_clusters : int
    **search
        ``random_state`` and ``n_jobs`` of :func:`cloud_of`.
    """
    found = []
    for d in sorted({min(columns * n_clusters, W.shape[1]) for columns in COLUMNS}):
        points = unit_rows(W[:, :d])
        whole = cloud_of(points, n_neighbors=MOST_NEIGHBORS, **search)
        for k in NEIGHBORS:
            cloud = whole.nearest(k)
            found.append(Candidate("W", "linkage", 0.0, label("linkage", cloud, n_clusters), cloud))
    agree = np.array([[adjusted_rand_score(a.labels, b.labels) for b in found] for a in found])
    return [replace(one, score=float(score)) for one, score in zip(found, agree.mean(axis=1), strict=True)]


def normalized_cut(A: sp.csr_array, labels: Array) -> float:
    """Return the mean over the clusters of the share of their edges that leave them (Shi and Malik 2000)."""
    m = int(labels.max()) + 1
    Z = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=(len(labels), m))
    volume = np.asarray((A @ Z).sum(axis=0)).ravel()
    within = (Z.T @ A @ Z).diagonal()
    return float(np.mean(1 - within / np.where(volume > 0, volume, 1)))


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
