"""The rounds of cleaning: predict every cell, judge it, leave out what is probably wrong, and look again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from frpcag.cells.columns import MOST_COLUMNS, ColumnPredictor
from frpcag.cells.evenness import damage_share, is_even
from frpcag.cells.guard import SHARE, Judge, Verdict, cells_in_doubt, hide
from frpcag.cells.low_rank import RANKS, LowRankPredictor, column_medians, top_directions
from frpcag.cells.metric import column_folds, folded_neighbors, neighbor_weights
from frpcag.cells.mixture import fit_mixture, row_probability
from frpcag.cells.occluders import Occluder, find_occluder
from frpcag.cells.overwritten import judged_groups
from frpcag.cells.predictors import (
    CAP,
    GraphPredictor,
    Prediction,
    Predictor,
    capped_errors,
    error_cap,
    mixed,
    stack_weights,
)
from frpcag.cells.repeats import WITNESSES, Repeat, common_values, equal_witnesses, find_repeats
from frpcag.cells.search import N_NEIGHBORS, GraphSetting, HeldoutSearch
from frpcag.cells.stuck import Run, drifting, find_runs, in_runs
from frpcag.cells.units import Units

Array = np.ndarray

ROUNDS = 2
MOST_RANK = 0.35
# What more than this share of the cells does is normal, however badly it is predicted.
MOST_SCATTERED = 0.45
# Data in which one value has this share of the cells are mostly that value, like counts and strokes.
ATOM = 0.2
# Missing cells lie in patches when they are this share of all, and this share of their feature neighbours is missing.
LEAST_MISSING = 0.02
PATCH = 0.7
LEAST_LEFT = 0.4
# What a round decides about cells; `repeats` and `runs` only get better and are kept.
JUDGED = ("post", "flagged", "wrong_rows", "scattered", "verdict", "suspects", "mixture", "damage", "choice")
# Fewer cells than this are not worth a second thread.
SMALL = 100_000
# Rows that rank and weights of the stack are chosen on.
RANK_ROWS = 600


@dataclass
class Choice:
    """What one round chose by held-out cells."""

    setting: GraphSetting
    rank: int
    weights: Array
    errors: dict[str, float]


@dataclass
class CellRounds:
    """Find and repair wrong cells of one matrix, already centred and in common units.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        float32; anything where it is not observed.
    observed : bool ndarray of the same shape
    feature_graphs : dict of str to sparse array or None
        Candidates; the first one also tells which features lie side by side.
    given : ndarray of the same shape
        The data as they came: repeats are exact there.
    units : Units
        What took ``given`` to ``X``.
    order : ndarray of shape (n_samples,)
        The rows as they came, one after another.
    shape : (height, width), optional
        Of the image behind a row.
    seed : int
    n_jobs : int, optional
    tell : callable, optional
        Called with every decision in words.

    Attributes
    ----------
    post : ndarray
        Probability that a cell is wrong.
    predicted : ndarray
        What each cell should be.
    flagged : bool ndarray
    wrong_rows : bool ndarray of shape (n_samples,)
    """

    X: Array
    observed: Array
    feature_graphs: dict[str, sp.csr_array | None]
    given: Array
    units: Units
    order: Array
    shape: tuple[int, int] | None = None
    seed: int = 0
    n_jobs: int | None = None
    rounds: int = ROUNDS
    tell: Callable[[str], object] | None = None
    notes: list[str] = field(default_factory=list)
    results: list[dict] = field(default_factory=list)

    def run(self) -> CellRounds:
        """Do the rounds."""
        X, observed = self.X, self.observed
        self.n_jobs = 1 if X.size < SMALL else self.n_jobs
        self.folds = column_folds(X.shape[1])
        # SFC64, not the generator behind default_rng: a seed that also made the damage gives other numbers here.
        self.rng = np.random.Generator(np.random.SFC64([self.seed, 7]))
        self.span = float(X[observed].max() - X[observed].min()) or 1.0
        self.cap = error_cap(X, observed)
        self.post = np.zeros_like(X)
        self.flagged = np.zeros(X.shape, bool)
        self.wrong_rows = np.zeros(len(X), bool)
        self.scattered = False
        self.one_value = largest_atom(self.given, observed) > ATOM
        name, W2 = next(iter(self.feature_graphs.items()))
        # Only a grid tells which features lie side by side; similar columns are not evidence for each other.
        self.W2 = W2 if name.startswith("grid") else None
        self.judge = Judge(X, observed, self.folds, W2, "l1", self.rng, n_jobs=self.n_jobs)
        self.repeats = self._accepted_repeats()
        # Runs of one value in a column take no part until their prediction has spoken.
        still = self.shape is not None or self.one_value
        self.runs: list[Run] = [] if still else find_runs(self.given, observed, self.order)
        mask = observed & ~self.flagged & ~in_runs(self.runs, X.shape)
        last = best = None
        for _ in range(self.rounds):
            self.choice = last = self.choose(mask, last=last)
            P = self.predict(self.choice, mask)
            self._judge_cells(P)
            mask = observed & ~self.flagged
            # Predictions that fit ever closer make natural cells stand out, too: a later round must win over the best.
            if best is None or self._held_out() <= best[0]:
                best = self._held_out(), {name: getattr(self, name) for name in JUDGED}
        assert best is not None
        vars(self).update(best[1])
        mask = observed & ~self.flagged
        if self._in_patches(~mask):
            self.choice = self.choose(mask, pattern=~mask)
        self.predicted = self.predict(self.choice, mask).values
        repaired = np.where(mask, X, self.predicted)
        self.graph_.reference, self.graph_.metric = repaired[~self.wrong_rows], self.choice.setting.metric
        return self

    def _candidates(self) -> list[list[Repeat | Occluder]]:
        """Return values that may have overwritten cells, in groups that stand or fall together."""
        found = find_repeats(self.given, self.observed, self.W2)
        # Scattered values stand together: leaving out only the dark half of salt and pepper makes means worse.
        groups: list[list[Repeat | Occluder]] = [[one for one in found if one.kind == "scattered"]]
        patches: dict[float, Repeat | Occluder] = {one.value: one for one in found if one.kind == "patch"}
        scattered = {one.value for one in groups[0]}
        if self.shape is not None:
            for value in common_values(self.given, self.observed):
                if value in scattered:
                    continue
                if (covering := find_occluder(self.given, self.observed, value, self.shape)) is not None:
                    patches[value] = covering
        return [*filter(None, groups), *([one] for one in patches.values())]

    def _accepted_repeats(self) -> list[Repeat | Occluder]:
        """Return the overwriting values that the judge believes in; their cells are flagged."""
        accepted: list[Repeat | Occluder] = []
        self.unresolved = False
        for group, post, verdict in judged_groups(self._candidates(), self.given, self.observed, self.W2, self.judge):
            for one in group:
                self._note("value %.6g: %s, rate %.3f, held-out error %+.1f %% (%.1f sigma)", one.value, one.kind,
                           one.rate, 100 * verdict.change, verdict.sigmas)  # fmt: skip
            if verdict.agrees:
                accepted += group
                self.flagged |= post > 0.5
                self.post = np.maximum(self.post, post)
            elif group[0].kind == "scattered":
                self.unresolved = True
        return accepted

    def _judge_cells(self, P: Prediction) -> None:
        """Give every cell its probability, and keep the flags if the judge agrees."""
        X, observed = self.X, self.observed
        predicted = self.units.restore(P.values)
        unit = self.cap / CAP * float(np.median(self.units.scale))
        for number, old in enumerate(self.repeats):
            if isinstance(old, Occluder):
                self.repeats[number] = old.learnt(self.given, observed, predicted, unit)
                continue
            again = find_repeats(
                self.given, observed, self.W2, predicted=predicted, scale=unit, values=[old.value], kind=old.kind
            )
            self.repeats[number] = again[0] if again else old
        from_repeats, repeated = self._from_repeats(self.given, observed, P.values)
        R = X - P.values
        stuck = drifting(self.runs, R, observed)
        if stuck:
            self._note("%d runs of one value in a column are stuck, the longest %d rows", len(stuck),
                       max(len(run.rows) for run in stuck))  # fmt: skip
        self.runs, repeated = stuck, repeated | in_runs(stuck, X.shape)
        from_repeats = np.maximum(from_repeats, in_runs(stuck, X.shape))
        self.mixture = fit_mixture(R, P.spread, observed & ~repeated, self.span)
        scattered = np.where(observed & ~repeated, self.mixture.posterior(R, P.spread), 0)
        base = observed & ~(from_repeats > 0.5)
        if (scattered > 0.5).sum() > MOST_SCATTERED * observed.sum():
            scattered = np.zeros_like(scattered)
        self.damage = np.ones((2, X.shape[1]), np.float32)
        verdict = self._verdict(scattered, base)
        self.suspects = scattered > 0.5
        if not verdict.keep and not verdict.even:
            # Some columns have natural extremes on top of the damage: only as many flags as all columns have.
            sides = [damage_share(self.suspects & (R < 0 if low else R > 0), observed) for low in (True, False)]
            self.damage = np.array(sides, np.float32)
            fewer = scattered * np.where(R < 0, *self.damage)
            if (fewer > 0.5).any():
                verdict, scattered = self._verdict(fewer, base), fewer
        self.scattered, self.verdict = verdict.keep, verdict
        self.post = np.maximum(from_repeats, scattered) if self.scattered else from_repeats
        self._flag()

    def _held_out(self) -> float:
        """Return the change of the held-out error that the flags of the round just done have brought."""
        return self.verdict.change if self.scattered else 0.0

    def _verdict(self, scattered: Array, base: Array) -> Verdict:
        """Ask the judge about the cells that deviate."""
        verdict = self.judge.compare(base, base & ~(scattered > 0.5))
        verdict.doubt = cells_in_doubt(scattered)
        among = self.observed & (self.damage.max(axis=0) > 0.5)
        # Where a value overwrote cells evenly and yet nothing is predicted better without it, the cells say little of
        # each other: what deviates from such predictions is a natural tail until it stands apart.
        verdict.even = is_even((scattered > 0.5) & among, among) and not self.unresolved
        verdict.one_value = self.one_value
        self._note("%.2f %% of the cells deviate, held-out error %+.1f %% (%.1f sigma), %.1f in doubt, %s: %s",
                   100 * float((scattered > 0.5).mean()), 100 * verdict.change, verdict.sigmas, verdict.doubt,
                   "even" if verdict.even else "uneven", "wrong" if verdict.keep else "natural")  # fmt: skip
        return verdict

    def _from_repeats(self, given: Array, observed: Array, P: Array) -> tuple[Array, Array]:
        """Return the probability of each cell by the overwriting values, and where any of these stands."""
        post, repeated = np.zeros(given.shape, np.float32), np.zeros(given.shape, bool)
        predicted = self.units.restore(P)
        for one in self.repeats:
            repeated |= (given == one.value) & observed
            post = np.maximum(post, one.posterior(given, observed, self.W2, predicted))
        return post, repeated

    def _flag(self) -> None:
        self.wrong_rows = row_probability(self.post, self.observed) > 0.5
        self.flagged = (self.post > 0.5) & ~self.wrong_rows[:, None]

    def posterior(self, X: Array, given: Array, observed: Array, P: Prediction) -> Array:
        """Return the probability that cells of these rows are wrong, by what was learnt."""
        post, repeated = self._from_repeats(given, observed, P.values)
        if self.scattered:
            R = X - P.values
            cells = self.mixture.posterior(R, P.spread) * np.where(R < 0, *self.damage)
            post = np.maximum(post, np.where(observed & ~repeated, cells, 0))
        return post

    def _note(self, message: str, *values) -> None:
        self.notes.append(message % values)
        if self.tell is not None:
            self.tell(self.notes[-1])

    def _in_patches(self, missing: Array) -> bool:
        """Say whether missing cells lie side by side in the feature graph, so that scattered hold-outs mislead."""
        if self.W2 is None or missing.mean() < LEAST_MISSING:
            return False
        return float(equal_witnesses(missing, self.W2)[missing].mean()) > PATCH * WITNESSES

    def choose(self, mask: Array, *, last: Choice | None = None, pattern: Array | None = None) -> Choice:
        """Choose graph setting, rank and weights of the stack by held-out cells.

        ``last`` is what was chosen on much the same cells.
        With a ``pattern`` each row hides the cells that some other row misses: patches are predicted as patches.
        """
        X = self.X
        if pattern is None:
            hidden = hide(mask, SHARE, self.rng)
        else:
            hidden = mask & pattern[self.rng.permutation(len(X))]
            hidden[(mask & ~hidden).sum(1) < LEAST_LEFT * mask.sum(1)] = False
            hidden[:, ~(mask & ~hidden).any(0)] = False
        shown = mask & ~hidden
        near = folded_neighbors(X, shown, self.folds, n_neighbors=10, n_jobs=self.n_jobs)
        search = HeldoutSearch(X, shown, hidden, self.folds, near, self.feature_graphs, self.cap, n_jobs=self.n_jobs)
        if last is not None:
            search.start = last.setting
        setting, at_graph = search.run()
        some = np.sort(self.rng.permutation(len(X))[:RANK_ROWS])
        among = np.zeros(len(X), bool)
        among[some] = True
        truth = X[some][hidden[some]]
        rank, at_low = choose_rank(X[some], shown[some], hidden[some], self.cap, around=last.rank if last else None)
        said = {"graph": at_graph[np.broadcast_to(among[:, None], X.shape)[hidden]], "low rank": at_low}
        if 1 < X.shape[1] <= MOST_COLUMNS:
            said["columns"] = ColumnPredictor().fit(X, shown).values[some][hidden[some]]
        weights, error = stack_weights(list(said.values()), truth, self.cap)
        errors = {name: float(capped_errors(values, truth, self.cap).mean()) for name, values in said.items()}
        self._note("%s, rank %d, weights %s, errors %s", setting, rank, np.round(weights, 2),
                   {name: float(f"{value:.3g}") for name, value in errors.items()})  # fmt: skip
        self.results.extend(search.results)
        return Choice(setting, rank, weights, {**errors, "stack": error})

    def predict(self, choice: Choice, mask: Array) -> Prediction:
        """Predict all cells from the masked ones with what was chosen."""
        X, s = self.X, choice.setting
        near = folded_neighbors(X, mask, self.folds, n_neighbors=N_NEIGHBORS, metrics=(s.metric,), n_jobs=self.n_jobs)
        graphs = [neighbor_weights(one, n_neighbors=N_NEIGHBORS) for one in near[s.metric]]
        W2 = self.feature_graphs[s.feature_graph]
        self.graph_ = GraphPredictor(
            graphs, W2, s.gamma1, s.gamma2, self.folds, loss=s.loss, delta=s.delta, n_jobs=self.n_jobs
        )
        said = [self.graph_.fit(X, mask)]
        self.low_rank_ = LowRankPredictor(choice.rank)
        self.columns_ = ColumnPredictor()
        none = Prediction(np.zeros_like(X), np.zeros_like(X))
        others: tuple[Predictor, ...] = (self.low_rank_, self.columns_)
        for predictor, weight in zip(others, choice.weights[1:], strict=False):
            said.append(predictor.fit(X, mask) if weight > 0 else none)
        return mixed(said, choice.weights)

    def predict_rows(self, rows: Array, observed: Array, *, graph: Prediction | None = None) -> Prediction:
        """Predict cells of other rows with the fitted predictors; ``graph`` replaces what the reference rows say."""
        said = [self.graph_.predict(rows, observed) if graph is None else graph]
        none = Prediction(np.zeros_like(rows), np.zeros_like(rows))
        others: tuple[Predictor, ...] = (self.low_rank_, self.columns_)
        for predictor, weight in zip(others, self.choice.weights[1:], strict=False):
            said.append(predictor.predict(rows, observed) if weight > 0 else none)
        return mixed(said, self.choice.weights)


def choose_rank(X: Array, shown: Array, hidden: Array, cap: float, *, around: int | None = None) -> tuple[int, Array]:
    """Return the rank that predicts the hidden cells best, and what it says of them; ``around`` a guess, if any."""
    best, worse, start = None, 0, None
    truth = X[hidden]
    ranks = [rank for rank in RANKS if rank <= max(1, MOST_RANK * min(X.shape))]
    if around in ranks:
        ranks = ranks[max(0, ranks.index(around) - 1) :]
    for rank in ranks:
        if start is None and rank:
            mean = column_medians(X, shown)
            start = top_directions(np.where(shown, X - mean, 0).astype(X.dtype), shown, min(RANKS[-1], *X.shape))
        P = LowRankPredictor(rank, n_iter=6, start=start).fit(X, shown).values[hidden]
        error = float(capped_errors(P, truth, cap).mean())
        if best is None or error < best[0]:
            best, worse = (error, rank, P), 0
        else:
            worse += 1 if error < 1.03 * best[0] else 2
        if worse >= 2:
            break
    assert best is not None
    return best[1], best[2]


def largest_atom(X: Array, observed: Array) -> float:
    """Return the share of the cells that have the most common value."""
    _, counts = np.unique(X[observed], return_counts=True)
    return float(counts.max() / counts.sum())
