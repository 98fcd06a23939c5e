"""Nearest neighbours behind two verbs: `Index(X, metric).build(k)` of the rows of X, ``query(rows, k)`` of others.

Arrays are searched on the host, tensors on their device (Shahid et al. 2016, Sec. III, strategies 1 and 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from frpcag.graphs.inverted_lists import N_PROBES, InvertedLists
from frpcag.graphs.metric import EUCLIDEAN, Metric
from frpcag.graphs.points import Points, prepare_points
from frpcag.graphs.search import FEW, HostSearch
from frpcag.runtime.arrays import is_tensor
from frpcag.runtime.threads import block_pool

# Among so few points every list would be looked at.
SMALL = N_PROBES**2 // 4
# Fewer points than this are all compared with every other row: lists would not pay.
LISTED = 4000
# Brute force up to this many n^2 (p + 64): about a second on a large GPU, a few on two cores. Absolute differences take
# no matrix product: as many times the work.
_EXACT_WORK = {"cuda": 3e13}
_ABSOLUTE_COST = 5
# Neighbours' neighbours are looked at while this share of the places in the lists changes.
SETTLED = 0.15


def choose_search(n: int, p: int, *, method: str = "auto", metric: Metric = EUCLIDEAN, device: str = "cpu") -> str:
    """Return which search ``method`` means: for "auto" "exact" while brute force takes a few seconds.

    Two cores do about 1e11 of ``n^2 p`` a second, a fifth of that in absolute differences; picking the smallest of
    ``n`` scores costs as much as 64 features more. The rule ignores the number of cores, so that the same data gives
    the same graph on every machine. "approximate" is "exact" among so few points that every list would be looked at.
    """
    if method != "auto":
        return "exact" if n <= SMALL else method
    most = _EXACT_WORK.get(device, 2e11) / (1 if metric.euclidean else _ABSOLUTE_COST)
    return "exact" if n * n * (p + 64) <= most else "approximate"


class Index:
    """Rows, and the search for those nearest to each other or to other rows.

    Parameters
    ----------
    X : ndarray, csr_array or tensor of shape (n, p)
        Finite real numbers, any layout; never written to. NaN is missing, see `frpcag.graphs.search`.
    metric : Metric, default=EUCLIDEAN
        See `frpcag.graphs.metric`.
    method : {"auto", "exact", "approximate"}, default="auto"
        Brute force, ``O(n^2 p)``, or inverted lists around k-means centroids, ``O(n^1.5)`` distances: they give
        candidates in the space of `frpcag.graphs.sketch`, which are ranked by their distances in the full space.
        "auto" as `choose_search` has it for `build`; `query` takes lists of 4000 arrays or more.
    random_state : int, RandomState or None
        Seed of the samples that lists are trained on.
    n_jobs : int, optional
        Number of threads, which does not change the result; None is all cores.

    Attributes
    ----------
    method : str
        "exact" or "approximate", what `build` does.

    Notes
    -----
    Shahid et al. 2016 use FLANN, which is no longer maintained.

    Examples
    --------
    >>> from frpcag.graphs.index import Index
    >>> index = Index(np.array([[0.0], [1.0], [3.0]]))
    >>> indices, distances = index.build(1)
    >>> indices.ravel(), distances.ravel().round(5)
    (array([1, 0, 1]), array([1., 1., 2.]))
    >>> indices, distances = index.query(np.array([[2.5]]), 2)
    >>> indices, distances.round(5)
    (array([[2, 1]]), array([[0.5, 1.5]]))
    """

    def __init__(
        self,
        X: Any,
        metric: Metric = EUCLIDEAN,
        *,
        method: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.metric, self._random_state, self._n_jobs = metric, random_state, n_jobs
        self._lists: InvertedLists | None = None
        if is_tensor(X):
            from frpcag.graphs.torch.search import prepare_tensor

            self._points = prepare_tensor(X, metric)
        else:
            with block_pool(n_jobs) as run:
                self._points = prepare_points(X, run, metric=metric)
        device = X.device.type if is_tensor(X) else "cpu"
        self.method = choose_search(*X.shape, method=method, metric=metric, device=device)
        # Euclidean distances of incomplete rows are taken over common entries, which no list knows.
        complete = self._points.seen is None or not metric.euclidean
        self._listed = method != "exact" and X.shape[0] >= LISTED and complete and not is_tensor(X)

    def build(self, n_neighbors: int) -> tuple[Any, Any]:
        """Return the nearest neighbours of every row, never the row itself.

        Parameters
        ----------
        n_neighbors : int
            Less than there are rows.

        Returns
        -------
        indices, distances : arrays or tensors of shape (n, n_neighbors)
            Sorted by distance, then by index; distances with the accuracy of float32.
        """
        with self._search() as search:
            if self.method == "exact":
                n = len(self._points.Z)
                indices, distances = search.exact(self._points, n_neighbors, skip=self._points.put(np.arange(n)))
            else:
                indices, distances = approximate(search, n_neighbors, check_random_state(self._random_state))
        return indices, self._points.lengths(distances)

    def query(self, rows: Any, n_neighbors: int) -> tuple[Any, Any]:
        """Return the rows of ``X`` nearest to each of some other rows, whatever these others are.

        Parameters
        ----------
        rows : ndarray, csr_array or tensor of shape (m, p)
            The same features of other points; NaN is missing.
        n_neighbors : int
            At most as many as ``X`` has rows.

        Returns
        -------
        indices, distances : arrays or tensors of shape (m, n_neighbors)
            As of `build`.
        """
        # Sums of bounded differences need no BLAS: a few rows wait for no pool to be set up.
        alone = rows.shape[0] <= FEW and not self._listed and not self.metric.euclidean
        with self._search(alone=alone) as search:
            indices, distances = self._query(search, search.queries(rows), n_neighbors)
        return indices, self._points.lengths(distances)

    def _query(self, search: Any, queries: Points, k: int) -> tuple[Any, Any]:
        if not self._listed or (queries.seen is not None and self.metric.euclidean):
            return search.exact(queries, k)
        if self._lists is None:
            self._lists = search.lists(check_random_state(self._random_state))
        # As many for a robust metric as with gaps: no round over neighbours' neighbours follows.
        per_neighbor = self._lists.sketch.per_neighbor if self.metric.euclidean else 12
        indices, distances = search.among(queries, self._lists.query(queries, per_neighbor * k + 9, run=search.run), k)
        return _with_lonely(search, queries, indices, distances)

    @contextmanager
    def _search(self, *, alone: bool = False) -> Iterator[Any]:
        if not isinstance(self._points.Z, np.ndarray):
            from frpcag.graphs.torch.search import TensorSearch

            yield TensorSearch(self._points)
        elif alone:
            yield HostSearch(self._points, _one_by_one)
        else:
            with block_pool(self._n_jobs) as run:
                yield HostSearch(self._points, run)


def approximate(search: Any, k: int, rng: np.random.RandomState) -> tuple[Any, Any]:
    """Return most of the nearest neighbours of every point, in units of ``points.Z``.

    Parameters
    ----------
    search : HostSearch or TensorSearch
    k : int
    rng : RandomState
    """
    points = search.points
    everyone = points.put(np.arange(len(points.Z)))
    candidates = search.listed(search.lists(rng), k)
    indices, distances = search.among(points, candidates, k, skip=everyone)
    del candidates
    for _ in range(search.rounds[not points.metric.euclidean]):
        # Neighbours of neighbours are likely neighbours too.
        known = indices + 0
        for rows in search.wide_blocks(k):
            indices[rows], distances[rows] = search.refine(rows, known, distances)
        if float((indices != known).sum()) < SETTLED * len(points.Z) * k:
            break
    return _with_lonely(search, points, indices, distances, skip=everyone)


def _with_lonely(search: Any, queries: Any, indices: Any, distances: Any, *, skip: Any = None) -> tuple[Any, Any]:
    """Return the lists with those queries searched exactly for which the candidates were too few."""
    lonely = (distances[:, -1] == np.inf).nonzero()
    lonely = lonely[0] if isinstance(lonely, tuple) else lonely[:, 0]
    if len(lonely):
        own = None if skip is None else lonely
        indices[lonely], distances[lonely] = search.exact(queries.take(lonely), indices.shape[1], skip=own)
    return indices, distances


def _one_by_one(function: Callable, blocks: Iterable) -> list:
    return [function(block) for block in blocks]
