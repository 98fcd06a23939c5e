"""FRPCAGClustering: FRPCAG, then labels."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from frpcag.cells import without_overwritten
from frpcag.data.preprocess import CentredRows, check_flags, validate_matrix
from frpcag.engines.base import UnitsWarning, in_blocks, on_device_of, on_host
from frpcag.engines.memory import require_memory_for
from frpcag.estimators.block_labels import (
    Space,
    blocks_without_overwritten,
    carried,
    rows_to_label,
    take,
    whitened_space,
)
from frpcag.estimators.cleaner import RobustGraphCleaner
from frpcag.estimators.cluster_inputs import check_n_clusters, clustering_bytes, has_mixed_units, in_range
from frpcag.estimators.compressive import CompressiveFRPCAG
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import fit_as_far_as_possible, raise_if_interrupted, take_columns, whole_fit
from frpcag.labels import cloud_of, distinct_rows, label, unit_rows
from frpcag.labels.choose import MOST_NEIGHBORS, Candidate, best, on_components, on_points
from frpcag.labels.count import count_clusters
from frpcag.labels.labellers import kmeans
from frpcag.linalg.factorize import gram_svd
from frpcag.runtime.arrays import is_dask, is_tensor
from frpcag.runtime.memory import require_memory
from frpcag.runtime.warn import muted, warn_user
from frpcag.saving import SavedModel

Array = np.ndarray

# With fewer features than this the data as given are labelled; whitening would blow up what tells nothing apart.
WIDE = 100
# From this share of missing cells on the clean data are labelled instead: cells filled in do not vary as others do.
GAPS = 0.05
# Whitened components for each cluster that are looked at, and those of a single linkage with its neighbours.
MOST_COLUMNS, COLUMNS, NEIGHBORS = 3, 2, 20
# Components below this share of the strongest are noise.
WHITENED_FLOOR = 1e-3

# What candidates_ tells, and of which kind.
FIELDS = {
    "points": str, "labeller": str, "n_coordinates": np.int64, "n_neighbors": np.int64, "score": np.float64,
    "smallest": np.int64,
}  # fmt: skip

AS_THE_PAPER = ("kmeans", "components")
ASSIGNMENTS = ("auto", "linkage", "spectral", *AS_THE_PAPER)


class FRPCAGClustering(SavedModel, ClusterMixin, BaseEstimator):
    """Clusters of corrupted data: clean it with :class:`FRPCAG`, then label the samples.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" tries 2 to 100, and looks for a gap in the spectrum of the neighbour graph and for a
        number at which parts of the samples are grouped as all of them are. It is a guess: look at ``counts_`` with
        :func:`frpcag.plots.plot_cluster_counts`.
    estimator : FRPCAG or CompressiveFRPCAG, optional
        The model that cleans the data; by default ``FRPCAG(metric="auto")``, with ``scale=True`` where the columns
        have mixed units. With a :class:`CompressiveFRPCAG` a sample of the rows is cleaned and labelled, and the labels
        are carried over to the others.
    assign : {"auto", "linkage", "spectral", "kmeans", "components"}, default="auto"
        "auto" labels in several ways and keeps one result. With 100 features or more it links the whitened components
        of the clean data, one to three for each cluster, and takes the labels that agree best with the others. With
        fewer features it labels the data as given, or the clean data where a twentieth or more is missing, by linkage,
        spectral clustering and k-means, and takes the smallest normalised cut. "linkage" is graph degree linkage of the
        same points, once; "spectral" clusters the graph of the clean data; "kmeans" runs k-means on the clean data, as
        the paper does; "components" runs it on the ``n_components`` principal components ``W``.
    clean : bool, default=False
        Whether cells that :class:`RobustGraphCleaner` finds wrong count as missing. For wrong values that differ from
        each other, such as spikes; one value that overwrote many cells is found without it. Takes two to nine times as
        long.
    n_init : int, default=10
        Starts of k-means; the best is kept.
    random_state : int, RandomState or None
        Seed of k-means, and of the neighbour search where ``estimator`` is None.
    n_jobs : int, optional
        Number of threads, all cores by default.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample.
    estimator_ : FRPCAG or CompressiveFRPCAG
        The fitted model behind the labels.
    n_iter_ : int
        Its solver steps.
    n_clusters_ : int
        Number of clusters found: as asked for, or as many as there are distinct rows.
    affinity_ : csr_array of shape (n_distinct, n_distinct) or None
        Weights of the neighbour graph of the points that were labelled, a node for each distinct row; None where
        k-means labelled all rows.
    candidates_ : dict of str to ndarray
        What was tried: ``points``, ``labeller``, ``n_coordinates``, ``n_neighbors``, ``score`` (larger is better)
        and ``smallest``, the size of the smallest cluster.
    counts_ : dict of str to ndarray
        With ``n_clusters="auto"``: ``n_clusters``, ``gap``, ``stability`` and ``score`` of the numbers that were
        tried.
    missing_share_ : float
        Share of the cells that were taken as missing: NaN as given, overwritten with one value, or found wrong.
    sample_indices_ : ndarray of shape (n_labelled,)
        For a Dask array: the rows that were labelled on the client, at most 50,000; all others have the label of the
        nearest of them. ``affinity_``, ``candidates_`` and ``missing_share_`` describe these rows.

    Notes
    -----
    If one value overwrote cells, scattered or in patches, these cells are found and count as missing, except with
    "kmeans" and "components". Equal rows get one label.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import FRPCAGClustering
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(3 * rng.normal(size=(3, 20)), 20, axis=0) + rng.normal(size=(60, 20))
    >>> labels = FRPCAGClustering(3, random_state=0).fit_predict(X)
    >>> [len(set(labels[i : i + 20])) for i in (0, 20, 40)]
    [1, 1, 1]
    """

    labels_: Array

    def __init__(
        self,
        n_clusters: int | str = 8,
        estimator: FRPCAG | CompressiveFRPCAG | None = None,
        *,
        assign: str = "auto",
        clean: bool = False,
        n_init: int = 10,
        random_state=None,
        n_jobs: int | None = None,
    ):
        self.n_clusters = n_clusters
        self.estimator = estimator
        self.assign = assign
        self.clean = clean
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Clean ``X`` and label its samples.

        Parameters
        ----------
        X : array-like, sparse matrix, torch tensor or Dask array of shape (n_samples, n_features)
            The data; with ``estimator=FRPCAG(backend="dask")`` also what that takes, such as a path.
        y : None
            Ignored.

        Returns
        -------
        FRPCAGClustering
            The fitted estimator.
        """
        with whole_fit(self) as fresh:
            if isinstance(self.estimator, CompressiveFRPCAG):
                fresh._fit_sample(X)
            elif is_dask(X) or in_blocks(self.estimator):
                fresh._fit_blocks(X)
            else:
                fresh._fit(X)
        raise_if_interrupted(self.estimator_)
        return self

    def _fit(self, X) -> None:
        Z = validate_matrix(self, X, reset=True)
        if hasattr(Z, "toarray"):
            require_memory_for(Z, FRPCAG() if self.estimator is None else self.estimator)
            Z = Z.toarray()
        self._check(len(Z))
        require_memory(self._bytes(Z), f"clustering X with shape {Z.shape} in {Z.dtype}", dtype=Z.dtype)
        random_state = check_random_state(self.random_state)
        whole = Z
        if self.assign not in AS_THE_PAPER:
            Z = without_overwritten(Z, shape=getattr(self.estimator, "feature_shape", None))
        if self.clean:
            Z = self._without_wrong(whole, Z)
        # Frames are taken as arrays: their columns are checked and named here.
        given = Z if not is_tensor(X) else X if Z is whole else on_device_of(X, Z)
        self.missing_share_ = float(np.isnan(Z).mean())
        model = self._default_model(Z, random_state) if self.estimator is None else clone(self.estimator)
        # Without an estimator the units were looked at, and scaled where they differ.
        with muted(UnitsWarning) if self.estimator is None else nullcontext():
            self.estimator_: FRPCAG = on_host(fit_as_far_as_possible(model, given))
        self.n_iter_ = self.estimator_.n_iter_
        self._label_rows(Z, self.estimator_.low_rank_, random_state)

    def _without_wrong(self, X: Array, Z: Array) -> Array:
        """Return ``Z`` where cells that the cleaner finds wrong in ``X`` are missing; itself where there are none."""
        model = FRPCAG() if self.estimator is None else clone(self.estimator)
        wrong = RobustGraphCleaner(model, random_state=0, n_jobs=self.n_jobs).fit(X).outliers_
        return np.where(wrong, Z.dtype.type(np.nan), Z) if wrong.any() else Z

    def _fit_blocks(self, X) -> None:
        """Clean row blocks, label some rows on the client, and give all others the label of the nearest."""
        dx = import_module("frpcag.dask").as_row_chunks(X)
        n, p = dx.shape
        self._check(n)
        if self.clean:
            raise ValueError("clean=True holds all rows in memory and does not take Dask arrays; pass X.compute().")
        random_state = check_random_state(self.random_state)
        seed = random_state.randint(2**31)
        if self.assign not in AS_THE_PAPER:
            dx = blocks_without_overwritten(dx, shape=getattr(self.estimator, "feature_shape", None))
        rows = rows_to_label(n, p, random_state)
        Z = take(dx, rows)
        self.missing_share_ = float(np.isnan(Z).mean())
        model = self._default_model(Z, seed) if self.estimator is None else clone(self.estimator)
        with muted(UnitsWarning) if self.estimator is None else nullcontext():
            self.estimator_ = fit_as_far_as_possible(model, dx)
        self.n_iter_ = self.estimator_.n_iter_
        take_columns(self, self.estimator_)
        U = take(self.estimator_.low_rank_, rows)
        name, d = self._label_rows(Z, U, random_state)
        self.sample_indices_: Array = rows
        if len(rows) < n:
            known = {"center": self.estimator_.center_, "scale": self.estimator_.scale_}
            space = whitened_space(U, d, **known) if name == "W" else Space(name == "X", **known)
            labels = carried(dx, self.estimator_.low_rank_, space, space.points(Z, U), self.labels_)
            labels[rows] = self.labels_
            self.labels_ = labels

    def _bytes(self, Z: Array) -> int:
        """Return about how many bytes a fit takes at its peak, those of ``Z`` not counted."""
        as_the_paper, (_, p) = self.assign in AS_THE_PAPER, Z.shape
        # Whitening takes a copy in the dtype of the data; other points are in float64, made from another such array.
        points = p * Z.dtype.itemsize if p >= WIDE and not as_the_paper and self.assign != "spectral" else 16 * p
        model = FRPCAG(n_jobs=self.n_jobs) if self.estimator is None else self.estimator
        return clustering_bytes(Z, model, points=points, n_neighbors=0 if as_the_paper else MOST_NEIGHBORS)

    def _check(self, n: int) -> None:
        if self.assign not in ASSIGNMENTS:
            raise ValueError(f"assign={self.assign!r} is unknown; choose one of {', '.join(map(repr, ASSIGNMENTS))}.")
        check_flags(clean=self.clean)
        check_n_clusters(self.n_clusters, n)

    def _label_rows(self, Z: Array, U: Array, random_state) -> tuple[str, int]:
        """Label rows by what they are and their clean part; return the points that were labelled, and their width."""
        k = self._number(Z, U, random_state) if self.n_clusters == "auto" else int(self.n_clusters)
        if self.assign in AS_THE_PAPER:
            points = self._paper_points(U, random_state)
            self.labels_ = kmeans(points, k, n_init=self.n_init, random_state=random_state)
            self.affinity_: sp.csr_array | None = None
            self.candidates_: dict[str, Array] = {}
            labelled = ("U" if self.assign == "kmeans" else "W", points.shape[1])
        else:
            labelled = self._label_distinct(Z, U, k, random_state)
        self.n_clusters_ = int(self.labels_.max()) + 1
        return labelled

    def _fit_sample(self, X) -> None:
        """Clean and label the rows that a compressive model keeps, and carry the labels over to all rows."""
        model = clone(self.estimator)
        seed = check_random_state(self.random_state).randint(2**31)
        sample = model._draw(X)
        inner = clone(self).set_params(estimator=model.estimator, random_state=seed)
        fit_as_far_as_possible(inner, sample.kept)
        self.labels_ = model._spread(sample, inner.estimator_, inner.labels_)
        for name in ("affinity_", "candidates_", "missing_share_", "n_clusters_", "counts_"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))
        take_columns(self, model)
        self.estimator_, self.n_iter_ = model, model.n_iter_

    def _default_model(self, Z: Array, random_state: Any) -> FRPCAG:
        return FRPCAG(metric="auto", scale=has_mixed_units(Z), random_state=random_state, n_jobs=self.n_jobs)

    def _number(self, Z: Array, U: Array, random_state) -> int:
        """Return a number of clusters, and store what it was chosen by."""
        points = in_range(self._centred(U)) if Z.shape[1] >= WIDE else self._few_features(Z, U)[1]
        rows = distinct_rows(Z)[0]
        found, self.counts_ = count_clusters(points[rows], random_state=random_state.randint(2**31), n_jobs=self.n_jobs)
        return min(found, len(rows))

    def _label_distinct(self, Z: Array, U: Array, k: int, random_state) -> tuple[str, int]:
        """Label the distinct rows, and all rows like them; return the points that were labelled, and their width."""
        first, kind = distinct_rows(Z)
        if len(first) < k:
            warn_user(
                f"n_clusters={k} is more than the {len(first)} distinct rows of X; each of them is a cluster.",
                ConvergenceWarning,
            )
            k = len(first)
        if k in (1, len(first)):
            labels = np.zeros(len(first), np.int64) if k == 1 else np.arange(len(first))
            self.labels_, self.affinity_, self.candidates_ = labels[kind], None, {}
            return "U", Z.shape[1]
        seed = random_state.randint(2**31)
        tried = self._candidates(Z, U, first, k, {"n_init": self.n_init, "random_state": seed, "n_jobs": self.n_jobs})
        chosen = best(tried)
        self.labels_, self.affinity_ = chosen.labels[kind], chosen.cloud.affinity
        self.candidates_ = {
            name: np.array([getattr(one, name) for one in tried], dtype=object if kept is str else kept)
            for name, kept in FIELDS.items()
        }
        return chosen.points, chosen.n_coordinates

    def _candidates(self, Z: Array, U: Array, rows: Array, k: int, options: dict) -> list[Candidate]:
        wide = Z.shape[1] >= WIDE
        if self.assign == "auto":
            if wide:
                return on_components(self._whitened(U, MOST_COLUMNS * k)[rows], k, **options)
            name, points = self._few_features(Z, U)
            return on_points(name, points[rows], k, **options)
        if self.assign == "spectral":
            name, points = "U", in_range(self._centred(U))[rows]
        elif wide:
            name, points = "W", unit_rows(self._whitened(U, COLUMNS * k)[rows])
        else:
            name, points = self._few_features(Z, U)
            points = points[rows]
        search = {key: options[key] for key in ("random_state", "n_jobs")}
        cloud = cloud_of(points, n_neighbors=NEIGHBORS, **search)
        labels = label(self.assign, cloud, k, n_init=self.n_init, random_state=options["random_state"])
        return [Candidate(name, self.assign, points.shape[1], cloud.indices.shape[1], 0.0, labels, cloud)]

    def _centred(self, X: Array) -> Array:
        Z = X - self.estimator_.center_
        Z /= self.estimator_.scale_
        return Z

    def _few_features(self, Z: Array, U: Array) -> tuple[str, Array]:
        """Return the points of a table: the data as given with missing cells filled in, or the clean data."""
        if self.missing_share_ >= GAPS:
            return "U", in_range(self._centred(U))
        return "X", in_range(self._centred(np.where(np.isnan(Z), U, Z)))

    def _whitened(self, U: Array, n_components: int) -> Array:
        """Return the first principal components of the clean data, all of unit length."""
        U = CentredRows(U, self.estimator_.center_, self.estimator_.scale_).whole()
        U -= U.mean(axis=0, dtype=np.float64)
        W, Sigma, _ = gram_svd(U, min(n_components, *U.shape), random_state=0)
        return W[:, Sigma >= WHITENED_FLOOR * Sigma[0]]  # below lies noise, which whitening would blow up

    def _paper_points(self, U: Array, random_state) -> Array:
        """Return the points that k-means labels in the paper: ``U`` or ``W``."""
        model = self.estimator_
        if self.assign == "components":
            E = (self._centred(U) - (model.mean_ - model.center_) / model.scale_) @ model.components_.T
            return E / np.where(model.singular_values_ > 0, model.singular_values_, 1)
        # All singular directions: distances between rows are those of U, in min(n, p) coordinates.
        U = self._centred(U)
        W, Sigma, _ = gram_svd(U - U.mean(axis=0), min(U.shape), random_state=random_state)
        # Clusters do not depend on the unit, but the squares of the extremes of float64 leave its range.
        return W * Sigma if 1e-100 < Sigma[0] < 1e100 else W * (Sigma / (Sigma[0] or 1.0))

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())
