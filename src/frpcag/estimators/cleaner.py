"""RobustGraphCleaner: it finds and repairs wrong cells, and changes nothing else."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from frpcag.cells import CHUNK, CellRules, column_medians, find_wrong_cells, row_keys, row_probability
from frpcag.data.preprocess import validate_matrix
from frpcag.engines.base import UnitsWarning, map_chunks, rows_on_client
from frpcag.engines.memory import needed_bytes
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import fit_as_far_as_possible, raise_if_interrupted, whole_fit
from frpcag.labels import distinct_rows
from frpcag.pipeline import check_seed, check_verbose
from frpcag.runtime.arrays import is_dask
from frpcag.runtime.clock import Clock
from frpcag.runtime.memory import require_memory
from frpcag.runtime.stages import StageReport
from frpcag.runtime.warn import muted
from frpcag.saving import SavedModel

Array = np.ndarray

# Rows of a Dask array that are fitted.
CLIENT_ROWS = 10_000
# What cleaning holds of each cell beside the fit that follows: data, units, predictions, probabilities, flags.
_BYTES_PER_CELL = 60


class RobustGraphCleaner(SavedModel, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Find wrong cells, repair them, fill in missing ones, and leave everything else as it is.

    Every cell is predicted from other cells, in three ways: from its neighbours in a graph of the samples and a graph
    of the features (the model of :class:`FRPCAG`), from a robust low-rank model, and, in tables with few columns, from
    the other columns of its row. Held-out cells choose metric, gammas, loss, rank and the weights of the three. A cell
    is probably wrong if it is far from its prediction, in units of the usual error of such predictions. One value that
    overwrote many cells, scattered or in patches, is found as well. Flags are kept only if held-out cells are predicted
    better without the flagged cells, so clean data stay unchanged. There are no labels and no thresholds to set.

    Parameters
    ----------
    estimator : FRPCAG, optional
        Model that is fitted to the cleaned data, for later steps; by default ``FRPCAG()``. Its ``feature_shape`` is the
        image size if rows are images; without it the cleaner looks for a grid of pixels in the columns.
    random_state : int, RandomState or None, default=None
        Seed of the held-out cells and, for more than 2000 rows, of the rows on which all choices are made. None is a
        fixed seed.
    n_jobs : int, optional
        Number of threads; None is all cores.
    verbose : int, default=0
        1 tells each stage when it is done, with its seconds, and every decision when it is made.

    Attributes
    ----------
    cleaned_ : ndarray of shape (n_samples, n_features)
        The data with wrong cells repaired and missing cells filled in; all other cells are unchanged, to the last bit.
    outlier_probability_ : ndarray of shape (n_samples, n_features)
        Probability that a cell is wrong; 0 where it is missing.
    outliers_ : bool ndarray of shape (n_samples, n_features)
        Cells that were repaired: probability above one half, in rows that are not wrong as a whole.
    row_outlier_probability_ : ndarray of shape (n_samples,)
        Probability that a row is wrong as a whole. Such rows are reported, not repaired.
    predicted_ : ndarray of shape (n_samples, n_features)
        The value that the other cells predict for each cell.
    deviation_ : ndarray of shape (n_samples, n_features)
        Value minus prediction; NaN where the value is missing. :func:`frpcag.plots.plot_cell_map` draws it with the
        probabilities.
    scale_ : ndarray of shape (n_features,)
        Typical deviation of each feature from its median, the unit of the cell map; the same for all pixels.
    estimator_ : FRPCAG
        Fitted to ``cleaned_``.
    cv_results_ : dict of str to ndarray
        Every graph setting that was tried, with its held-out error (squared, in common units, bounded).
    notes_ : list of str
        The decisions of the fit, in words.
    feature_shape_ : (height, width) or None
        The image size, as given or as found.
    rules_ : object
        What the fit learnt, to judge new rows.
    sample_indices_ : ndarray of shape (n_samples,)
        For a Dask array: the rows that were fitted. The results above describe these.

    Notes
    -----
    The cleaner finds only errors that other cells contradict. Values that are wrong in the same way everywhere look
    right. If fewer than about one cell in a thousand is wrong, the errors look like a heavy tail.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import RobustGraphCleaner
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 12)) + 0.05 * rng.normal(size=(200, 12))
    >>> X = truth.copy()
    >>> hit = rng.random(X.shape) < 0.05
    >>> X[hit] += 8
    >>> cleaner = RobustGraphCleaner(random_state=0).fit(X)
    >>> bool((cleaner.outliers_ == hit).mean() > 0.99)
    True
    >>> bool((cleaner.cleaned_[~cleaner.outliers_] == X[~cleaner.outliers_]).all())
    True
    """

    # What else is told every decision when it is made.
    _tell: Callable[[str], object] | None = None

    def __init__(self, estimator=None, *, random_state=None, n_jobs: int | None = None, verbose: int = 0):
        self.estimator = estimator
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None):
        """Find and repair the wrong cells of ``X``; NaN is missing.

        Parameters
        ----------
        X : array-like, frame, sparse matrix, torch tensor or Dask array of shape (n_samples, n_features)
            The data. float32 stays float32. A sparse matrix is made dense, a tensor is copied to the host. Of a Dask
            array at most 10,000 rows are fitted, those of ``sample_indices_``; :meth:`transform` cleans all of them.
        y : None
            Ignored.

        Returns
        -------
        RobustGraphCleaner
            The fitted estimator. All results appear together. If a fit fails, or if Ctrl-C ends it before the cells are
            judged, the earlier results stay.
        """
        # Entries at the end of the range are refused by the fit of what was cleaned.
        with whole_fit(self) as fresh, np.errstate(over="ignore", invalid="ignore"):
            fresh._fit(X)
        raise_if_interrupted(self.estimator_)
        return self

    def _fit(self, X) -> None:
        check_verbose(self.verbose)
        check_seed(self.random_state)
        if is_dask(X):
            X, self.sample_indices_ = rows_on_client(X, 0, most=CLIENT_ROWS)
        X = self._validate(X, reset=True)
        model = FRPCAG(random_state=0, verbose=self.verbose) if self.estimator is None else clone(self.estimator)
        seed = int(check_random_state(0 if self.random_state is None else self.random_state).randint(2**31))
        first, kind = _distinct(X)  # copies are no evidence
        with StageReport(self.verbose) as shown:
            clock = Clock(shown.lap)
            found = find_wrong_cells(
                X[first], shape=self._told_shape(X.shape[1]), seed=seed, n_jobs=self.n_jobs,
                tell=self._tell or shown.note,
            )  # fmt: skip
            clock.lap("judge")
        post, predicted, observed = found.post[kind], found.predicted[kind], ~np.isnan(X)
        flagged = (post > 0.5) & ~found.wrong_rows[kind][:, None]
        self.cleaned_: Array = _repaired(X, observed, flagged, post, predicted)
        self.outlier_probability_, self.outliers_ = post.astype(X.dtype), flagged
        self.row_outlier_probability_ = row_probability(post, observed)
        self.predicted_ = predicted.astype(X.dtype)
        self.deviation_ = X - self.predicted_
        self.feature_shape_ = found.shape
        self.scale_ = found.units.scale.copy() if found.shape is not None else _spreads(self.cleaned_)
        medians = column_medians(np.where(observed, X, 0), observed)
        self.rules_: CellRules = CellRules(found.columns, found.model, medians, row_keys(X))
        results = found.results
        self.cv_results_ = {key: _column([row[key] for row in results]) for key in (results[0] if results else ())}
        self.notes_ = found.notes
        with muted(UnitsWarning):  # the cells were judged in units of their own
            self.estimator_: FRPCAG = fit_as_far_as_possible(model, self.cleaned_)

    def fit_transform(self, X, y=None) -> Array:
        """Fit to ``X`` and return it cleaned; a Dask array lazily."""
        self.fit(X)
        return self.transform(X) if is_dask(X) else self.cleaned_.copy()

    def transform(self, X) -> Array:
        """Return rows with wrong cells repaired and missing cells filled in.

        Parameters
        ----------
        X : array-like or Dask array of shape (n_rows, n_features)
            Each row is judged on its own against the fitted data, those of a Dask array chunk by chunk, lazily. Rows of
            the training data are returned as in ``cleaned_``. A row that is wrong as a whole is returned unchanged.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
        """
        check_is_fitted(self)
        if is_dask(X):
            return map_chunks(self.transform, X, self.n_features_in_)
        X = self._validate(X, reset=False)
        out = np.empty_like(X)
        places = self.rules_.known(X)
        out[places >= 0] = self.cleaned_[places[places >= 0]]
        new = np.flatnonzero(places < 0)
        for start in range(0, len(new), CHUNK):
            rows = new[start : start + CHUNK]
            out[rows] = self._cleaned_rows(X[rows])
        return out

    def report(self, path, **more):
        """Write one self-contained HTML page about the wrong cells: words, cell map, images, tables.

        Parameters
        ----------
        path : path
            The file to write.
        **more
            Fields of :class:`frpcag.report.Fit` to add, such as ``title`` or ``labels`` of the samples.

        Returns
        -------
        Path
        """
        check_is_fitted(self)
        from frpcag.report import Fit, write_report

        return write_report(path, Fit.of_cleaner(self, **more))

    def _cleaned_rows(self, X: Array) -> Array:
        observed = ~np.isnan(X)
        post, predicted = self.rules_.judge(X, observed)
        wrong = row_probability(post, observed) > 0.5
        return _repaired(X, observed, (post > 0.5) & ~wrong[:, None], post, predicted)

    def _told_shape(self, p: int) -> tuple[int, int] | None:
        shape = getattr(self.estimator, "feature_shape", None)
        if shape is None:
            return None
        height, width = (int(side) for side in shape)
        if height * width != p:
            raise ValueError(
                f"feature_shape={tuple(shape)} of the estimator has {height * width} pixels, X has {p} features; pass "
                "the (height, width) of the image behind a row."
            )
        return height, width

    def _validate(self, X, *, reset: bool) -> Array:
        """Return the data as a dense array."""
        shape = getattr(X, "shape", ())
        if reset and len(shape) == 2 and all(isinstance(size, Integral) for size in shape):
            n, p = (int(size) for size in shape)
            needed = n * p * _BYTES_PER_CELL + needed_bytes(n, p)
            require_memory(needed, f"cleaning X with shape {(n, p)}", dtype=getattr(X, "dtype", None))
        X = validate_matrix(self, X, reset=reset)
        return X.toarray() if hasattr(X, "toarray") else X

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())


def _distinct(X: Array) -> tuple[Array, Array]:
    """Return the first row of each kind and the kind of every row; each row is one where few values make rows alike."""
    ties = [np.square(np.unique(column, return_counts=True)[1] / len(X)).sum() for column in X.T]
    if np.square(float(len(X))) * np.prod(ties) > 1:
        return np.arange(len(X)), np.arange(len(X))
    return distinct_rows(X)


def _spreads(X: Array) -> Array:
    """Return the mean absolute deviation of each column from its median; columns of hardly any take a typical one."""
    spread = np.abs(X - np.median(X, axis=0)).mean(axis=0, dtype=np.float64)
    typical = float(np.median(spread[spread > 0])) if (spread > 0).any() else 1.0
    return np.where(spread > 1e-6 * typical, spread, typical)


def _column(values: list) -> Array:
    """Return a column of a table of results; words stay Python's."""
    return np.array(values, dtype=object if isinstance(values[0], str) else None)


def _repaired(X: Array, observed: Array, flagged: Array, post: Array, predicted: Array) -> Array:
    """Return the rows with flagged cells moved to their prediction as far as they are believed wrong."""
    out = X.copy()
    out[~observed] = predicted[~observed]
    share = post[flagged].astype(np.float64)
    out[flagged] = (1 - share) * X[flagged] + share * predicted[flagged]
    return out
