"""What is labelled: rows as given, their clean part or its whitened components; in row blocks, some rows for all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from frpcag.data.preprocess import CentredRows
from frpcag.graphs import Index
from frpcag.labels.points import distinct_rows, unit_rows
from frpcag.linalg.factorize import gram_svd, power_unit

Array = np.ndarray

# With fewer features than this the data as given are labelled; whitening would blow up what tells nothing apart.
WIDE = 100
# From this share of missing cells on the clean data are labelled instead: cells filled in do not vary as others do.
GAPS = 0.05
# Components below this share of the strongest are noise.
WHITENED_FLOOR = 1e-3
# Rows that are labelled on the client, at most so many entries of them, and at least so many rows.
LABELLED_ROWS, LABELLED_ENTRIES, LEAST_LABELLED = 50_000, 1 << 26, 1000


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Rows, and what a fitted model made of them.

    Parameters
    ----------
    X, U : ndarray of shape (n, n_features)
        Rows as given, NaN where missing, and their clean part.
    model : FRPCAG
        Its centre, scale and components are read.
    """

    X: Array
    U: Array
    model: Any

    @property
    def wide(self) -> bool:
        """Whether there are enough features to whiten."""
        return self.X.shape[1] >= WIDE

    @cached_property
    def distinct(self) -> tuple[Array, Array]:
        """The first row of each kind, and the kind of every row."""
        return distinct_rows(self.X)

    def clean(self) -> Array:
        """Return the clean part, centred, in a unit in which its squares stay in the range of float64."""
        return _in_range(self._centred(self.U))

    def table(self) -> tuple[str, Array]:
        """Return the points of a table: the data as given with missing cells filled in, or the clean data."""
        missing = np.isnan(self.X)
        if missing.mean() >= GAPS:
            return "U", self.clean()
        return "X", _in_range(self._centred(np.where(missing, self.U, self.X)))

    def whitened(self, n_components: int) -> Array:
        """Return the first principal components of the clean data, all of unit length."""
        U = CentredRows(self.U, self.model.center_, self.model.scale_).whole()
        U -= U.mean(axis=0, dtype=np.float64)
        W, Sigma, _ = gram_svd(U, min(n_components, *U.shape), random_state=0)
        return W[:, Sigma >= WHITENED_FLOOR * Sigma[0]]  # below lies noise, which whitening would blow up

    def components(self) -> Array:
        """Return the components ``W`` of the model."""
        model = self.model
        E = (self._centred(self.U) - (model.mean_ - model.center_) / model.scale_) @ model.components_.T
        return E / np.where(model.singular_values_ > 0, model.singular_values_, 1)

    def directions(self, random_state: Any) -> Array:
        """Return the clean data along all singular directions: the same distances, in min(n, p) coordinates."""
        U = self._centred(self.U)
        W, Sigma, _ = gram_svd(U - U.mean(axis=0), min(U.shape), random_state=random_state)
        # Clusters do not depend on the unit, but the squares of the extremes of float64 leave its range.
        return W * Sigma if 1e-100 < Sigma[0] < 1e100 else W * (Sigma / (Sigma[0] or 1.0))

    def _centred(self, A: Array) -> Array:
        Z = A - self.model.center_
        Z /= self.model.scale_
        return Z


def _in_range(points: Array) -> Array:
    unit = power_unit(float(np.abs(points).max(initial=0.0)), 8)
    return points if unit == 1.0 else points / unit


def rows_to_label(n: int, p: int, rng: np.random.RandomState) -> Array:
    """Return the rows that are labelled on the client, in order: all of them where they are few."""
    m = max(LEAST_LABELLED, min(LABELLED_ROWS, LABELLED_ENTRIES // p))
    return np.arange(n) if n <= m else np.sort(rng.permutation(n)[:m])


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

    @classmethod
    def of(cls, rows: Cleaned, points: str, n_coordinates: int) -> Space:
        """Return the space of points called "X", "U" or "W"; components are those of the clean part of ``rows``."""
        space = cls(points == "X", rows.model.center_, rows.model.scale_)
        if points != "W":
            return space
        U = space.points(rows.X, rows.U)
        origin = U.mean(axis=0)
        _, Sigma, V = gram_svd(U - origin, n_coordinates, random_state=0)
        return cls(False, space.center, space.scale, origin, V / Sigma)

    def points(self, X: Array, U: Array) -> Array:
        """Return the points of rows and their clean part."""
        rows = ((np.where(np.isnan(X), U, X) if self.as_given else U) - self.center) / self.scale
        if self.directions is None:
            return rows
        return unit_rows((rows - self.origin) @ self.directions)


def carried(dx: Any, low_rank: Any, rows: Cleaned, space: Space, labels: Array) -> Array:
    """Return the labels of all rows: each that of the nearest labelled one.

    Parameters
    ----------
    dx, low_rank : Dask arrays of shape (n_samples, n_features)
        Rows and their clean part, in the same chunks.
    rows : Cleaned
        Those that are labelled.
    space : Space
    labels : ndarray of shape (m,)
    """
    import dask.array as da

    import dask

    anchors = space.points(rows.X, rows.U)
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
