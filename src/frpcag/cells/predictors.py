"""Predictions of a cell from all other cells: the protocol, the graph predictor, and the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from frpcag.cells.metric import Neighbors, robust_neighbors
from frpcag.graphs import graph_from_weights
from frpcag.linalg.lanczos import largest_eigenvalue
from frpcag.problem import Problem
from frpcag.runtime.warn import muted
from frpcag.solvers import solve

Array = np.ndarray

# Shares of the weight that a stack hands out.
STEP = 0.25
# Errors of held-out cells count up to this many standard deviations of the data: a held-out cell may itself be wrong.
CAP = 1.5


class Prediction(NamedTuple):
    """A value for every cell that does not use the cell itself, and how far the values behind it disagree."""

    values: Array
    spread: Array


class Predictor(Protocol):
    """Anything that predicts cells from other cells.

    ``fit(X, observed)`` learns from the observed cells and returns a Prediction for all of them, observed or not;
    ``predict(rows, observed)`` does the same for new rows.
    """

    def fit(self, X: Array, observed: Array) -> Prediction: ...

    def predict(self, rows: Array, observed: Array) -> Prediction: ...


@dataclass
class GraphPredictor:
    """Predict a cell by its neighbours in both graphs, on the clean part ``U`` of the data.

    Parameters
    ----------
    W1 : list of sparse array of shape (n_samples, n_samples)
        Weights of the sample graph, one for each fold of columns.
    W2 : sparse array of shape (n_features, n_features) or None
        Weights of the feature graph.
    gamma1, gamma2 : float
        Weights of the two terms; one of them may be 0.
    folds : list of ndarray of int
        The columns that each sample graph predicts.
    loss : {"l1", "huber", "l2"}
    delta : float
        Huber's.
    max_iter, tol : int and float
        Of the solver; predictions need no tight certificate.
    reference : ndarray of shape (n_reference, n_features), optional
        Clean rows that new rows are linked to, ``n_neighbors`` each, by the metric.
    terms : dict, optional
        Laplacians with their largest eigenvalues, by graph; predictors on the same graphs may share one.
    """

    W1: list[sp.csr_array]
    W2: sp.csr_array | None
    gamma1: float
    gamma2: float
    folds: list[Array]
    loss: str = "l1"
    delta: float = 1.0
    max_iter: int = 100
    tol: float = 3e-3
    n_jobs: int | None = None
    reference: Array | None = None
    metric: str = "l1"
    n_neighbors: int = 5
    terms: dict = field(default_factory=dict, repr=False)

    def fit(self, X: Array, observed: Array, *, U0: Array | None = None) -> Prediction:
        """Solve on the observed cells and return the prediction of the neighbours in ``U``."""
        self.U_ = self.solve(X, observed, U0=U0)
        return self.neighbors_of(self.U_)

    def solve(self, X: Array, observed: Array, *, U0: Array | None = None) -> Array:
        """Return the clean part ``U``."""
        U = np.empty_like(X)
        for number, (fold, W1, W2) in enumerate(self._parts()):
            at = fold if len(self.folds) > 1 else slice(None)
            seen = observed[:, at]
            if not seen.any():
                U[:, at] = 0
                continue
            given = X[:, at] if seen.all() else np.where(seen, X[:, at], np.nan).astype(X.dtype)
            (L1, lmax1), (L2, lmax2) = self._term(W1, id(W1)), self._term(W2, (id(self.W2), number))
            problem = Problem(
                given, L1, L2, self.gamma1, self.gamma2, loss=self.loss, huber_delta=self.delta, lmax1=lmax1,
                lmax2=lmax2,
            )  # fmt: skip
            start = None if U0 is None else U0[:, at].copy()
            with muted(ConvergenceWarning):
                U[:, at] = solve(problem, tol=self.tol, max_iter=self.max_iter, U0=start, n_jobs=self.n_jobs).U
        return U

    def _term(self, W: sp.csr_array | None, key) -> tuple[sp.csr_array | None, float | None]:
        """Return the Laplacian of a graph and its largest eigenvalue, computed once."""
        if W is None:
            return None, None
        if key not in self.terms:
            L = graph_from_weights(W, laplacian="combinatorial").laplacian
            self.terms[key] = (L, largest_eigenvalue(L), W)  # W stays alive, and its id with it
        return self.terms[key][:2]

    def neighbors_of(self, U: Array) -> Prediction:
        """Return mean and spread of the graph neighbours of every cell, the cell itself left out."""
        P, spread = np.empty_like(U), np.empty_like(U)
        for fold, W1, W2 in self._parts():
            at = fold if len(self.folds) > 1 else slice(None)
            P[:, at], spread[:, at] = neighbor_moments(U[:, at], None, W1, W2, self.gamma1, self.gamma2)
        return Prediction(P, spread)

    def _parts(self):
        """Yield columns, sample graph and feature graph of every fold."""
        W2 = self.W2 if self.gamma2 > 0 else None
        for fold, W1 in zip(self.folds, self.W1, strict=True):
            yield fold, W1, W2 if W2 is None or len(self.folds) == 1 else sp.csr_array(W2[fold][:, fold])

    def predict(self, rows: Array, observed: Array) -> Prediction:
        """Link new rows to the reference rows and return what their neighbours say; each row on its own."""
        assert self.reference is not None, "fit first and set the reference rows"
        P, spread = np.empty_like(rows), np.empty_like(rows)
        for fold, _, W2 in self._parts():
            few = len(self.folds) > 1
            at = fold if few else slice(None)
            rest = np.setdiff1d(np.arange(rows.shape[1]), fold) if few else slice(None)
            near = robust_neighbors(
                self.reference[:, rest], n_neighbors=self.n_neighbors, metric=self.metric,
                queries=(np.ascontiguousarray(rows[:, rest]), np.ascontiguousarray(observed[:, rest])),
                n_jobs=self.n_jobs,
            )  # fmt: skip
            links = new_row_links(near, len(self.reference))
            known = self.reference[:, at]
            pull = (links @ known).astype(rows.dtype)
            U = self._settle(rows[:, at], observed[:, at], pull, W2)
            total, degree = self.gamma1 * pull, np.full((1, 1), self.gamma1, rows.dtype)
            squares = self.gamma1 * (links @ np.square(known)).astype(rows.dtype)
            if W2 is not None:
                W = sp.csr_array(self.gamma2 * W2, dtype=rows.dtype)
                total = total + (W @ U.T).T
                squares = squares + (W @ np.square(U).T).T
                degree = degree + W.sum(axis=1).astype(rows.dtype)[None]
            # Without any weight, as in constant data, the linked rows speak alone.
            alone = degree <= 0
            degree = np.where(alone, 1, degree)
            P[:, at] = np.where(alone, pull, total / degree)
            spread[:, at] = np.where(alone, 0, np.sqrt(np.clip(squares / degree - np.square(P[:, at]), 0, None)))
        return Prediction(P, spread)

    def _settle(self, rows: Array, observed: Array, pull: Array, W2: sp.csr_array | None) -> Array:
        """Return the clean part ``u`` of new rows: ``min phi(x - u) + gamma1 |u - pull|^2 + gamma2 u' L2 u``."""
        slope = 2 * self.gamma1
        if W2 is not None:
            W = sp.csr_array(W2, dtype=rows.dtype)
            degree = W.sum(axis=1).astype(rows.dtype)
            slope += 4 * self.gamma2 * float(degree.max())
        step = 1 / max(slope, 1e-30)
        U, Y, t = pull, pull, 1.0
        for _ in range(self.max_iter):
            G = 2 * self.gamma1 * (Y - pull)
            if W2 is not None:
                G = G + 2 * self.gamma2 * (degree * Y - (W @ Y.T).T)
            Z = Y - step * G
            d = Z - rows
            if self.loss == "l2":
                moved = d / (1 + 2 * step)
            elif self.loss == "l1":
                moved = np.sign(d) * np.clip(np.abs(d) - step, 0, None)
            else:
                moved = d - np.clip(d / (self.delta + step), -1, 1) * step
            nxt = np.where(observed, rows + moved, Z).astype(rows.dtype)
            t_next = (1 + (1 + 4 * t * t) ** 0.5) / 2
            Y, U, t = nxt + (t - 1) / t_next * (nxt - U), nxt, t_next
        return U


def new_row_links(near: Neighbors, n_reference: int) -> sp.csr_array:
    """Return weights of new rows on the reference rows, each row's sum one."""
    d = near.distances.astype(np.float64)
    finite = np.where(np.isfinite(d), d, np.nan)
    some = np.isfinite(finite).any(axis=1)
    width = np.ones(len(d))
    width[some] = np.nanmean(finite[some], axis=1)
    w = np.exp(-np.square(np.nan_to_num(finite, nan=1e6) / np.maximum(width, 1e-300)[:, None])) + 1e-12
    w /= w.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(len(d)), d.shape[1])
    return sp.csr_array((w.ravel(), (rows, near.indices.ravel())), shape=(len(d), n_reference))


def neighbor_moments(
    U: Array, observed: Array | None, W1: sp.csr_array, W2: sp.csr_array | None, gamma1: float, gamma2: float
) -> Prediction:
    """Return the weighted mean and standard deviation of each cell's graph neighbours, those observed.

    A cell without any gets the mean of all, or its own value when everything is observed.
    """
    total, squares = np.zeros_like(U), np.zeros_like(U)
    degree = np.zeros_like(U) if observed is not None else np.zeros((1, 1), U.dtype)
    seen = None if observed is None else observed.astype(U.dtype)
    V = U if observed is None else np.where(observed, U, 0)
    for gamma, W, along in ((gamma1, W1, 0), (gamma2, W2, 1)):
        if W is None or gamma <= 0:
            continue
        W = (gamma * W).astype(U.dtype)
        weighted = (lambda Z, W=W: W @ Z) if along == 0 else (lambda Z, W=W: (W @ Z.T).T)
        total += weighted(V)
        squares += weighted(np.square(V))
        if seen is not None:
            degree += weighted(seen)
        else:
            sums = W.sum(axis=1).astype(U.dtype)
            degree = degree + (sums[:, None] if along == 0 else sums[None])
    alone = degree <= 0
    degree = np.where(alone, 1, degree)
    mean = np.where(alone, U if observed is None else V.mean(), total / degree)
    spread = np.sqrt(np.clip(squares / degree - np.square(mean), 0, None)) * ~alone
    return Prediction(mean, spread)


def error_cap(X: Array, observed: Array) -> float:
    """Return how far off a prediction of a held-out cell can count: the cell itself may be wrong."""
    return CAP * float(X[observed].std(dtype=np.float64)) or 1.0


def capped_errors(predicted: Array, truth: Array, cap: float) -> Array:
    """Return squared errors, none counted beyond ``cap ** 2``."""
    return np.square(np.clip(np.abs(predicted - truth), None, cap))


def stack_weights(predictions: Sequence[Array], truth: Array, cap: float) -> tuple[Array, float]:
    """Return the non-negative weights, sum one, whose mix predicts held-out cells best, and its error.

    Parameters
    ----------
    predictions : sequence of ndarray of shape (n_cells,)
        What each predictor says of the held-out cells.
    truth : ndarray of shape (n_cells,)
        Their values.
    cap : float
        See `error_cap`.
    """
    k = len(predictions)
    if k == 1:
        return np.ones(1), float(capped_errors(predictions[0], truth, cap).mean())
    parts = round(1 / STEP)
    best = None
    for first in product(range(parts + 1), repeat=k - 1):
        if sum(first) > parts:
            continue
        shares = np.array([*first, parts - sum(first)]) * STEP
        mix = sum(w * P for w, P in zip(shares, predictions, strict=True) if w)
        error = float(capped_errors(mix, truth, cap).mean())
        if best is None or error < best[1]:
            best = (shares, error)
    assert best is not None
    return best


def mixed(predictions: Sequence[Prediction], weights: Array) -> Prediction:
    """Return the weighted prediction; its spread adds how far the predictors disagree."""
    used = [(w, P) for w, P in zip(weights, predictions, strict=True) if w > 0]
    values = sum(w * P.values for w, P in used)
    spread = sum(w * (P.spread + np.abs(P.values - values)) for w, P in used)
    return Prediction(values, spread)
