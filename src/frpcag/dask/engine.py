"""The stages of a fit on row blocks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from operator import getitem
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from frpcag.backends.units import Moves, Terms
from frpcag.dask import block_tasks
from frpcag.dask.backend import DaskBackend
from frpcag.dask.block_problem import BlockProblem, RowBlocks
from frpcag.dask.checkpoint import Checkpoint
from frpcag.dask.feature_graph import column_products, graph_from_products
from frpcag.dask.memory import require_worker_memory
from frpcag.dask.parts import retry_when_lost
from frpcag.dask.prepared import (
    BlockRows,
    ChunkSums,
    choose_metric,
    fingerprint,
    prepare,
    resume,
    save_prepared,
)
from frpcag.dask.problem_rows import box
from frpcag.dask.row_chunks import as_row_chunks
from frpcag.dask.sample_graph import BlockGraph, given_graph, search_graph
from frpcag.dask.search import looks_at_lists
from frpcag.dask.tasks import Layout, current_cluster, exchange, tree_sum
from frpcag.data.preprocess import check_range, check_shape, column_moments
from frpcag.engines.base import Centred, Engine, Factors
from frpcag.engines.gammas import (
    gamma_of,
    looked_at,
    reference_row,
    rounding_of,
)
from frpcag.graphs import GRAPHS, Graph
from frpcag.graphs.build import SEARCHES, GraphOptions, graph_of
from frpcag.graphs.checks import check_n_neighbors
from frpcag.graphs.index import choose_search
from frpcag.graphs.laplacian import check_laplacian
from frpcag.graphs.metric import Metric, check_metric
from frpcag.linalg.factorize import check_n_components, gram_factors, power_unit
from frpcag.runtime.malloc import keep_freed_memory

Array = np.ndarray

logger = logging.getLogger("frpcag")

# Features whose p x p products the client and the workers can hold.
MOST_FEATURES = 1 << 14


class DaskEngine(Engine):
    """Row chunks on the workers of the current Dask client; the results of the size of ``X`` are Dask arrays.

    ``low_rank_``, ``sparse_`` and ``embedding_`` have the rows and chunks of ``X``; ``sample_graph_`` is a
    `BlockGraph`; the other results are what they are on one machine.
    """

    def __init__(self, model: Any, multiples: tuple[float, float] = (1.0, 1.0)) -> None:
        super().__init__(model, multiples)
        self.backend = model.backend if isinstance(model.backend, DaskBackend) else DaskBackend()
        self.cluster: Any = None
        self.store: Checkpoint | None = None
        self.given: tuple[Any, Any] = (None, None)
        self.has_missing = False
        self.seed: int | None = None
        self.restored: list[Any] = []

    def whole(self, stages: Callable[[], Any], again: Callable[[], None]) -> Any:
        """Return what the stages come to: from the checkpoint or the start again, where a worker died with a part."""
        kept = lambda: None if self.store is None else self.store.saved("step")  # noqa: E731
        return retry_when_lost(stages, again, kept, needs=lambda: self.cluster.needs)

    def check(self, X: Any) -> Any:
        """Return ``X`` as a Dask array of row chunks; raise for what would fail later, before any work."""
        check_metric(self.model.metric, engine="dask")
        shape, dtype = getattr(X, "shape", None), getattr(X, "dtype", None)
        if isinstance(shape, tuple):
            check_shape(self.model, shape, dtype)
        dx = as_row_chunks(X)
        validate_data(self.model, dx, skip_check_array=True)
        model, (n, p) = self.model, dx.shape
        check_n_components(model.n_components, n, p)
        if p > MOST_FEATURES:
            raise ValueError(
                f"X has n_features={p}; backend='dask' takes at most {MOST_FEATURES}. Pass fewer features, or "
                "X.compute() where one machine holds it."
            )
        if model.n_refine not in (0, "auto"):
            raise ValueError(
                f"n_refine={model.n_refine!r} is not done by backend='dask', which builds its graphs once; pass "
                "n_refine=0, or X.compute() where one machine holds it."
            )
        self.given = self.given_graph("sample_graph", n), self.given_graph("feature_graph", p)
        for axis, n_nodes in enumerate((n, p)):
            if isinstance(self.given[axis], str) and n_nodes > 1:
                k = model.n_neighbors
                check_n_neighbors(k if not isinstance(k, Integral) else min(k, n_nodes - 1), n_nodes, axis=axis)
        return dx

    def some_rows(self, X: Any) -> Array:
        """Return the first rows of the first chunk, which `centre` has kept."""
        return self.first_rows

    def clipped(self, low_rank: Any, solution: Any) -> Any:
        """Return the clean part without what the solver left below zero."""
        return low_rank.clip(0, None)

    def centre(self, X: Any) -> Centred:
        """Return the rows centred and scaled, neighbours near each other, and how they were centred and scaled."""
        model = self.model
        self.cluster = cluster = current_cluster(self.backend.patience)
        require_worker_memory(cluster, X.shape, X.chunks[0], _dtype(X).itemsize, model.n_neighbors)
        cluster.on_each_worker(keep_freed_memory)
        chunks, sizes, dtype = cluster.chunks(X), X.chunks[0], _dtype(X)
        self.first_rows = cluster.gather(cluster.map(block_tasks.first_rows, [(chunks[0],)], [None]))[0]
        sums = ChunkSums(cluster, chunks, sizes)
        mean, std = column_moments(sums, eps=np.finfo(dtype).eps, center=self.centres, scale=model.scale)
        with np.errstate(over="ignore", invalid="ignore"):
            largest = np.fmax(np.abs(sums.highest - mean), np.abs(sums.lowest() - mean)) / std
        check_range(largest, mean, std, dtype)
        if model.nonnegative and (sums.lowest() < 0).any():
            self.check_nonnegative(np.array([-1.0]))
        self.has_missing = sums.has_missing
        if self.seed is None:  # the same in every try, also of a generator that moves on
            if self.backend.checkpoint is not None:
                mark = fingerprint(model, X, chunks, cluster, self.given, self.multiples)
                self.store = Checkpoint(self.backend.checkpoint, mark)
                self.store.claim()
            self.seed = int(check_random_state(model.random_state).randint(2**31 - len(chunks)))
        rows = None if self.store is None else resume(self.store, cluster)
        if rows is None:
            unit = power_unit(float(largest.max()), 4)  # distances between rows are taken in float32
            options: dict[str, Any] = {"seed": self.seed, "unit": unit, "ordered": self.given[0] is not None}
            if isinstance(self.given[0], str):
                metric, width = choose_metric(model, cluster, chunks, sizes, dtype, mean, std)
                lists = self.looks_at_lists_by(X.shape, metric, has_missing=self.has_missing)
                options |= {"metric": metric, "width": width, "lists": lists}
            rows = prepare(cluster, chunks, sizes, dtype, mean, std, **options)
        return Centred(rows, mean, std)

    def graph(self, basis: Any, axis: int) -> Any:
        """Return the graph of the samples, cut into the blocks, or of the features; None without one.

        ``basis`` is a `BlockRows`; of a clean part, which are `RowBlocks`, no graph is made.
        """
        if isinstance(basis, RowBlocks):
            return None
        if axis == 1:
            return self._feature_graph(basis)
        if not basis.complete:
            self._complete(basis)
        return basis.graph

    def given_graph(self, name: str, n_nodes: int) -> Any:
        """Return a graph that was given, how to search for one, or None."""
        method = getattr(self.model, name)
        if method is None or (isinstance(method, str) and method in SEARCHES):
            return method
        axis = 0 if name == "sample_graph" else 1
        known = method in GRAPHS if isinstance(method, str) else hasattr(method, "fit_transform")
        if known and (method, axis) != ("grid", 1):
            raise ValueError(
                f"{name}={method!r} is not done by backend='dask'; pass one of {', '.join(map(repr, SEARCHES))}, a "
                "sparse adjacency, a Graph or None."
            )
        model = self.model
        options = GraphOptions(axis=axis, laplacian=model.laplacian, feature_shape=model.feature_shape, argument=name)
        return graph_of(np.broadcast_to(0.0, (n_nodes, 1) if axis == 0 else (1, n_nodes)), method, options)

    def looks_at_lists_by(self, shape: tuple[int, int], metric: Metric, *, has_missing: bool = False) -> bool:
        """Say whether rows look at the lists near them (`frpcag.dask.search.looks_at_lists`)."""
        search = choose_search(*shape, method=self.given[0], metric=metric)
        k = self.chosen_neighbors(shape[0], 0)
        return looks_at_lists(shape[0], k, search=search, metric=metric, has_missing=has_missing)

    def scale_free_gamma(self, Xc: BlockRows, graph: Any, axis: int) -> float:
        """Return the gamma of `frpcag.engines.gammas` along an axis."""
        layout = Xc.layout
        rows = looked_at(Xc.shape[0])
        chosen = layout.map(np.isin, Xc.ids, [rows for _ in Xc.ids])
        first = layout.cluster.gather(layout.map(block_tasks.first_of, Xc.X, Xc.ids))
        reference = reference_row(np.concatenate(first)[0])
        shared = [reference for _ in chosen]

        def spread(mean: Array) -> Array:
            return tree_sum(layout.cluster, layout.map(block_tasks.column_spread, Xc.X, chosen, [mean for _ in chosen]))

        if axis == 0:
            halos = graph.halo.fetch(Xc.X)
            parts = layout.map(block_tasks.sample_pulls, graph.parts, Xc.X, halos, chosen, shared)
            diagonal = tree_sum(layout.cluster, layout.map(block_tasks.diagonal_sum, graph.parts)) / Xc.shape[0]
            rounding: Any = partial(np.multiply, diagonal)
        else:
            parts = layout.map(block_tasks.feature_pulls, [graph.laplacian for _ in chosen], Xc.X, chosen, shared)
            rounding = rounding_of(graph.laplacian, 1)
        return gamma_of(tree_sum(layout.cluster, parts), reference, spread, rounding, Xc.dtype, self.model.loss)

    def problem(self, Xc: BlockRows, graphs: tuple[Any, Any], gammas: tuple[float, float]) -> BlockProblem:
        """Return the problem to solve."""
        G1, G2 = graphs
        null2 = None if G2 is None else G2.null_vector
        problem = BlockProblem(
            Xc.layout,
            RowBlocks(Xc.X, Xc.shape, Xc.dtype),
            G1,
            None if G2 is None else G2.laplacian,
            *gammas,
            self.model.loss,
            self.model.huber_delta,
            null2,
            lmax1=None if G1 is None else G1.lmax,
            lmax2=None if G2 is None else G2.lmax,
            store=self.store,
        )
        return replace(problem, box=box(problem)) if self.has_missing else problem

    def factors(self, U: RowBlocks) -> Factors:
        """Return the factors of the clean part about its mean, through the p x p Gram matrix or products with it."""
        (n, p), cluster, c = U.shape, U.layout.cluster, self.model.n_components

        def total(function: Any, *shared: Any) -> Any:
            return tree_sum(cluster, U.layout.map(function, U.parts, *([value for _ in U.parts] for value in shared)))

        unit = power_unit(total(block_tasks.largest).value, U.dtype.itemsize)
        origin = total(block_tasks.column_totals, unit) / n if self.model.center else np.zeros(p)
        Sigma, V = gram_factors(total(block_tasks.gram, unit) - n * np.outer(origin, origin), c)
        Sigma, V = Sigma[:n] * unit, V[:, :n]  # the matrix has no more
        return Factors(origin * unit, None, Sigma.astype(U.dtype), V.astype(U.dtype))

    def restore(self, X: Any, solution: Any, centred: Centred, problem: BlockProblem) -> tuple[Any, Moves]:
        """Return the clean part, rows in the caller's order and units, and what rounding has moved."""
        U, slope = solution.U, solution.slope
        rows, center, scale = centred.Xc, centred.center, centred.scale
        slopes = [None for _ in rows.ids] if slope is None else slope.parts
        layout, sizes = U.layout, X.chunks[0]
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        owners = Layout.spread(layout.cluster, sizes).owners
        routed = layout.map(block_tasks.send_back, U.parts, slopes, rows.ids, [bounds for _ in U.parts])
        back = exchange(layout.cluster, routed, owners)
        del routed
        terms = Terms(*problem.reaches, problem.loss, problem.huber_delta)
        chunks = layout.cluster.chunks(X)
        places = zip(back, chunks, bounds[:-1], strict=True)
        tasks = [(part, chunk, int(start), center, scale, terms) for part, chunk, start in places]
        done = layout.cluster.map(block_tasks.rows_in_units, tasks, owners)
        del back, chunks, tasks
        parts, moves = (layout.cluster.map(getitem, [(part, i) for part in done], owners) for i in (0, 1))
        self.restored = parts
        low_rank = layout.cluster.array(parts, [(size, U.shape[1]) for size in sizes], U.dtype)
        return low_rank, Moves(*tree_sum(layout.cluster, moves))

    def large(self, X: Any, low_rank: Any, centred: Centred, factors: Factors) -> tuple[Any, Any, Any]:
        """Return the clean part, the corruptions and the embedding as they are handed out."""
        import dask.array as da

        # A worker may have died with its rows since they were restored.
        self.cluster.gather(self.cluster.map(len, [(part,) for part in self.restored], [None for _ in self.restored]))
        scale, dtype = centred.scale, low_rank.dtype
        known = {"mean": centred.center + factors.origin * scale, "scale": scale, "V": factors.V, "dtype": dtype}
        embedding = low_rank.map_blocks(block_tasks.project, chunks=(X.chunks[0], (len(factors.Sigma),)), **known)
        sparse = da.map_blocks(block_tasks.residual, X, low_rank, dtype=dtype)
        return (
            self._stored("low_rank", low_rank), self._stored("sparse", sparse), self._stored("embedding", embedding)
        )  # fmt: skip

    def _stored(self, name: str, array: Any) -> Any:
        """Return an array written to the backend's output and read from there, or as it is without one."""
        import dask.array as da

        output = self.backend.output
        if output is None:
            return array
        whole = array.rechunk((max(array.chunks[0]), -1))
        self.cluster.compute(whole.to_zarr(output, component=name, overwrite=True, compute=False))
        return da.from_zarr(output, component=name)

    def _complete(self, rows: BlockRows) -> None:
        """Find the sample graph, drop what only its search needs, and go on with what a checkpoint holds."""
        if self.given[0] is not None:
            rows.graph = self._sample_graph(rows)
        rows.near = rows.cells = None  # a third of the bytes of float32 rows
        rows.complete = True
        if self.store is not None:
            save_prepared(self.store, rows)

    def _sample_graph(self, rows: BlockRows) -> BlockGraph:
        given = self.given[0]
        if isinstance(given, Graph):
            names = ("sigma", "normalized", "method", "metric")
            known: dict[str, Any] = {name: getattr(given, name) for name in names}
            return given_graph(rows.layout, rows.ids, given.weights, **known)
        model = self.model
        graph = search_graph(
            rows.layout,
            rows.points,
            rows.ids,
            rows.near,
            rows.cells,
            n_features=rows.shape[1],
            n_neighbors=self.chosen_neighbors(rows.shape[0], 0),
            sigma=model.sigma if isinstance(model.sigma, str) else model.sigma / rows.unit,
            normalized=check_laplacian(model.laplacian),
            method=given,
            seed=rows.seed,
            metric=replace(rows.metric, cut=rows.metric.cut / rows.unit),
        )
        n, n_halo = rows.shape[0], graph.n_halo
        logger.info(
            "%d rows in %d blocks: %d halo rows (%.1f %% of the rows), %d pieces a step",
            n, len(rows.layout.sizes), n_halo, 100 * n_halo / n, len(graph.halo.pairs),
        )  # fmt: skip
        return replace(graph, sigma=None if graph.sigma is None else graph.sigma * rows.unit)

    def _feature_graph(self, rows: BlockRows) -> Graph | None:
        given, (n, p) = self.given[1], rows.shape
        if given is None or isinstance(given, Graph):
            return given
        if p == 1:
            return None
        unit, sigma, layout = rows.unit, self.model.sigma, rows.layout
        graph = graph_from_products(
            tree_sum(layout.cluster, layout.map(column_products, rows.points)),
            n,
            n_neighbors=self.chosen_neighbors(p, 1),
            sigma=sigma if isinstance(sigma, str) else sigma / unit,
            laplacian=self.model.laplacian,
        )
        return replace(graph, sigma=None if graph.sigma is None else graph.sigma * unit)


def map_chunks(function: Any, X: Any, n_columns: int) -> Any:
    """Apply a function of rows, such as a method of a model on one machine, to every chunk of a matrix, lazily."""
    import dask

    dx = as_row_chunks(X)
    held = dask.delayed(function)  # one task holds it, so that its model travels to a worker once
    known = {"dtype": _dtype(dx), "chunks": (dx.chunks[0], (n_columns,)), "meta": np.empty((0, 0), _dtype(dx))}
    return dx.map_blocks(_call, function=held, **known)


def _call(rows: Array, function: Any) -> Array:
    return function(rows)


def _dtype(X: Any) -> np.dtype:
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
