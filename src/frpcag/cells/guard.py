"""The guard: flags are kept only if the cells they leave predict held-out cells better.

The judge is deliberately not robust: least squares in a low rank, in regressions between columns, and plain means over
graph neighbours. One gross error spoils its predictions of other cells, so leaving out wrong cells lowers its error by
tens of per cent. Least squares learns most from extreme cells that are right, so leaving these out raises its error. A
robust predictor would hardly show either effect.
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
