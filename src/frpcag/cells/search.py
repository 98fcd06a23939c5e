"""One search for metric, feature graph, gammas and loss: what predicts held-out cells best, wins.

Cheap questions come first: every pair of metric and feature graph runs a few steps at three pairs of gammas, the best
pair goes on to a pattern search over gammas with warm starts, and the losses are compared at the end. No label, no
tight certificate; the whole search costs a few single fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from frpcag.cells.metric import N_NEIGHBORS, Neighbors, neighbor_weights, prediction_errors
from frpcag.cells.predictors import GraphPredictor, capped_errors

Array = np.ndarray

# Pairs of multiples of the scale-free gammas that start the search, and the factor between neighbours in it.
STARTS = ((0.3, 0.3), (1.0, 0.1), (0.1, 1.0))
FACTOR = 10**0.5
COARSE_STEPS, FINE_STEPS = 25, 60
# Metrics, best by neighbour prediction, that take part.
KEPT_METRICS = 2


@dataclass(frozen=True)
class GraphSetting:
    """What a graph predictor is made from."""

    metric: str
    feature_graph: str
    gamma1: float
    gamma2: float
    loss: str = "l1"
    delta: float = 1.0


@dataclass
class HeldoutSearch:
    """Search settings of the graph predictor on hidden cells.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Centred data.
    shown, hidden : bool ndarray of the same shape
        Cells that are learnt from, and cells that are predicted.
    folds : list of ndarray of int
        Columns that share a sample graph.
    neighbors : dict of str to list of Neighbors
        Nearest rows by metric and fold, found from the shown cells alone.
    feature_graphs : dict of str to sparse array or None
        Weights of each candidate; None drops the term.
    cap : float
        See `frpcag.cells.predictors.error_cap`.
    start : GraphSetting, optional
        A setting found on much the same cells: the search is then a short walk from there.
    """

    X: Array
    shown: Array
    hidden: Array
    folds: list[Array]
    neighbors: dict[str, list[Neighbors]]
    feature_graphs: dict[str, sp.csr_array | None]
    cap: float
    start: GraphSetting | None = None
    n_jobs: int | None = None
    results: list[dict] = field(default_factory=list)

    def run(self) -> tuple[GraphSetting, Array]:
        """Return the best setting and what it predicts at the hidden cells."""
        self._weights: dict[str, list[sp.csr_array]] = {}
        self._terms: dict = {}
        self._units: dict[tuple[str, int], float] = {}
        self._best: tuple[float, GraphSetting, Array, Array] | None = None
        errors = prediction_errors(self.X, self.shown, self.folds, self.neighbors)
        metrics = sorted(errors, key=lambda metric: errors[metric])[:KEPT_METRICS]
        if self.start is not None:
            metrics = metrics[:1]
            for metric in dict.fromkeys((metrics[0], self.start.metric)):
                self._evaluate(replace(self.start, metric=metric), FINE_STEPS, None)
        for metric in metrics if self.start is None else ():
            for name, W2 in self.feature_graphs.items():
                U = None
                for m1, m2 in STARTS if W2 is not None else ((0.3, 0.0), (1.0, 0.0)):
                    U = self._try(metric, name, m1, m2, steps=COARSE_STEPS, U=U)
        assert self._best is not None
        self._pattern(self._best[1], steps=FINE_STEPS)
        first = self._best[1]
        off = float(np.abs(self.X - self._best[3])[self.shown].mean()) or 1.0
        for loss in ("l1", "huber", "l2"):
            if loss == first.loss:
                continue
            factor = (2 * off if loss == "l2" else 1.0) / (2 * off if first.loss == "l2" else 1.0)
            start = replace(first, loss=loss, delta=off, gamma1=first.gamma1 * factor,
                            gamma2=first.gamma2 * factor)  # fmt: skip
            self._evaluate(start, FINE_STEPS, None)
        if self._best[1].loss != first.loss:
            self._pattern(self._best[1], steps=FINE_STEPS)
        return self._best[1], self._best[2]

    def weights(self, metric: str) -> list[sp.csr_array]:
        """Return the sample graphs of a metric, one a fold, built once."""
        if metric not in self._weights:
            parts = self.neighbors[metric]
            self._weights[metric] = [neighbor_weights(near, n_neighbors=N_NEIGHBORS) for near in parts]
        return self._weights[metric]

    def _unit(self, name: str, W: sp.csr_array, axis: int) -> float:
        if (name, axis) not in self._units:
            X = np.where(self.shown, self.X, 0)
            self._units[name, axis] = typical_gamma(W, X if axis == 0 else X.T)
        return self._units[name, axis]

    def _try(self, metric: str, name: str, m1: float, m2: float, *, steps: int, U: Array | None) -> Array:
        W2 = self.feature_graphs[name]
        gamma1 = m1 * self._unit(metric, self.weights(metric)[0], 0)
        gamma2 = 0.0 if W2 is None else m2 * self._unit(name, W2, 1)
        return self._evaluate(GraphSetting(metric, name, gamma1, gamma2), steps, U)

    def _evaluate(self, setting: GraphSetting, steps: int, U: Array | None) -> Array:
        """Fit one setting, note its error, and return its ``U``."""
        predictor = GraphPredictor(
            self.weights(setting.metric), self.feature_graphs[setting.feature_graph], setting.gamma1, setting.gamma2,
            self.folds, loss=setting.loss, delta=setting.delta, max_iter=steps, n_jobs=self.n_jobs,
            terms=self._terms,
        )  # fmt: skip
        U = predictor.solve(self.X, self.shown, U0=U)
        at_hidden = U[self.hidden]
        error = float(capped_errors(at_hidden, self.X[self.hidden], self.cap).mean())
        self.results.append({**setting.__dict__, "steps": steps, "error": error})
        if self._best is None or error < self._best[0]:
            self._best = (error, setting, at_hidden, U)
        return U

    def _pattern(self, start: GraphSetting, *, steps: int, most: int = 10) -> None:
        """Walk over gammas in steps of `FACTOR` while a neighbour predicts better."""
        assert self._best is not None

        def error(i: int, j: int) -> float:
            assert self._best is not None
            setting = replace(start, gamma1=start.gamma1 * FACTOR**i, gamma2=start.gamma2 * FACTOR**j)
            self._evaluate(setting, steps, self._best[3])
            return self.results[-1]["error"]

        walk(error, self._best[0], both=start.gamma2 > 0, most=most)


def walk(
    error: Callable[[int, int], float], first: float, *, both: bool = True, most: int = 10, gain: float = 0.0
) -> tuple[int, int]:
    """Return the spot of a grid with the least error, found by steps to better neighbours.

    Parameters
    ----------
    error : callable
        Takes two whole numbers to the error at that spot; called once a spot.
    first : float
        The error at (0, 0), where the walk starts.
    both : bool, default=True
        Whether the second number may change, too.
    most : int, default=10
        Spots to look at, the first included.
    gain : float, default=0
        Relative gain that a step must bring. Above 0 the walk is in a hurry: the first such step is taken, and the
        next one looks the same way first.
    """
    seen, at, best = {(0, 0)}, (0, 0), first
    ways = [(1, 0), (-1, 0), (0, 1), (0, -1)] if both else [(1, 0), (-1, 0)]
    while True:
        moved = None
        for way in ways:
            spot = (at[0] + way[0], at[1] + way[1])
            if spot in seen or len(seen) >= most:
                continue
            seen.add(spot)
            if (new := error(*spot)) < (1 - gain) * best:
                best, moved = new, spot
                if gain > 0:
                    ways = [way, *(other for other in ways if other != way)]
                    break
        if moved is None:
            return at
        at = moved


def typical_gamma(W: sp.csr_array, X: Array) -> float:
    """Return ``1 / mean |2 L X|``, which makes the typical entry of the gradient at ``X`` one; rows are nodes."""
    degree = np.asarray(W.sum(axis=1)).ravel().astype(X.dtype)
    pull = degree[:, None] * X - W.astype(X.dtype) @ X
    typical = 2 * float(np.abs(pull).mean(dtype=np.float64))
    return 1 / typical if typical > 1e-12 * float(np.abs(X).mean(dtype=np.float64)) else 0.0
