"""Predictions of a cell from all other cells: the protocol, the graph predictor, and the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from frpcag.cells.metric import N_NEIGHBORS, Neighbors, fold_columns, robust_neighbors
from frpcag.graphs import graph_from_weights
from frpcag.linalg.lanczos import largest_eigenvalue
from frpcag.problem import Problem
from frpcag.rows import RowTerms, solve_linked
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
    n_jobs : int, optional
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
    terms: dict = field(default_factory=dict, repr=False)

    def predict(self, X: Array, observed: Array) -> Prediction:
        """Solve on the observed cells and return mean and spread of the graph neighbours of every cell in ``U``."""
        U = self.solve(X, observed)
        P, spread = np.empty_like(U), np.empty_like(U)
        for at, _, W1, W2 in self._parts():
            P[:, at], spread[:, at] = neighbor_moments(U[:, at], None, W1, W2, self.gamma1, self.gamma2)
        return Prediction(P, spread)

    def solve(self, X: Array, observed: Array, *, U0: Array | None = None) -> Array:
        """Return the clean part ``U``."""
        U = np.empty_like(X)
        for number, (at, _, W1, W2) in enumerate(self._parts()):
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

    def _parts(self):
        """Yield the columns of every fold, the others, its sample graph and its feature graph."""
        W2 = self.W2 if self.gamma2 > 0 else None
        for (at, rest), W1 in zip(fold_columns(self.folds), self.W1, strict=True):
            yield at, rest, W1, W2 if W2 is None or len(self.folds) == 1 else sp.csr_array(W2[at][:, at])


@dataclass
class ReferencePredictor:
    """Predict cells of new rows by clean rows that they are linked to, and by their columns' neighbours.

    Parameters
    ----------
    reference : ndarray of shape (n_reference, n_features)
        Clean rows; a new row is linked to the nearest few.
    metric : str
    W2, gamma1, gamma2, folds, loss, delta, n_jobs
        As in `GraphPredictor`.
    """

    reference: Array
    metric: str
    W2: sp.csr_array | None
    gamma1: float
    gamma2: float
    folds: list[Array]
    loss: str
    delta: float
    n_jobs: int | None

    def predict(self, rows: Array, observed: Array) -> Prediction:
        """Return what linked rows and neighbouring columns say of every cell; each row on its own."""
        P, spread = np.empty_like(rows), np.empty_like(rows)
        for at, rest in fold_columns(self.folds):
            near = robust_neighbors(
                self.reference[:, rest], n_neighbors=N_NEIGHBORS, metric=self.metric,
                queries=(np.ascontiguousarray(rows[:, rest]), np.ascontiguousarray(observed[:, rest])),
                n_jobs=self.n_jobs,
            )  # fmt: skip
            links, known = new_row_links(near, len(self.reference)), self.reference[:, at]
            pull = (links @ known).astype(rows.dtype)
            terms = RowTerms(self.loss, self.delta)
            total, degree = self.gamma1 * pull, np.full((1, 1), self.gamma1, rows.dtype)
            squares = self.gamma1 * (links @ np.square(known)).astype(rows.dtype)
            if self.W2 is not None and self.gamma2 > 0:
                W = self.W2 if len(self.folds) == 1 else sp.csr_array(self.W2[at][:, at])
                L2 = graph_from_weights(W, laplacian="combinatorial").laplacian
                terms = replace(terms, L2=L2, gamma2=self.gamma2, lmax2=2 * float(L2.diagonal().max()))
                W = (self.gamma2 * W).astype(rows.dtype)
            U = solve_linked(
                np.where(observed[:, at], rows[:, at], np.nan).astype(rows.dtype), terms,
                pull=np.full(len(rows), self.gamma1), middle=pull, n_jobs=self.n_jobs,
            )  # fmt: skip
            if terms.L2 is not None:
                total, squares = total + (W @ U.T).T, squares + (W @ np.square(U).T).T
                degree = degree + W.sum(axis=1).astype(rows.dtype)[None]
            # Without any weight, as in constant data, the linked rows speak alone.
            alone = degree <= 0
            degree = np.where(alone, 1, degree)
            P[:, at] = np.where(alone, pull, total / degree)
            spread[:, at] = np.where(alone, 0, np.sqrt(np.clip(squares / degree - np.square(P[:, at]), 0, None)))
        return Prediction(P, spread)


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
    used = list(zip(weights, predictions, strict=True))
    values: Array = sum(w * P.values for w, P in used)
    spread: Array = sum(w * (P.spread + np.abs(P.values - values)) for w, P in used)
    return Prediction(values, spread)
