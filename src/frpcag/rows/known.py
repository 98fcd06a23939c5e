"""Right cells of new rows told from wrong ones by the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Index, Metric, find_metric
from frpcag.rows.explain import FARTHEST, CellModel, Repeats, coarser_eps, explain_rows, repeat_rates, same_cells

Array = np.ndarray

# Training entries this many times the mean |X - U| off their clean part take no part in the directions.
_STANDS_OUT = 6.0
# Training rows that directions and rates are taken from, and of these the part that is held out, at most so many.
_SOME, _HELD_OUT, _MOST_HELD_OUT = 4000, 5, 150
# Hidden cells of held-out rows; ranks that predict them; the gain that another rank must bring.
_HIDDEN, _RANKS, _GAIN = 0.25, (1, 2, 4, 8, 16, 32, 64, 96), 0.01
# Right rows of training data repeat values, too: rows that do it no more than this share of them are left alone.
_USUAL = 0.25
# Values that this share of the training cells hold, and how near an equal value must be, relative to the largest.
_COMMON, _MOST_COMMON, _EQUAL = 0.002, 32, 1e-6
# A repeat is a value in this share of a row's cells, and in three of them.
_REPEATED = 0.02
# Shares of a prediction that the clean rows near a row can have.
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


class Seen(NamedTuple):
    """What the training rows say of others.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Centred and scaled; NaN is missing.
    predicted, wrong : ndarray of the same shape
        What each cell should be, centred and scaled, and the probability that it is wrong; 1 where it is missing.
    first : ndarray of shape (n_rows,)
        The nearest training row.
    known : bool ndarray of shape (n_rows,)
        Whether the row is that training row.
    """

    rows: Array
    predicted: Array
    wrong: Array
    first: Array
    known: Array

    @property
    def repaired(self) -> Array:
        """The rows with wrong and missing cells as predicted."""
        return np.where(
            self.wrong < 1, (1 - self.wrong) * np.nan_to_num(self.rows) + self.wrong * self.predicted, self.predicted
        )


class KnownRows:
    """Training rows, prepared to tell right cells of other rows from wrong ones.

    A row is explained by principal directions of the training rows, their number chosen by held-out cells, with wrong
    cells set apart (`frpcag.rows.explain`). A cell is wrong if it lies where no right cell would, or if the row repeats
    one value more often than the training rows near it do.

    Parameters
    ----------
    X, U : ndarray of shape (n_samples, n_features)
        Training rows, missing entries as predicted, and their clean part, in the units of the data.
    center, scale : ndarray of shape (n_features,)
        What is subtracted from rows and what they are divided by.
    metric : str
        What rows are near by; Euclidean rows are near by truncated differences, which wrong cells cannot mislead.
    n_neighbors : int
    n_jobs : int, optional
    """

    def __init__(
        self, X: Array, U: Array, *, center: Array, scale: Array, metric: str, n_neighbors: int, n_jobs: int | None
    ) -> None:
        self.center, self.scale, self.n_jobs, self.U, self.X = center, scale, n_jobs, U, X
        solved, clean = ((rows - center) / scale for rows in (X, U))
        self.least = max(3, int(_REPEATED * X.shape[1]))
        self.metric: Metric = find_metric("truncated" if metric == "euclidean" else metric, solved, n_jobs=n_jobs)
        self.n_neighbors = min(n_neighbors, len(X))
        self.near_share = 0.0
        self._index = Index(solved, self.metric, random_state=0, n_jobs=n_jobs)
        step = -(-len(X) // _SOME)
        off = np.abs(solved[::step] - clean[::step])
        right = np.where(off > _STANDS_OUT * off.mean(dtype=np.float64), clean[::step], solved[::step])
        self.level = right.mean(axis=0, dtype=np.float64)  # rows need not be centred
        self.unit = float(np.abs(right - self.level).mean()) or 1.0
        right = self._in_units(right)
        tol = _EQUAL * float(np.abs(X).max(initial=0.0))
        self.training = Repeats(X, tol, *_common_values(X[::step], tol))
        rank = self._learn(right, X[::step], ranks=_RANKS)
        # Of what stood out, only that which no direction explains stays out.
        rows = self._in_units(solved[::step])
        centred, seen = rows - self.mean, np.ones(rows.shape, np.float32)
        said = explain_rows(self.model, centred, seen, -seen, n_jobs=n_jobs)
        right = np.where(said.wrong > 0.5, said.values + self.mean, rows)
        self._learn(right, X[::step], ranks=[one for one in _RANKS if rank <= 4 * one <= 8 * rank])

    def _learn(self, right: Array, given: Array, *, ranks: Sequence[int]) -> int:
        """Choose the rank by hidden cells of held-out rows, learn how far off right cells are, and return the rank."""
        n = len(right)
        held = np.arange(n) % _HELD_OUT == _HELD_OUT - 1
        if n < 4 * _HELD_OUT:
            held[:] = False
        self.mean, directions, variances = _directions(right[~held])
        span = float(right.max() - right.min()) or 1.0
        rows = right[held][:: max(1, -(-int(held.sum()) // _MOST_HELD_OUT))]
        if not len(rows):
            rest = np.abs(right - right.mean(axis=0)).mean(dtype=np.float64) or 1.0
            rank = min(1, directions.shape[1])
            self.mean, directions, variances = _directions(right)
            self.model = _model(directions, variances, rank, np.full(right.shape[1], 1.25 * rest), span)
            return rank
        # A generator of its own: a seed that someone else used may have chosen the very cells that are wrong.
        hidden = np.random.Generator(np.random.SFC64(2016)).random(rows.shape) < _HIDDEN
        hidden &= ~hidden.all(axis=1, keepdims=True)
        seen = (~hidden).astype(np.float32)
        shown, nothing = np.where(hidden, 0, rows - self.mean).astype(np.float32), np.full(rows.shape, -1, np.float32)
        scale, best, worse = _spread(rows - self.mean, hidden), None, 0
        for rank in (0, *ranks):
            if rank > directions.shape[1]:
                break
            for _ in range(2 if rank else 1):
                model = _model(directions, variances, rank, scale, span)
                said = explain_rows(model, shown, seen, nothing, n_jobs=self.n_jobs)
                off = rows - self.mean - said.values
                scale = _spread(off, hidden)
            error = float(np.abs(off[hidden]).mean(dtype=np.float64)) if hidden.any() else 0.0
            if best is None or error < (1 - _GAIN) * best[0]:
                best, worse = (error, rank, scale), 0
            else:
                worse += 1
            if worse == 2:
                break
        assert best is not None
        _, rank, scale = best
        self._calibrate(directions, variances, rank, scale, span, shown, seen, given[held], rows)
        self.mean, directions, variances = _directions(right)
        self.model = _model(directions, variances, rank, scale, span, self.usual)
        return rank

    def _calibrate(self, directions, variances, rank, scale, span, shown, seen, given, rows) -> None:
        """Learn which share of right rows looks wrong, and how much the near rows know beyond the directions."""
        step = max(1, -(-len(given) // _MOST_HELD_OUT))
        given = np.where(seen > 0, given[::step], np.nan)
        near = self._near(self.solved(given), skip_first=True)
        rate = self._repeats(given, *near)
        said = explain_rows(_model(directions, variances, rank, scale, span), shown, seen, rate, n_jobs=self.n_jobs)
        if (hidden := seen == 0).any():
            off, around = rows - self.mean, self._in_units(self._around(*near)) - self.mean
            errors = [np.abs((1 - a) * said.values + a * around - off)[hidden].mean() for a in _SHARES]
            self.near_share = _SHARES[int(np.argmin(errors))]
        count = np.maximum(seen.sum(axis=1), 1)
        same = rate >= 0
        any_share, same_share = ((said.wrong * which).sum(axis=1) / count for which in (~same, same))
        self.usual = (float(np.median(any_share)), _USUAL * float(np.median(same_share)))

    def look(self, rows: Array) -> Seen:
        """Return what the training rows say of others.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            In the units of the data; NaN is missing.
        """
        eps = coarser_eps(rows.dtype, self.X.dtype)
        rows = rows.astype(np.result_type(rows, self.X), copy=False)
        solved = self.solved(rows)
        near = self._near(solved)
        seen = ~np.isnan(solved)
        Z = np.nan_to_num(self._in_units(solved) - self.mean, copy=False, nan=0.0)
        said = explain_rows(self.model, Z, seen.astype(np.float32), self._repeats(rows, *near), n_jobs=self.n_jobs)
        # In float64: the unit of extreme data is not in the range of float32.
        predicted = (said.values + self.mean).astype(np.float64) * self.unit + self.level
        if self.near_share > 0:
            predicted = (1 - self.near_share) * predicted + self.near_share * self._around(*near)
        first = near[0][:, 0]
        wrong = np.where(seen, said.wrong, np.float32(1))
        with np.errstate(over="ignore"):
            predicted = predicted.astype(solved.dtype, copy=False)
            known = (same_cells(rows, self.X[first], self.U[first], eps) | ~seen).all(axis=1)
        return Seen(solved, predicted, wrong, first, known)

    def clean(self, rows: Array, *, keep: bool) -> Array:
        """Return rows with wrong and missing cells as predicted; without ``keep`` all cells are.

        Parameters
        ----------
        rows : ndarray of shape (n_rows, n_features)
            In the units of the data; NaN is missing. A training row gets its clean part.
        keep : bool
            Whether right cells stay as they are.
        """
        seen = self.look(rows)
        wrong = seen.wrong.astype(np.float64) if keep else 1.0
        with np.errstate(over="ignore"):  # a cell at the end of the range is wrong, and has no weight
            predicted = seen.predicted.astype(np.float64) * self.scale + self.center
        out = np.where(seen.wrong < 1, (1 - wrong) * np.nan_to_num(rows) + wrong * predicted, predicted)
        out = out.astype(rows.dtype, copy=False)
        out[seen.known] = self.U[seen.first[seen.known]]
        return out

    def solved(self, rows: Array) -> Array:
        """Return rows centred and scaled as for the solve."""
        with np.errstate(over="ignore"):
            return (rows - self.center) / self.scale

    def _in_units(self, solved: Array) -> Array:
        """Return rows about their level in mean deviations, as float32: it holds their squares."""
        with np.errstate(over="ignore"):
            return np.clip((solved - self.level) / self.unit, -FARTHEST, FARTHEST).astype(np.float32)

    def _near(self, solved: Array, *, skip_first: bool = False) -> tuple[Array, Array]:
        """Return the training rows near each row and their weights, sum one."""
        k = min(self.n_neighbors + skip_first, len(self.X))
        indices, distances = (part[:, k - self.n_neighbors :] for part in self._index.query(solved, k))
        width = np.maximum(distances.mean(axis=1, keepdims=True), 1e-300)
        weights = np.exp(-np.square(distances / width))
        return indices, (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)

    def _around(self, near: Array, weights: Array) -> Array:
        """Return the weighted mean of the clean rows near each row, centred and scaled."""
        m, k = near.shape
        links = sp.csr_array((weights.ravel(), near.ravel(), np.arange(0, m * k + 1, k)), shape=(m, len(self.U)))
        return self.solved(links.astype(self.U.dtype) @ self.U)

    def _repeats(self, rows: Array, near: Array, weights: Array) -> Array:
        """Return how often right cells hold the value that a row repeats, where it does; -1 elsewhere."""
        return repeat_rates(rows, near, weights, self.training, least=self.least)


def _model(directions, variances, rank: int, scale, span: float, usual=(0.0, 0.0)) -> CellModel:
    B = np.ascontiguousarray(directions[:, :rank])
    return CellModel(B, (1 / variances[:rank]).astype(np.float32), scale.astype(np.float32), 1 / span, usual)


def _directions(rows: Array) -> tuple[Array, Array, Array]:
    """Return mean, principal directions and the variances along them, those that are not rounding."""
    n, p = rows.shape
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    centred = rows - mean
    wide = p > n
    values, vectors = np.linalg.eigh((centred @ centred.T if wide else centred.T @ centred).astype(np.float64))
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = min(_RANKS[-1], max(1, n // 2), max(1, 2 * p // 3), int((values > 1e-6 * max(values[0], 1e-300)).sum()))
    values, vectors = values[:kept], vectors[:, :kept]
    B = centred.T @ (vectors / np.sqrt(values)) if wide else vectors
    return mean, B.astype(np.float32), values / n


def _spread(off: Array, hidden: Array) -> Array:
    """Return the scale of hidden residuals by column, drawn towards that of all."""
    sizes = np.where(hidden, np.abs(off), 0)
    typical = float(sizes.sum(dtype=np.float64) / max(hidden.sum(), 1)) + 1e-3
    column = (sizes.sum(axis=0, dtype=np.float64) + 5 * typical) / (hidden.sum(axis=0) + 5)
    return 1.25 * np.maximum(column, 0.3 * typical)


def _common_values(X: Array, tol: float) -> tuple[Array, Array]:
    """Return values that many entries hold, and the share of each column that holds them."""
    some = X[:: max(1, len(X) // 400)].ravel()
    if not tol > 0:
        return np.zeros(1), np.ones((1, X.shape[1]), np.float32)
    values, counts = np.unique(np.round(some / tol), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_COMMON]
    common = values[order[counts[order] >= max(3, _COMMON * some.size)]] * tol
    rates = np.array([(np.abs(X - v) <= tol).mean(axis=0) for v in common], np.float32)
    return common, rates.reshape(len(common), X.shape[1])
