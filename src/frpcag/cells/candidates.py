"""Candidates for robust neighbours at size: a Euclidean search of features whose distance is a robust one.

The map ``x_f -> (cos w_f x_f, sin w_f x_f)`` with ``w_f ~ N(0, 1 / c^2)`` has squared distances whose expectation is a
bounded function of each difference (Welsch's: ``1 - exp(-d^2 / 2 c^2)``), so any Euclidean engine finds neighbours that
gross errors of single cells cannot push away. The metric itself then ranks them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray

# Candidates a row for every neighbour asked for; recall grows with it, and so does the re-ranking.
PER_NEIGHBOR = 6
# Dimensions of the map after a random projection: inner products keep their order, the search its speed.
DIMENSIONS = 192


def candidate_rows(points, asked, k: int, *, metric: str, cut: float, random_state: int) -> Array:
    """Return ``PER_NEIGHBOR * k`` likely neighbours of each asked row, -1 where the search found fewer."""
    import faiss

    rng = np.random.Generator(np.random.SFC64([random_state, 11]))
    p = points[0].shape[1]
    frequencies = rng.standard_normal(p).astype(np.float32) / np.float32(max(cut, 1e-30))
    mixing = rng.standard_normal((2 * p, DIMENSIONS)).astype(np.float32) / np.float32(np.sqrt(DIMENSIONS))
    Z, Q = (_mapped(X, weights, frequencies, mixing, metric) for X, weights in (points, asked))
    n_lists = int(min(4 * np.sqrt(len(Z)), len(Z) / 40)) + 1
    index: Any = faiss.index_factory(Z.shape[1], f"IVF{n_lists},Flat")
    index.cp.seed = random_state
    index.cp.min_points_per_centroid = 1
    index.train(Z[rng.permutation(len(Z))[: 64 * n_lists]])
    index.add(Z)
    index.nprobe = max(8, n_lists // 16)
    return index.search(Q, PER_NEIGHBOR * k + 1)[1]


def _mapped(X: Array, weights: Array | None, frequencies: Array, mixing: Array, metric: str) -> Array:
    """Return the rows in the space that is searched."""
    out = np.empty((len(X), mixing.shape[1]), np.float32)
    p = X.shape[1]
    for start in range(0, len(X), 2048):
        rows = slice(start, start + 2048)
        if metric == "euclidean":
            out[rows] = X[rows] @ mixing[:p]
            continue
        angles = X[rows] * frequencies
        c, s = np.cos(angles), np.sin(angles)
        if weights is not None:
            c, s = c * weights[rows], s * weights[rows]
        out[rows] = c @ mixing[:p] + s @ mixing[p:]
    return out
