"""Labels of matrices in row blocks: some rows are labelled on the client, all others take the label of the nearest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frpcag.cells import Overwriting, find_overwriting, judged_rows
from frpcag.graphs.index import Index
from frpcag.labels import unit_rows
from frpcag.linalg.factorize import gram_svd

Array = np.ndarray

# Rows that are labelled on the client, at most so many entries of them, and at least so many rows.
LABELLED_ROWS, LABELLED_ENTRIES, LEAST_LABELLED = 50_000, 1 << 26, 1000


@dataclass(frozen=True, eq=False)
class Space:
    """Where distances between rows are taken: the rows as given, their clean part, or its whitened components.

    Attributes
    ----------
    as_given : bool
        Whether points are rows as given, missing cells filled in by the clean part.
    center, scale : ndarray of shape (n_features,)
    origin, directions : ndarray of shapes (n_features,) and (n_features, d), or None
        What turns clean rows into whitened components.
    """

    as_given: bool
    center: Array
    scale: Array
    origin: Array | None = None
    directions: Array | None = None

    def points(self, X: Array, U: Array) -> Array:
        """Return the points of rows and their clean part."""
        rows = ((np.where(np.isnan(X), U, X) if self.as_given else U) - self.center) / self.scale
        if self.directions is None:
            return rows
        return unit_rows((rows - self.origin) @ self.directions)


def whitened_space(U: Array, n_components: int, *, center: Array, scale: Array) -> Space:
    """Return the space of the first whitened components of some clean rows."""
    rows = (U - center) / scale
    origin = rows.mean(axis=0)
    _, Sigma, V = gram_svd(rows - origin, n_components, random_state=0)
    return Space(False, center, scale, origin, V / Sigma)


def rows_to_label(n: int, p: int, rng: np.random.RandomState) -> Array:
    """Return the rows that are labelled on the client, in order: all of them where they are few."""
    m = max(LEAST_LABELLED, min(LABELLED_ROWS, LABELLED_ENTRIES // p))
    return np.arange(n) if n <= m else np.sort(rng.permutation(n)[:m])


def take(dx: Any, rows: Array) -> Array:
    """Return some rows of a Dask array of row chunks on the client."""
    return np.asarray(dx[rows].compute())


def blocks_without_overwritten(dx: Any, *, shape: tuple[int, int] | None) -> Any:
    """Return a Dask array with overwritten cells missing; itself where there are none."""
    some = _floats(take(dx, judged_rows(len(dx))))
    rule = find_overwriting(some, shape=shape)
    return dx.map_blocks(_applied, rule=rule, dtype=some.dtype) if rule.repeats else dx


def carried(dx: Any, low_rank: Any, space: Space, anchors: Array, labels: Array) -> Array:
    """Return the labels of all rows: each that of the nearest labelled one.

    Parameters
    ----------
    dx, low_rank : Dask arrays of shape (n_samples, n_features)
        Rows and their clean part, in the same chunks.
    space : Space
    anchors : ndarray of shape (m, d)
        Points of the labelled rows.
    labels : ndarray of shape (m,)
    """
    import dask.array as da

    import dask

    index = Index(anchors, random_state=0, n_jobs=1)
    index.query(anchors[:1], 1)  # its lists are trained here, once
    # One task holds them, so that they travel to a worker once.
    search = dask.delayed(index)
    blocks = da.map_blocks(
        _nearest_labels, dx, low_rank, space=space, search=search, labels=labels, dtype=np.int64, drop_axis=1
    )
    return np.asarray(blocks.compute())


def _nearest_labels(X: Array, U: Array, space: Space, search: Index, labels: Array) -> Array:
    return labels[search.query(space.points(X, U), 1)[0][:, 0]]


def _applied(rows: Array, rule: Overwriting) -> Array:
    return rule.applied(_floats(rows))


def _floats(rows: Array) -> Array:
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)
