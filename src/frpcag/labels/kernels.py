"""The merges of graph degree linkage, compiled by Numba on first use.

A cluster keeps one row: the nodes it has edges to or from, sorted, with the summed weights of both directions. The
products of pairs lie in a dictionary, since the product towards a merged cluster is the sum of those towards its parts.
Memory is ``O(n K)``.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np
from numba import types
from numba.typed import Dict, List

from frpcag.runtime.compiled import compiled


@compiled
def _root(parent, a):
    """Return the cluster that ``a`` has become part of."""
    while parent[a] != a:
        parent[a] = parent[parent[a]]
        a = parent[a]
    return a


@compiled
def _affinity(products, size, a, b):
    m = len(size)
    there, back = products.get(a * m + b, 0.0), products.get(b * m + a, 0.0)
    return there / (size[a] * size[a]) + back / (size[b] * size[b])


@compiled
def _sum_rows(rows, a, b):
    """Return the sum of two rows as sorted lists: nodes, and weights to them and from them."""
    (nodes_a, out_a, in_a), (nodes_b, out_b, in_b) = rows[a], rows[b]
    most = len(nodes_a) + len(nodes_b)
    nodes, out, back = np.empty(most, np.int64), np.empty(most), np.empty(most)
    i, j, end = 0, 0, 0
    while i < len(nodes_a) or j < len(nodes_b):
        first = j == len(nodes_b) or (i < len(nodes_a) and nodes_a[i] <= nodes_b[j])
        second = i == len(nodes_a) or (j < len(nodes_b) and nodes_b[j] <= nodes_a[i])
        out[end], back[end] = 0.0, 0.0
        if first:
            nodes[end], out[end], back[end] = nodes_a[i], out_a[i], in_a[i]
            i += 1
        if second:
            nodes[end], out[end], back[end] = nodes_b[j], out[end] + out_b[j], back[end] + in_b[j]
            j += 1
        end += 1
    return nodes[:end].copy(), out[:end].copy(), back[:end].copy()


@compiled
def merge_by_degrees(owner, size, row_lists, pairs):
    """Merge the two clusters of the largest affinity, again and again, until no two are linked both ways.

    Parameters
    ----------
    owner : int64 array of shape (n,)
        Cluster of each node, 0 to m - 1.
    size : float64 array of shape (m,)
        Nodes of each cluster; overwritten.
    row_lists : tuple of arrays
        Starts of the rows of the clusters, then their nodes, sorted, and the weights to them and from them.
    pairs : tuple of arrays
        Clusters ``a`` and ``b`` and the sum over the nodes of ``b`` of the product of both weights in the row of ``a``.

    Returns
    -------
    merges : int64 array of shape (n_merges, 2)
        In order: the second cluster became part of the first.
    """
    m = len(size)
    starts, nodes, out, back = row_lists
    rows = List()
    for a in range(m):
        at = slice(starts[a], starts[a + 1])
        rows.append((nodes[at].copy(), out[at].copy(), back[at].copy()))
    products = Dict.empty(types.int64, types.float64)
    for a, b, product in zip(*pairs):  # noqa: B905 - Numba knows no strict
        products[a * m + b] = product
    # Every pair with its affinity when it last changed; ties go to the smaller numbers.
    heap = [(-_affinity(products, size, a, b), min(a, b), max(a, b)) for a, b, _ in zip(*pairs)]  # noqa: B905
    heapify(heap)
    parent, there, near = np.arange(m), np.full(m, -1.0), np.empty(m, np.int64)
    merges, done = np.empty((max(m - 1, 0), 2), np.int64), 0
    while heap:
        value, a, b = heappop(heap)
        if parent[a] != a or parent[b] != b or -value != _affinity(products, size, a, b):
            continue
        if len(rows[a][0]) < len(rows[b][0]):
            a, b = b, a
        rows[a] = _sum_rows(rows, a, b)
        rows[b] = (nodes[:0].copy(), out[:0].copy(), back[:0].copy())
        parent[b], size[a] = a, size[a] + size[b]
        merges[done, 0], merges[done, 1] = a, b
        done += 1
        count = 0
        for node, weight, weight_back in zip(*rows[a]):  # noqa: B905
            c = _root(parent, owner[node])
            if c != a:
                if there[c] < 0:
                    there[c] = 0.0
                    near[count] = c
                    count += 1
                there[c] += weight * weight_back
        for c in near[:count]:
            products.pop(b * m + c, 0.0)
            products[c * m + a] = products.pop(c * m + a, 0.0) + products.pop(c * m + b, 0.0)
            products[a * m + c] = there[c]
            there[c] = -1.0
            value = _affinity(products, size, a, c)
            if value > 0:
                heappush(heap, (-value, min(a, c), max(a, c)))
    return merges[:done]
