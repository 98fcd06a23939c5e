"""A fitted model as new rows see it: prepared on the first question after a fit, and kept beside the model."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import EUCLIDEAN, METRICS, Metric, find_metric
from frpcag.losses import LOSSES
from frpcag.rows.explain import coarser_eps, same_cells
from frpcag.rows.known import KnownRows
from frpcag.rows.linked import LinkedRows, Near
from frpcag.rows.terms import RowTerms, solve_linked
from frpcag.runtime.memory import require_memory

Array = np.ndarray

# Entries cleaned at a time, and the bytes that each takes: millions of rows take no more memory than their result.
_ENTRIES, _BYTES = 1 << 21, 80
# One over a number as small as these leaves the range of float32.
_LEAST_SINGLE = 1e-30
_LOCK = threading.RLock()


def _after_fork() -> None:
    """Note in a forked child that no other thread of its own holds the lock."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_after_fork)


class prepared:
    """A part that is made when it is first asked for, by one thread."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __get__(self, instance: Any, owner: Any) -> Any:
        with _LOCK:
            made, name = vars(instance), self.make.__name__
            if name not in made:
                made[name] = self.make(instance)
            return made[name]


class RowModel:
    """What a fitted model answers new rows with.

    Parameters
    ----------
    model : FRPCAG
        Fitted, of host arrays. Nothing of it is kept but its arrays.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.center, self.scale = copy.copy(model), model.center_, model.scale_
        n, graph = len(model.low_rank_), model.sample_graph_
        self.n_neighbors = int(min(model.n_neighbors, max(1, n - 1)))
        self.metric: str = (graph.metric if graph is not None else None) or model.metric
        self.X, self.U = model.low_rank_ + model.sparse_, model.low_rank_  # missing entries as predicted
        if not np.abs(self.X).max(initial=0.0) > _LEAST_SINGLE:
            self.X, self.U = self.X.astype(np.float64), self.U.astype(np.float64)
        self.origin = (model.mean_ - model.center_) / model.scale_
        feature = {} if model.feature_graph_ is None or not model.gamma2_ > 0 else {
            "L2": model.feature_graph_.laplacian, "gamma2": model.gamma2_, "lmax2": model.feature_graph_.lmax
        }  # fmt: skip
        self.terms = RowTerms(model.loss, model.huber_delta, **feature)

    @classmethod
    def of(cls, model: Any) -> RowModel:
        """Return that of a model; it is not in the model: copies, saved models and pickles prepare their own."""
        with _LOCK:
            kept = _PREPARED.get(model)
            told = ("low_rank_", "sparse_", "n_jobs")
            if kept is None or any(getattr(kept.model, name) is not getattr(model, name) for name in told):
                kept = _PREPARED[model] = cls(model)
            return kept

    @prepared
    def known(self) -> KnownRows:
        """Tells right cells from wrong ones."""
        return KnownRows(
            self.X, self.U, center=self.center, scale=self.scale, metric=self.metric, n_neighbors=self.n_neighbors,
            n_jobs=self.model.n_jobs,
        )  # fmt: skip

    @property
    def metric_of_clean_rows(self) -> Metric:
        """What repaired rows are near to clean ones by."""
        return METRICS.get(self.metric, EUCLIDEAN).of_clean_rows

    @prepared
    def placed(self) -> LinkedRows:
        """Clean rows that repaired rows are near to."""
        U = self.known.solved(self.U)
        return self._linked(U, U, metric=self.metric_of_clean_rows, terms=self.terms, joined=True)

    @prepared
    def carried(self) -> LinkedRows:
        """Fitted rows that others are near to as they are; the feature term is left aside."""
        X, U = (((rows - self.center) / self.scale).astype(rows.dtype) for rows in (self.X, self.U))
        metric = find_metric(self.metric, X, n_jobs=self.model.n_jobs)
        terms = RowTerms(self.terms.loss, self.terms.huber_delta)
        return self._linked(X, U, metric=metric, terms=terms, joined=False)

    def denoise(self, X: Any) -> Array:
        """Return rows without their errors, in the units of the data."""
        clean = np.concatenate(
            [self.known.clean(rows, keep=LOSSES[self.model.loss].EXACT) for rows in self._in_blocks(X)]
        )
        return np.maximum(clean, 0) if self.model.nonnegative else clean

    def embed(self, X: Any) -> Array:
        """Return rows in the principal directions, smoothed as the fitted ones."""
        return np.concatenate([self._embed(rows) for rows in self._in_blocks(X)])

    def near(self, rows: Array) -> Near:
        """Return the fitted rows nearest to each of some others, which are centred and scaled."""
        indices, distances = self.carried.index.query(rows, self.n_neighbors)
        first, level = indices[:, 0], self.center / self.scale
        points, U = self.carried.points, self.carried.U
        same = same_cells(rows, points[first], U[first], coarser_eps(rows.dtype, points.dtype), level=level)
        return Near(indices, distances, (same | np.isnan(rows)).all(axis=1))

    def carry(self, rows: Array, near: Near) -> Array:
        """Return the clean part of rows, centred and scaled, from that of fitted ones; one of these has its own."""
        out = self.carried.place(rows, near.indices, near.distances)
        out[near.known] = self.carried.U[near.indices[near.known, 0]]
        return out

    def vote(self, labels: Array, near: Near) -> Array:
        """Return the labels of rows: that of the strongest links; a fitted row has its own."""
        names, places = np.unique(labels, return_inverse=True)
        ones = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)), places)), shape=(len(labels), len(names)))
        votes = (self.carried.links(near.indices, near.distances)[1] @ ones).toarray()
        return names[np.where(near.known, places[near.indices[:, 0]], votes.argmax(axis=1))]

    def _linked(self, points: Array, U: Array, **options: Any) -> LinkedRows:
        model = self.model
        return LinkedRows(points, U, graph=model.sample_graph_, gamma1=model.gamma1_, n_jobs=model.n_jobs, **options)

    def _embed(self, rows: Array) -> Array:
        seen, model = self.known.look(rows), self.model
        repaired = seen.repaired
        # A squared loss has no bound to what a wrong cell pulls.
        given = repaired if np.isinf(LOSSES[model.loss].STEEPEST) else seen.rows
        if model.sample_graph_ is not None and model.gamma1_ > 0:
            clean = self.placed.place(given, *self.placed.index.query(repaired, self.n_neighbors))
        else:
            middle = np.where(np.isnan(seen.rows), repaired, seen.rows)
            clean = solve_linked(given, self.terms, pull=np.zeros(len(rows)), middle=middle, n_jobs=model.n_jobs)
        if model.nonnegative:
            np.maximum(clean, 0, out=clean)
        clean = (clean - self.origin).astype(rows.dtype, copy=False)
        # Not a matrix product, whose last bit depends on the number of rows.
        out = np.einsum("ij,kj->ik", clean, model.components_.astype(rows.dtype, copy=False))
        out[seen.known] = model.embedding_[seen.first[seen.known]]
        return out

    def _in_blocks(self, X: Any) -> Iterator[Array]:
        """Give the rows of a checked matrix, a few at a time."""
        n, p = X.shape
        step = max(1, _ENTRIES // p)
        needed = 4 * self.U.nbytes + n * p * X.dtype.itemsize + _BYTES * min(n, step) * p
        require_memory(needed, f"cleaning X with shape {X.shape} against {len(self.U)} fitted rows")
        for start in range(0, n, step):
            rows = X[start : start + step]
            yield rows.toarray() if hasattr(rows, "toarray") else rows


_PREPARED: WeakKeyDictionary[Any, RowModel] = WeakKeyDictionary()
