"""What is labelled: points with the nearest neighbours of each; rows of length one; distinct rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from frpcag.graphs import Index

Array = np.ndarray

# Neighbours of each point, the paper's K of graph degree linkage; a symmetric graph takes the nearest of them.
N_NEIGHBORS = 15
GRAPH_NEIGHBORS = 10
# A weight never falls to zero: an edge is an edge.
WEIGHT_FLOOR = 1e-12


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points with the lists of their nearest neighbours.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        NaN is missing.
    indices, distances : ndarray of shape (n, K)
        Neighbours, nearest first.
    """

    points: Array
    indices: NDArray[np.int64]
    distances: NDArray[np.float64]

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.points)

    def nearest(self, n_neighbors: int) -> Cloud:
        """Return the same points with at most so many neighbours."""
        return Cloud(self.points, self.indices[:, :n_neighbors], self.distances[:, :n_neighbors])

    @property
    def directed(self) -> sp.csr_array:
        """Weights of the edges from each point to its neighbours, in units of its own surroundings.

        ``exp(-d^2 / (2 s))`` with ``s`` the squared distance of the middle neighbour of the list: dense and sparse
        regions have edges of like weight.
        """
        K = self.indices.shape[1]
        unit = self.distances[:, max(K // 2 - 1, 0)]
        positive = self.distances[self.distances > 0]
        unit = np.maximum(unit, 1e-6 * (np.median(positive) if len(positive) else 1.0))
        with np.errstate(under="ignore"):
            weights = np.maximum(np.exp(-np.square(self.distances / unit[:, None]) / 2), WEIGHT_FLOOR)
        rows = np.repeat(np.arange(self.n), K)
        return sp.csr_array((weights.ravel(), (rows, self.indices.ravel())), shape=(self.n, self.n))

    @cached_property
    def affinity(self) -> sp.csr_array:
        """Symmetric weights of the nearest neighbours."""
        near = self.nearest(GRAPH_NEIGHBORS).directed
        both = sp.csr_array((near + near.T) * 0.5)
        both.sort_indices()
        return both


def cloud_of(
    points: Array, *, n_neighbors: int = N_NEIGHBORS, random_state: Any = None, n_jobs: int | None = None
) -> Cloud:
    """Return points with their nearest neighbours; at most ``n - 1`` of them."""
    index = Index(points, random_state=random_state, n_jobs=n_jobs)
    indices, distances = index.build(min(n_neighbors, len(points) - 1))
    finite = np.isfinite(distances)
    if not finite.all():  # points with missing entries that share none with some others
        distances = np.where(finite, distances, distances[finite].max(initial=0.0))
    return Cloud(points, indices, distances)


def unit_rows(W: Array) -> Array:
    """Return rows of length one; rows of zeros stay."""
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    return W / np.where(lengths > 0, lengths, 1)


def distinct_rows(X: Array) -> tuple[Array, Array]:
    """Return the first row of each kind, and the kind of every row: ``X[first][kind]`` is ``X``.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        NaN equals NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.labels import distinct_rows
    >>> distinct_rows(np.array([[1.0], [2.0], [1.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    kinds: dict[bytes, int] = {}
    kind = np.array([kinds.setdefault(_digest(row), len(kinds)) for row in X])
    return np.unique(kind, return_index=True)[1], kind


def _digest(row: Array) -> bytes:
    # Adding zero makes one zero of the two; every NaN gets the same bits.
    return blake2b(np.where(np.isnan(row), np.nan, row + 0.0).tobytes(), digest_size=16).digest()
