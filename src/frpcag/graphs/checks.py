"""Checks of the arguments of graphs, with messages that say what to do."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from frpcag.graphs.exchange import as_adjacency
from frpcag.graphs.weights import WEIGHTS

# Relative to the largest weight: what rounding may leave between A and its transpose.
SYMMETRY_TOLERANCE = 1e-7


def node_word(axis: int) -> str:
    """Return what scikit-learn calls the number of nodes along an axis."""
    return "n_samples" if axis == 0 else "n_features"


def check_axis(axis: int) -> None:
    """Raise ValueError unless ``axis`` is 0 or 1."""
    if axis not in (0, 1):
        raise ValueError(f"axis={axis!r} is unknown; pass 0 for a graph of the samples or 1 for the features.")


def check_weight_options(*, sigma: str | float, weights: str) -> None:
    """Raise ValueError for weight options that are unknown or out of range."""
    if not (isinstance(weights, str) and weights in WEIGHTS):
        raise ValueError(f"weights={weights!r} is unknown; pass one of {', '.join(map(repr, WEIGHTS))}.")
    is_number = isinstance(sigma, Real) and not isinstance(sigma, bool)
    if not (0 < float(sigma) < np.inf if is_number else isinstance(sigma, str) and sigma == "auto"):
        raise ValueError(f"sigma={sigma!r} must be a positive finite number or 'auto'; 'auto' is the mean edge length.")


def check_n_neighbors(n_neighbors: int, n_nodes: int, *, axis: int) -> None:
    """Raise ValueError unless every node can have ``n_neighbors`` others."""
    word = node_word(axis)
    if n_nodes < 2:
        raise ValueError(f"X has {word}={n_nodes} but a graph needs at least 2 nodes; add {word[2:]}.")
    if not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool) or n_neighbors < 1:
        raise ValueError(f"n_neighbors={n_neighbors!r} must be an integer of at least 1; 10 is a good start.")
    if n_neighbors >= n_nodes:
        raise ValueError(
            f"n_neighbors={n_neighbors} must be smaller than {word}={n_nodes}; "
            f"pass at most {n_nodes - 1} or add {word[2:]}."
        )


def check_points(X: Any, *, argument: str) -> NDArray | sp.csr_array:
    """Return ``X`` (nodes in rows) once it is known to hold finite real numbers, or NaN but not in all of a row.

    A graph can be passed as ``argument`` instead.
    """
    if X.shape[1] == 0:
        raise ValueError(f"X has shape {X.shape}, nothing to measure distances by; pass a non-empty X.")
    if X.dtype.kind not in "biuf":
        try:
            X = X.astype(np.float64, casting="unsafe" if X.dtype.kind == "O" else "same_kind")
        except (TypeError, ValueError) as error:
            raise ValueError(f"X has dtype {X.dtype} but must hold real numbers; convert it first.") from error
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    # NaN and infinities survive a sum, which takes no memory; only when it is not finite is every entry
    # looked at.
    if not np.isfinite(total):
        n_bad = int(np.isinf(values).sum())
        if n_bad:
            raise ValueError(
                f"X has {n_bad} infinite entries but distances need finite ones; drop them or set them to NaN."
            )
        if not sp.issparse(X) and X.dtype.kind == "f":
            empty = np.flatnonzero(np.isnan(X).all(axis=1))
            if len(empty):
                raise ValueError(f"node {empty[0]} of X has no observed entry; drop it or pass a graph as {argument}.")
    return X


def check_grid_shape(shape: Any, n_nodes: int, *, axis: int, argument: str) -> tuple[int, int]:
    """Return (height, width) once they are known to fit the number of nodes; ``argument`` asked for the grid."""
    word = node_word(axis)
    if shape is None:
        raise ValueError(
            f"feature_shape=None does not fit {argument}='grid'; pass (height, width) of the image, height * width "
            f"being {word}={n_nodes}."
        )
    sizes: tuple[Any, ...] = tuple(shape) if np.iterable(shape) else ()
    if len(sizes) != 2 or not all(isinstance(size, Integral) and int(size) >= 1 for size in sizes):
        raise ValueError(f"feature_shape={shape!r} must be two integers of at least 1; pass (height, width).")
    height, width = int(sizes[0]), int(sizes[1])
    if height * width != n_nodes:
        raise ValueError(
            f"feature_shape={(height, width)} has {height * width} pixels but X has {word}={n_nodes}; "
            "pass (height, width) of the image."
        )
    return height, width


def check_graph_size(graph: Any, n_nodes: int, *, axis: int, argument: str) -> None:
    """Raise ValueError unless a graph that was given as ``argument`` has as many nodes as ``X``."""
    if graph.n_nodes != n_nodes:
        raise ValueError(
            f"{argument} is a graph of {graph.n_nodes} nodes but X has {node_word(axis)}={n_nodes}; "
            "pass a graph of the same size."
        )


def check_adjacency(A: Any, *, n_nodes: int | None = None, argument: str = "A") -> sp.csr_array:
    """Return ``A`` as weights of a Graph: float64 CSR, symmetric to the last bit, no diagonal, no zeros."""
    A = as_adjacency(A, n_nodes=n_nodes, argument=argument)
    A = A if sp.issparse(A) else np.asarray(A)
    if A.ndim != 2 or A.dtype.kind not in "biuf":
        raise ValueError(
            f"{argument} has {A.ndim} dimension(s) and dtype {A.dtype} but an adjacency is a square real matrix; "
            "pass a sparse or dense (n, n) matrix of weights."
        )
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"{argument} has shape {A.shape} but must be square; pass one row and column a node.")
    if n_nodes is not None and A.shape[0] != n_nodes:
        raise ValueError(
            f"{argument} has {A.shape[0]} nodes but X has {n_nodes}; pass a matrix of shape ({n_nodes}, {n_nodes})."
        )
    A = sp.csr_array(A, dtype=np.float64, copy=True)
    A.sum_duplicates()
    check_values(A.data, argument, "weights")
    A = _without_diagonal(A)
    A.eliminate_zeros()
    difference = float(abs(A - A.T).max()) if A.nnz else 0.0
    largest = float(A.data.max(initial=0.0))
    if difference > SYMMETRY_TOLERANCE * largest:
        raise ValueError(
            f"{argument} differs from its transpose by {difference:.3g} but must be symmetric; "
            "pass (A + A.T) / 2 or A.maximum(A.T)."
        )
    # Halves first: the sum of two weights near the end of the range of float64 would leave it.
    A = sp.csr_array(A * 0.5 + A.T * 0.5)
    A.sort_indices()
    return A


def check_values(values: NDArray, name: str, what: str) -> None:
    """Raise ValueError unless all values are finite and non-negative."""
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has NaN or infinite {what} but they must be finite; replace them, e.g. by 0.")
    if values.size and values.min() < 0:
        raise ValueError(f"{name} has negative {what} (least {values.min():.3g}); pass non-negative ones.")


def transformer_edges(transformer: Any, points: Any, *, argument: str) -> tuple[sp.csr_array, bool]:
    """Return the directed edges that a transformer, given as ``argument``, finds; and whether they are distances.

    Stored zeros stay: they are neighbours at distance 0. The node itself, which transformers count as its own
    neighbour, goes.
    """
    found = clone(transformer, safe=False).fit_transform(points)
    name = type(transformer).__name__
    n = points.shape[0]
    if not sp.issparse(found) or found.shape != (n, n):
        raise ValueError(
            f"{argument}={name} gave {type(found).__name__} of shape {np.shape(found)} but must give a sparse "
            f"matrix of shape ({n}, {n}); pass a transformer like sklearn.neighbors.KNeighborsTransformer."
        )
    edges = sp.csr_array(found, dtype=np.float64, copy=True)
    check_values(edges.data, f"the result of {argument}={name}", "values")
    are_distances = getattr(transformer, "mode", "distance") != "connectivity"
    return _without_diagonal(edges), are_distances


def _without_diagonal(A: sp.csr_array) -> sp.csr_array:
    """Return ``A`` without its diagonal, stored zeros off the diagonal kept (``setdiag`` adds some)."""
    coo = A.tocoo()
    keep = coo.row != coo.col
    A = sp.csr_array((coo.data[keep], (coo.row[keep], coo.col[keep])), shape=A.shape)
    A.sort_indices()
    return A
