"""The graphs of a fit on row blocks, and the rows in the order of the sample graph."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from frpcag.dask import sample_graph as block_graphs
from frpcag.dask.backend import DaskBackend
from frpcag.dask.block_problem import RowBlocks
from frpcag.dask.checkpoint import Checkpoint
from frpcag.dask.feature_graph import column_products, graph_from_products
from frpcag.dask.prepared import BlockRows, save_prepared
from frpcag.dask.sample_graph import BlockGraph, search_graph
from frpcag.dask.search import chosen_search, looks_at_lists
from frpcag.dask.tasks import tree_sum
from frpcag.engines.base import Engine
from frpcag.graphs import GRAPHS, Graph
from frpcag.graphs.build import SEARCHES, GraphOptions, graph_of
from frpcag.graphs.laplacian import check_laplacian
from frpcag.graphs.metric import Metric

logger = logging.getLogger("frpcag")


class BlockGraphs(Engine):
    """What a fit on row blocks knows of its graphs: those that were given, and how to find the others."""

    def __init__(self, model: Any, multiples: tuple[float, float] = (1.0, 1.0)) -> None:
        super().__init__(model, multiples)
        self.backend = model.backend if isinstance(model.backend, DaskBackend) else DaskBackend()
        self.cluster: Any = None
        self.store: Checkpoint | None = None
        self.given: tuple[Any, Any] = (None, None)
        self.has_missing = False

    def graph(self, basis: Any, axis: int) -> Any:
        """Return the graph of the samples, cut into the blocks, or of the features; None without one.

        ``basis`` is a `BlockRows`; of a clean part, which are `RowBlocks`, no graph is made.
        """
        if isinstance(basis, RowBlocks):
            return None
        if axis == 1:
            return self._feature_graph(basis)
        if basis.graph is None and self.given[0] is not None:
            basis.graph = self._sample_graph(basis)
            basis.near = basis.cells = None  # a third of the bytes of float32 rows
        if self.store is not None and not basis.saved:
            save_prepared(self.store, basis)
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
        search = chosen_search(*shape, method=self.given[0], metric=metric)
        k = self.chosen_neighbors(shape[0], 0)
        return looks_at_lists(shape[0], k, search=search, metric=metric, has_missing=has_missing)

    def _sample_graph(self, rows: BlockRows) -> BlockGraph:
        given = self.given[0]
        if isinstance(given, Graph):
            names = ("sigma", "normalized", "method", "metric")
            known: dict[str, Any] = {name: getattr(given, name) for name in names}
            return block_graphs.given_graph(rows.layout, rows.ids, given.weights, **known)
        graph = self._searched(rows)
        n, n_halo = rows.shape[0], graph.n_halo
        logger.info(
            "%d rows in %d blocks: %d halo rows (%.1f %% of the rows), %d pieces a step",
            n, len(rows.layout.sizes), n_halo, 100 * n_halo / n, graph.halo.n_pieces,
        )  # fmt: skip
        return graph

    def _searched(self, rows: BlockRows) -> BlockGraph:
        given, model = self.given[0], self.model
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
