"""Many gammas on one data set: a warm-started path, and the choice of gammas by held-out entries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from frpcag.data.preprocess import center_and_scale, restore, validate_matrix
from frpcag.estimator import FRPCAG
from frpcag.memory import require_memory_for
from frpcag.problem import Problem, scale_free_gamma
from frpcag.solvers import Solution, solve

Array = np.ndarray

# Multiples of the scale-free gammas that are tried when none are given.
MULTIPLES = (0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One pair of gammas and its certified solution; ``solution.U`` is the clean part of the data as given."""

    gamma1: float
    gamma2: float
    solution: Solution


def regularization_path(
    X: Array,
    gammas1: Sequence[float],
    gammas2: Sequence[float],
    *,
    center: bool = True,
    scale: bool = False,
    n_neighbors: int = 10,
    sample_graph="auto",
    feature_graph="auto",
    laplacian: str = "normalized",
    loss: str = "l1",
    tol: float = 1e-3,
    max_iter: int = 500,
    random_state=None,
    n_jobs: int | None = None,
) -> Iterator[PathPoint]:
    """Solve for every pair of gammas, each from the solution of a neighbouring pair.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data; NaN is missing.
    gammas1, gammas2 : sequence of float
        The paper's gammas on the centred and scaled data. All pairs are visited, rows of the grid to and fro.
    center, scale, n_neighbors, sample_graph, feature_graph, laplacian, loss, tol, max_iter, random_state, n_jobs
        As in :class:`~frpcag.FRPCAG`. The graphs are built once.

    Yields
    ------
    PathPoint
        One at a time, so that only one solution need be in memory.

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
    require_memory_for(X, n_neighbors)
    X = validate_matrix(FRPCAG(), X, reset=True)
    Xc, mean, std = center_and_scale(X, center=center, scale=scale)
    model = FRPCAG(n_neighbors=n_neighbors, laplacian=laplacian, random_state=random_state, n_jobs=n_jobs)
    G1, G2 = (model._graph(Xc, axis, method) for axis, method in enumerate((sample_graph, feature_graph)))
    for point in _walk(Xc, G1, G2, gammas1, gammas2, loss=loss, tol=tol, max_iter=max_iter, n_jobs=n_jobs):
        U = restore(point.solution.U.copy(), mean, std)
        yield replace(point, solution=replace(point.solution, U=U))


def _walk(X: Array, G1, G2, gammas1, gammas2, *, loss: str, delta: float = 1.0, **options) -> Iterator[PathPoint]:
    """Visit the grid row by row, to and fro, so that each solve starts from a neighbour's solution."""
    U = None
    parts = {}
    for index, G in enumerate((G1, G2), start=1):
        parts[f"L{index}"] = None if G is None else G.laplacian
        parts[f"null{index}"] = None if G is None else G.null_vector
    for row, gamma1 in enumerate(gammas1):
        for gamma2 in gammas2 if row % 2 == 0 else reversed(gammas2):
            problem = Problem(X, gamma1=gamma1, gamma2=gamma2, loss=loss, delta=delta, **parts)
            solution = solve(problem, U0=U, **options)
            U = solution.U
            yield PathPoint(float(gamma1), float(gamma2), solution)


def _check_weights(name: str, values) -> None:
    """Raise ValueError unless these are some finite numbers >= 0."""
    numbers = isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, str)
    if not numbers or len(values) == 0 or not all(isinstance(v, Real) and 0 <= float(v) < np.inf for v in values):
        raise ValueError(f"{name}={values!r} must be a sequence of finite numbers >= 0, at least one.")


class FRPCAGCV(FRPCAG):
    """FRPCAG with gammas chosen without labels: those that predict held-out entries best.

    A share of the observed entries is hidden, graphs are built and the problem solved without them over a grid of
    gammas, warm-started; the pair with the smallest mean absolute error on the hidden entries is then used on all
    data. Absolute errors, because hidden entries may themselves be corrupted. Right for filling in missing values. For
    gross errors that nobody marked, and for clusters, which want more smoothing than prediction does, start with the
    automatic gammas of :class:`FRPCAG`.

    Parameters
    ----------
    n_components : int or float, optional
        As in :class:`FRPCAG`, like all parameters not listed here.
    multiples1, multiples2 : sequence of float, default=(0.03, 0.1, 0.3, 1, 3)
        Grid of gammas, as multiples of the scale-free ones (``gamma="auto"`` of :class:`FRPCAG`).
    holdout : float, default=0.1
        Share of the observed entries that are hidden.

    Attributes
    ----------
    cv_results_ : dict of str to ndarray
        ``gamma1``, ``gamma2``, ``multiple1``, ``multiple2``, ``error`` (mean absolute error on the hidden entries, in
        centred and scaled units) and ``gap`` of every pair.
    best_index_ : int or None
        Row of ``cv_results_`` that was chosen. None, with empty ``cv_results_`` and the scale-free gammas, when there
        are too few data to hide any.

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
        n_components=None,
        *,
        multiples1: Sequence[float] = MULTIPLES,
        multiples2: Sequence[float] = MULTIPLES,
        holdout: float = 0.1,
        n_neighbors: int = 10,
        sample_graph="auto",
        feature_graph="auto",
        sigma: str | float = "auto",
        laplacian: str = "normalized",
        loss: str = "l1",
        huber_delta: float = 1.0,
        center: bool = True,
        scale: bool = False,
        n_refine: int | str = 0,
        tol: float = 1e-3,
        max_iter: int = 500,
        stop: str = "gap",
        backend: str = "auto",
        feature_shape: tuple[int, int] | None = None,
        random_state=None,
        n_jobs: int | None = None,
        callback=None,
    ):
        self.multiples1 = multiples1
        self.multiples2 = multiples2
        self.holdout = holdout
        super().__init__(
            n_components,
            n_neighbors=n_neighbors,
            sample_graph=sample_graph,
            feature_graph=feature_graph,
            sigma=sigma,
            laplacian=laplacian,
            loss=loss,
            huber_delta=huber_delta,
            center=center,
            scale=scale,
            n_refine=n_refine,
            tol=tol,
            max_iter=max_iter,
            stop=stop,
            backend=backend,
            feature_shape=feature_shape,
            random_state=random_state,
            n_jobs=n_jobs,
            callback=callback,
        )

    def fit(self, X, y=None):
        """Choose the gammas on part of the entries, then fit all of them; see :meth:`FRPCAG.fit`."""
        _check_weights("multiples1", self.multiples1)
        _check_weights("multiples2", self.multiples2)
        if not isinstance(self.holdout, Real) or not 0 < float(self.holdout) < 1:
            raise ValueError(f"holdout={self.holdout!r} must be a share in (0, 1) of the observed entries.")
        self._multiples = None
        return super().fit(X)

    def _gammas(self, Xc: Array, L1, L2) -> tuple[float, float]:
        if self._multiples is None:  # refinements keep the first choice
            self._multiples = self._search(Xc)
        m1, m2 = self._multiples
        return m1 * scale_free_gamma(L1, Xc, axis=0), m2 * scale_free_gamma(L2, Xc, axis=1)

    def _search(self, Xc: Array) -> tuple[float, float]:
        """Return the multiples of the scale-free gammas that predict hidden entries best."""
        Xc = Xc if isinstance(Xc, np.ndarray) else Xc.cpu().numpy()  # the search runs on the host
        hidden = self._hide(Xc)
        if not hidden.any():
            self.cv_results_, self.best_index_ = {}, None
            return 1.0, 1.0
        shown = np.where(hidden, Xc.dtype.type(np.nan), Xc)
        graphs = [
            self._graph(shown, axis, method) for axis, method in enumerate((self.sample_graph, self.feature_graph))
        ]
        units = [scale_free_gamma(G.laplacian, shown, axis=i) if G is not None else 0.0 for i, G in enumerate(graphs)]
        grids = [
            [unit * float(multiple) for multiple in multiples] if unit > 0 else [0.0]
            for unit, multiples in zip(units, (self.multiples1, self.multiples2), strict=True)
        ]
        options = {"tol": self.tol, "max_iter": self.max_iter, "n_jobs": self.n_jobs}
        results: dict[str, list[float]] = {name: [] for name in ("gamma1", "gamma2", "error", "gap")}
        with warnings.catch_warnings():
            # cv_results_ has the gap of every pair; only the last fit need reach it.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for point in _walk(shown, *graphs, *grids, loss=self.loss, delta=self.huber_delta, **options):
                error = float(np.mean(np.abs(Xc - point.solution.U)[hidden]))
                for name, value in zip(results, (point.gamma1, point.gamma2, error, point.solution.gap), strict=True):
                    results[name].append(value)
        self.cv_results_ = {name: np.array(values) for name, values in results.items()}
        for i, unit in enumerate(units, start=1):
            self.cv_results_[f"multiple{i}"] = self.cv_results_[f"gamma{i}"] / (unit if unit > 0 else 1.0)
        self.best_index_ = int(np.argmin(self.cv_results_["error"]))
        best1, best2 = (float(self.cv_results_[f"multiple{i}"][self.best_index_]) for i in (1, 2))
        return best1, best2

    def _hide(self, Xc: Array) -> Array:
        """Return a random share of the observed entries, never the last one of a row or column."""
        seen = ~np.isnan(Xc)
        # A generator of another kind: numbers drawn from the same seed may have chosen what is missing.
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        hidden = seen & (rng.random(Xc.shape) < self.holdout)
        hidden[(seen & ~hidden).sum(axis=1) == 0] = False
        hidden[:, (seen & ~hidden).sum(axis=0) == 0] = False
        return hidden
