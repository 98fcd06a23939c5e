"""The stages of a fit that arrays and tensors share."""

from __future__ import annotations

from typing import Any

import numpy as np

from frpcag.backends.rows import restore_in_place
from frpcag.backends.units import Moves
from frpcag.engines.base import Centred, Engine
from frpcag.graphs import GraphOptions, graph_of
from frpcag.problem import Problem
from frpcag.runtime.threads import block_pool
from frpcag.solvers import Solution


class ArrayEngine(Engine):
    """One array or tensor of one machine."""

    problem_type: type[Problem] = Problem

    def graph(self, basis: Any, axis: int) -> Any:
        """Return the graph of the samples or features of ``basis``; None without one."""
        model = self.model
        method = model.feature_graph if axis else model.sample_graph
        n_nodes = basis.shape[axis]
        if method is None or (isinstance(method, str) and method == "auto" and n_nodes == 1):
            return None
        options = GraphOptions(
            axis=axis,
            n_neighbors=self.chosen_neighbors(n_nodes, axis),
            sigma=model.sigma,
            laplacian=model.laplacian,
            feature_shape=model.feature_shape,
            random_state=model.random_state,
            n_jobs=model.n_jobs,
            argument="feature_graph" if axis else "sample_graph",
            metric="euclidean" if axis else model.metric,
        )
        return graph_of(basis, method, options)

    def problem(self, Xc: Any, graphs: tuple[Any, Any], gammas: tuple[float, float]) -> Problem:
        """Return the problem to solve."""
        parts: dict[str, Any] = {
            f"{name}{i}": None if graph is None else getattr(graph, attribute)
            for i, graph in enumerate(graphs, start=1)
            for name, attribute in (("L", "laplacian"), ("null", "null_vector"), ("lmax", "lmax"))
        }
        gamma1, gamma2 = gammas
        parts |= {"loss": self.model.loss, "huber_delta": self.model.huber_delta}
        return self.problem_type(Xc, gamma1=gamma1, gamma2=gamma2, **parts)

    def restore(self, X: Any, solution: Solution, centred: Centred, problem: Any) -> tuple[Any, Moves | None]:
        """Return the clean part in the units of ``X``, and what rounding has moved."""
        U: Any = solution.U
        tensor = hasattr(U, "clone")
        if centred.level is None:
            return U.clone() if tensor else U.copy(), None
        U, out = (U.clone(), None) if tensor else (U, np.empty_like(U))
        with block_pool(self.model.n_jobs) as run:
            return restore_in_place(X, centred.Xc, U, solution.slope, centred.units, problem, out=out, run=run)
