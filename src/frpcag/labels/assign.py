"""Labels of cleaned rows: how many clusters, which points, which way to label."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from frpcag.labels.choose import MOST_NEIGHBORS, Candidate, best, count_clusters, on_components, on_points
from frpcag.labels.cleaned import WIDE, Cleaned
from frpcag.labels.labellers import kmeans, label
from frpcag.labels.points import cloud_of, unit_rows
from frpcag.runtime.warn import warn_user

Array = np.ndarray

# Whitened components for each cluster that are looked at, and those of a single linkage with its neighbours.
MOST_COLUMNS, COLUMNS, NEIGHBORS = 3, 2, 20
AS_THE_PAPER = ("kmeans", "components")
ASSIGNMENTS = ("auto", "linkage", "spectral", *AS_THE_PAPER)

# Bytes of each neighbour of a row that is labelled: its edges, in both directions, while clusters are merged.
_LABEL_BYTES = 170

# What is told of candidates, and of which kind.
FIELDS = {
    "points": object, "labeller": object, "n_coordinates": np.int64, "n_neighbors": np.int64, "score": np.float64,
    "smallest": np.int64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labels of rows, and how they came about.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    points, n_coordinates : str and int
        What was labelled, "X", "U" or "W", and its width.
    affinity : csr_array or None
        Weights of the neighbour graph of the distinct rows.
    candidates, counts : dict of str to ndarray
        What was tried; ``counts`` is empty where the number of clusters was given.
    """

    labels: Array
    points: str
    n_coordinates: int
    affinity: sp.csr_array | None
    candidates: dict[str, Array]
    counts: dict[str, Array]


def check_assignment(assign: Any, n_clusters: Any, n: int) -> None:
    """Raise ValueError unless ``n`` samples can be labelled in this way."""
    if assign not in ASSIGNMENTS:
        raise ValueError(f"assign={assign!r} is unknown; choose one of {', '.join(map(repr, ASSIGNMENTS))}.")
    if isinstance(n_clusters, str) and n_clusters == "auto":
        return
    k = n_clusters
    if not isinstance(k, Real) or isinstance(k, bool) or not 1 <= float(k) <= n or float(k) % 1:
        raise ValueError(f"n_clusters={k!r} must be 'auto' or an integer from 1 to n_samples={n}.")


def label_bytes(X: Array, assign: str) -> int:
    """Return about how many bytes it takes to label rows: their points, and the largest graph that is tried."""
    n, p = X.shape
    if assign in AS_THE_PAPER:
        return 16 * n * p
    # Whitening takes a copy in the dtype of the data; other points are in float64, made from another such array.
    points = p * X.dtype.itemsize if p >= WIDE and assign != "spectral" else 16 * p
    return n * (points + _LABEL_BYTES * MOST_NEIGHBORS)


def label_rows(
    rows: Cleaned, n_clusters: int | str, assign: str, *, n_init: int, random_state: Any, n_jobs: int | None
) -> Labelled:
    """Return the labels of cleaned rows; equal rows get one label, except as the paper labels.

    Parameters
    ----------
    rows : Cleaned
    n_clusters : int or "auto"
    assign : str
        One of `ASSIGNMENTS`.
    n_init : int
        Starts of k-means.
    random_state : RandomState
    n_jobs : int or None

    Returns
    -------
    Labelled
    """
    counts: dict[str, Array] = {}
    if n_clusters == "auto":
        first = rows.distinct[0]
        points = (rows.clean() if rows.wide else rows.table()[1])[first]
        n_clusters, counts = count_clusters(points, random_state=random_state.randint(2**31), n_jobs=n_jobs)
        n_clusters = min(n_clusters, len(first))
    k = int(n_clusters)
    if assign in AS_THE_PAPER:
        name, points = ("U", rows.directions(random_state)) if assign == "kmeans" else ("W", rows.components())
        labels = kmeans(points, k, n_init=n_init, random_state=random_state)
        return Labelled(labels, name, points.shape[1], None, {}, counts)
    first, kind = rows.distinct
    if len(first) < k:
        warn_user(
            f"n_clusters={k} is more than the {len(first)} distinct rows of X; each of them is a cluster.",
            ConvergenceWarning,
        )
        k = len(first)
    if k in (1, len(first)):
        labels = np.zeros(len(first), np.int64) if k == 1 else np.arange(len(first))
        return Labelled(labels[kind], "U", rows.X.shape[1], None, {}, counts)
    search = {"random_state": random_state.randint(2**31), "n_jobs": n_jobs}
    tried = _candidates(rows, first, k, assign, n_init, search)
    chosen = best(tried)
    candidates = {name: np.array([getattr(one, name) for one in tried], dtype=kept) for name, kept in FIELDS.items()}
    return Labelled(chosen.labels[kind], chosen.points, chosen.n_coordinates, chosen.cloud.affinity, candidates, counts)


def _candidates(rows: Cleaned, first: Array, k: int, assign: str, n_init: int, search: dict) -> list[Candidate]:
    if assign == "auto" and rows.wide:
        return on_components(rows.whitened(MOST_COLUMNS * k)[first], k, **search)
    if assign == "spectral":
        name, points = "U", rows.clean()[first]
    elif rows.wide:
        name, points = "W", unit_rows(rows.whitened(COLUMNS * k)[first])
    else:
        name, points = rows.table()
        points = points[first]
    if assign == "auto":
        return on_points(name, points, k, n_init=n_init, **search)
    cloud = cloud_of(points, n_neighbors=NEIGHBORS, **search)
    labels = label(assign, cloud, k, n_init=n_init, random_state=search["random_state"])
    return [Candidate(name, assign, 0.0, labels, cloud)]
