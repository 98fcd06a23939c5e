"""Points as the neighbour searches want them: centred, scaled, float32, C order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import faiss
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from frpcag.graphs.metric import EUCLIDEAN, Metric


@dataclass(frozen=True)
class Points:
    """Points in units of their own: ``Z = (X / largest - mean) / spread``, with ``spread`` a power of two.

    Missing entries (NaN in ``X``) are 0, the mean, in ``Z`` and False in ``seen``; without any, ``seen`` is None.
    Arrays, or tensors of one device.
    """

    Z: Any  # (n, p), float32, C order
    largest: float = 1.0
    mean: Any = 0.0
    spread: float = 1.0
    seen: Any = None
    metric: Metric = EUCLIDEAN

    @property
    def xp(self) -> Any:
        """The library of the arrays: NumPy or PyTorch."""
        return np if isinstance(self.Z, np.ndarray) else sys.modules["torch"]

    @property
    def cut(self) -> float:
        """The most that a feature adds to a sum of absolute differences in ``Z``."""
        return self.metric.cut / self.unit

    @property
    def unit(self) -> float:
        """Length in ``X`` of a distance of 1 in ``Z``."""
        return self.largest * self.spread

    def take(self, rows: Any) -> Points:
        """Return some of the points."""
        return replace(self, Z=self.Z[rows], seen=None if self.seen is None else self.seen[rows])

    def on_host(self) -> Points:
        """Return the points as arrays."""
        if self.xp is np:
            return self
        return replace(self, Z=self.Z.cpu().numpy(), seen=None if self.seen is None else self.seen.cpu().numpy())

    def put(self, array: Any) -> Any:
        """Return an array where the points are."""
        return array if self.xp is np else self.xp.as_tensor(array, device=self.Z.device)

    def lengths(self, distances: Any) -> Any:
        """Return distances in ``Z`` as lengths in ``X``; infinite ones stay so, others must be finite in ``X`` too."""
        with np.errstate(over="ignore"):
            lengths = distances * self.unit
        if ((lengths == np.inf) & (distances < np.inf)).any():
            raise ValueError(
                f"X reaches {self.largest:.3g}; distances of such points leave the range of float64; divide X by a "
                "constant."
            )
        return lengths


def prepare_points(X: NDArray | sp.csr_array, run: Callable, *, metric: Metric = EUCLIDEAN) -> Points:
    """Return the rows of ``X``, centred and scaled, as float32.

    Distances do not change with the centre, but float32 would: of a common offset of 1e6 it leaves one digit.
    Nor does it hold 1e30 or 1e-30 squared. Both steps are done in float64 on blocks of rows, so the one copy
    made is ``Z``.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
        Finite real numbers, any layout; never written to. NaN is missing.
    run : callable
        What `block_pool` gives.
    metric : Metric, default=EUCLIDEAN
        What the rows will be compared by.

    Returns
    -------
    points : Points
    """
    n, p = X.shape
    blocks = _blocks(X)
    seen = _observed(X)
    largest = max(run(lambda block: _largest(X, block, metric), blocks))
    if largest == 0:
        return Points(np.zeros((n, p), np.float32), 1.0, np.zeros(p), 1.0, seen, metric)
    # Sums of blocks added in order: the same for any number of threads.
    add = np.sum if seen is None else np.nansum
    mean = np.sum(run(lambda block: add(_read(X, block, metric) / largest, axis=0), blocks), axis=0)
    mean /= n if seen is None else np.maximum(seen.sum(axis=0), 1)
    points = _centred(X, Points(None, largest, mean, 1.0, seen, metric), run)
    Z, extent = points.Z, max(run(lambda block: _largest(points.Z, block), blocks))
    spread = 2.0 ** np.floor(np.log2(extent)) if extent > 0 else 1.0
    if spread != 1:  # a power of two scales float32 without rounding
        run(lambda block: np.multiply(Z[block], np.float32(1 / spread), out=Z[block]), blocks)
    return replace(points, spread=spread)


def prepare_queries(rows: NDArray | sp.csr_array, points: Points, run: Callable) -> Points:
    """Return other rows in the units of ``points``.

    Entries beyond 1e12 count as 1e12: float32 does not hold the squares of much larger ones.
    """
    queries = _centred(rows, replace(points, seen=_observed(rows)), run, limit=1e12 * points.spread)
    queries.Z[:] /= np.float32(points.spread)
    return queries


def _centred(X: NDArray | sp.csr_array, units: Points, run: Callable, *, limit: float = np.inf) -> Points:
    """Return rows in the units of other points, but for their ``spread``."""
    Z = np.empty(X.shape, np.float32)

    def fill(block: slice) -> None:
        rows = _read(X, block, units.metric)
        with np.errstate(over="ignore"):
            rows /= units.largest
        rows -= units.mean
        if np.isfinite(limit):
            np.clip(rows, -limit, limit, out=rows)
        Z[block] = rows if units.seen is None else np.nan_to_num(rows, copy=False, nan=0.0)

    run(fill, _blocks(X))
    return replace(units, Z=Z)


def _largest(X: NDArray | sp.csr_array, block: slice, metric: Metric = EUCLIDEAN) -> float:
    """Return the largest magnitude in some rows, 0 if there is none."""
    as_given = metric.rows is None and not sp.issparse(X) and X.dtype.kind == "f"
    rows = X[block] if as_given else _read(X, block, metric)
    return float(max(np.fmax.reduce(rows, axis=None, initial=0.0), -np.fmin.reduce(rows, axis=None, initial=0.0)))


def _observed(X: NDArray | sp.csr_array) -> NDArray[np.bool_] | None:
    """Return where ``X`` is observed, None for everywhere."""
    if X.dtype.kind != "f":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isnan(X.sum()):  # one pass, no array of flags: the usual case
            return None
    missing = np.isnan(sp.csr_array(X).toarray() if sp.issparse(X) else X)
    return ~missing if missing.any() else None


def _blocks(X: NDArray | sp.csr_array) -> list[slice]:
    height = max(64, 2**20 // X.shape[1])  # 8 MB or so in float64
    return [slice(start, start + height) for start in range(0, X.shape[0], height)]


def _read(X: NDArray | sp.csr_array, block: slice, metric: Metric) -> NDArray[np.float64]:
    rows = sp.csr_array(X[block]).toarray() if sp.issparse(X) else X[block]
    rows = rows.astype(np.float64, order="C")
    return rows if metric.rows is None else metric.rows(rows, np)


def nearest(
    queries: NDArray[np.float32], points: NDArray[np.float32], half_squares: NDArray[np.float32], k: int
) -> NDArray[np.int64]:
    """Return the indices of the ``k`` points nearest to each query, in no order, by ``|z|^2 / 2 - <q, z>``.

    Parameters
    ----------
    queries : ndarray of shape (m, d)
    points : ndarray of shape (n, d)
    half_squares : ndarray of shape (n,)
        ``|z|^2 / 2`` of the points.
    k : int
        -1 fills up the columns when there are fewer points.

    Returns
    -------
    indices : ndarray of shape (m, k)
    """
    return _heap_of(queries, points, half_squares, k).I


def scored(
    queries: NDArray[np.float32], points: NDArray[np.float32], half_squares: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the points that `nearest` finds, the nearest first, and their ``|z|^2 / 2 - <q, z>``."""
    heap = _heap_of(queries, points, half_squares, k)
    heap.finalize()
    return heap.I, heap.D


def _heap_of(queries: NDArray, points: NDArray, half_squares: NDArray, k: int) -> faiss.ResultHeap:
    heap = faiss.ResultHeap(len(queries), k)
    everyone = np.arange(len(queries))
    height = 2048  # a tile of scores stays in the cache between the product and the heap
    room = np.empty(len(queries) * min(height, len(points)), np.float32)
    for start in range(0, len(points), height):
        tile = slice(start, min(start + height, len(points)))
        scores = room[: len(queries) * (tile.stop - start)].reshape(len(queries), tile.stop - start)
        np.matmul(queries, points[tile].T, out=scores)
        np.subtract(half_squares[tile], scores, out=scores)
        heap.add_result_subset(everyone, scores, np.arange(tile.start, tile.stop))
    return heap


def half_squared_norms(Z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ``|z|^2 / 2`` of every row."""
    return np.einsum("ij,ij->i", Z, Z) / 2
