"""frpcag explore: the report of a file as a live page, with sliders for both gammas and the neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.exceptions import ConvergenceWarning

from frpcag import FRPCAG, RobustGraphCleaner
from frpcag.cli import options
from frpcag.cli.errors import InputError, input_errors, printable
from frpcag.cli.progress import print_notices
from frpcag.cli.runs import Timer, library_versions
from frpcag.cli.tables import read_input
from frpcag.engines.host import HostEngine
from frpcag.graphs import Graph
from frpcag.graphs.build import GraphOptions, neighbor_graph
from frpcag.graphs.metric_choice import find_metric
from frpcag.graphs.neighbors import approximate_neighbors, choose_search, exact_neighbors
from frpcag.report import Fit, render_report
from frpcag.report.figures import DARK, LIGHT, draw_figures
from frpcag.report.render import render_sections
from frpcag.report.server import ExplorerServer
from frpcag.solvers import solve

# Powers of ten by which the sliders move the gammas from their automatic values.
DECADES = 2.0
MAX_NEIGHBORS = 40
# Relative duality gap at which a solve ends.
TOL = 1e-3
# What is redrawn at once after a move, what when there is time, and how much of it.
_QUICK_SECTIONS, _QUICK_PLOTS = ("summary", "browser", "tables"), ("embedding", "singular-values")
_SLOW_SECTIONS = ("plots", "theory", "about")
_MOVE_PICTURES, _MOVE_COMPONENTS = 40, 50


def explore(
    file: options.File,
    key: options.Key = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    id: options.Id = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    feature_shape: Annotated[
        Any,
        typer.Option(
            parser=options.parse_feature_shape, metavar="HxW", help="Rows are images of this size; show them."
        ),
    ] = None,
    neighbors: Annotated[int, typer.Option(min=1, metavar="N", help="Neighbours of each node at the start.")] = 10,
    metric: options.Metric = options.MetricName.euclidean,
    laplacian_kind: Annotated[
        options.Laplacian,
        typer.Option(
            "--laplacian", metavar="NAME", help="normalized, for clusters, or combinatorial, which keeps levels."
        ),
    ] = options.Laplacian.normalized,
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Where to listen; 0 picks a free port.")] = 0,
) -> None:
    """Serve a live report for your browser: move a slider and see the decomposition change.

    Each move computes in float32, starting from the last result. Ctrl-C ends the server.
    """
    how = {"key": key, "columns": columns, "drop": drop, "id": id, "missing": missing}
    how |= {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    table = read_input(file, how, feature_shape=feature_shape)
    print_notices(table.notices)
    if len(table.X) < 3:
        raise InputError(f"{file} has {len(table.X)} samples; the explorer needs at least three.")
    with input_errors(file):
        session = Explorer(
            table.X,
            title=file.name,
            names=table.names,
            ids=table.ids,
            feature_shape=feature_shape,
            n_neighbors=neighbors,
            metric=metric.value,
            laplacian=laplacian_kind.value,
        )
        try:
            server = ExplorerServer(session, port=port)
        except OSError as error:
            raise InputError(f"--port={port} cannot be used ({error.strerror}); pass another one, or 0.") from error
    server.run(lambda: print(f"exploring {printable(file.name)} at {server.address} (Ctrl-C ends)", flush=True))
    print("ended")


class Explorer:
    """One data set and its last fit: what the sliders act on.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        NaN is missing.
    title : str
    names, ids : sequence of str or None
        Of the features and of the samples.
    feature_shape : (int, int) or None
        Of the image behind a row.
    n_neighbors : int
        To begin with.
    laplacian : {"normalized", "combinatorial"}

    Attributes
    ----------
    last : Fit
        The last result.
    units : list of float
        The automatic gammas of the first result, which the sliders multiply.
    graphs : callable
        Gives both graphs for a number of neighbours.
    """

    def __init__(
        self,
        X,
        *,
        title: str,
        names=None,
        ids=None,
        feature_shape=None,
        n_neighbors: int = 10,
        metric: str = "euclidean",
        laplacian: str = "normalized",
    ):
        self._about = {"title": title, "feature_names": names, "sample_names": ids, "feature_shape": feature_shape}
        model = FRPCAG(metric=metric, laplacian=laplacian, random_state=0)
        self._engine = HostEngine(model)
        self._X = self._engine.check(np.asarray(X, dtype=np.float32))
        self._centred = self._engine.centre(self._X)
        self._most = min(MAX_NEIGHBORS, len(self._X) - 1)
        self._first = min(n_neighbors, self._most)
        self._neighbors = cache(self._search)
        self._cleaner = cache(self._judge_cells)  # when the page asks for it, and once
        self.graphs = lru_cache(maxsize=4)(self._build_graphs)
        self._U: np.ndarray | None = None
        Xc = self._centred.Xc
        self.units = [self._engine.gamma(Xc, graph, axis) for axis, graph in enumerate(self.graphs(self._first))]
        self.last = self._solve(self.units, self._first, lambda: None)

    def page(self) -> str:
        """Return the page at the automatic gammas."""
        sliders = [
            _slider(f"gamma{i}", f"gamma{i}, {word} graph", -DECADES, DECADES, 0.05, 0.0, unit=unit)
            for i, (word, unit) in enumerate(zip(("sample", "feature"), self.units, strict=True), start=1)
        ]
        sliders.append(_slider("n_neighbors", "K, neighbours", 1, self._most, 1, self._first))
        return render_report(self.last, explorer={"sliders": sliders})

    def solve(self, move: dict[str, Any], check: Callable[[], None]) -> dict[str, Any]:
        """Solve for the gammas and neighbours of a move, from the last result."""
        start = perf_counter()
        multiples = [_number(move, f"gamma{i}", 10**-DECADES, 10**DECADES) for i in (1, 2)]
        gammas = [multiple * unit for multiple, unit in zip(multiples, self.units, strict=True)]
        k = int(_number(move, "n_neighbors", 1, self._most))
        self.last = self._solve(gammas, k, check)
        sections = render_sections(self.last, _QUICK_SECTIONS, max_pictures=_MOVE_PICTURES)
        figures = draw_figures(self.last, None, themes=[_theme(move)], only=_QUICK_PLOTS, check=check)
        return {
            "sections": sections,
            "plots": {figure.name: figure.sources[_theme(move)] for figure in figures},
            "steps": self.last.certificate["n_iter"],
            "seconds": perf_counter() - start,
        }

    def diagnose(self, move: dict[str, Any], check: Callable[[], None]) -> dict[str, Any]:
        """Return the plots and numbers that need graph frequencies, for the last fit."""
        return {"sections": render_sections(self.last, _SLOW_SECTIONS, themes=[_theme(move)], check=check)}

    def cells(self, move: dict[str, Any], drawing: AbstractContextManager) -> dict[str, Any]:
        """Return the cell map, and what it says in words."""
        fit = Fit.of_cleaner(self._cleaner(), **{**self._about, "feature_shape": None})
        with drawing:
            return {"sections": render_sections(fit, ("cells",), themes=[_theme(move)])}

    def _judge_cells(self) -> RobustGraphCleaner:
        """Judge the cells of the data; the page does not show the fit that follows, so it may be rough."""
        model = FRPCAG(n_components=2, tol=0.05, feature_shape=self._about["feature_shape"], random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return RobustGraphCleaner(model, random_state=0).fit(self._X)

    def _solve(self, gammas: Sequence[float], k: int, check: Callable[[], None]) -> Fit:
        """Take the data through the stages of a fit that follow the graphs, from the last result."""
        engine, clock = self._engine, Timer()
        gamma1, gamma2 = gammas
        graphs = self.graphs(k)
        clock.lap("graphs")
        problem = engine.problem(self._centred.Xc, graphs, (gamma1, gamma2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the page tells the gap and why the solver ended
            solution = solve(problem, tol=TOL, U0=self._U, callback=lambda at: check())
        clock.lap("solve")
        self._U = solution.U.copy()
        low_rank, _ = engine.restore(self._X, solution, self._centred, problem)
        results = engine.results(self._X, low_rank, self._centred, engine.factors(solution.U), graphs)
        clock.lap("factorize")
        return Fit(
            U=results["low_rank_"],
            S=results["sparse_"],
            embedding=results["embedding_"][:, :_MOVE_COMPONENTS],
            singular_values=results["singular_values_"][:_MOVE_COMPONENTS],
            components=results["components_"][:_MOVE_COMPONENTS],
            max_components=_MOVE_COMPONENTS,
            center=self._centred.center,
            gamma1=gamma1,
            gamma2=gamma2,
            sample_graph=graphs[0],
            feature_graph=graphs[1],
            has_missing=problem.mask is not None,
            n_neighbors=k,
            certificate={
                "relative_gap": solution.gap,
                "tol": TOL,
                "n_iter": solution.n_iter,
                "status": solution.status,
                "objective": solution.objective,
            },
            history=solution.history,
            parameters={
                "n_neighbors": k,
                "metric": engine.model.metric,
                "laplacian": engine.model.laplacian,
                "loss": "l1",
                "backend": solution.backend,
            },
            timings=clock.seconds,
            versions=library_versions(),
            **self._about,
        )

    def _build_graphs(self, k: int) -> tuple[Graph | None, Graph | None]:
        return self._graph(0, k), self._graph(1, k)

    def _graph(self, axis: int, k: int) -> Graph | None:
        """Return the graph of `build_graph`, from neighbours that were searched for once."""
        if self._centred.Xc.shape[axis] == 1:
            return None
        method, metric, indices, distances = self._neighbors(axis)
        options = GraphOptions(axis=axis, laplacian=self._engine.model.laplacian)
        return neighbor_graph(indices[:, :k], distances[:, :k], options, method, metric=metric)

    def _search(self, axis: int) -> tuple[str, str, np.ndarray, np.ndarray]:
        points = np.ascontiguousarray(self._centred.Xc if axis == 0 else self._centred.Xc.T)
        k = min(self._most, len(points) - 1)
        metric = find_metric("euclidean" if axis else self._engine.model.metric, points)
        method = choose_search(*points.shape, metric=metric)
        if method == "exact":
            indices, distances = exact_neighbors(points, k, metric=metric)
        else:
            indices, distances = approximate_neighbors(points, k, metric=metric, random_state=0)
        return method, metric.name, indices, distances


def _slider(name: str, label: str, low: float, high: float, step: float, value: float, *, unit: float = 0.0):
    """Return what the template draws; with a unit the slider moves powers of ten of it."""
    return {
        **{"name": name, "label": label, "min": low, "max": high, "step": step, "value": value, "unit": unit},
        "scale": "log" if unit else "linear",
    }


def _number(move: dict[str, Any], name: str, low: float, high: float) -> float:
    value = move.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not low * 0.999 <= value <= high * 1.001:
        raise ValueError(f"{name}={value!r} must be a number from {low:g} to {high:g}.")
    return float(value)


def _theme(move: dict[str, Any]) -> str:
    return DARK if move.get("dark") is True else LIGHT
