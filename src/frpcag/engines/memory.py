"""Memory that a fit of arrays takes, stage by stage."""

from __future__ import annotations

from typing import Any

import numpy as np

from frpcag.runtime.memory import in_words, require_memory
from frpcag.runtime.threads import count_threads

# Arrays of the size of X that a fit holds beside X itself: in the solver a centred copy, U and both Y; the reference
# backend makes more for its plain expressions. At the end U, its slope, and both results.
_SOLVER_ARRAYS = {"numpy": 8}
_USUAL_ARRAYS, _END_ARRAYS = 4, 4.5
# Libraries' buffers and blocks of the neighbour search, whatever the size of X.
_FIXED = 60 * 10**6
# Each neighbour of a node: edges found from both ends, as weights and as a Laplacian, and copies while they are built.
_BYTES_PER_NEIGHBOR = 120
# Rows and columns of the solver's arrays are padded to whole tiles (frpcag.backends.numba.kernels).
_TILE, _LANES = 64, 16
# Of the smaller side, squared: the Gram matrix and its eigenvectors, in float64. Larger sides are sketched.
_GRAM_SIDE, _GRAM_BYTES = 4096, 32
# Rows that automatic gammas look at, and float64 arrays of them (frpcag.engines.gammas).
_GAMMA_ROWS, _GAMMA_ARRAYS = 2000, 5
# Search with missing entries: rows of a block, bytes for each pair of them and a node, of each thread; bytes of each
# entry. Beyond so many nodes it is approximate and looks at fewer pairs.
_SEARCH_ROWS, _PAIR_BYTES, _ENTRY_BYTES, _EXACT_NODES = 512, 22, 8, 20_000


def needed_bytes(
    n: int,
    p: int,
    dtype: Any = np.float64,
    n_neighbors: int = 10,
    *,
    backend: str = "auto",
    missing: bool = False,
    n_threads: int = 1,
) -> int:
    """Return about how many bytes a fit of an ``n`` by ``p`` matrix takes at its peak, those of ``X`` not counted.

    Parameters
    ----------
    n, p : int
        Samples and features.
    dtype : dtype, default=float64
        float32 stays float32, all others are computed in float64.
    n_neighbors : int, default=10
        Neighbours of each node of both graphs.
    backend : str, default="auto"
        What computes the steps; "numpy" takes eight arrays of the size of ``X``, the others four.
    missing : bool, default=False
        Whether entries are missing: distances over common entries take more.
    n_threads : int, default=1
        Threads of the neighbour search.

    Returns
    -------
    int
        The largest of the stages: search, automatic gammas, solver, factors and results.

    Examples
    --------
    >>> from frpcag.engines.memory import needed_bytes
    >>> round(needed_bytes(70_000, 784, "float32") / 2**30, 2)
    1.07
    """
    itemsize = 4 if np.dtype(dtype) == np.float32 else 8
    rows, columns = max(n, p), min(n, p)
    one, padded = n * p * itemsize, -(-rows // _TILE) * _TILE * -(-columns // _LANES) * _LANES * itemsize
    arrays = _SOLVER_ARRAYS.get(backend, _USUAL_ARRAYS)
    stages = [
        arrays * (one if backend == "numpy" else padded),
        one + 8 * _GAMMA_ARRAYS * min(n, _GAMMA_ROWS) * p,
        _END_ARRAYS * one + (_GRAM_BYTES * columns**2 if columns <= _GRAM_SIDE else 0),
    ]
    if missing:
        nodes = min(rows, _EXACT_NODES)
        pairs = _PAIR_BYTES * min(nodes, _SEARCH_ROWS) * nodes
        stages.append(one + n_threads * (pairs + _ENTRY_BYTES * nodes * columns))
    return int(max(stages)) + held_bytes(n, p, n_neighbors)


def held_bytes(n: int, p: int, n_neighbors: int) -> int:
    """Return the bytes of both graphs and of libraries, which stay over all stages."""
    return _BYTES_PER_NEIGHBOR * (n + p) * n_neighbors + _FIXED


def fit_bytes(X: Any, model: Any) -> int:
    """Return about how many bytes a fit of ``X`` takes at its peak, those of ``X`` not counted."""
    dtype = getattr(X, "dtype", None)
    kept = dtype if isinstance(dtype, np.dtype) and dtype == np.float32 else np.dtype(np.float64)
    k = min(model.n_neighbors, 1000) if isinstance(model.n_neighbors, int) else 10
    backend = model.backend if isinstance(model.backend, str) else "auto"
    n, p = X.shape
    missing, n_threads = _has_missing(X), count_threads(model.n_jobs)
    needed = needed_bytes(n, p, kept, max(k, 0), backend=backend, missing=missing, n_threads=n_threads)
    if not (isinstance(dtype, np.dtype) and dtype == kept) and not hasattr(X, "toarray"):
        needed += n * p * 8  # a copy in float64 comes first
    return needed


def require_memory_for(X: Any, model: Any) -> None:
    """Raise MemoryError if a fit of ``X`` would not fit; other checks refuse what is not a matrix."""
    shape, dtype = getattr(X, "shape", None), getattr(X, "dtype", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or not all(isinstance(size, int) for size in shape):
        return
    kept = dtype if isinstance(dtype, np.dtype) and dtype == np.float32 else np.dtype(np.float64)
    one = in_words(shape[0] * shape[1] * kept.itemsize)
    what = f"a fit of X with shape {shape} in {kept} (dense: {one} for each array of its size)"
    require_memory(fit_bytes(X, model), what, dtype=kept)


def _has_missing(X: Any) -> bool:
    """Say whether a large array of floats has NaN; no array of its size is made."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f" or X.size < 2**20:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum()))
