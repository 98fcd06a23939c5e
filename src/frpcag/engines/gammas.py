"""The scale-free gamma: one rule. Engines supply sums over columns, which add up over row blocks."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.losses import LOSSES
from frpcag.runtime.warn import warn_user

Array = np.ndarray
# Of each column over the rows looked at: |2 L X|, |X|, deviations from a reference row, and entries observed.
Sums = tuple[Array, Array, Array, Array]

# Rows looked at, evenly spaced.
_ROWS = 2000
# Entries whose pull is computed at a time.
_BLOCK_ENTRIES = 1 << 24
# A pull of this many times the rounding of the entries is noise; it is computed in float64.
_ROUNDINGS = 1
# Among duplicates only the edges to far points pull, at weights down to 1e-12: this share of the spread is nothing.
_LEAST_SHARE = 1e-6


def check_gamma(name: str, gamma: Any) -> None:
    """Raise ValueError unless ``gamma`` is "auto" or a weight."""
    if isinstance(gamma, str):
        if gamma != "auto":
            raise ValueError(f"{name}={gamma!r} is unknown; pass 'auto' or a number >= 0.")
    elif not isinstance(gamma, Real) or isinstance(gamma, bool) or not 0 <= float(gamma) < np.inf:
        raise ValueError(f"{name}={gamma!r} must be 'auto' or a finite number >= 0.")


def looked_at(n: int) -> Array:
    """Return the rows of a matrix of ``n`` that the rule looks at."""
    return np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(int))


def scale_free_gamma(L: sp.csr_array | None, X: Array, *, axis: int, loss: str = "l1") -> float:
    """Return ``unit / mean |2 L X|``, the gamma at which the typical entry of the gradient at ``X`` is one unit.

    Parameters
    ----------
    L : sparse matrix or None
        Laplacian along ``axis``; None gives 0.
    X : ndarray of shape (n_samples, n_features)
        The data; NaN is missing.
    axis : {0, 1}
        0 for the sample graph, 1 for the feature graph.
    loss : str, default="l1"
        The unit of its slope: 1; for l2, whose slope grows with the residual, the mean standard
        deviation of the columns.

    Notes
    -----
    For l1, ``U = X`` is optimal while ``max |gradient(X)| <= 1``; the mean acts on the typical entry. Data times ``c``
    give gamma over ``c``, and for l2 the same gamma, as the solution asks for. (The median would be zero on sparse
    images.) At most 2000 samples are looked at, evenly spaced. A column in which neighbours agree, as duplicates do, or
    differ by rounding alone, pulls nothing; where all columns do, the term has nothing to do, and gamma is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import build_graph
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> L = build_graph(X).laplacian
    >>> round(scale_free_gamma(L, X, axis=0) * float(np.abs(2 * L @ X).mean()), 6)
    1.0
    """
    if L is None:
        return 0.0
    rows = looked_at(len(X))
    seen = X[rows]
    reference = reference_row(X[0])
    if axis == 0:
        product, diagonal = csr_product(L[rows], rows), L.diagonal()[rows]
        # Some columns at a time: the product holds them in float64.
        parts = [
            column_sums(pull_at(product, diagonal, seen[:, some], X[:, some]), seen[:, some], reference[some])
            for some in column_blocks(X.shape)
        ]
        pull, size, deviation, count = (np.concatenate(each) for each in zip(*parts, strict=True))
        sums: Sums = (pull, size, deviation, count)
    else:
        nodes = np.arange(X.shape[1])
        sums = column_sums(pull_at(csr_product(L, nodes), L.diagonal(), seen.T, seen.T).T, seen, reference)
    return gamma_of(sums, reference, lambda mean: spread_sums(seen, mean), rounding_of(L, axis), X.dtype, loss)


def column_blocks(shape: tuple[int, int]) -> list[slice]:
    """Return slices of columns of so many entries each."""
    n, p = shape
    step = max(64, _BLOCK_ENTRIES // max(n, 1))
    return [slice(start, start + step) for start in range(0, p, step)]


def csr_product(rows: sp.csr_array, nodes: Array) -> Callable[[Array], Array]:
    """Return the product with the weights between ``nodes`` and all others, from their rows of the Laplacian."""
    data = np.where(rows.indices == np.repeat(nodes, np.diff(rows.indptr)), 0.0, -rows.data)
    W = sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return lambda A: W @ A


def pull_at(product: Callable[[Any], Any], diagonal: Any, own: Any, points: Any, xp: Any = np) -> Any:
    """Return ``L @ points`` at some nodes; missing neighbours count as the average of those observed.

    Parameters
    ----------
    product : callable
        Multiplies the weights between the nodes and all others by an array.
    diagonal : array of shape (n_nodes,)
        Of the Laplacian.
    own, points : array of shape (n_nodes, p) and (n_points, p)
        Values of the nodes and of all others; NaN is missing.
    xp : module
        ``numpy`` or ``torch``.
    """
    missing = xp.isnan(points)
    diagonal = diagonal[:, None]
    if not bool(missing.any()):
        return diagonal * own - product(points)
    seen = xp.where(missing, 0.0, xp.ones_like(points))
    there = product(seen)
    total = product(xp.ones_like(points[:, :1]))
    mean = product(xp.nan_to_num(points, nan=0.0)) / xp.where(there > 0, there, 1.0)
    return diagonal * own - total * mean


def reference_row(row: Array) -> Array:
    """Return a row in float64, 0 where it is missing: sums of deviations from it keep their digits at any level."""
    return np.nan_to_num(np.asarray(row, dtype=np.float64), nan=0.0)


def column_sums(pull: Any, X: Any, reference: Any, xp: Any = np) -> Any:
    """Return the sums of the rule over the rows of ``X``."""
    seen = ~xp.isnan(X)
    parts = (xp.abs(xp.where(seen, 2 * pull, 0.0)), xp.abs(xp.where(seen, X, 0.0)))
    with np.errstate(over="ignore"):  # an infinite mean is refused by the rule
        sums = (part.sum(axis=0, dtype=xp.float64) for part in (*parts, xp.where(seen, X - reference, 0.0), seen))
        return tuple(sums)


def spread_sums(X: Any, mean: Any, xp: Any = np) -> Any:
    """Return the sums of the absolute deviations from ``mean`` over the rows of ``X``."""
    return xp.abs(xp.where(xp.isnan(X), 0.0, X - mean)).sum(axis=0, dtype=xp.float64)


def rounding_of(L: Any, axis: int) -> Callable[[Array], Array]:
    """Return what takes the mean |X| of the columns to the scale at which rounding shows in ``L X``."""
    if axis == 0:
        mean = float(L.diagonal().mean())
        return lambda size: mean * size
    return lambda size: abs(L) @ size / 2


def gamma_of(
    sums: Sums,
    reference: Array,
    spread_about: Callable[[Array], Array],
    rounding: Callable[[Array], Array],
    dtype: Any,
    loss: str = "l1",
) -> float:
    """Return the unit of the loss over the typical pull; 0 where rounding is all there is.

    Parameters
    ----------
    sums : tuple of four ndarrays of shape (n_features,)
        What `column_sums` gives, added over row blocks.
    reference : ndarray of shape (n_features,)
        What the deviations in it are taken from.
    spread_about : callable
        Gives what `spread_sums` does, for the means of the columns.
    rounding : callable
        Of `rounding_of`.
    dtype : dtype
        Of the data.
    loss : str
        The squared loss has the units of ``X`` squared: its gamma has none.
    """
    pull, size, deviation, count = sums
    if not count.any():
        return 0.0
    each = np.maximum(count, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = spread_about(reference + deviation / each) / each
        noise = _ROUNDINGS * float(np.finfo(dtype).eps) * rounding(size / each)
        shows = pull / each > _LEAST_SHARE * spread
        counts = shows & (pull / each > noise)
        typical = float(pull[counts].sum() / count.sum())
        unit = float((spread * count).sum() / count.sum()) ** (LOSSES[loss].DEGREE - 1)
    if not counts.any():
        if (shows & (pull > 0)).any():
            warn_user(
                f"gamma='auto' is 0: the entries of X, {float(size.sum() / count.sum()):.3g} in the mean, differ from "
                f"those of their neighbours by no more than the rounding of {np.dtype(dtype)}; subtract their level in "
                "float64 first, or pass a gamma."
            )
        return 0.0
    if not (np.isfinite([typical, unit]).all() and typical > 0 and np.isfinite(unit / typical)):
        raise ValueError(
            f"the entries of X, {float(size.sum() / count.sum()):.3g} in the mean, are too "
            f"{'small' if typical < 1 else 'large'} for gamma='auto': one over their differences leaves the range of "
            f"{np.dtype(dtype)}; multiply X by a constant."
        )
    return unit / typical
