"""A matrix that is checked and centred, and what is solved on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from frpcag.engines.base import Engine, engine_for
from frpcag.pipeline.parameters import check_parameters
from frpcag.runtime.clock import Clock
from frpcag.runtime.stages import SILENT, StageReport
from frpcag.solvers import Solution, SolveInterrupted
from frpcag.solvers.conditioning import rounded
from frpcag.solvers.solve import run

Pair = tuple[Any, Any]


@dataclass(eq=False)
class Solved:
    """A clean part in the units and of the kind of the data, and what is proved about it.

    Attributes
    ----------
    low_rank : array of shape (n_samples, n_features)
        The clean part: restored, clipped where it must not be negative, certified.
    solution : Solution
        Certified for ``low_rank``; its ``U`` is the clean part of the centred and scaled data.
    graphs, gammas : pair
        Of the last round.
    n_refine : int
        Rounds after the first.
    """

    low_rank: Any
    solution: Solution
    graphs: Pair
    gammas: tuple[float, float]
    n_refine: int


class Prepared:
    """A checked and centred matrix.

    Parameters
    ----------
    X : array-like
    engine : Engine
        For its kind; it knows the parameters of the fit.
    report : StageReport
        Told what is done; it changes nothing.
    """

    def __init__(self, X: Any, engine: Engine, report: StageReport = SILENT) -> None:
        self.options = replace(check_parameters(engine.model), backend=engine.backend)
        self.engine, self.report, self.model = engine, report, engine.model
        self.clock = Clock(report.lap, engine.wait)
        self.X = engine.check(X)
        self.centred = engine.centre(self.X)
        self.clock.lap("preprocess")

    @property
    def data(self) -> Any:
        """The centred and scaled data."""
        return self.engine.data(self.centred)

    def graphs(self, *, clean: Any = None, sample_graph: Any = None) -> Pair:
        """Return the graphs of samples and features, of the data or of their clean part; None without one."""
        basis = self.data if clean is None else clean
        G1 = self.engine.graph(basis, 0) if sample_graph is None else sample_graph
        self.clock.lap("sample_graph")
        G2 = self.engine.graph(basis, 1)
        self.clock.lap("feature_graph")
        return G1, G2

    def gammas(self, graphs: Pair, given: Pair) -> tuple[float, float]:
        """Return the weights of the graph terms; "auto" is scale-free."""
        Xc = self.data
        gamma1, gamma2 = (self.engine.gamma(Xc, graph, axis, given[axis]) for axis, graph in enumerate(graphs))
        self.clock.lap("gammas")
        return gamma1, gamma2

    def solve(self, graphs: Pair, gammas: Pair = ("auto", "auto"), *, start: Any = None) -> Solved:
        """Return the clean part; as often as ``n_refine`` says, that on graphs of the clean part before.

        Parameters
        ----------
        graphs : pair of graphs or None
        gammas : pair of float or "auto"
        start : array, optional
            A clean part of the centred and scaled data to start from.
        """
        limit, enough = (1, 0.5) if self.model.n_refine == "auto" else (int(self.model.n_refine), 0.9)
        n_refine, weights = 0, self.gammas(graphs, gammas)
        solution, problem = self._steps(graphs, weights, start)
        while n_refine < limit and solution.status not in ("interrupted", "stopped"):
            fresh = self.engine.graph(solution.U, 0)
            self.clock.lap("refine")
            if graphs[0] is None or fresh is None or graphs[0].edges_kept_by(fresh) >= enough:
                break
            graphs = self.graphs(clean=solution.U, sample_graph=fresh)
            weights = self.gammas(graphs, gammas)
            solution, problem = self._steps(graphs, weights, solution.U)
            n_refine += 1
        low_rank, moves = self.engine.restore(self.X, solution, self.centred, problem)
        if moves is not None:
            at = rounded(solution.certificate, moves, problem, low_rank, self.centred.units)
            solution.settle(at, stop=self.options.stop, tol=self.options.tol)
        if self.model.nonnegative:
            low_rank = self.engine.clipped(low_rank, solution)
        self.clock.lap("restore")
        return Solved(low_rank, solution, graphs, weights, n_refine)

    def fit(self, gammas: Pair) -> tuple[Solved, dict[str, Any]]:
        """Return what is solved on the graphs of the data, and its results; again where data were lost on the way."""

        def stages() -> tuple[Solved, dict[str, Any]]:
            solved = self.solve(self.graphs(), gammas)
            return solved, self.results(solved)

        def again() -> None:
            self.centred = self.engine.centre(self.X)

        return self.engine.whole(stages, again)

    def results(self, solved: Solved) -> dict[str, Any]:
        """Return what a fitted model holds of its data, by name; ``solved`` lets go of its ``U``."""
        engine, centred = self.engine, self.centred
        factors = engine.factors(solved.solution.U)
        del solved.solution.U  # its memory is for the results
        self.clock.lap("factorize")
        low_rank, sparse, embedding = engine.large(self.X, solved.low_rank, centred, factors)
        results = {
            "low_rank_": low_rank,
            "sparse_": sparse,
            "embedding_": embedding,
            "components_": factors.V.T,
            "singular_values_": factors.Sigma,
            "mean_": centred.center + factors.origin * centred.scale,
            "center_": centred.center,
            "scale_": centred.scale,
            "sample_graph_": solved.graphs[0],
            "feature_graph_": solved.graphs[1],
        }
        return {name: engine.handed(value) for name, value in results.items()}

    def _steps(self, graphs: Pair, gammas: tuple[float, float], start: Any) -> tuple[Solution, Any]:
        """Return the solution on the centred data, after Ctrl-C the certified result so far, and its problem."""
        problem = self.engine.problem(self.data, graphs, gammas)
        lent = self.engine.lend(self.centred)
        try:
            solution = run(
                problem, self.options, U0=start, watch=self.report.step, level=self.centred.level, keep_X=not lent
            )
        except SolveInterrupted as stop:
            solution = stop.solution
        self.clock.lap("solve", f", {solution.n_iter} steps, relative duality gap {solution.gap:.1e}")
        return solution, problem


def prepare(
    X: Any, model: Any, *, report: StageReport = SILENT, multiples: tuple[float, float] = (1.0, 1.0)
) -> Prepared:
    """Return a matrix ready for the fit of a model, whose parameters are checked first.

    Parameters
    ----------
    X : array-like, sparse matrix, tensor or Dask array
    model : FRPCAG
        Whose parameters are read. Nothing of it is written, except by scikit-learn's ``validate_data``.
    report : StageReport
        Told what is done.
    multiples : (float, float)
        Of the scale-free gammas.
    """
    check_parameters(model)
    prepared = Prepared(X, engine_for(X, model, multiples), report)
    prepared.engine.warn_of_units(prepared.X)
    return prepared
