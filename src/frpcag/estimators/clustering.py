"""FRPCAGClustering: FRPCAG, then labels."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils import check_random_state

from frpcag.cells import MIXED, find_overwriting, find_units, judged_rows, without_overwritten
from frpcag.data.preprocess import check_flags, validate_matrix
from frpcag.engines.base import UnitsWarning, in_blocks, on_device_of, on_host
from frpcag.engines.memory import fit_bytes, held_bytes, require_memory_for
from frpcag.estimators.cleaner import RobustGraphCleaner
from frpcag.estimators.compressive import CompressiveFRPCAG
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import fit_as_far_as_possible, raise_if_interrupted, take_columns, whole_fit
from frpcag.labels import (
    AS_THE_PAPER,
    Cleaned,
    Labelled,
    Space,
    carried,
    check_assignment,
    label_bytes,
    label_rows,
    rows_to_label,
)
from frpcag.runtime.arrays import is_dask, is_tensor
from frpcag.runtime.memory import require_memory
from frpcag.runtime.warn import muted
from frpcag.saving import SavedModel

Array = np.ndarray


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
        self._label_rows(Cleaned(Z, self.estimator_.low_rank_, self.estimator_), random_state)

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
            dx = dx if dx.dtype.kind == "f" else dx.astype(np.float64)
            shape = getattr(self.estimator, "feature_shape", None)
            rule = find_overwriting(_taken(dx, judged_rows(n)), shape=shape)
            dx = dx.map_blocks(rule.applied, dtype=dx.dtype) if rule.repeats else dx
        rows = rows_to_label(n, p, random_state)
        Z = _taken(dx, rows)
        self.missing_share_ = float(np.isnan(Z).mean())
        model = self._default_model(Z, seed) if self.estimator is None else clone(self.estimator)
        with muted(UnitsWarning) if self.estimator is None else nullcontext():
            self.estimator_ = fit_as_far_as_possible(model, dx)
        self.n_iter_ = self.estimator_.n_iter_
        take_columns(self, self.estimator_)
        some = Cleaned(Z, _taken(self.estimator_.low_rank_, rows), self.estimator_)
        found = self._label_rows(some, random_state)
        self.sample_indices_: Array = rows
        if len(rows) < n:
            space = Space.of(some, found.points, found.n_coordinates)
            self.labels_ = carried(dx, self.estimator_.low_rank_, some, space, found.labels)
            self.labels_[rows] = found.labels

    def _bytes(self, Z: Array) -> int:
        """Return about how many bytes a fit takes at its peak: its own, or its results and what labels them."""
        model, (n, p) = FRPCAG(n_jobs=self.n_jobs) if self.estimator is None else self.estimator, Z.shape
        k = model.n_neighbors if isinstance(model.n_neighbors, int) else 10
        results = 2 * Z.nbytes + held_bytes(n, p, k)
        return int(max(fit_bytes(Z, model), results + label_bytes(Z, self.assign)))

    def _check(self, n: int) -> None:
        check_assignment(self.assign, self.n_clusters, n)
        check_flags(clean=self.clean)

    def _label_rows(self, rows: Cleaned, random_state) -> Labelled:
        """Label rows, store the labels and how they came about, and return them."""
        found = label_rows(
            rows, self.n_clusters, self.assign, n_init=self.n_init, random_state=random_state, n_jobs=self.n_jobs
        )
        self.labels_, self.affinity_, self.candidates_ = found.labels, found.affinity, found.candidates
        if found.counts:
            self.counts_ = found.counts
        self.n_clusters_ = int(found.labels.max()) + 1
        return found

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

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())


def _taken(dx: Any, rows: Array) -> Array:
    """Return some rows of a Dask array of row chunks on the client."""
    return np.asarray(dx[rows].compute())


def has_mixed_units(X: Array) -> bool:
    """Say whether both the spread and the size of the largest column are far beyond those of most.

    Counts that are mostly zero differ in spread alone: a rare one is as large as the others where it is there.
    """
    observed = ~np.isnan(X)
    if not find_units(X, observed, one_level=False).mixed:
        return False
    counted = observed & (X != 0)
    sizes = np.abs(np.where(counted, X, 0)).sum(axis=0) / np.maximum(counted.sum(axis=0), 1)
    return bool(sizes.max() > MIXED * np.median(sizes[sizes > 0]))
