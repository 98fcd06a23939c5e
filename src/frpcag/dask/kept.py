"""A model in row blocks cut down to rows that one machine holds, to clean new rows against."""

from __future__ import annotations

import copy
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from frpcag.dask.row_chunks import as_row_chunks
from frpcag.engines.host import HostEngine

# Rows kept at most, and entries of them, but for a few rows.
MOST_ROWS, MOST_ENTRIES, LEAST_ROWS = 50_000, 1 << 24, 1000

# The last one made of a model, and of which clean rows: another fit may give its own the same name in the same store.
_MADE: WeakKeyDictionary = WeakKeyDictionary()


def kept_rows(n: int, p: int, rng: np.random.Generator, *, most: int) -> np.ndarray:
    """Return the rows that are kept on the client, in order: all of them where they are few."""
    m = max(LEAST_ROWS, min(most, MOST_ENTRIES // p))
    return np.arange(n) if n <= m else np.sort(rng.choice(n, m, replace=False))


def rows_on_client(X: Any, seed: int, *, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of a matrix in row chunks as an array, and which they are."""
    dx = as_row_chunks(X)
    n, p = dx.shape
    rows = kept_rows(n, p, np.random.default_rng(seed), most=most)
    return np.asarray(dx[rows].compute()), rows


def on_client(model: Any) -> Any:
    """Return a copy of a model fitted to row blocks that holds some of its rows as NumPy arrays.

    New rows find their neighbours among these. With all rows kept, the copy cleans them as a model of one machine does;
    of more, the sample graph is made again, between the rows kept.
    """
    fitted, made = _MADE.get(model, (lambda: None, None))
    if fitted() is not model.low_rank_:
        made = _cut_down(model)
        _MADE[model] = ref(model.low_rank_), made
    return made


def _cut_down(model: Any) -> Any:
    import dask

    n, p = model.low_rank_.shape
    rows = kept_rows(n, p, np.random.default_rng(0), most=MOST_ROWS)
    names = "low_rank_", "sparse_", "embedding_"
    arrays = dask.compute(*(getattr(model, name)[rows] for name in names))
    out = copy.copy(model)
    vars(out).update(zip(names, arrays, strict=True))
    fitted = model.sample_graph_
    given = not isinstance(model.sample_graph, str) and fitted is not None
    searched = {"sample_graph": "auto" if given and len(rows) < n else model.sample_graph}
    searched |= {"metric": getattr(fitted, "metric", None) or model.metric, "backend": "auto"}
    vars(out).update(searched)
    if fitted is not None:
        X = out.low_rank_ + out.sparse_  # missing entries as predicted
        out.sample_graph_ = HostEngine(out).graph(((X - model.center_) / model.scale_).astype(X.dtype), 0)
    return out
