"""Clean rows carried over the graph from a fitted sample to all other rows (after Shahid et al. 2016b)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.data.row_source import block_rows
from frpcag.graphs import Graph
from frpcag.graphs.anchors import Anchors, Links
from frpcag.graphs.metric_choice import find_metric
from frpcag.problem import Problem, prox
from frpcag.runtime.memory import needed_bytes
from frpcag.runtime.threads import block_pool
from frpcag.solvers.rows import coarser_eps, same_cells

Array = np.ndarray

DECODERS = ("robust", "harmonic")
# Rows outside the sample whose cells are hidden, and the share of their cells.
HELD_OUT, HIDDEN = 1000, 0.1
# Rows decoded at a time by a thread, in entries.
_ENTRIES = 1 << 19
# Arrays of the size of a block that linking and decoding hold at their peak, and bytes for each row and neighbour.
_BLOCK_ARRAYS, _NEIGHBOR_BYTES = 12, 120


class Near(NamedTuple):
    """Kept rows near some others, and whether a row is its nearest one."""

    indices: Array
    distances: Array
    known: Array


class Carrier:
    """A fitted sample that carries its clean rows over to others.

    A row is linked to its nearest rows of the sample. With these held fixed, its own part of the problem is
    ``sum phi(x - u) + gamma1 (q |u|^2 - 2 <u, b>)``, ``q`` its entry on the Laplacian's diagonal and ``b`` the weighted
    sum of the clean rows that it is linked to. The feature term left aside, the solution has a closed form: the
    proximal point of the loss at ``b / q``. The decoder of Shahid et al. 2016b leaves the loss aside too: ``b / q``.

    Parameters
    ----------
    X, U : ndarray of shape (n_kept, n_features)
        Kept rows, centred and scaled, missing entries as predicted, and their clean part.
    graph : Graph
        Of the kept rows.
    gamma : float
        Its weight.
    level : ndarray of shape (n_features,)
        What was subtracted from rows, in the units of ``X``.
    n_neighbors : int
    metric : str
        What rows are near by, if the graph does not say.
    decoder : {"robust", "harmonic"}
    loss, huber_delta : str and float
    random_state, n_jobs : object
        Of the neighbour search.
    """

    def __init__(
        self,
        X: Array,
        U: Array,
        *,
        graph: Graph,
        gamma: float,
        level: Any = 0.0,
        n_neighbors: int,
        metric: str = "euclidean",
        decoder: str = "robust",
        loss: str = "l1",
        huber_delta: float = 1.0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.X, self.U, self.gamma, self.level, self.decoder = X, U, gamma, level, decoder
        self.n_neighbors, self.loss, self.huber_delta, self.n_jobs = n_neighbors, loss, huber_delta, n_jobs
        distance = find_metric(graph.metric or metric, X, n_jobs=n_jobs)
        self._anchors = Anchors(X, metric=distance, random_state=random_state, n_jobs=n_jobs)
        self._links = Links(graph)

    def near(self, rows: Array) -> Near:
        """Return the kept rows nearest to each of some others, which are centred and scaled."""
        indices, distances = self._anchors.nearest(rows, self.n_neighbors)
        first, eps = indices[:, 0], coarser_eps(rows.dtype, self.X.dtype)
        same = same_cells(rows, self.X[first], self.U[first], eps, level=self.level)
        return Near(indices, distances, (same | np.isnan(rows)).all(axis=1))

    def clean(self, rows: Array, near: Near) -> Array:
        """Return the clean part of rows; one that is a kept row has its own."""
        out = self.decode(rows, near)
        out[near.known] = self.U[near.indices[near.known, 0]]
        return out

    def decode(self, rows: Array, near: Near) -> Array:
        """Return the clean part of rows from that of their neighbours."""
        diagonal, links = self._links.of(near.indices, near.distances)
        links = links.astype(self.U.dtype)  # or the product would copy U
        out = np.empty_like(rows)
        step = max(1, _ENTRIES // rows.shape[1])

        def fill(start: int) -> None:
            at = slice(start, start + step)
            q = np.maximum(diagonal[at], np.finfo(np.float64).tiny)[:, None]
            middle = (links[at] @ self.U / q).astype(rows.dtype)
            if self.decoder == "harmonic":
                out[at] = middle
            elif self.gamma > 0:
                own = Problem(rows[at], None, None, 0.0, 0.0, loss=self.loss, huber_delta=self.huber_delta)
                out[at] = prox(own, middle, 1 / (2 * self.gamma * q))
            else:  # nothing pulls; only gaps are filled
                out[at] = np.where(np.isnan(rows[at]), middle, rows[at])

        with block_pool(self.n_jobs) as run:
            run(fill, range(0, len(rows), step))
        return out

    def vote(self, labels: Array, near: Near) -> Array:
        """Return the labels of rows: that of the strongest links; one that is a kept row has its own."""
        names, places = np.unique(labels, return_inverse=True)
        ones = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)), places)), shape=(len(labels), len(names)))
        votes = (self._links.of(near.indices, near.distances)[1] @ ones).toarray()
        return names[np.where(near.known, places[near.indices[:, 0]], votes.argmax(axis=1))]

    def heldout_error(self, rows: Array) -> float:
        """Return how far hidden cells of rows outside the sample are from what the sample says of them.

        A tenth of the cells is hidden, and the rows are linked and decoded by the others. The mean absolute error, in
        units of that of the mean of each column; NaN where no cell can be hidden.
        """
        # A generator of its own: a seed that someone else used may have chosen the very cells that are wrong.
        hidden = np.random.default_rng([2016, *rows.shape]).random(rows.shape) < HIDDEN
        hidden &= np.isfinite(rows)
        hidden &= (np.isfinite(rows) & ~hidden).any(axis=1, keepdims=True)  # something to link each row by
        if not hidden.any():
            return float("nan")
        shown = np.where(hidden, rows.dtype.type(np.nan), rows)
        clean = self.decode(shown, self.near(shown))
        mean = self.X.mean(axis=0, dtype=np.float64)
        scale = float(np.abs(rows - mean)[hidden].mean())
        return float(np.abs(rows - clean)[hidden].mean(dtype=np.float64)) / scale if scale > 0 else 0.0


def carry_bytes(
    shape: tuple[int, int], itemsize: int, *, kept: tuple[int, int], n_neighbors: int, n_components: int, stored: bool,
    low_rank: bool,
) -> int:  # fmt: skip
    """Return about how many bytes a compressive fit takes at its peak, those of ``X`` not counted.

    Parameters
    ----------
    shape, itemsize : tuple of int and int
        Of the matrix.
    kept : tuple of int
        Rows and columns that the problem is solved on.
    n_neighbors, n_components : int
    stored : bool
        Whether results of the length of ``X`` go to files.
    low_rank : bool
        Whether the clean part is kept.

    Examples
    --------
    >>> from frpcag.estimators.carried_rows import carry_bytes
    >>> needs = {"kept": (20_000, 64), "n_neighbors": 10, "n_components": 8, "low_rank": False, "stored": True}
    >>> carry_bytes((10**7, 64), 4, **needs) / 2**30 < 0.6
    True
    """
    (n, p), (m, q) = shape, kept
    rows = min(n, block_rows(p))
    fit = 2 * m * p * itemsize + needed_bytes(m, q, np.float32 if itemsize == 4 else np.float64, n_neighbors)
    sample = 6 * m * p * itemsize
    blocks = _BLOCK_ARRAYS * rows * p * itemsize + _NEIGHBOR_BYTES * rows * 5 * n_neighbors
    results = 0 if stored else n * itemsize * (n_components + (p if low_rank else 0))
    return int(max(fit, sample + blocks) + results)
