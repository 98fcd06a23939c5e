"""Many gammas on one data set: a warm-started path, and a choice of gammas by held-out entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from frpcag.cells import FACTOR, canonical_order, walk
from frpcag.engines.base import UnitsWarning, in_blocks, refuse_dask, rows_on_client
from frpcag.engines.host import HostEngine
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import raise_if_interrupted, take_columns, whole_fit
from frpcag.pipeline import Prepared, prepare
from frpcag.runtime.arrays import is_dask
from frpcag.runtime.warn import muted
from frpcag.saving import SavedModel
from frpcag.solvers import Solution, SolveInterrupted

Array = np.ndarray

SEARCHES = ("grid", "walk")
# Pairs that a walk looks at, how far each is solved, and the relative gain that makes a step worth it.
MOST_PAIRS, LOOSE_STEPS, LOOSE_GAP = 12, 25, 1e-2
LEAST_GAIN = 0.01
# Missing entries lie in patches when this share of those beside a missing entry is missing, too.
PATCH, PATCH_ENTRIES = 0.7, 100
# A row keeps this share of its entries when it hides those that another one misses.
LEAST_LEFT = 0.4
# Rows of a Dask array that choose the gammas.
CLIENT_ROWS = 20_000
# Multiples of the scale-free gammas that are tried when none are given.
MULTIPLES = (0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One pair of gammas and its certified solution; ``solution.U`` is the clean part of the data as given."""

    gamma1: float
    gamma2: float
    solution: Solution


def regularization_path(
    X: Array, gammas1: Sequence[float], gammas2: Sequence[float], *, estimator: FRPCAG | None = None
) -> Iterator[PathPoint]:
    """Solve for every pair of gammas, each from the solution of a neighbouring pair.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data; NaN is missing.
    gammas1, gammas2 : sequence of float
        The paper's gammas on the centred and scaled data. All pairs are solved, row by row of the grid, in alternating
        directions.
    estimator : FRPCAG, optional
        Model that provides all other parameters; ``FRPCAG()`` by default. The graphs of ``X`` are built once.

    Yields
    ------
    PathPoint
        One point at a time, so only one solution is in memory. If the estimator's callback stops a solve, the path ends
        with its point.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import regularization_path
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> [(point.gamma1, point.solution.gap <= 1e-3) for point in regularization_path(X, [0.1, 1.0], [0.5])]
    [(0.1, True), (1.0, True)]
    """
    for name, gammas in (("gammas1", gammas1), ("gammas2", gammas2)):
        _check_weights(name, gammas)
    refuse_dask(X, "regularization_path")
    prepared = Prepared(X, HostEngine(FRPCAG() if estimator is None else clone(estimator)))
    path = _Path(prepared, prepared.graphs())
    for gammas in _pairs(gammas1, gammas2):
        yield (point := path.at(*gammas))
        if point.solution.status == "stopped":
            return


@dataclass
class _Path:
    """Pairs of gammas, each solved from the solution before."""

    prepared: Prepared
    graphs: tuple[Any, Any]
    start: Any = None

    def at(self, gamma1: float, gamma2: float) -> PathPoint:
        """Return the solution at a pair of gammas."""
        solved = self.prepared.solve(self.graphs, (gamma1, gamma2), start=self.start)
        self.start, solution = solved.solution.U, replace(solved.solution, U=solved.low_rank)
        if solution.status == "interrupted":
            raise SolveInterrupted(solution)
        return PathPoint(gamma1, gamma2, solution)


def _pairs(gammas1: Sequence[float], gammas2: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Visit a grid row by row in alternating directions, so that each solve starts from a neighbour's solution."""
    for row, gamma1 in enumerate(gammas1):
        for gamma2 in gammas2 if row % 2 == 0 else reversed(gammas2):
            yield float(gamma1), float(gamma2)


def _check_weights(name: str, values) -> None:
    """Raise ValueError unless these are some finite numbers >= 0."""
    numbers = isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, str)
    if not numbers or len(values) == 0 or not all(isinstance(v, Real) and 0 <= float(v) < np.inf for v in values):
        raise ValueError(f"{name}={values!r} must be a sequence of finite numbers >= 0, at least one.")


def _in_patches(seen: Array) -> bool:
    """Say whether what is missing lies side by side in the rows."""
    beside = ~seen[:, 1:][~seen[:, :-1]]
    return len(beside) > PATCH_ENTRIES and beside.mean() > max(PATCH, 2 * (~seen).mean())


class FRPCAGCV(SavedModel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """FRPCAG with gammas chosen without labels: those that predict held-out entries best.

    A share of the observed entries is hidden. Graphs are built without them, and the problem is solved for each pair
    of gammas, each starting from the solution before. The pair with the smallest mean absolute error on the hidden
    entries is then used on all data. The error is absolute because hidden entries may themselves be corrupted. This
    choice is meant for missing values. For unmarked gross errors, and for clusters, which need more smoothing than
    prediction, start with the automatic gammas of :class:`FRPCAG`. For a Dask array, at most 20,000 rows, on the
    client, choose the multiples of the scale-free gammas; all rows are fitted with these.

    Parameters
    ----------
    estimator : FRPCAG, optional
        The model; ``FRPCAG()`` by default. Its gammas are replaced by those chosen.
    multiples1, multiples2 : sequence of float, default=(0.03, 0.1, 0.3, 1, 3)
        Grid of gammas, as multiples of the scale-free ones (``gamma="auto"`` of :class:`FRPCAG`).
    search : {"grid", "walk"}, default="grid"
        "grid" tries all pairs. "walk" starts from the middle of both sequences and moves to better neighbours in steps
        of the square root of ten, also beyond the range of the sequences; each pair gets only a few solver steps.
        It is about ten times as fast.
    holdout : float, default=0.1
        Share of the observed entries that are hidden.
    random_state : int, RandomState or None
        Seed of the hidden entries and, if ``estimator`` is None, of the neighbour search.

    Attributes
    ----------
    estimator_ : FRPCAG
        The model, fitted to all data with the chosen gammas. Its results, such as ``low_rank_`` and ``duality_gap_``,
        are also attributes of this object.
    cv_results_ : dict of str to ndarray
        ``gamma1``, ``gamma2``, ``multiple1``, ``multiple2``, ``error`` (mean absolute error on the hidden entries, in
        centred and scaled units) and ``gap`` of every pair.
    best_index_ : int or None
        The chosen row of ``cv_results_``. If there are too few data to hide any, it is None, ``cv_results_`` is empty,
        and the gammas are the scale-free ones.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import FRPCAGCV
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(3, 20)), 20, axis=0) + 0.1 * rng.normal(size=(60, 20))
    >>> model = FRPCAGCV(multiples1=(0.1, 10.0), multiples2=(0.01, 1.0), random_state=0).fit(X)
    >>> len(model.cv_results_["error"])
    4
    """

    def __init__(
        self,
        estimator: FRPCAG | None = None,
        *,
        multiples1: Sequence[float] = MULTIPLES,
        multiples2: Sequence[float] = MULTIPLES,
        search: str = "grid",
        holdout: float = 0.1,
        random_state=None,
    ):
        self.estimator = estimator
        self.multiples1 = multiples1
        self.multiples2 = multiples2
        self.search = search
        self.holdout = holdout
        self.random_state = random_state

    def fit(self, X, y=None):
        """Choose the gammas on part of the entries, then fit all of them; see :meth:`FRPCAG.fit`."""
        _check_weights("multiples1", self.multiples1)
        _check_weights("multiples2", self.multiples2)
        if not isinstance(self.holdout, Real) or not 0 < float(self.holdout) < 1:
            raise ValueError(f"holdout={self.holdout!r} must be a share in (0, 1) of the observed entries.")
        if self.search not in SEARCHES:
            raise ValueError(f"search={self.search!r} is unknown; choose one of {', '.join(map(repr, SEARCHES))}.")
        with whole_fit(self) as fresh:
            fresh._fit(X)
        raise_if_interrupted(self.estimator_)
        return self

    def _fit(self, X) -> None:
        model = FRPCAG(random_state=self.random_state) if self.estimator is None else clone(self.estimator)
        model.set_params(gamma1="auto", gamma2="auto")
        model._fit(X, multiples=self._search(X, clone(model)))
        self.estimator_ = model.set_params(gamma1=model.gamma1_, gamma2=model.gamma2_)
        take_columns(self, model)

    def _search(self, X, model: FRPCAG) -> tuple[float, float]:
        """Return the multiples of the scale-free gammas that predict hidden entries best."""
        if is_dask(X) or in_blocks(model):
            seed = check_random_state(self.random_state).randint(2**31)
            X, model = rows_on_client(X, seed, most=CLIENT_ROWS)[0], model.set_params(backend="auto")
        with muted(UnitsWarning):  # the fit that follows says it
            prepared = prepare(X, model)
        Xc = prepared.engine.as_array(prepared.data)
        hidden = self._hide(Xc)
        if not hidden.any():
            self.cv_results_, self.best_index_ = {}, None
            return 1.0, 1.0
        # The search runs on the host, on centred and scaled data.
        model.set_params(center=False, scale=False, nonnegative=False, backend="auto", n_refine=0, callback=None)
        if self.search == "walk":
            model.set_params(tol=LOOSE_GAP, max_iter=LOOSE_STEPS, stop="gap")
        prepared = Prepared(np.where(hidden, Xc.dtype.type(np.nan), Xc), HostEngine(model))
        path = _Path(prepared, prepared.graphs())
        units = prepared.gammas(path.graphs, ("auto", "auto"))
        results: dict[str, list[float]] = {name: [] for name in ("gamma1", "gamma2", "error", "gap")}

        def error(gamma1: float, gamma2: float) -> float:
            solution = path.at(gamma1, gamma2).solution
            found = float(np.mean(np.abs(Xc - solution.U)[hidden]))
            for name, value in zip(results, (gamma1, gamma2, found, solution.gap), strict=True):
                results[name].append(value)
            return found

        with muted(ConvergenceWarning):  # cv_results_ has the gap of every pair; only the last fit need reach it
            self._look(error, units)
        self.cv_results_ = {name: np.array(values) for name, values in results.items()}
        for i, unit in enumerate(units, start=1):
            self.cv_results_[f"multiple{i}"] = self.cv_results_[f"gamma{i}"] / (unit if unit > 0 else 1.0)
        self.best_index_ = int(np.argmin(self.cv_results_["error"]))
        best1, best2 = (float(self.cv_results_[f"multiple{i}"][self.best_index_]) for i in (1, 2))
        return best1, best2

    def _look(self, error: Callable[[float, float], float], units: tuple[float, float]) -> None:
        """Look at the errors of pairs of gammas: of all, or on the way from the middle of the grid to the least."""
        multiples = (self.multiples1, self.multiples2)
        if self.search == "grid":
            grids = [
                [unit * float(m) for m in some] if unit > 0 else [0.0]
                for unit, some in zip(units, multiples, strict=True)
            ]
            for gammas in _pairs(*grids):
                error(*gammas)
            return
        first, second = (unit * float(np.median(m)) for unit, m in zip(units, multiples, strict=True))

        def step(i: int, j: int) -> float:
            return error(first * FACTOR**i, second * FACTOR**j)

        walk(step, step(0, 0), both=second > 0, most=MOST_PAIRS, gain=LEAST_GAIN)

    def _hide(self, Xc: Array) -> Array:
        """Return a random share of the observed entries, never the last one of a row or column.

        The choice follows from the data: it stays with an entry in every order of rows and columns. Where missing
        entries lie in patches, each row hides what some other row misses, and where patches go down the columns, what
        the row so many places above misses: patches are predicted as patches.
        """
        seen = ~np.isnan(Xc)
        rows, columns = canonical_order(Xc)
        # A generator of another kind: numbers drawn from the same seed may have chosen what is missing.
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        hidden = np.empty_like(seen)
        hidden[np.ix_(rows, columns)] = rng.random(Xc.shape) < self.holdout
        hidden &= seen
        if _in_patches(seen.T):
            hidden = seen & ~np.roll(seen, rng.integers(1, len(seen)), axis=0)
        elif _in_patches(seen):
            hidden[rows] = ~seen[rows[rng.permutation(len(seen))]]
            hidden &= seen
        if _in_patches(seen.T) or _in_patches(seen):
            hidden[(seen & ~hidden).sum(axis=1) < LEAST_LEFT * seen.sum(axis=1)] = False
            hidden[:, (seen & ~hidden).sum(axis=0) < LEAST_LEFT * seen.sum(axis=0)] = False
        hidden[(seen & ~hidden).sum(axis=1) == 0] = False
        hidden[:, (seen & ~hidden).sum(axis=0) == 0] = False
        return hidden

    def fit_transform(self, X, y=None):
        """Fit and return ``embedding_``, the training samples in the principal directions."""
        return self.fit(X).embedding_

    def report(self, path, **more):
        """Write one self-contained HTML page about the fit; see :meth:`FRPCAG.report`."""
        check_is_fitted(self)
        return self.estimator_.report(path, **more)

    def transform(self, X):
        """Clean new rows and return them in the principal directions; see :meth:`FRPCAG.transform`."""
        check_is_fitted(self)
        return self.estimator_.transform(X)

    def denoise(self, X):
        """Return new rows cleaned against the fitted samples, in the units of ``X``."""
        check_is_fitted(self)
        return self.estimator_.denoise(X)

    def inverse_transform(self, X):
        """Return the data that belong to the rows of an embedding; see :meth:`FRPCAG.inverse_transform`."""
        check_is_fitted(self)
        return self.estimator_.inverse_transform(X)

    def __getattr__(self, name: str) -> Any:
        # Results of the chosen model are results here, as `best_estimator_` of a grid search would have them.
        if name.endswith("_") and not name.startswith("_") and "estimator_" in vars(self):
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}; is it fitted?")

    @property
    def _n_features_out(self) -> int:
        return self.estimator_._n_features_out

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())
