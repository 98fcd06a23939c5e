"""The rounds of cleaning: predict every cell, judge it, leave out what is probably wrong, and look again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.cells.columns import MOST_COLUMNS, ColumnPredictor
from frpcag.cells.guard import (
    LEAST_GAIN_PER_DOUBT,
    LEAST_SIGMAS,
    SHARE,
    Judge,
    Verdict,
    cells_in_doubt,
    damage_share,
    hide,
    is_even,
)
from frpcag.cells.low_rank import RANKS, LowRankPredictor, column_medians, top_directions
from frpcag.cells.metric import column_folds, folded_neighbors, sample_graphs
from frpcag.cells.mixture import Mixture, fit_mixture, row_probability
from frpcag.cells.model import PREDICTORS, CellModel, Overwriter, overwritten_cells
from frpcag.cells.occluders import Occluder, find_occluder
from frpcag.cells.overwritten import judged_groups
from frpcag.cells.predictors import (
    CAP,
    GraphPredictor,
    Prediction,
    ReferencePredictor,
    capped_errors,
    error_cap,
    mixed,
    stack_weights,
)
from frpcag.cells.repeats import (
    WITNESSES,
    Run,
    common_values,
    drifting,
    equal_witnesses,
    find_repeats,
    find_runs,
    in_runs,
)
from frpcag.cells.search import GraphSetting, HeldoutSearch
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
# Fewer cells than this are not worth a second thread.
SMALL = 100_000
# Rows that rank and weights of the stack are chosen on.
RANK_ROWS = 600


@dataclass(frozen=True)
class Choice:
    """What one round chose by held-out cells: settings, and the weights of the predictors that take part."""

    setting: GraphSetting
    rank: int
    weights: dict[str, float]


@dataclass(frozen=True)
class Round:
    """What one round found.

    Attributes
    ----------
    choice : Choice
    post : ndarray
        Probability that a cell is wrong.
    wrong_rows : bool ndarray of shape (n_samples,)
    change : float
        What the flags do to the held-out error; 0 where cells that deviate are not flagged.
    deviating : bool ndarray
        Cells that lie far from their prediction, flagged or not.
    repeats, runs, mixture, scattered, damage
        See `frpcag.cells.model.CellModel`; runs are those of stuck sensors.
    """

    choice: Choice
    post: Array
    wrong_rows: Array
    change: float
    deviating: Array
    repeats: list[Overwriter]
    runs: list[Run]
    mixture: Mixture
    scattered: bool
    damage: Array

    @property
    def flagged(self) -> Array:
        """Cells that are probably wrong, in rows that are not wrong as a whole."""
        return (self.post > 0.5) & ~self.wrong_rows[:, None]


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
    tell : callable
        Called with every decision in words.

    Attributes
    ----------
    best : Round
    model : CellModel
        What judges other rows.
    predicted : ndarray
        What each cell should be.
    results : list of dict
        Every graph setting that was tried.
    """

    X: Array
    observed: Array
    feature_graphs: dict[str, sp.csr_array | None]
    given: Array
    units: Units
    order: Array
    shape: tuple[int, int] | None
    seed: int
    n_jobs: int | None
    tell: Callable[[str], object]
    results: list[dict] = field(default_factory=list)

    def run(self) -> CellRounds:
        """Do the rounds."""
        X, observed = self.X, self.observed
        self.folds = column_folds(X.shape[1])
        # SFC64, not the generator behind default_rng: a seed that also made the damage gives other numbers here.
        self.rng = np.random.Generator(np.random.SFC64([self.seed, 7]))
        self.span = float(X[observed].max() - X[observed].min()) or 1.0
        self.cap = error_cap(X, observed)
        self.one_value = largest_atom(self.given, observed) > ATOM
        name, W2 = next(iter(self.feature_graphs.items()))
        # Only a grid tells which features lie side by side; similar columns are not evidence for each other.
        self.W2 = W2 if name.startswith("grid") else None
        self.judge = Judge(X, observed, self.folds, W2, self.rng, n_jobs=self._jobs(X))
        repeats, flagged = self._accepted_repeats()
        # Runs of one value in a column take no part until their prediction has spoken.
        still = self.shape is not None or self.one_value
        runs = [] if still else find_runs(self.given, observed, self.order)
        mask = observed & ~flagged & ~in_runs(runs, X.shape)
        choice = best = None
        for _ in range(ROUNDS):
            choice = self.choose(mask, last=choice)
            now = self.look(choice, mask, repeats, runs)
            repeats, runs, mask = now.repeats, now.runs, observed & ~now.flagged
            # Predictions that fit ever closer make natural cells stand out, too: a later round must win over the best.
            if best is None or now.change <= best.change:
                best = now
        assert best is not None
        mask, choice = observed & ~best.flagged, best.choice
        if self._in_patches(~mask):
            choice = self.choose(mask, pattern=~mask)
        P, fitted = self.predict(choice, mask)
        self.best, self.choice, self.predicted = best, choice, P.values
        clean = np.where(mask, X, P.values)[~best.wrong_rows]
        s, W2 = choice.setting, self.feature_graphs[choice.setting.feature_graph]
        if "graph" in fitted:
            fitted["graph"] = ReferencePredictor(
                clean, s.metric, W2, s.gamma1, s.gamma2, self.folds, s.loss, s.delta, self._jobs(X)
            )
        self.model = CellModel(
            self.units, self.W2, np.array(list(choice.weights.values())), mixture=best.mixture, repeats=best.repeats,
            scattered=best.scattered, damage=best.damage, **{name: fitted.get(name) for name in PREDICTORS},
        )  # fmt: skip
        return self

    def _jobs(self, X: Array) -> int | None:
        return 1 if X.size < SMALL else self.n_jobs

    def _candidates(self) -> list[list[Overwriter]]:
        """Return values that may have overwritten cells, in groups that stand or fall together."""
        found = find_repeats(self.given, self.observed, self.W2)
        # Scattered values stand together: leaving out only the dark half of salt and pepper makes means worse.
        scattered: list[Overwriter] = [one for one in found if one.kind == "scattered"]
        patches: dict[float, Overwriter] = {one.value: one for one in found if one.kind == "patch"}
        if self.shape is not None:
            known = {one.value for one in scattered}
            for value in common_values(self.given, self.observed):
                if value in known:
                    continue
                if (covering := find_occluder(self.given, self.observed, value, self.shape)) is not None:
                    patches[value] = covering
        return [*filter(None, [scattered]), *([one] for one in patches.values())]

    def _accepted_repeats(self) -> tuple[list[Overwriter], Array]:
        """Return the overwriting values that the judge believes in, and their cells."""
        accepted: list[Overwriter] = []
        flagged = np.zeros(self.X.shape, bool)
        self.unresolved = False
        for group, post, verdict in judged_groups(self._candidates(), self.given, self.observed, self.W2, self.judge):
            for one in group:
                self.tell(f"value {one.value:.6g}: {one.kind}, rate {one.rate:.3f}, held-out error "
                          f"{100 * verdict.change:+.1f} % ({verdict.sigmas:.1f} sigma)")  # fmt: skip
            if verdict.favours_flags():
                accepted += group
                flagged |= post > 0.5
            elif group[0].kind == "scattered":
                self.unresolved = True
        return accepted, flagged

    def look(self, choice: Choice, mask: Array, repeats: list[Overwriter], runs: list[Run]) -> Round:
        """Predict all cells from the masked ones, and give every cell its probability, if the judge agrees."""
        X, observed = self.X, self.observed
        P = self.predict(choice, mask)[0]
        predicted = self.units.restore(P.values)
        repeats = [self._learnt(one, predicted) for one in repeats]
        by_value, repeated = overwritten_cells(repeats, self.W2, self.given, observed, predicted)
        R = X - P.values
        if runs := drifting(runs, R, observed):
            longest = max(len(run.rows) for run in runs)
            self.tell(f"{len(runs)} runs of one value in a column are stuck, the longest {longest} rows")
        stuck = in_runs(runs, X.shape)
        by_value, repeated = np.maximum(by_value, stuck), repeated | stuck
        mixture = fit_mixture(R, P.spread, observed & ~repeated, self.span)
        post = np.where(observed & ~repeated, mixture.posterior(R, P.spread), 0)
        base = observed & ~(by_value > 0.5)
        if (post > 0.5).sum() > MOST_SCATTERED * observed.sum():
            post = np.zeros_like(post)
        deviating, damage = post > 0.5, np.ones((2, X.shape[1]), np.float32)
        verdict, even, wrong = self._ask(post, base, observed)
        if not wrong and not even:
            # Some columns have natural extremes on top of the damage: only as many flags as all columns have.
            sides = [damage_share(deviating & (R < 0 if low else R > 0), observed) for low in (True, False)]
            damage = np.array(sides, np.float32)
            fewer = post * np.where(R < 0, *damage)
            if (fewer > 0.5).any():
                post = fewer
                verdict, _, wrong = self._ask(post, base, observed & (damage.max(axis=0) > 0.5))
        post = np.maximum(by_value, post) if wrong else by_value
        return Round(
            choice, post, row_probability(post, observed) > 0.5, verdict.change if wrong else 0.0, deviating, repeats,
            runs, mixture, wrong, damage,
        )  # fmt: skip

    def _learnt(self, old: Overwriter, predicted: Array) -> Overwriter:
        """Return an overwriting value with what the predictions tell of its cells."""
        unit = self.cap / CAP * float(np.median(self.units.scale))
        if isinstance(old, Occluder):
            return old.learnt(self.given, self.observed, predicted, unit)
        again = find_repeats(
            self.given, self.observed, self.W2, predicted=predicted, scale=unit, values=[old.value], kind=old.kind
        )
        return again[0] if again else old

    def _ask(self, post: Array, base: Array, among: Array) -> tuple[Verdict, bool, bool]:
        """Return the verdict on the cells that deviate, whether they strike evenly, and whether they are wrong."""
        flags = post > 0.5
        verdict, doubt = self.judge.compare(base, base & ~flags), cells_in_doubt(post)
        # Where a value overwrote cells evenly and yet nothing is predicted better without it, the cells say little of
        # each other: what deviates from such predictions is a natural tail until it stands apart.
        even = is_even(flags & among, among) and not self.unresolved
        # Where the data are mostly one value, everything else stands apart.
        apart = not self.one_value and -verdict.change > LEAST_GAIN_PER_DOUBT * doubt
        wrong = verdict.favours_flags(LEAST_SIGMAS) and (even or apart)
        self.tell(f"{100 * flags.mean():.2f} % of the cells deviate, held-out error {100 * verdict.change:+.1f} % "
                  f"({verdict.sigmas:.1f} sigma), {doubt:.1f} in doubt, {'even' if even else 'uneven'}: "
                  f"{'wrong' if wrong else 'natural'}")  # fmt: skip
        return verdict, even, wrong

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
        near = folded_neighbors(X, shown, self.folds, n_neighbors=10, n_jobs=self._jobs(X))
        search = HeldoutSearch(X, shown, hidden, self.folds, near, self.feature_graphs, self.cap,
                               start=last.setting if last else None, n_jobs=self._jobs(X))  # fmt: skip
        setting, at_graph = search.run()
        self.results.extend(search.results)
        some = np.sort(self.rng.permutation(len(X))[:RANK_ROWS])
        among = np.zeros(len(X), bool)
        among[some] = True
        truth = X[some][hidden[some]]
        rank, at_low = choose_rank(X[some], shown[some], hidden[some], self.cap, around=last.rank if last else None)
        said = {"graph": at_graph[np.broadcast_to(among[:, None], X.shape)[hidden]], "low_rank": at_low}
        if 1 < X.shape[1] <= MOST_COLUMNS:
            said["columns"] = ColumnPredictor().fit(X, shown).values[some][hidden[some]]
        weights, _ = stack_weights(list(said.values()), truth, self.cap)
        errors = {name: float(f"{capped_errors(P, truth, self.cap).mean():.3g}") for name, P in said.items()}
        self.tell(f"{setting}, rank {rank}, weights {np.round(weights, 2)}, errors {errors}")
        return Choice(setting, rank, {name: w for name, w in zip(said, weights, strict=True) if w > 0})

    def predict(self, choice: Choice, mask: Array) -> tuple[Prediction, dict[str, Any]]:
        """Predict all cells from the masked ones with what was chosen; also return the predictors."""
        said: list[Prediction] = []
        fitted: dict[str, Any] = {}
        for name in choice.weights:
            if name == "graph":
                fitted[name] = self.graph(choice.setting, self.X, mask)
                said.append(fitted[name].predict(self.X, mask))
            else:
                fitted[name] = LowRankPredictor(choice.rank) if name == "low_rank" else ColumnPredictor()
                said.append(fitted[name].fit(self.X, mask))
        return mixed(said, np.array(list(choice.weights.values()))), fitted

    def graph(self, setting: GraphSetting, X: Array, mask: Array) -> GraphPredictor:
        """Return the graph predictor of a setting, its sample graph from the masked cells."""
        graphs = sample_graphs(X, mask, self.folds, setting.metric, n_jobs=self._jobs(X))
        return GraphPredictor(
            graphs, self.feature_graphs[setting.feature_graph], setting.gamma1, setting.gamma2, self.folds,
            loss=setting.loss, delta=setting.delta, n_jobs=self._jobs(X),
        )  # fmt: skip


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
        P = LowRankPredictor(rank, n_iter=6).fit(X, shown, start=start).values[hidden]
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
