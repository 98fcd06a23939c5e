"""What a fitted model answers new rows with: prepared on the first question after a fit, and kept beside the model."""

from __future__ import annotations

import os
import threading
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from frpcag.estimators.known_rows import KnownRows
from frpcag.estimators.placed_rows import FittedRows

Array = np.ndarray


class PreparedRows:
    """Both answers to new rows: what they are without their errors, and where they lie among the fitted rows.

    Parameters
    ----------
    model : FRPCAG
        Fitted, of host arrays. Nothing of it is kept but its arrays.
    """

    def __init__(self, model: Any) -> None:
        graph, n = model.sample_graph_, len(model.low_rank_)
        self.known = KnownRows(
            model.low_rank_ + model.sparse_,  # missing entries as predicted
            model.low_rank_,
            center=model.center_,
            scale=model.scale_,
            metric=(graph.metric if graph is not None else None) or model.metric,
            n_neighbors=int(min(model.n_neighbors, max(1, n - 1))),
            n_jobs=model.n_jobs,
        )
        self.keep, self.nonnegative = model.loss == "l1", model.nonnegative
        self.embedding = model.embedding_
        self.directions, self.origin = model.components_, (model.mean_ - model.center_) / model.scale_
        self._placing = {
            "sample_graph": graph,
            "feature_graph": model.feature_graph_,
            "gamma1": model.gamma1_,
            "gamma2": model.gamma2_,
            "loss": model.loss,
            "huber_delta": model.huber_delta,
        }

    @cached_property
    def fitted(self) -> FittedRows:
        """The clean rows that new rows are linked to."""
        known = self.known
        return FittedRows(known.solved(known.U), n_neighbors=known.n_neighbors, n_jobs=known.n_jobs, **self._placing)

    def denoise(self, rows: Array) -> Array:
        """Return rows without their errors, in the units of the data."""
        clean = self.known.clean(rows, keep=self.keep)
        return np.maximum(clean, 0) if self.nonnegative else clean

    def embed(self, rows: Array) -> Array:
        """Return rows in the principal directions, smoothed as the fitted ones."""
        seen = self.known.look(rows)
        clean = self.fitted.place(seen.rows, seen.repaired)
        if self.nonnegative:
            np.maximum(clean, 0, out=clean)
        clean = (clean - self.origin).astype(rows.dtype, copy=False)
        # Not a matrix product, whose last bit depends on the number of rows.
        out = np.einsum("ij,kj->ik", clean, self.directions.astype(rows.dtype, copy=False))
        out[seen.known] = self.embedding[seen.first[seen.known]]
        return out


_PREPARED: WeakKeyDictionary[Any, tuple[Any, PreparedRows]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _after_fork() -> None:
    """Note in a forked child that no other thread of its own holds the lock."""
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_after_fork)


def prepared(model: Any) -> PreparedRows:
    """Return what a fitted model of host arrays answers new rows with.

    It is not in the model: copies, saved models and pickles prepare their own.
    """
    with _LOCK:
        told = (model.low_rank_, model.sparse_, model.n_jobs)
        kept = _PREPARED.get(model)
        if kept is None or any(a is not b for a, b in zip(kept[0], told, strict=True)):
            kept = _PREPARED[model] = told, PreparedRows(model)
        return kept[1]
