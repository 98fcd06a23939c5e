"""The guard: flags are kept only if the cells they leave predict held-out cells better.

The judge is deliberately not robust: least squares in a low rank, in regressions between columns, and plain means over
graph neighbours. One gross error spoils its predictions of other cells, so leaving out wrong cells lowers its error by
tens of per cent. Least squares learns most from extreme cells that are right, so leaving these out raises its error. A
robust predictor would hardly show either effect.

Damage strikes rows and columns alike; natural extremes live in some of them. Where cells had been overwritten or
shifted at random, the rates of flagged cells varied by 0 to 0.4 of their mean between columns and between rows,
sampling aside; for strokes, edges and rare counts by 0.6 to 2 (docs/decisions/cleaning.md). This tells the two apart
without a look at the values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from frpcag.cells.columns import MOST_COLUMNS, ColumnPredictor
from frpcag.cells.low_rank import LowRankPredictor, column_means, top_directions
from frpcag.cells.metric import fold_columns, sample_graphs
from frpcag.cells.predictors import capped_errors, error_cap, neighbor_moments

Array = np.ndarray

# Hold-outs: fewer where each one has many cells.
HOLDOUTS = 5
MANY_CELLS = 100_000
FEW_HOLDOUTS = 2
SHARE = 0.1
RANK = 5
ROUNDS = 4
# Least relative gain on held-out cells, and least gain in standard errors, for flags to be kept.
LEAST_GAIN = 0.005
# Cells with a probability in this range are in doubt. Flags that are not even must stand apart: the gain, divided by
# the number of cells in doubt for each flagged one, must reach this.
DOUBTFUL = (0.02, 0.5)
LEAST_GAIN_PER_DOUBT = 0.05
LEAST_SIGMAS, ENOUGH_SIGMAS = 3.0, 2.0
METRIC = "l1"
MOST_BY_COLUMN, MOST_BY_ROW = 0.4, 0.5
# The rate that damage has in every column is read off from the lowest tenth of them, which lie this many standard
# deviations below it by chance; columns as far above it are normal, too.
LOWEST, BY_CHANCE = 0.1, 1.28
# A smaller base rate is that of natural extremes.
LEAST_BASE = 0.005
# Fewer flags than this, or a smaller share of the cells, say nothing.
LEAST_FLAGS, LEAST_SHARE = 50, 0.002


@dataclass(frozen=True)
class Verdict:
    """What flags do to held-out cells.

    Attributes
    ----------
    change : float
        Relative change of the held-out error; negative: better without the flagged cells.
    sigmas : float
        The same in its standard errors.
    """

    change: float
    sigmas: float

    def favours_flags(self, sigmas: float = ENOUGH_SIGMAS) -> bool:
        """Say whether the error falls by enough; two standard errors do for flags with other evidence behind them."""
        return -self.change >= LEAST_GAIN and -self.sigmas >= sigmas


@dataclass
class Judge:
    """Compare sets of cells by how well least squares on them predicts held-out cells.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    observed : bool ndarray of the same shape
    folds : list of ndarray of int
    W2 : sparse array or None
        Feature graph.
    rng : Generator
        Its own: a hold-out drawn with the numbers that made the damage would pick the damaged cells.
    """

    X: Array
    observed: Array
    folds: list[Array]
    W2: sp.csr_array | None
    rng: np.random.Generator
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        self.masks = [
            hide(self.observed, SHARE, self.rng) for _ in range(HOLDOUTS if self.X.size < MANY_CELLS else FEW_HOLDOUTS)
        ]
        self.cap = error_cap(self.X, self.observed)
        self._cache: dict[bytes, list[Array]] = {}

    def compare(self, before: Array, after: Array, *, on: Array | None = None) -> Verdict:
        """Return what leaving out the cells of ``before & ~after`` does to the prediction of held-out cells.

        ``on`` limits the held-out cells. Flags that came from residuals must be judged on all cells: those they leave
        are easy by selection. Flags that came from values alone can be judged on the cells they leave.
        """
        gains, total = [], 0.0
        for hidden, a, b in zip(self.masks, self._errors(before), self._errors(after), strict=True):
            if on is not None:
                a, b = a[on[hidden]], b[on[hidden]]
            total += float(a.mean())
            gains.append(b - a)
        d = np.concatenate(gains).astype(np.float64)
        error = float(d.std() / np.sqrt(len(d))) if len(d) else 0.0
        return Verdict(float(d.mean()) * len(gains) / max(total, 1e-300), float(d.mean()) / error if error else 0.0)

    def _errors(self, mask: Array) -> list[Array]:
        key = np.packbits(mask).tobytes()
        if key not in self._cache:
            if len(self._cache) > 3:
                self._cache.pop(next(iter(self._cache)))
            predicted = zip(self.masks, self._predict(mask), strict=True)
            self._cache[key] = [capped_errors(P[h], self.X[h], self.cap) for h, P in predicted]
        return self._cache[key]

    def _predict(self, mask: Array):
        X = self.X
        few = len(self.folds) > 1
        graphs = [] if few else sample_graphs(X, mask, self.folds, METRIC, n_jobs=self.n_jobs)
        mean = column_means(X, mask)
        start = top_directions(np.where(mask, X - mean, 0).astype(X.dtype), mask, RANK, clip=False)
        for hidden in self.masks:
            shown = mask & ~hidden
            G = sample_graphs(X, shown, self.folds, METRIC, n_jobs=self.n_jobs) if few else graphs
            parts = [self._neighbors(shown, G)]
            rank = min(RANK, max(1, min(X.shape) // 3))
            low = LowRankPredictor(rank, n_iter=ROUNDS, robust=False)
            parts.append(low.fit(X, shown, start=None if few else start).values)
            if 1 < X.shape[1] <= MOST_COLUMNS:
                parts.append(ColumnPredictor(robust=False).fit(X, shown).values)
            yield sum(parts) / len(parts)

    def _neighbors(self, shown: Array, graphs: list[sp.csr_array]) -> Array:
        P = np.empty_like(self.X)
        W2 = self.W2 if len(self.folds) == 1 else None
        for (at, _), W1 in zip(fold_columns(self.folds), graphs, strict=True):
            P[:, at] = neighbor_moments(self.X[:, at], shown[:, at], W1, W2, 1.0, 1.0).values
        return P


def cells_in_doubt(post: Array) -> float:
    """Return how many cells are in doubt for each flagged one; large where flags are the end of a natural tail."""
    flagged = int((post > DOUBTFUL[1]).sum())
    doubtful = int((post > DOUBTFUL[0]).sum()) - flagged
    return doubtful / flagged if flagged else 0.0


def hide(observed: Array, share: float, rng: np.random.Generator) -> Array:
    """Return a random share of the observed cells, never the last ones of a row or column."""
    hidden = observed & (rng.random(observed.shape) < share)
    left = observed & ~hidden
    hidden[~left.any(axis=1)] = False
    hidden[:, ~left.any(axis=0)] = False
    return hidden


def variation(hits: Array, cells: Array) -> float:
    """Return the coefficient of variation of the rates ``hits / cells``, without what sampling adds to it.

    Parameters
    ----------
    hits, cells : ndarray of shape (n_groups,)
        Counts; every group has cells.
    """
    rate = hits.sum() / cells.sum()
    # Groups count by their cells: columns at the rim of an image have few, and those are the odd ones.
    beyond = np.sum(cells * np.square(hits / cells - rate)) - len(cells) * rate * (1 - rate)
    beyond /= cells.sum()
    return float(np.sqrt(max(beyond, 0.0)) / rate) if rate > 0 else np.inf


def is_even(flags: Array, among: Array) -> bool:
    """Say whether flags are many enough to tell, and strike all columns and all rows at about the same rate.

    Parameters
    ----------
    flags, among : bool ndarray of shape (n_samples, n_features)
        Flagged cells, and the cells that could have been flagged.
    """
    if flags.sum() < max(LEAST_FLAGS, LEAST_SHARE * among.sum()):
        return False
    for axis, most in ((0, MOST_BY_COLUMN), (1, MOST_BY_ROW)):
        hits, cells = flags.sum(axis=axis), among.sum(axis=axis)
        if variation(hits[cells > 0], cells[cells > 0]) > most:
            return False
    return True


def damage_share(flags: Array, among: Array) -> Array:
    """Return the share of each column's flags that is damage: its base rate over its own.

    Damage strikes all columns at one rate, natural extremes come on top of it in some. The base rate is that of the
    columns with the fewest flags; where even those have none, or hardly any, nothing is damage.

    Parameters
    ----------
    flags, among : bool ndarray of shape (n_samples, n_features)
        Flagged cells, and the cells that could have been flagged.
    """
    hits, cells = flags.sum(axis=0), np.maximum(among.sum(axis=0), 1)
    low = float(np.quantile(hits / cells, LOWEST))
    # low = base - BY_CHANCE sqrt(base / cells), solved for the base
    chance = BY_CHANCE / np.sqrt(float(np.median(cells)))
    base = ((chance + np.sqrt(chance**2 + 4 * low)) / 2) ** 2 if low > 0 else 0.0
    if base < LEAST_BASE:
        return np.zeros(len(hits))
    usual = hits <= cells * base + BY_CHANCE * np.sqrt(cells * base)
    return np.where(usual, 1.0, np.minimum(1.0, base * cells / np.maximum(hits, 1)))
