"""Labels by graph degree linkage (Zhang, Wang, Zhao and Tang 2012)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from frpcag.labels.points import Cloud

Array = np.ndarray

# Clusters below this share of the mean size, n / k, do not count: islands of a few points with no edge to the rest.
TINY = 0.1


def linkage(cloud: Cloud, n_clusters: int, *, random_state: Any = None) -> Array:
    """Return the labels of points by graph degree linkage.

    Clusters start as the weak components of the graph of nearest neighbours. The pair with the largest affinity
    ``1' W_ab W_ba 1 / |a|^2 + 1' W_ba W_ab 1 / |b|^2``, the product of the degrees in and out, is merged until
    ``n_clusters`` are left.

    Parameters
    ----------
    cloud : Cloud
    n_clusters : int
        From 1 to the number of points.
    random_state : object
        Not used: nothing is drawn.

    Returns
    -------
    ndarray of shape (n,)

    Notes
    -----
    Zhang et al. 2012 take one width for all edges, here each point has its own (`Cloud.directed`). They stop at
    ``n_clusters``; here clusters smaller than a tenth of ``n / n_clusters`` do not count where ``n_clusters`` larger
    ones can be had, and join the one that they have the strongest edges with. ``O(n K)`` memory.
    """
    n = cloud.n
    nearest = sp.csr_array((np.ones(n), (np.arange(n), cloud.indices[:, 0])), shape=(n, n))
    m, owner = connected_components(nearest, directed=True, connection="weak")
    if m < n_clusters:
        m, owner = n, np.arange(n)
    start, W = owner.astype(np.int64), cloud.directed
    Z = sp.csr_array((np.ones(n), (start, np.arange(n))), shape=(m, n))
    rows_out, rows_in = sp.csr_array(Z @ W), sp.csr_array(Z @ W.T)
    pairs = sp.coo_array(sp.csr_array(rows_out * rows_in) @ Z.T)
    linked = (pairs.coords[0] != pairs.coords[1]) & (pairs.data > 0)
    # Both directions in one pattern, so that each cluster has one sorted row of nodes.
    pattern = sp.csr_array(rows_out + rows_in)
    pattern.sort_indices()
    row_lists = (pattern.indptr, pattern.indices, _on(pattern, rows_out), _on(pattern, rows_in))
    from frpcag.labels.kernels import merge_by_degrees

    merges = merge_by_degrees(
        start,
        np.bincount(start, minlength=m).astype(float),
        (*(A.astype(np.int64) for A in row_lists[:2]), *row_lists[2:]),
        (*(A[linked].astype(np.int64) for A in pairs.coords), pairs.data[linked]),
    )
    labels, large = cut(start, m, merges, n_clusters)
    both = sp.csr_array(W + W.T)
    return numbered(join_smallest(cloud.points, join_strongest(both, labels, large), n_clusters))


def cut(start: Array, m: int, merges: Array, n_clusters: int) -> tuple[Array, Array]:
    """Return the clusters after the last merge that leaves ``n_clusters`` of some size, and which of them have it.

    Without such a merge, after the last one that leaves ``n_clusters`` of any size.
    """
    size = np.bincount(start, minlength=m)
    least = TINY * len(start) / n_clusters
    n_large, last = int((size >= least).sum()), 0
    if n_large < n_clusters:
        last = -1
    for done, (a, b) in enumerate(merges.tolist(), start=1):
        n_large -= int(size[a] >= least) + int(size[b] >= least)
        size[a] += size[b]
        n_large += int(size[a] >= least)
        if n_large >= n_clusters:
            last = done
    if last < 0:
        last = min(m - n_clusters, len(merges))
    target = np.arange(m)
    for a, b in merges[:last][::-1].tolist():  # from the last merge on, so that every target is final
        target[b] = target[a]
    labels = numbered(target[start])
    return labels, np.bincount(labels) >= least


def join_strongest(A: sp.csr_array, labels: Array, large: Array) -> Array:
    """Return labels where clusters that are not large have joined the large one of the strongest edges, if any."""
    if large.all() or not large.any():
        return labels
    m = len(large)
    Z = sp.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=(m, len(labels)))
    between = (Z[~large] @ A @ Z[large].T).toarray()
    target = np.arange(m)
    linked = between.max(axis=1) > 0
    small, big = np.flatnonzero(~large), np.flatnonzero(large)
    target[small[linked]] = big[between[linked].argmax(axis=1)]
    return numbered(target[labels])


def _on(pattern: sp.csr_array, A: sp.csr_array) -> Array:
    """Return the entries of ``A`` at the places of a larger pattern."""
    m, n = pattern.shape
    keys = np.repeat(np.arange(m), np.diff(pattern.indptr)) * n + pattern.indices
    A = sp.coo_array(A)
    values = np.zeros(len(keys))
    values[np.searchsorted(keys, A.coords[0].astype(np.int64) * n + A.coords[1])] = A.data
    return values


def numbered(labels: Array) -> Array:
    """Return labels 0, 1, ... in the order in which they come up."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse]


def join_smallest(points: Array, labels: Array, n_clusters: int) -> Array:
    """Return at most ``n_clusters`` clusters: the smallest one joins the one of the nearest centre, again and again."""
    m = int(labels.max()) + 1
    if m <= n_clusters:
        return labels
    seen = np.isfinite(points)
    sums, counts = (np.zeros((m, points.shape[1])) for _ in range(2))
    np.add.at(sums, labels, np.where(seen, points, 0))
    np.add.at(counts, labels, seen)
    size = np.bincount(labels).astype(float)
    target = np.arange(m)
    alive = np.ones(m, bool)
    for _ in range(m - n_clusters):
        a = int(np.flatnonzero(alive)[np.argmin(size[alive])])
        alive[a] = False
        centres = sums / np.maximum(counts, 1)
        common = (counts > 0) & (counts[a] > 0)
        squares = np.where(common, np.square(centres - centres[a]), 0).sum(axis=1) / np.maximum(common.sum(axis=1), 1)
        squares[~alive] = np.inf
        b = int(np.argmin(squares))
        target[target == a] = b
        sums[b], counts[b], size[b] = sums[b] + sums[a], counts[b] + counts[a], size[b] + size[a]
    return target[labels]
