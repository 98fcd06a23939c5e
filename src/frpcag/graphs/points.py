"""Points as the neighbour searches want them: centred, scaled, float32, C order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import faiss
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh

from frpcag.graphs.metric import EUCLIDEAN, Metric

# Points with more features than this are searched in the space of their first principal components, as many
# as hold 90 % of the variance but never more than this. A matrix product of fewer columns than 100 is hardly
# faster.
MAX_DIMENSION = 128
# Points that the components are fitted on.
FITTED = 2000


@dataclass(frozen=True)
class Points:
    """Points in units of their own: ``Z = (X / largest - mean) / spread``, with ``spread`` a power of two.

    Missing entries (NaN in ``X``) are 0, the mean, in ``Z`` and False in ``seen``; without any, ``seen`` is None.
    """

    Z: NDArray[np.float32]  # (n, p), C order
    largest: float
    mean: NDArray[np.float64]
    spread: float
    seen: NDArray[np.bool_] | None = None
    metric: Metric = EUCLIDEAN

    @property
    def cut(self) -> float:
        """The most that a feature adds to a sum of absolute differences in ``Z``."""
        return self.metric.cut / self.unit

    @property
    def unit(self) -> float:
        """Length in ``X`` of a distance of 1 in ``Z``."""
        return self.largest * self.spread

    def take(self, rows: NDArray[np.int64]) -> Points:
        """Return some of the points."""
        return replace(self, Z=self.Z[rows], seen=None if self.seen is None else self.seen[rows])

    def lengths(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return distances in ``Z`` as lengths in ``X``; infinite ones stay so, others must be finite in ``X`` too."""
        with np.errstate(over="ignore"):
            lengths = distances * self.unit
        if (np.isinf(lengths) & np.isfinite(distances)).any():
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
    Z = _centred(X, largest, mean, run, complete=seen is None, metric=metric)
    extent = max(run(lambda block: _largest(Z, block), blocks))
    spread = 2.0 ** np.floor(np.log2(extent)) if extent > 0 else 1.0
    if spread != 1:  # a power of two scales float32 without rounding
        run(lambda block: np.multiply(Z[block], np.float32(1 / spread), out=Z[block]), blocks)
    return Points(Z, largest, mean, spread, seen, metric)


def prepare_queries(rows: NDArray | sp.csr_array, points: Points, run: Callable) -> Points:
    """Return other rows in the units of ``points``.

    Entries beyond 1e12 count as 1e12: float32 does not hold the squares of much larger ones.
    """
    seen = _observed(rows)
    limit = 1e12 * points.spread
    Z = _centred(rows, points.largest, points.mean, run, complete=seen is None, metric=points.metric, limit=limit)
    Z /= np.float32(points.spread)
    return replace(points, Z=Z, seen=seen)


def _centred(
    X: NDArray | sp.csr_array,
    largest: float,
    mean: NDArray,
    run: Callable,
    *,
    complete: bool,
    metric: Metric,
    limit: float = np.inf,
) -> NDArray[np.float32]:
    Z = np.empty(X.shape, np.float32)

    def fill(block: slice) -> None:
        rows = _read(X, block, metric)
        with np.errstate(over="ignore"):
            rows /= largest
        rows -= mean
        if np.isfinite(limit):
            np.clip(rows, -limit, limit, out=rows)
        Z[block] = rows if complete else np.nan_to_num(rows, copy=False, nan=0.0)

    run(fill, _blocks(X))
    return Z


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


def rank_candidates(
    queries: NDArray[np.float32],
    Z: NDArray[np.float32],
    candidates: NDArray[np.int64],
    n_neighbors: int,
    *,
    skip: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nearest candidates of each query, by true distance, then by index.

    The searches rank by ``|z|^2 / 2 - <q, z>``, which cancels in float32 when two points are near each other;
    here the differences themselves are squared and summed.

    Parameters
    ----------
    queries : ndarray of shape (m, p)
    Z : ndarray of shape (n, p)
    candidates : ndarray of shape (m, n_candidates)
        Indices without repetition in a row; -1 where there is none.
    n_neighbors : int
        At most ``n_candidates``.
    skip : ndarray of shape (m,), optional
        The index of each query in ``Z``. A point is not its own neighbour, and only its index tells it from a
        duplicate, which has distance 0 too.

    Returns
    -------
    indices : ndarray of shape (m, n_neighbors)
    distances : ndarray of shape (m, n_neighbors)
        Euclidean, ascending; infinite where a row had too few candidates.
    """
    absent = candidates < 0
    if skip is not None:
        absent |= candidates == skip[:, None]
    ids = np.ascontiguousarray(np.where(absent, 0, candidates))
    queries = np.ascontiguousarray(queries)
    squares = np.empty(ids.shape, np.float32)
    faiss.fvec_L2sqr_by_idx(  # type: ignore[attr-defined]
        faiss.swig_ptr(squares),
        faiss.swig_ptr(queries),
        faiss.swig_ptr(Z),
        faiss.swig_ptr(ids),
        Z.shape[1],
        *ids.shape,
    )
    squares[absent] = np.inf
    order = np.lexsort((ids, squares), axis=1)[:, :n_neighbors]
    distances = np.sqrt(np.take_along_axis(squares, order, axis=1).astype(np.float64))
    return np.take_along_axis(ids, order, axis=1), distances


def reduce_dimension(Z: NDArray[np.float32], *, rng: np.random.RandomState, run: Callable) -> NDArray[np.float32]:
    """Return the first principal components of centred points, fitted on a sample; narrow ``Z`` as it is."""
    n, p = Z.shape
    if p <= MAX_DIMENSION:
        return Z
    basis = principal_directions(Z[rng.permutation(n)[:FITTED]])
    return np.concatenate(run(lambda rows: Z[rows] @ basis, [slice(start, start + 512) for start in range(0, n, 512)]))


def principal_directions(sample: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the directions that hold 90 % of the variance of centred points, as columns, at most `MAX_DIMENSION`."""
    wide = sample.shape[1] > len(sample)
    gram = sample @ sample.T if wide else sample.T @ sample  # the smaller of the two
    most = min(MAX_DIMENSION, len(gram))
    variance, vectors = eigh(gram, subset_by_index=(len(gram) - most, len(gram) - 1))
    share = np.cumsum(variance[::-1]) / max(float(np.trace(gram)), np.finfo(np.float32).tiny)
    d = min(most, 1 + int(np.searchsorted(share, 0.9)))
    basis = np.ascontiguousarray(vectors[:, ::-1][:, :d])
    if wide:
        basis = sample.T @ (basis / np.sqrt(np.maximum(variance[::-1][:d], np.finfo(np.float32).tiny)))
    return basis
